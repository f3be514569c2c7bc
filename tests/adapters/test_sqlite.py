"""What only a store on disk can get wrong: other processes, threads, kills, damage, permissions, a full disk."""

import os
import random
import sqlite3
import stat
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing, suppress
from dataclasses import replace
from itertools import count
from pathlib import Path
from typing import IO

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pagefold.adapters.sqlite.database import migrate
from pagefold.adapters.sqlite.pages import SqlitePages
from pagefold.adapters.sqlite.schema import APPLICATION_ID, MIGRATIONS
from pagefold.adapters.sqlite.store import SqliteStore
from pagefold.errors import StoreError
from pagefold.pages.page import PageId, handle_of, id_of
from pagefold.pages.store import Collected, StoreStats

posix = pytest.mark.skipif(os.name != "posix", reason="needs POSIX permissions and limits")

PROLOGUE = """
import os, random, sys, threading
from pagefold.adapters.sqlite.pages import SqlitePages
from pagefold.errors import StoreError
path, name = sys.argv[1:]
dice = random.Random(name)
"""


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "pages.db"


@pytest.fixture
def store(path: Path) -> Iterator[SqlitePages]:
    with closing(SqlitePages(path)) as store:
        yield store


def child(code: str, path: Path, name: object = "") -> subprocess.Popen[str]:
    command = [sys.executable, "-c", PROLOGUE + code, str(path), str(name)]
    return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)


def lines_of(process: subprocess.Popen[str]) -> IO[str]:
    assert process.stdout is not None
    return process.stdout


def output_of(process: subprocess.Popen[str]) -> list[str]:
    printed, _ = process.communicate()
    assert process.returncode == 0
    return printed.split("\n")[:-1]


def migrated(store: SqlitePages, steps: Sequence[str]) -> None:
    migrate(store._db, store.path, "page store", APPLICATION_ID, steps)


def refusal_of(error: pytest.ExceptionInfo[StoreError], path: Path) -> str:
    """The message, once it is one sentence that names the file."""
    message = str(error.value)
    assert str(path) in message
    assert "\n" not in message
    return message


# ------------------------------------------------------------------------------------------------ other processes


def test_four_processes_that_open_and_fill_a_new_file_at_once_lose_nothing(path: Path) -> None:
    writer = """
print("ready", flush=True)
sys.stdin.read()
store = SqlitePages(path)
for n in range(200):
    content = b"shared %d" % n if n % 4 == 0 else dice.randbytes(dice.randint(1, 9000))
    print(store.put(content, history="all", now=n))
"""
    with ExitStack() as stack:
        writers = [stack.enter_context(child(writer, path, seed)) for seed in range(4)]
        assert [lines_of(process).readline() for process in writers] == ["ready\n"] * 4
        printed = [output_of(process) for process in writers]

    assert [len(pages) for pages in printed] == [200] * 4
    distinct = {PageId(page) for pages in printed for page in pages}
    with closing(SqlitePages(path)) as store:
        assert set(store.listed("all")) == distinct
        assert {id_of(store.get(page) or b"") for page in distinct} == distinct
        assert store.stats().pages == len(distinct) == 4 * 150 + 50


def test_a_collection_never_takes_what_another_process_holds_or_has_just_put(path: Path) -> None:
    collector = """
ended = threading.Event()
threading.Thread(target=lambda: (sys.stdin.read(), ended.set())).start()
store, removed = SqlitePages(path), 0
while not ended.is_set():
    removed += store.collect(before=10.0).pages
    # Reading leaves the others time to write.
    for _ in range(20):
        store.stats()
print(removed)
"""
    holder = """
store = SqlitePages(path)
for n in range(300):
    history = f"{name} {n}"
    held, young = (b"%s %d %s " % (name.encode(), n % 7, kind) * 50 for kind in (b"held", b"young"))
    page = store.put(held, now=1.0)
    if not store.hold(page, history):
        store.put(held, now=1.0)
    assert store.get(page) == held, "a held page is gone"
    store.release(history)
    store.put(young + b"%d" % n, now=1.0)
    assert store.exists(store.put(young + b"%d" % n, now=20.0)), "a page put after the time given is gone"
"""
    with child(collector, path) as collecting, child(holder, path, "one") as one, child(holder, path, "two") as two:
        assert output_of(one) == output_of(two) == []
        [removed] = output_of(collecting)

    assert int(removed) > 0


def between(store: SqlitePages, statement: int, action: Callable[[], object]) -> None:
    """Have `action` tried, as by another process, just before that statement of what the store does next."""
    number = count()

    def step(_: str) -> None:
        if next(number) == statement:
            with suppress(StoreError):
                action()

    store._db.set_trace_callback(step)  # type: ignore[attr-defined]


@pytest.mark.parametrize("statement", range(9))
def test_a_page_held_or_refreshed_between_any_two_steps_of_a_collection_is_kept(path: Path, statement: int) -> None:
    with closing(SqlitePages(path)) as store, closing(SqlitePages(path)) as other:
        other._db.execute("PRAGMA busy_timeout = 0")
        held, young, old = (store.put(content, now=1.0) for content in (b"held", b"young", b"old"))
        kept: list[PageId] = []
        between(store, statement, lambda: kept.extend([held] if other.hold(held, "live") else []))
        store.collect(before=2.0)
        assert [page for page in kept if not store.exists(page)] == []

        store.put(b"young", now=1.0)
        between(store, statement, lambda: kept.append(other.put(b"young", now=3.0)))
        store.collect(before=2.0)
        assert [page for page in kept if not store.exists(page)] == []
        assert store.exists(young) == (young in kept)
        assert not store.exists(old)


@pytest.mark.parametrize("statement", range(9))
def test_a_page_collected_between_any_two_steps_of_a_put_is_put_again(path: Path, statement: int) -> None:
    with closing(SqlitePages(path)) as store, closing(SqlitePages(path)) as other:
        other._db.execute("PRAGMA busy_timeout = 0")
        page = store.put(b"content", history="h", now=1.0)
        between(store, statement, lambda: other.collect(before=2.0))

        store.put(b"content", history="h", now=3.0)

        assert store.get(page) == b"content"
        assert store.listed("h") == [page]


def test_processes_that_open_a_new_file_at_the_same_instant_all_get_a_store(path: Path) -> None:
    opener = """
print("ready", flush=True)
for line in sys.stdin:
    store = SqlitePages(path + line.strip())
    print(store.put(name.encode()), flush=True)
    store.close()
"""
    with ExitStack() as stack:
        openers = [stack.enter_context(child(opener, path, name)) for name in range(4)]
        for turn in range(100):
            assert all(lines_of(process).readline() for process in openers)
            for process in openers:
                assert process.stdin is not None
                process.stdin.write(f"{turn}\n")
                process.stdin.flush()
        assert [len(output_of(process)) for process in openers] == [1] * 4


@posix
def test_a_writer_killed_at_any_instant_has_lost_no_page_it_acknowledged(path: Path) -> None:
    writer = """
print("ready", flush=True)
store = SqlitePages(path)
while True:
    words = [b"%d" % dice.randrange(300) for _ in range(dice.randint(600, 12000))]
    print(store.put(b" ".join(words), history="run"), flush=True)
    if dice.random() < 0.1:
        store.hold(store.put(dice.randbytes(2000)), "run")
"""
    dice = random.Random()
    acknowledged: set[PageId] = set()
    for run in range(12):
        with child(writer, path, run) as process:
            printed = [lines_of(process).readline() for _ in range(dice.randint(1, 40))]
            process.kill()
            printed += lines_of(process).readlines()
        acknowledged.update(PageId(line[:-1]) for line in printed[1:] if line.endswith("\n"))
        with closing(SqlitePages(path)) as store:
            assert {id_of(store.get(page) or b"") for page in acknowledged} == acknowledged
            assert acknowledged <= set(store.listed("run"))
            assert store._db.execute("PRAGMA integrity_check").fetchall() == [("ok",)]

    assert acknowledged


def test_a_file_that_stays_locked_is_refused_and_works_again_once_it_is_free(store: SqlitePages, path: Path) -> None:
    page = store.put(b"before")
    store._db.execute("PRAGMA busy_timeout = 20")
    with closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(StoreError) as refused:
            store.put(b"after")
        assert store.get(page) == b"before"
        other.execute("ROLLBACK")

    assert "stays locked" in refusal_of(refused, path)
    assert store.get(store.put(b"after")) == b"after"


# -------------------------------------------------------------------------------------------------------- threads


def test_one_store_serves_many_threads_at_once(store: SqlitePages) -> None:
    def use(seed: int) -> None:
        dice = random.Random(seed)
        for n in range(60):
            content = b"%d " % dice.randrange(40) * dice.randint(1, 2000)
            store.hold(id_of(content), str(seed))
            page = store.put(content, history=str(seed), now=float(n))
            assert store.get(page) == content
            assert page in store.listed(str(seed))
            if n % 20 == 0:
                store.collect(max_bytes=50_000)

    with ThreadPoolExecutor(8) as threads:
        list(threads.map(use, range(8)))


def test_threads_that_make_the_same_new_file_all_get_a_store(path: Path) -> None:
    with ThreadPoolExecutor(8) as threads:
        stores = list(threads.map(SqlitePages, [path] * 8))
    pages = [store.put(bytes([n])) for n, store in enumerate(stores)]

    assert all(store.exists(page) for store in stores for page in pages)
    for store in stores:
        store.close()


# ---------------------------------------------------------------------------------------------------- what is kept


def test_what_shrinks_is_stored_small_and_what_does_not_is_stored_as_it_is(store: SqlitePages) -> None:
    noise = random.Random(1).randbytes(5000)
    store.hold(store.put(b"word " * 1000), "live")
    store.hold(id_of(b"absent"), "live")
    assert store.stats().stored_bytes < 100

    with_words = store.stats()
    store.put(noise)

    assert store.stats() == StoreStats(
        pages=2, bytes=10_000, stored_bytes=with_words.stored_bytes + 5000, held=1, histories=0
    )
    assert store.get(id_of(noise)) == noise


def test_a_page_put_again_is_not_stored_again(store: SqlitePages) -> None:
    store.put(b"word " * 1000, now=1.0)
    once = store.stats()

    store.put(b"word " * 1000, history="here", now=2.0)

    assert store.stats() == replace(once, histories=1)
    assert store._db.execute("SELECT key FROM contents").fetchall() == [(1,)]


def test_an_empty_store_counts_nothing(store: SqlitePages) -> None:
    assert store.stats() == StoreStats(pages=0, bytes=0, stored_bytes=0, held=0, histories=0)
    assert store.collect(before=9.0, max_bytes=0) == Collected(pages=0, bytes=0, held=0)


def test_a_closed_store_says_so_and_may_be_closed_twice(store: SqlitePages, path: Path) -> None:
    store.close()
    store.close()

    with pytest.raises(StoreError) as refused:
        store.get(id_of(b""))
    assert "is closed" in refusal_of(refused, path)


def test_a_file_with_the_name_of_an_sqlite_keyword_is_a_file(tmp_path: Path) -> None:
    for name in (":memory:", "file:pages?mode=memory", "Ünïcode 'quoted'"):
        with closing(SqlitePages(tmp_path / name)) as store:
            store.put(b"content")
        assert (tmp_path / name).is_file()


# -------------------------------------------------------------------------------------------------------- versions


def test_a_file_of_a_newer_version_is_refused_and_left_as_it_is(store: SqlitePages, path: Path) -> None:
    store.put(b"content")
    migrated(store, (*MIGRATIONS, "ALTER TABLE pages ADD COLUMN later TEXT"))
    store.close()
    before = path.read_bytes()

    with pytest.raises(StoreError) as refused:
        SqlitePages(path)

    assert "made by a newer pagefold" in refusal_of(refused, path)
    assert path.read_bytes() == before


def test_an_older_file_is_brought_up_with_its_pages_and_only_once(store: SqlitePages) -> None:
    page = store.put(b"content")
    steps = (*MIGRATIONS, "ALTER TABLE pages ADD COLUMN later TEXT; CREATE TABLE more (x)", "DROP TABLE more")

    migrated(store, steps)
    migrated(store, steps)

    assert store._db.execute("PRAGMA user_version").fetchone()[0] == len(steps)
    assert store.get(page) == b"content"


def test_a_migration_that_fails_half_way_leaves_the_file_at_the_version_it_had(store: SqlitePages, path: Path) -> None:
    with pytest.raises(sqlite3.OperationalError):
        migrated(store, (*MIGRATIONS, "CREATE TABLE more (x); CREATE TABLE more (y)"))

    assert store._db.execute("PRAGMA user_version").fetchone()[0] == len(MIGRATIONS)
    assert store._db.execute("SELECT count(*) FROM sqlite_schema WHERE name = 'more'").fetchone() == (0,)
    with closing(SqlitePages(path)) as again:
        assert again.get(again.put(b"content")) == b"content"


@pytest.mark.parametrize("version", [0, 1, 7])
def test_another_programs_database_is_refused_and_left_as_it_is(path: Path, version: int) -> None:
    with closing(sqlite3.connect(path)) as other:
        other.execute("CREATE TABLE pages (theirs)")
        other.execute(f"PRAGMA user_version = {version}")
    before = path.read_bytes()

    with pytest.raises(StoreError) as refused:
        SqlitePages(path)

    assert "another program's database" in refusal_of(refused, path)
    assert path.read_bytes() == before


# ---------------------------------------------------------------------------------------------------------- damage


def filled(path: Path) -> dict[PageId, bytes]:
    contents = [b"line %d of a log\n" % n * (n * 20) for n in range(30)]
    contents += [random.Random(n).randbytes(n * 400) for n in range(30)]
    with closing(SqlitePages(path)) as store:
        return {store.put(content, history="h", now=float(n)): content for n, content in enumerate(contents)}


@pytest.mark.parametrize("size", [100, 5000, 100_000])
def test_a_file_of_garbage_is_refused_with_what_to_do(path: Path, size: int) -> None:
    path.write_bytes(random.Random(size).randbytes(size))

    with pytest.raises(StoreError) as refused:
        SqlitePages(path)

    assert refusal_of(refused, path).endswith("move it away and pagefold starts a new one")
    assert isinstance(refused.value.__cause__, sqlite3.Error)


def test_a_damaged_file_moved_away_makes_room_for_a_new_one(path: Path) -> None:
    path.write_bytes(b"garbage" * 1000)
    with pytest.raises(StoreError):
        SqlitePages(path)

    path.rename(path.with_suffix(".bad"))

    with closing(SqlitePages(path)) as store:
        assert store.get(store.put(b"content")) == b"content"


def test_a_truncated_file_is_refused_with_what_to_do(path: Path) -> None:
    filled(path)
    whole = path.read_bytes()

    for length in (len(whole) - 4096, len(whole) // 2, 5000, 150):
        path.write_bytes(whole[:length])
        with pytest.raises(StoreError, match="is damaged"):
            SqlitePages(path)


def test_zeroed_pages_in_the_middle_cost_the_pages_there_and_never_a_wrong_byte(path: Path) -> None:
    contents = filled(path)
    whole = bytearray(path.read_bytes())
    middle = len(whole) // 2 // 4096 * 4096
    whole[middle : middle + 5 * 4096] = bytes(5 * 4096)
    path.write_bytes(whole)

    refused: list[str] = []
    with closing(SqlitePages(path)) as store:
        for page, content in contents.items():
            try:
                assert store.get(page) == content
            except StoreError as error:
                refused.append(str(error))

    assert 0 < len(refused) < len(contents)
    assert all(f"{path} is damaged" in message for message in refused)


@settings(deadline=None, max_examples=100)
@given(st.randoms(use_true_random=False), st.sampled_from(["flip", "header", "zero", "noise", "cut"]))
def test_any_damage_gives_the_right_bytes_or_none_or_a_refusal(dice: random.Random, way: str) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "pages.db"
        contents = filled(path)
        damage(path, dice, way)
        with suppress(StoreError), closing(SqlitePages(path)) as store:
            for page, content in contents.items():
                with suppress(StoreError):
                    assert store.get(page) in (content, None)
                with suppress(StoreError):
                    store.find(handle_of(page))
            for use in (lambda: store.put(b"more", history="h"), lambda: store.listed("h"), store.stats, store.collect):
                with suppress(StoreError):
                    use()


def damage(path: Path, dice: random.Random, way: str) -> None:
    data = bytearray(path.read_bytes())
    at = dice.randrange(len(data))
    if way == "flip":
        data[at] ^= 1 << dice.randrange(8)
    elif way == "header":
        data[at // 4096 * 4096 + dice.randrange(40)] = dice.randrange(256)
    elif way == "zero":
        data[at : at + 4096] = bytes(min(4096, len(data) - at))
    elif way == "noise":
        data[at : at + 200] = bytes(dice.randrange(256) for _ in range(min(200, len(data) - at)))
    else:
        del data[at:]
    path.write_bytes(data)


WORDS = b"word " * 1000


@pytest.mark.parametrize(
    "change",
    [
        "UPDATE contents SET stored = (SELECT stored FROM contents WHERE key = 2) WHERE key = 1",
        "UPDATE contents SET stored = x'28b52ffd00'",
        "UPDATE contents SET stored = 'text'",
        "UPDATE pages SET bytes = 1 << 60",
        "UPDATE pages SET bytes = 'many'",
        "DELETE FROM contents",
    ],
)
def test_a_content_that_is_not_what_was_put_is_refused(store: SqlitePages, path: Path, change: str) -> None:
    page = store.put(WORDS)
    store.put(WORDS.swapcase())
    store._db.execute(change)

    with pytest.raises(StoreError) as refused:
        store.get(page)

    assert "is damaged" in refusal_of(refused, path)


# -------------------------------------------------------------------------------------------- room and permissions


def test_a_store_that_may_not_grow_refuses_the_page_and_goes_on_once_there_is_room(
    store: SqlitePages, path: Path
) -> None:
    page = store.put(b"before")
    store._db.execute("PRAGMA max_page_count = 12")

    with pytest.raises(StoreError) as refused:
        store.put(random.Random(1).randbytes(100_000))

    assert "has no room to grow" in refusal_of(refused, path)
    assert store.get(page) == b"before"
    assert store.stats().pages == 1
    store._db.execute("PRAGMA max_page_count = 1000")
    assert store.get(store.put(b"after" * 10_000)) == b"after" * 10_000


@posix
def test_a_disk_that_takes_no_more_refuses_the_page_and_keeps_every_acknowledged_one(path: Path) -> None:
    writer = """
import resource
store = SqlitePages(path)
hard = resource.getrlimit(resource.RLIMIT_FSIZE)[1]
resource.setrlimit(resource.RLIMIT_FSIZE, (300_000, hard))
try:
    while True:
        print(store.put(dice.randbytes(7000)))
except StoreError as error:
    print(error)
resource.setrlimit(resource.RLIMIT_FSIZE, (hard, hard))
print(store.put(b"there is room again"))
"""
    with child(writer, path) as process:
        *acknowledged, refused, last = output_of(process)

    assert refused.startswith(f"the page store {path} ")
    assert "disk" in refused
    assert acknowledged
    with closing(SqlitePages(path)) as store:
        pages = {PageId(page) for page in (*acknowledged, last)}
        assert {id_of(store.get(page) or b"") for page in pages} == pages
        assert store.stats().pages == len(pages)


def test_a_content_larger_than_sqlite_takes_is_refused(store: SqlitePages, path: Path) -> None:
    store._db.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, 10_000)  # type: ignore[attr-defined]

    with pytest.raises(StoreError) as refused:
        store.put(random.Random(1).randbytes(20_000))

    assert "so large a content" in refusal_of(refused, path)
    assert store.get(store.put(b"smaller")) == b"smaller"


@pytest.mark.parametrize("place", ["directory", "below a file"])
def test_a_path_that_can_be_no_file_is_refused(tmp_path: Path, place: str) -> None:
    (tmp_path / "taken").mkdir() if place == "directory" else (tmp_path / "taken").write_bytes(b"")
    path = tmp_path / "taken" if place == "directory" else tmp_path / "taken" / "deeper" / "pages.db"

    with pytest.raises(StoreError) as refused:
        SqlitePages(path)

    assert "cannot be opened for writing" in refusal_of(refused, path)


@posix
@pytest.mark.parametrize("place", ["file", "directory", "file in a directory", "directory in a directory"])
def test_what_this_user_may_not_write_is_refused_with_what_to_do(place: str) -> None:
    # Permissions bind everybody but root, who therefore asks as nobody.
    opener = """
if os.geteuid() == 0:
    os.setgroups([])
    os.setgid(65534)
    os.setuid(65534)
try:
    SqlitePages(path).put(b"content")
except StoreError as error:
    print(error)
"""
    with tempfile.TemporaryDirectory() as folder:
        below = Path(folder) / "below"
        below.mkdir()
        path = below / "deeper" / "pages.db" if place == "directory in a directory" else below / "pages.db"
        if place.startswith("file"):
            filled(path)
        path.chmod(0) if place == "file" else None
        path.chmod(0o666) if place == "file in a directory" else None
        Path(folder).chmod(0o755)
        below.chmod(0o777 if place == "file" else 0o555)
        with child(opener, path) as process:
            [refused] = output_of(process)
        below.chmod(0o755)

    if os.geteuid() == 0 and place.startswith("file"):  # then it is root's, whom nobody does not trust
        assert refused.startswith(f"{path} belongs to another user")
        assert refused.endswith("name another file")
    else:
        assert refused.startswith(f"the page store {path} cannot be opened for writing")
        assert refused.endswith("make sure that it is a file and that you may write it and its directory")


@posix
def test_the_file_its_side_files_and_its_directory_are_their_owners_alone(tmp_path: Path) -> None:
    path = tmp_path / "new" / "pages.db"
    usual = os.umask(0)
    try:
        with closing(SqlitePages(path)) as store:
            store.put(b"secret")
            modes = {file.name: stat.S_IMODE(file.stat().st_mode) for file in (path.parent, *path.parent.iterdir())}
    finally:
        os.umask(usual)

    assert modes == {"new": 0o700, "pages.db": 0o600, "pages.db-wal": 0o600, "pages.db-shm": 0o600}


@posix
def test_opening_a_store_twice_in_one_process_keeps_the_locks_of_the_first(store: SqlitePages, path: Path) -> None:
    page = store.put(b"content")
    SqlitePages(path).close()

    with child("store = SqlitePages(path)\nstore.put(b'theirs')\nstore.close()", path) as process:
        output_of(process)

    # Had the locks gone, the other process would have thought itself the last one and removed the log.
    assert path.with_name("pages.db-wal").exists()
    assert store.get(page) == b"content"
    assert store.exists(id_of(b"theirs"))


def test_of_many_connections_that_put_a_note_if_absent_one_puts_and_all_get_the_same_answer(tmp_path: Path) -> None:
    def decide(number: int) -> list[bytes]:
        with closing(SqliteStore(tmp_path / "pages.db")) as store:
            return [store.notes.put_if_absent(f"decision {n}", b"%d" % number) for n in range(20)]

    with ThreadPoolExecutor(4) as pool:
        first, *others = pool.map(decide, range(4))
    assert others == [first] * 3
    with closing(SqliteStore(tmp_path / "pages.db")) as store:
        assert [store.notes.newest(f"decision {n}") for n in range(20)] == first
