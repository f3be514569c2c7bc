"""The file of the trace: written beside the work, bounded, shared, and read whatever became of it."""

import stat
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from pagefold.adapters.local_files import LocalFiles
from pagefold.telemetry.events import CALL, CallEvent, TraceEvent, TurnEvent
from pagefold.telemetry.trace import TraceReader, TraceWriter, older
from tests.telemetry.trace_files import read


def call(number: int) -> CallEvent:
    return CallEvent(at=float(number), session="s", tool="Read", before=number)


def written(path: Path, *events: TraceEvent) -> TraceWriter:
    writer = TraceWriter(path)
    for event in events:
        writer.see(event)
    writer.close()
    return writer


def test_it_lies_beside_the_store_and_is_its_owners_alone(tmp_path: Path) -> None:
    path = LocalFiles(tmp_path / "new" / "store.sqlite3").trace
    assert path == tmp_path / "new" / "store.trace.jsonl"
    writer = written(path, call(1), TurnEvent(at=2.0, session="a"))
    assert writer.counts == {"written": 2, "dropped": 0, "unwritable": 0}
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert read(path) == ([call(1), TurnEvent(at=2.0, session="a")], 0)


def test_what_does_not_fit_into_the_queue_is_dropped_and_counted_and_nobody_waits(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    held = threading.Event()
    begun = threading.Event()

    def slow(self: TraceWriter, batch: list[TraceEvent]) -> None:
        begun.set()
        held.wait(20)
        whole(self, batch)

    whole = TraceWriter._write
    monkeypatch.setattr(TraceWriter, "_write", slow)
    writer = TraceWriter(tmp_path / "t.jsonl", waiting=5)
    writer.see(call(0))
    assert begun.wait(20)
    before = time.process_time()
    for number in range(1, 1001):
        writer.see(call(number))
    assert time.process_time() - before < 1
    assert writer.counts["dropped"] == 995
    held.set()
    writer.close()
    assert [event.at for event in read(tmp_path / "t.jsonl")[0]] == [0.0, 1.0, 2.0, 3.0, 4.0, 5.0]


def test_a_disk_that_cannot_be_written_is_told_once_counted_and_tried_again(tmp_path: Path) -> None:
    said: list[str] = []
    place = tmp_path / "not-a-folder"
    place.write_text("")
    writer = TraceWriter(place / "t.jsonl", report=said.append)
    for number in range(3):
        writer.see(call(number))
        deadline = time.monotonic() + 20
        while writer.counts["unwritable"] <= number and time.monotonic() < deadline:
            time.sleep(0.005)
    assert writer.counts["unwritable"] == 3
    assert len(said) == 1
    place.unlink()
    writer.see(call(4))
    writer.close()
    assert read(place / "t.jsonl")[0] == [call(4)]


def test_a_file_that_is_long_enough_becomes_the_older_one(tmp_path: Path) -> None:
    path = tmp_path / "t.jsonl"
    writer = TraceWriter(path, max_bytes=400)
    for number in range(20):
        writer.see(call(number))
        deadline = time.monotonic() + 20
        while writer.counts["written"] <= number and time.monotonic() < deadline:
            time.sleep(0.005)
    writer.close()
    events, damaged = read(path)
    assert path.stat().st_size <= 400
    assert older(path).stat().st_size <= 400
    assert damaged == 0
    kept = [event.at for event in events]
    assert kept == [float(number) for number in range(20)][-len(kept) :]
    assert len(kept) > 6


WRITES = """
import sys
from pathlib import Path
from pagefold.telemetry.events import CallEvent
from pagefold.telemetry.trace import TraceWriter
writer = TraceWriter(Path(sys.argv[1]))
for number in range(300):
    writer.see(CallEvent(at=float(number), session=sys.argv[2], tool="Read"))
writer.close()
assert writer.counts["written"] == 300
"""


def test_several_processes_write_whole_lines_into_one_file(tmp_path: Path) -> None:
    path = tmp_path / "t.jsonl"
    running = [subprocess.Popen([sys.executable, "-c", WRITES, str(path), name]) for name in "ab"]
    assert [one.wait(60) for one in running] == [0, 0]
    events, damaged = read(path)
    assert damaged == 0
    for name in "ab":
        assert [event.at for event in events if event.session == name] == [float(number) for number in range(300)]


def test_damaged_lines_are_counted_and_the_rest_is_read(tmp_path: Path) -> None:
    path = tmp_path / "t.jsonl"
    written(path, call(1))
    with path.open("ab") as file:
        file.write(b"{half a li\n\n\xff\xfe\x00\n" + b"x" * 100 + b"\n")
    written(path, call(2))
    assert read(path) == ([call(1), call(2)], 3)


def test_a_reader_goes_on_where_it_was_and_waits_for_the_end_of_a_line(tmp_path: Path) -> None:
    path = tmp_path / "t.jsonl"
    reader = TraceReader(path)
    assert list(reader.read()) == []
    written(path, call(1))
    assert list(reader.read()) == [call(1)]
    whole = path.read_bytes()
    with path.open("ab") as file:
        file.write(whole[:20])
    assert list(reader.read()) == []
    with path.open("ab") as file:
        file.write(whole[20:])
    assert list(reader.read()) == [call(1)]
    path.write_bytes(b"")
    written(path, call(3))
    assert list(reader.read()) == [call(3)]
    assert reader.damaged == 0


def test_a_reader_may_begin_near_the_end_and_pass_over_other_lines(tmp_path: Path) -> None:
    path = tmp_path / "t.jsonl"
    written(path, *(call(number) for number in range(50)), TurnEvent(at=99.0, session="a"))
    near = list(TraceReader(path, most_bytes=300).read())
    assert 0 < len(near) < 6
    assert near[-1].at == 99.0
    assert [event.at for event in TraceReader(path, only=CALL).read()] == [float(number) for number in range(50)]


def test_what_is_made_of_events_beside_the_file_may_fail(tmp_path: Path) -> None:
    def fails(event: TraceEvent) -> None:
        raise RuntimeError("a collector's library")

    writer = TraceWriter(tmp_path / "t.jsonl", also=fails)
    writer.see(call(1))
    writer.close()
    assert writer.counts == {"written": 1, "dropped": 0, "unwritable": 1}
    assert read(tmp_path / "t.jsonl")[0] == [call(1)]
