"""Search over a store: exact names first, one history or all, never a page that is gone; an index that costs no put."""

import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from pagefold.adapters.library import Library
from pagefold.adapters.sqlite import search as module
from pagefold.adapters.sqlite.pages import SqlitePages
from pagefold.adapters.sqlite.search import SqliteSearch
from pagefold.adapters.stores import open_store
from pagefold.errors import StoreError
from pagefold.pages.kinds import PageKind
from pagefold.pages.page import PageId, id_of
from pagefold.pages.search import SearchFailed, SearchResults


@pytest.fixture
def store(tmp_path: Path) -> Iterator[SqlitePages]:
    with closing(SqlitePages(tmp_path / "pages.db")) as store:
        yield store


@pytest.fixture
def index(store: SqlitePages) -> Iterator[SqliteSearch]:
    with closing(SqliteSearch(store)) as index:
        yield index


def pages_of(index: SqliteSearch, query: str, history: str | None = None, limit: int = 10) -> list[PageId]:
    return [found.page for found in index.search(query, history=history, limit=limit)]


def test_the_index_is_made_anew_once_most_of_it_is_stale(
    store: SqlitePages, index: SqliteSearch, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "_STALE", 3)
    for n in range(20):
        store.put(f"word {n}".encode(), now=n)
    index.refresh()
    store.collect(before=16.0)

    assert len(pages_of(index, "word")) == 4
    assert index._db.execute("SELECT max(number), count(*) FROM documents").fetchone() == (4, 4)


def test_an_index_of_another_store_is_made_anew(tmp_path: Path) -> None:
    path = tmp_path / "pages.db"
    with closing(SqlitePages(path)) as first, closing(SqliteSearch(first)) as index:
        first.put(b"first word")
        index.refresh()
    for file in tmp_path.glob("pages.db*"):
        if not file.name.startswith("pages.db.search"):
            file.unlink()
    with closing(SqlitePages(path)) as second, closing(SqliteSearch(second)) as index:
        page = second.put(b"second word")

        assert pages_of(index, "word") == [page]


def test_texts_are_stored_once(store: SqlitePages, index: SqliteSearch) -> None:
    store.put(b"a sentence that stands nowhere but in the store")
    index.refresh()

    columns = index._db.execute("SELECT text FROM words").fetchall()
    assert columns == [(None,)]
    assert b"sentence that stands" not in index.path.read_bytes()


def test_a_content_that_looks_packed_or_that_was_damaged_does_not_stop_a_search(
    store: SqlitePages, index: SqliteSearch
) -> None:
    looks = [store.put(b"\x28\xb5\x2f\xfd" + rest) for rest in (b"", b" word " * 9, b"\xff" * 20 + b" word")]
    damaged = store.put(b"a long word " * 100)
    store._db.execute("UPDATE contents SET stored = x'28b52ffd00' WHERE key = 4")

    assert set(pages_of(index, "word")) == set(looks[1:])
    assert damaged not in pages_of(index, "long")


def test_four_processes_that_search_and_put_at_once_all_see_what_they_put(tmp_path: Path) -> None:
    program = """
import sys
from pagefold.adapters.sqlite.search import SqliteSearch
from pagefold.adapters.sqlite.pages import SqlitePages
store = SqlitePages(sys.argv[1]); index = SqliteSearch(store)
for n in range(25):
    page = store.put(f"word{sys.argv[2]}x{n} common".encode(), history=sys.argv[2])
    assert [found.page for found in index.search(f"word{sys.argv[2]}x{n}")] == [page], n
"""
    started = [subprocess.Popen([sys.executable, "-c", program, str(tmp_path / "s.db"), str(n)]) for n in range(4)]
    assert [process.wait() for process in started] == [0] * 4

    with closing(SqlitePages(tmp_path / "s.db")) as store, closing(SqliteSearch(store)) as index:
        assert len(pages_of(index, "common", limit=1000)) == 100


def test_a_damaged_index_fails_in_words_that_name_it_and_says_what_to_do(tmp_path: Path) -> None:
    (tmp_path / "s.db.search").write_bytes(b"not a database" * 1000)
    with closing(SqlitePages(tmp_path / "s.db")) as store, pytest.raises(StoreError, match=r"s\.db\.search"):
        SqliteSearch(store)

    library = Library(open_store(tmp_path / "s.db"))
    answer = library.search("anything")
    library.close()
    assert isinstance(answer, SearchFailed)
    assert "move it away" in answer.text


def test_the_librarys_answer_is_told_in_words_and_nothing_found_is_no_failure(tmp_path: Path) -> None:
    library = Library(open_store(tmp_path / "s.db"))
    page = library.put(b"line one\nthe needle\nline three", history="h", kind=PageKind.EVIDENCE, name="Read hay.txt")
    found, nothing = library.search("needle"), library.search("camel")
    status = library.status(levels={"full": 1}, faults={"refetch": 2})
    library.close()

    assert isinstance(found, SearchResults)
    assert found.found[0].page == page == id_of(b"line one\nthe needle\nline three")
    assert (
        found.text
        == f"1. {found.found[0].handle} from Read hay.txt (from line 1)\n    line one\n    the needle\n    line three"
    )
    assert nothing == SearchResults("camel", ())
    assert nothing.text == "No page speaks of 'camel'."
    assert (status.pages, status.sessions, status.searches, status.sink) == (1, 1, 2, None)
    assert (status.levels, status.faults) == ({"full": 1}, {"refetch": 2})
