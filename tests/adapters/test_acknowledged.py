"""What was acknowledged is put again where a store has lost it, and only that."""

import sqlite3
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

from pagefold.adapters.acknowledged import Acknowledged
from pagefold.adapters.sqlite.store import SqliteStore
from pagefold.adapters.steady_store import SteadyStore
from pagefold.errors import StoreError
from pagefold.pages.memory_store import MemoryStore
from pagefold.pages.page import id_of
from pagefold.pages.scope import THIS_USER, StoreScope

PAGES = 400
ANN = StoreScope("ann", "/work/a")


def acknowledged(count: int) -> Acknowledged:
    known = Acknowledged()
    for n in range(count):
        content = f"page {n}".encode()
        scope = ANN if n % 2 else THIS_USER
        known.put(scope, id_of(content), content, {"history": f"h{n % 7}"})
        known.noted(scope.principal, f"note {n}", content, 0.0, f"h{n % 7}")
    return known


def test_a_store_that_lacks_the_newest_gets_those() -> None:
    store, before = MemoryStore(), Acknowledged()
    assert acknowledged(PAGES - 40).give(store, lambda scope, page: None) == 0
    listed = {
        (scope, n): list(store.scoped(scope).pages.listed(f"h{n}")) for scope in (ANN, THIS_USER) for n in range(7)
    }
    assert before.give(store, lambda scope, page: None) == 0

    assert acknowledged(PAGES).give(store, lambda scope, page: None) == 0
    for (scope, n), pages in listed.items():
        now = list(store.scoped(scope).pages.listed(f"h{n}"))
        wanted = [id_of(f"page {m}".encode()) for m in range(PAGES) if m % 7 == n and (m % 2 == 1) == (scope == ANN)]
        assert now[: len(pages)] == pages
        assert now == wanted
    assert store.scoped(ANN).notes.newest(f"note {PAGES - 1}") == f"page {PAGES - 1}".encode()


def test_a_page_whose_content_is_forgotten_is_read_or_counted_as_lost() -> None:
    known = acknowledged(4)
    known.contents.clear()
    store = MemoryStore()
    assert known.give(store, lambda scope, page: b"page 1" if page == id_of(b"page 1") else None) == 3
    assert store.scoped(ANN).pages.get(id_of(b"page 1")) == b"page 1"


class FailingOnce(SqliteStore):
    """Opens, and then fails when the answer is True."""

    failures: Iterator[bool]

    def check(self) -> None:
        if next(self.failures):
            raise StoreError("the disk is away for a moment", kind="failing")
        super().check()


def test_a_store_that_fails_again_when_it_is_opened_anew_is_given_all_afterwards(tmp_path: Path) -> None:
    path = tmp_path / "store.sqlite3"
    FailingOnce.failures = iter([False, True, True] + [False] * 10_000)
    store = SteadyStore(lambda: FailingOnce(path), str(path), round_seconds=0.02)
    page = store.pages.put(b"acknowledged", history="h")
    for beside in path.parent.glob(path.name + "*"):
        beside.unlink()
    ends = time.monotonic() + 10
    while not store.health().mended or store.is_out:
        assert time.monotonic() < ends
        time.sleep(0.01)
    assert store.pages.listed("h") == [page]
    store.close()
    with closing(sqlite3.connect(path)) as db:
        assert db.execute("SELECT count(*) FROM pages").fetchone() == (1,)
