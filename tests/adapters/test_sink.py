"""The history sink: against real test servers over loopback, and against storage that is slow, dead or half dead.

The servers are moto (`moto_server`, which accepts any key) and s3rver (which checks signatures). They are looked for on
PATH and in the folder that AGENTS_DIR names, else in `.agents` of the repository.
"""

import asyncio
import os
import shutil
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, field, replace
from itertools import count
from pathlib import Path

import pytest

from pagefold.adapters.library import Library, objects_of
from pagefold.adapters.sink import ObjectStorage
from pagefold.adapters.sqlite.outbox import SqliteOutbox
from pagefold.adapters.sqlite.pages import SqlitePages
from pagefold.adapters.stores import open_store
from pagefold.errors import ConfigError, DeniedError, StoreError
from pagefold.pages.kinds import PageKind
from pagefold.pages.page import PageId, handle_of, id_of
from pagefold.pages.recall import Denied, Failed, Recalled, Unknown
from pagefold.pages.store import UnsentPage
from pagefold.settings.sections import SinkSettings

AGENTS = Path(os.environ.get("AGENTS_DIR") or Path(__file__).parents[2] / ".agents").absolute()
BUCKET = "pagefold-test"
NUMBERS = count()
SECONDS = 20.0
SETTINGS = SinkSettings(bucket=BUCKET, access_key="S3RVER", secret_key="S3RVER", timeout_seconds=5.0)

CONTENTS = [b"", b"plain text", bytes(range(256)) * 40, "é\ud800\0".encode("utf-8", "surrogatepass"), b"w " * 200_000]


# ------------------------------------------------------------------------------------------------ real servers


def program(name: str) -> str:
    pytest.importorskip("obstore", reason="obstore is not installed (the extra s3)")
    places = (AGENTS / "venv" / "bin", AGENTS / "node_modules" / ".bin")
    path = os.pathsep.join([*map(str, places), os.environ.get("PATH", "")])
    found = shutil.which(name, path=path)
    if found is None:
        pytest.skip(f"no {name} on PATH or in {AGENTS}: install moto[server] or s3rver there, or set AGENTS_DIR")
    return found


@dataclass(slots=True)
class Server:
    """A test server that can be killed and started again on the same port and folder."""

    command: Callable[[int, Path], list[str]]
    folder: Path
    port: int = 0
    bucket: str = BUCKET
    process: subprocess.Popen[bytes] | None = None

    @property
    def settings(self) -> SinkSettings:
        return replace(SETTINGS, endpoint=f"http://127.0.0.1:{self.port}", bucket=self.bucket)

    def start(self) -> None:
        if not self.port:
            with socket.socket() as free:
                free.bind(("127.0.0.1", 0))
                self.port = free.getsockname()[1]
        environment = {"PATH": os.environ["PATH"], "HOME": str(self.folder)}
        self.process = subprocess.Popen(
            self.command(self.port, self.folder), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=environment
        )
        until(self.answers)

    def answers(self) -> bool:
        assert self.process is not None
        assert self.process.poll() is None, "the test server ended by itself"
        try:
            urllib.request.urlopen(f"http://127.0.0.1:{self.port}/", timeout=1).close()
        except urllib.error.HTTPError:
            return True
        except OSError:
            return False
        return True

    def kill(self) -> None:
        if self.process is not None:
            self.process.kill()
            self.process.wait()


def until(holds: Callable[[], bool], seconds: float = SECONDS) -> None:
    end = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < end, "it did not come to pass in time"
        time.sleep(0.02)


@pytest.fixture(scope="module")
def one_moto(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    found = program("moto_server")
    server = Server(lambda port, _: [found, "-H", "127.0.0.1", "-p", str(port)], tmp_path_factory.mktemp("moto"))
    server.start()
    yield server
    server.kill()


@pytest.fixture
def moto(one_moto: Server) -> Server:
    """The one server, because it is slow to start, with a bucket of the test's own."""
    one_moto.bucket = f"{BUCKET}-{next(NUMBERS)}"
    request = urllib.request.Request(f"{one_moto.settings.endpoint}/{one_moto.bucket}", method="PUT")
    urllib.request.urlopen(request, timeout=10).close()
    return one_moto


@pytest.fixture
def s3rver(tmp_path: Path) -> Iterator[Server]:
    found = program("s3rver")

    def command(port: int, folder: Path) -> list[str]:
        options = ["-d", str(folder / "s3"), "--no-vhost-buckets", "--configure-bucket", BUCKET, "--silent"]
        return [found, "-a", "127.0.0.1", "-p", str(port), *options]

    (tmp_path / "s3").mkdir()
    server = Server(command, tmp_path)
    server.start()
    yield server
    server.kill()


@pytest.fixture(params=["moto", "s3rver"])
def server(request: pytest.FixtureRequest) -> Server:
    found = request.getfixturevalue(request.param)
    assert isinstance(found, Server)
    return found


@contextmanager
def library(path: Path, sink: SinkSettings | ObjectStorage | None, flush_seconds: float = SECONDS) -> Iterator[Library]:
    objects = objects_of(sink) if isinstance(sink, SinkSettings) else sink
    store = open_store(path, sender=f"sender {next(NUMBERS)}" if objects else "")
    opened = Library(store, objects, flush_seconds=flush_seconds)
    if opened._sink:
        opened._sink._first_pause = 0.05
    try:
        yield opened
    finally:
        opened.close()


def fill(into: Library, session: str = "s") -> list[PageId]:
    kinds = [PageKind.EVIDENCE, PageKind.CONVERSATION, None, PageKind.EVIDENCE, PageKind.EVIDENCE]
    return [
        into.put(content, history=session, now=n, kind=kind, name=f"Read {n} é\ud800")
        for n, (content, kind) in enumerate(zip(CONTENTS, kinds, strict=True))
    ]


@pytest.mark.parametrize("session", ["s", "a/../b c%é", "x" * 700], ids=["plain", "odd", "long"])
def test_a_session_is_restored_elsewhere_byte_for_byte_with_its_order_names_and_kinds(
    server: Server, tmp_path: Path, session: str
) -> None:
    with library(tmp_path / "here.db", server.settings) as here:
        pages = fill(here, session)
        listings = [replace(one, first_put=9.0) for one in here.store.pages.listings(session)]

    with library(tmp_path / "there.db", server.settings) as there:
        restored = there.restore(session, now=9.0)
        again = there.restore(session, now=9.0)

        assert (restored.pages, restored.bytes, restored.missing) == (5, sum(map(len, CONTENTS)), ())
        assert (again.pages, again.present) == (0, 5)
        assert there.store.pages.listed(session) == pages
        assert there.store.pages.listings(session) == listings
        assert [there.store.pages.get(page) for page in pages] == CONTENTS
        state = there.status().sink
        assert state is not None
        assert (state.waiting, state.sent) == (0, 0)


def test_a_handle_is_recalled_from_another_machine_whole_or_in_part(server: Server, tmp_path: Path) -> None:
    with library(tmp_path / "here.db", server.settings) as here:
        page = fill(here)[2]

    with library(tmp_path / "there.db", server.settings) as there:
        handle = handle_of(page)
        assert there.recall(handle, within="s") == Recalled(page, CONTENTS[2])
        ranges = [(0, 4), (250, 260), (10_000, 99_999), (10_240, 10_250), (20_000, 20_001), (-5, 3), (7, 7)]
        for start, end in ranges:
            assert there.read(handle, start, end, within="s") == Recalled(page, CONTENTS[2][max(0, start) : end])
        assert there.recall(handle, within="other") == Unknown(handle)
        assert there.recall(handle_of(id_of(b"never put")), within="s") == Unknown(handle_of(id_of(b"never put")))
        assert not there.restore("nobody", now=0.0).known


def test_the_sessions_in_the_sink_are_listed(moto: Server, tmp_path: Path) -> None:
    # Not asked of s3rver, which answers a listing by folders with nothing.
    with library(tmp_path / "here.db", moto.settings) as here:
        fill(here, "b/c d")
        fill(here, "a")
        until(lambda: waiting(here) == 0)
        assert here.sessions() == ["a", "b/c d"]


def test_what_the_store_collected_is_recalled_from_the_sink_without_naming_the_session(
    server: Server, tmp_path: Path
) -> None:
    with library(tmp_path / "here.db", server.settings) as here:
        page = fill(here)[1]
        until(lambda: waiting(here) == 0)
        assert here.store.pages.collect(max_bytes=0).unsent == 0

        assert here.store.pages.get(page) is None
        assert here.recall(handle_of(page)) == Recalled(page, CONTENTS[1])


def test_a_wrong_key_is_denied_and_counted_and_neither_key_is_told(s3rver: Server, tmp_path: Path) -> None:
    wrong = replace(s3rver.settings, access_key="AKIAWRONGKEY", secret_key="wrong-secret-value")
    with library(tmp_path / "here.db", wrong) as here:
        page = here.put(b"kept", history="s")
        until(lambda: here.status().sink.denials > 0)  # type: ignore[union-attr]
        state = here.status().sink
        with pytest.raises(DeniedError):
            here.restore("s", now=0.0)
        absent = handle_of(id_of(b"elsewhere"))
        answer = here.recall(absent, within="s")

        assert state is not None
        assert state.waiting == 1
        assert here.store.pages.get(page) == b"kept"
        assert isinstance(answer, Denied)
        assert "sink.access_key" in answer.text
        told = f"{state!r} {answer.text} {wrong!r} {objects_of(wrong)!r}"
        assert "AKIAWRONGKEY" not in told
        assert "wrong-secret-value" not in told

    with library(tmp_path / "here.db", s3rver.settings):
        pass
    with library(tmp_path / "there.db", s3rver.settings) as there:
        assert there.restore("s", now=0.0).pages == 1


def test_a_missing_bucket_fails_and_is_no_denial(server: Server, tmp_path: Path) -> None:
    with library(tmp_path / "here.db", replace(server.settings, bucket="nobody-made-it"), 1.0) as here:
        here.put(b"kept", history="s")
        until(lambda: here.status().sink.failures > 0)  # type: ignore[union-attr]
        state = here.status().sink
        assert state is not None
        assert (state.denials, state.waiting) == (0, 1)
        assert state.last_error


def test_a_server_that_is_killed_half_way_and_comes_back_has_everything_in_the_end(
    s3rver: Server, tmp_path: Path
) -> None:
    contents = [b"page %d " % n * 50 for n in range(120)]
    with library(tmp_path / "here.db", s3rver.settings) as here:
        for content in contents[:60]:
            here.put(content, history="s")
        until(lambda: here.status().sink.sent > 0)  # type: ignore[union-attr]
        s3rver.kill()
        for content in contents[60:]:
            here.put(content, history="s")
        until(lambda: here.status().sink.failures > 0)  # type: ignore[union-attr]
        s3rver.start()
        until(lambda: waiting(here) == 0)

    with library(tmp_path / "there.db", s3rver.settings) as there:
        assert there.restore("s", now=0.0).missing == ()
        assert [there.store.pages.get(page) for page in there.store.pages.listed("s")] == contents


def test_what_a_dead_server_never_got_is_sent_at_the_next_start(s3rver: Server, tmp_path: Path) -> None:
    s3rver.kill()
    with library(tmp_path / "here.db", s3rver.settings, 0.5) as here:
        fill(here)
    s3rver.start()

    with library(tmp_path / "here.db", s3rver.settings):
        pass

    with library(tmp_path / "there.db", s3rver.settings) as there:
        assert there.restore("s", now=0.0).pages == len(CONTENTS)


def test_a_server_that_takes_connections_and_never_answers_is_given_up_on_in_time(tmp_path: Path) -> None:
    pytest.importorskip("obstore", reason="obstore is not installed (the extra s3)")
    with socket.create_server(("127.0.0.1", 0)) as silent:
        endpoint = f"http://127.0.0.1:{silent.getsockname()[1]}"
        patient = replace(SETTINGS, endpoint=endpoint, timeout_seconds=60.0)
        with library(tmp_path / "patient.db", patient, 0.3) as here:
            here.put(b"kept", history="s")
            start = time.monotonic()
            assert not here.close()
            assert time.monotonic() - start < 5.0
        with library(tmp_path / "hasty.db", replace(patient, timeout_seconds=0.3), 0.3) as here:
            here.put(b"kept", history="s")
            until(lambda: here.status().sink.failures > 0)  # type: ignore[union-attr]
            assert waiting(here) == 1
            assert isinstance(here.recall(handle_of(id_of(b"elsewhere")), within="s"), Failed)


def test_a_damaged_object_is_neither_recalled_nor_restored(s3rver: Server, tmp_path: Path) -> None:
    with library(tmp_path / "here.db", s3rver.settings) as here:
        pages = fill(here)
    objects = objects_of(s3rver.settings)
    assert objects is not None
    (key,) = [key for key in objects.keys("history/s/pages") if key.endswith(pages[1])]
    asyncio.run(objects.put(key, b"tampered with"))

    with library(tmp_path / "there.db", s3rver.settings) as there:
        assert isinstance(there.recall(handle_of(pages[1]), within="s"), Failed)
        restored = there.restore("s", now=0.0)
        assert restored.missing == (pages[1],)
        assert restored.pages == len(CONTENTS) - 1


def test_the_command_line_sends_lists_restores_and_recalls_and_never_shows_a_key(moto: Server, tmp_path: Path) -> None:
    sink = {"ENDPOINT": moto.settings.endpoint, "BUCKET": moto.bucket, "ACCESS_KEY": "AKIAKEY", "SECRET_KEY": "s3cr3t"}
    environment = {f"PAGEFOLD_SINK_{name}": value for name, value in sink.items()}
    environment |= {"PATH": os.environ["PATH"], "HOME": str(tmp_path)}
    said = ""

    def pagefold(*arguments: str) -> str:
        nonlocal said
        command = [sys.executable, "-m", "pagefold", *arguments]
        done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=True)
        said += done.stdout + done.stderr
        return done.stdout

    (tmp_path / "page.txt").write_text("the page")
    handle = pagefold("store", "put", "page.txt", "--history", "s", "--store", "here.db").strip()
    assert "0 pages, 0 bytes wait to be sent" in pagefold("store", "--store", "here.db")
    assert pagefold("restore", "--store", "there.db") == "s\n"
    assert pagefold("recall", handle, "--history", "s", "--bytes", "4:8", "--store", "there.db") == "page"
    assert "1 page, 8 bytes restored" in pagefold("restore", "s", "--store", "there.db")
    assert pagefold("recall", handle, "--store", "there.db") == "the page"
    assert "everything has been sent" in pagefold("store", "send", "s", "--store", "there.db")
    pagefold("config")
    assert "AKIAKEY" not in said
    assert "s3cr3t" not in said


# ------------------------------------------------------------------------------- storage of our own making


@dataclass(slots=True)
class Kept:
    """Storage in memory that can be told to refuse, to hang or to fail on some keys, and sees how much is under way."""

    where: str = "memory"
    objects: dict[str, bytes] = field(default_factory=dict)
    refuses: bool = False
    hangs: bool = False
    fails_on: str = " "
    poison: bytes = b"none"
    under_way: int = 0
    most: int = 0
    asked: int = 0

    async def put(self, key: str, content: bytes) -> None:
        self.asked += 1
        self.under_way += 1
        self.most = max(self.most, self.under_way)
        try:
            await asyncio.sleep(1000 if self.hangs else 0)
        finally:
            self.under_way -= 1
        if self.refuses or self.fails_on in key or content.startswith(self.poison):
            raise StoreError("refused")
        self.objects[key] = content

    def get(self, key: str) -> bytes | None:
        return self.objects.get(key)

    def read(self, key: str, start: int, end: int) -> bytes | None:
        content = self.objects.get(key)
        return None if content is None else content[start:end]

    def keys(self, folder: str) -> Sequence[str]:
        return [key for key in self.objects if key.startswith(folder + "/")]

    def folders(self, folder: str) -> Sequence[str]:
        return sorted({folder + key.removeprefix(folder).partition("/")[0] for key in self.objects})

    def delete(self, keys: Sequence[str]) -> None:
        for key in keys:
            self.objects.pop(key, None)


def waiting(opened: Library) -> int:
    state = opened.status().sink
    assert state is not None
    return state.waiting


@pytest.mark.parametrize("trouble", ["refuses", "hangs"])
def test_a_put_waits_neither_for_a_dead_sink_nor_for_one_that_hangs(tmp_path: Path, trouble: str) -> None:
    objects = Kept(**{trouble: True})  # type: ignore[arg-type]
    contents = [os.urandom(3000) for _ in range(400)]
    with (
        library(tmp_path / "sink.db", objects, 0.0) as with_sink,
        closing(SqlitePages(tmp_path / "plain.db")) as plain,
    ):
        took = [0.0, 0.0]
        for content in contents:
            for side, put in enumerate((with_sink.put, plain.put)):
                start = time.perf_counter()
                put(content, history="s")
                took[side] += time.perf_counter() - start
        until(lambda: objects.asked > 0)

        # Every one of the puts would have waited half a second or for ever. Noting costs a fraction of a put.
        assert took[0] < 4 * took[1] + 0.5
        assert waiting(with_sink) == len(contents)
        assert objects.most <= 32


def test_closing_takes_no_longer_than_given_and_the_next_start_sends_the_rest(tmp_path: Path) -> None:
    objects = Kept(hangs=True)
    with library(tmp_path / "here.db", objects, 0.2) as here:
        pages = fill(here)
        until(lambda: objects.asked > 0)
        start = time.monotonic()
        assert not here.close()
    assert time.monotonic() - start < 2.0
    assert objects.under_way == 0

    objects.hangs = False
    with library(tmp_path / "here.db", objects):
        pass

    kept = [key.rpartition("/")[2] for key in objects.keys("history/s/pages")]
    assert sorted(kept) == sorted(pages)


def test_what_is_put_just_after_the_sink_looked_and_just_before_closing_is_sent(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    objects = Kept()
    with library(tmp_path / "here.db", objects) as here:
        sink, look = here._sink, SqliteOutbox.next_batch
        assert sink is not None

        def look_and_be_overtaken(outbox: SqliteOutbox, pages: int, length: int) -> Sequence[UnsentPage]:
            batch = look(outbox, pages, length)
            if not sink._closing:
                here.store.pages.put(b"late", history="s")
                sink._closing = True
            return batch

        monkeypatch.setattr(SqliteOutbox, "next_batch", look_and_be_overtaken)
        sink.wake()
        until(lambda: sink._closing)
        assert here.close()

    assert b"late" in objects.objects.values()


def test_pages_that_cannot_be_sent_do_not_hold_up_the_others_however_many_they_are(tmp_path: Path) -> None:
    objects = Kept(poison=b"poison")
    with library(tmp_path / "here.db", objects, 0.2) as here:
        for n in range(50):
            here.put(b"poison %d" % n, history="s")
        for n in range(50):
            here.put(b"%d" % n, history="s")
        until(lambda: waiting(here) == 50)
        objects.poison = b"none"
        until(lambda: waiting(here) == 0)


def test_pages_are_noted_as_sent_only_with_their_manifest(tmp_path: Path) -> None:
    objects = Kept(fails_on="/manifest/")
    with library(tmp_path / "here.db", objects, 0.2) as here:
        fill(here)
        until(lambda: len(objects.objects) == len(CONTENTS))
        assert waiting(here) == len(CONTENTS)
        objects.fails_on = " "
        until(lambda: waiting(here) == 0)
    with library(tmp_path / "there.db", objects) as there:
        assert there.restore("s", now=0.0).pages == len(CONTENTS)


def test_without_a_sink_nothing_awaits_and_turning_one_on_sends_only_what_is_put_or_asked_for(tmp_path: Path) -> None:
    with library(tmp_path / "here.db", None) as here:
        fill(here, "before")
        assert here.status().sink is None
    objects = Kept()
    with library(tmp_path / "here.db", objects) as here:
        here.put(b"new", history="after")
        here.put(b"no session")
        until(lambda: waiting(here) == 0)
        assert here.sessions() == ["after"]
        assert here.send("before") == len(CONTENTS)
        until(lambda: waiting(here) == 0)
        assert here.send("before") == 0
        assert here.sessions() == ["after", "before"]


def test_a_collection_of_what_was_not_sent_is_told(tmp_path: Path) -> None:
    with library(tmp_path / "here.db", Kept(refuses=True), 0.0) as here:
        fill(here)
        assert here.store.pages.collect(max_bytes=0).unsent == len(CONTENTS)
        assert waiting(here) == 0


def test_a_page_collected_while_its_batch_is_sent_is_no_failure(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    objects = Kept()
    look = SqliteOutbox.next_batch
    batches: list[int] = []
    with library(tmp_path / "here.db", objects) as here:
        assert here._sink is not None
        here._sink._first_pause = 2 * SECONDS

        def look_and_collect(outbox: SqliteOutbox, pages: int, length: int) -> Sequence[UnsentPage]:
            batch = look(outbox, pages, length)
            if batch and not any(batches):
                here.store.pages.collect(max_bytes=0)
            batches.append(len(batch))
            return batch

        monkeypatch.setattr(SqliteOutbox, "next_batch", look_and_collect)
        here.put(b"collected", history="s")
        until(lambda: any(batches))
        here.put(b"kept", history="s")
        until(lambda: b"kept" in objects.objects.values())
        assert b"collected" not in objects.objects.values()


def test_a_process_that_starts_takes_over_and_two_that_send_the_same_session_agree(tmp_path: Path) -> None:
    objects = Kept(refuses=True)
    with library(tmp_path / "here.db", objects, 0.0) as first, library(tmp_path / "here.db", objects, 0.0) as second:
        pages = fill(first)
        pages.append(second.put(b"and one more", history="s"))
        objects.refuses = False
        until(lambda: waiting(first) == 0)
    with library(tmp_path / "there.db", objects) as there:
        there.restore("s", now=0.0)
        assert there.store.pages.listed("s") == pages


def test_sink_settings_without_endpoint_or_bucket_mean_no_sink_and_secrets_are_not_shown() -> None:
    assert objects_of(SinkSettings()) is None
    assert objects_of(SinkSettings(bucket="b")) is None
    assert objects_of(SinkSettings(endpoint="http://127.0.0.1:1")) is None
    assert "S3RVER" not in repr(SETTINGS)


def test_a_key_that_the_client_would_tell_is_masked() -> None:
    pytest.importorskip("obstore", reason="obstore is not installed (the extra s3)")
    objects = objects_of(SinkSettings(endpoint="http://127.0.0.1:1", bucket="b", access_key="AKIA1", secret_key="s3c"))

    said = objects._said(ValueError("signed by AKIA1 with s3c\nand more"))  # type: ignore[union-attr]
    assert said == "signed by … with …"


def test_asking_for_sessions_without_a_sink_says_what_to_set(tmp_path: Path) -> None:
    with library(tmp_path / "here.db", None) as here, pytest.raises(ConfigError, match=r"sink\.endpoint"):
        here.sessions()
