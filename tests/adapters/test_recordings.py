"""Recordings on disk: found, opened, read in bounded memory; what cannot be read is told with its place."""

import gzip
import io
import json
import lzma
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pagefold import zstd
from pagefold.adapters import recordings
from pagefold.errors import ConfigError
from pagefold.wire.transcripts import Format, Problem, Session

LIMIT = 1 << 20
SESSION = json.dumps(
    {"id": "s", "messages": [{"role": "user", "content": "hi"}, {"role": "assistant", "content": "hello"}]}
).encode()


def read(path: Path, limit: int = LIMIT) -> list[Session | Problem]:
    found: list[Session | Problem] = []
    for batch in recordings.batches(path, given=None, max_bytes=limit):
        found += recordings.sessions(batch, max_bytes=limit)
    return found


def problems(path: Path, limit: int = LIMIT) -> list[tuple[int, str]]:
    return [(item.line, item.what) for item in read(path, limit) if isinstance(item, Problem)]


@pytest.mark.parametrize("pack", [bytes, lzma.compress, gzip.compress, zstd.compress], ids=["plain", "xz", "gz", "zst"])
def test_a_recording_is_opened_whatever_compresses_it_and_whatever_it_is_called(
    pack: Callable[[bytes], bytes], tmp_path: Path
) -> None:
    path = tmp_path / "anything"
    path.write_bytes(pack(SESSION + b"\n" + SESSION + b"\n"))

    assert [type(item) for item in read(path)] == [Session, Session]


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        (b"", (0, "empty")),
        (b"\n\n", (0, "empty")),
        (b"hello there\n", (1, "not a recording: expected chat JSONL, a Claude Code, Codex or OpenCode log")),
        (b"\x00\x01\x02\x03\n", (1, "binary, not a recording")),
        ("{}".encode("utf-16"), (1, "UTF-16: expected UTF-8")),
        (b'{"something": "else"}\n', (1, "not a recording")),
        (SESSION + b'\n{"messages": [{"role": "us', (2, "line 1, column")),
        (SESSION + b'\n{"messages": "\xff"}', (2, "not UTF-8: byte 0xff at column 15")),
        (SESSION + b"\n" + b'{"messages":' + b"[" * 10_000, (2, "nested too deeply")),
        (b"[" * 100_000, (1, "not a recording")),
    ],
    ids=["empty", "blank", "words", "binary", "utf-16", "other", "truncated", "encoding", "deep", "deeper"],
)
def test_bad_input_is_told_in_one_line_with_its_place(
    content: bytes, expected: tuple[int, str], tmp_path: Path
) -> None:
    path = tmp_path / "bad.jsonl"
    path.write_bytes(content)

    ((line, what),) = problems(path)

    assert line == expected[0]
    assert what.startswith(expected[1]) or expected[1] in what
    assert "\n" not in what


def test_a_compressed_file_that_breaks_off_gives_what_came_before_and_says_so(tmp_path: Path) -> None:
    packed = gzip.compress((SESSION + b"\n") * 5000)
    path = tmp_path / "cut.jsonl.gz"
    path.write_bytes(packed[: len(packed) // 2])

    found = read(path)

    assert any(isinstance(item, Session) for item in found)
    assert "damaged or cut off" in problems(path)[0][1]


def test_a_line_longer_than_the_bound_is_passed_over_and_the_next_one_read(tmp_path: Path) -> None:
    path = tmp_path / "long.jsonl"
    path.write_bytes(SESSION + b"\n" + b'{"messages": "' + b"x" * 3_000_000 + b'"}\n' + SESSION + b"\n")

    found = read(path)

    assert [type(item) for item in found] == [Problem, Session, Session]
    assert problems(path) == [
        (2, "3,000,016 bytes in one line, more than the bound of 1,048,576 (replay.max_line_bytes)")
    ]


def test_a_file_that_cannot_be_read_is_a_problem_and_not_a_crash(tmp_path: Path) -> None:
    assert problems(tmp_path / "gone.jsonl") == [(0, "cannot be read: No such file or directory")]


class Slow(io.BytesIO):
    """A file that gives a few bytes at a time."""

    def __init__(self, content: bytes, piece: int) -> None:
        super().__init__(content)
        self.piece = piece

    def read1(self, size: int | None = -1, /) -> bytes:
        return super().read1(self.piece)


@given(st.lists(st.binary(max_size=30).filter(lambda line: b"\n" not in line), max_size=12), st.integers(1, 40))
def test_lines_are_the_same_wherever_the_file_is_cut(lines: list[bytes], limit: int) -> None:
    content = b"\n".join(lines)

    def numbered(piece: int) -> list[tuple[int, bytes | str]]:
        found = recordings.lines_of(Slow(content, piece), max_bytes=limit)
        return [(number, line.what if isinstance(line, Problem) else line) for number, line in found]

    expected = numbered(1 << 20)
    assert numbered(1) == numbered(3) == expected
    assert [line for _, line in expected if isinstance(line, bytes)] == [
        line for line in lines if line.strip() and len(line) <= limit
    ]


def test_paths_folders_and_globs_name_files_each_once(tmp_path: Path) -> None:
    for name in ("a.jsonl", "b.jsonl.xz", "deep/c.json", "notes.txt"):
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(b"x")

    found = recordings.find([str(tmp_path), str(tmp_path / "*.jsonl"), str(tmp_path / "notes.txt")])

    assert [path.name for path in found] == ["a.jsonl", "b.jsonl.xz", "c.json", "notes.txt"]


@pytest.mark.parametrize("name", ["gone.jsonl", "*.gone", "empty"])
def test_a_name_without_any_file_is_refused(name: str, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()

    with pytest.raises(ConfigError, match=r"no such file, folder or glob|a folder without recordings"):
        recordings.find([str(tmp_path / name)])


def test_a_log_whose_first_records_only_name_the_session_is_recognised(tmp_path: Path) -> None:
    records = [
        {"type": "summary", "summary": "x", "leafUuid": "y"},
        {"type": "user", "sessionId": "s", "message": {"role": "user", "content": "hi"}},
        {"type": "assistant", "sessionId": "s", "message": {"id": "m", "content": [{"type": "text", "text": "yes"}]}},
    ]
    path = tmp_path / "log.jsonl"
    path.write_text("\n".join(map(json.dumps, records)))

    (session,) = read(path)

    assert isinstance(session, Session)
    assert session.source == "claude-code"


@pytest.mark.parametrize("indent", [None, 2])
def test_one_document_is_read_as_one_session(indent: int | None, tmp_path: Path) -> None:
    opencode = {
        "info": {"id": "ses"},
        "messages": [
            {"info": {"role": "user"}, "parts": [{"type": "text", "text": "hi"}]},
            {"info": {"role": "assistant", "id": "m"}, "parts": [{"type": "text", "text": "yes"}]},
        ],
    }
    for name, document in (("opencode", opencode), ("chat", json.loads(SESSION))):
        path = tmp_path / f"{name}.json"
        path.write_text(json.dumps(document, indent=indent))
        (session,) = read(path)
        assert isinstance(session, Session), session
        assert session.messages[0].text == "hi"


def test_a_given_format_is_not_second_guessed(tmp_path: Path) -> None:
    path = tmp_path / "x.jsonl"
    path.write_bytes(SESSION)
    (batch,) = recordings.batches(path, given=Format.CODEX, max_bytes=LIMIT)

    assert [type(item) for item in recordings.sessions(batch, max_bytes=LIMIT)] == [Problem]


def test_the_bundled_example_is_there_and_whole() -> None:
    (session,) = read(recordings.example())

    assert isinstance(session, Session)
    assert len(session.messages) == 45
