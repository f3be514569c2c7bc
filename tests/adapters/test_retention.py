"""The thread that collects a store by itself: it runs, it ends, and one process at a time does it."""

import threading
import time
from contextlib import closing
from pathlib import Path

from pagefold.adapters.retention import DAY, Limits, Retention
from pagefold.adapters.sqlite.pages import SqlitePages
from pagefold.errors import StoreError


def threads() -> int:
    return sum(thread.name == "pagefold-retention" for thread in threading.enumerate())


def until(holds: object, seconds: float = 20.0) -> None:
    end = time.monotonic() + seconds
    while not holds():  # type: ignore[operator]
        assert time.monotonic() < end
        time.sleep(0.01)


def test_what_is_too_old_goes_by_itself_and_the_thread_ends_when_it_is_closed(tmp_path: Path) -> None:
    path, said = tmp_path / "store.sqlite3", list[str]()
    with closing(SqlitePages(path)) as pages:
        old = [pages.put(bytes([n]) * 5000 + bytes(range(256)) * 20, history="old", now=1.0) for n in range(50)]
        new = pages.put(b"new", history="new", now=time.time())
        retention = Retention(lambda: SqlitePages(path), Limits(30), said.append, first_seconds=0.0)
        retention.start()
        until(lambda: said)
        assert [pages.get(page) for page in (*old, new)] == [None] * 50 + [b"new"]
        assert said == ["50 stored pages, 506,000 bytes, were too old or too many"]
        assert threads() == 1
        retention.close()
    assert threads() == 0


def test_of_two_that_collect_one_does_and_a_failure_is_told_and_tried_again(tmp_path: Path) -> None:
    path, said, opened = tmp_path / "store.sqlite3", list[str](), 0

    def first_fails() -> SqlitePages:
        nonlocal opened
        opened += 1
        if opened == 1:
            raise StoreError("no disk")
        return SqlitePages(path)

    with closing(SqlitePages(path)) as pages:
        assert pages.claim_collection(100.0, 50.0)
        assert not pages.claim_collection(120.0, 50.0)
        assert pages.claim_collection(151.0, 50.0)
        pages.put(b"old", now=time.time() - 40 * DAY)
    retention = Retention(first_fails, Limits(30), said.append, first_seconds=0.0, every_seconds=0.05)
    retention.start()
    until(lambda: len(said) == 2)
    retention.close()
    assert "no disk" in said[0]
    assert said[1].startswith("1 stored pages")


def test_without_limits_there_is_no_thread(tmp_path: Path) -> None:
    retention = Retention(lambda: SqlitePages(tmp_path / "store.sqlite3"), Limits())
    retention.start()
    assert threads() == 0
    retention.close()
