"""Search over a store: exact names first, one history or all, never a page that is gone; an index that costs no put."""

import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pagefold.adapters.library import Library
from pagefold.adapters.sqlite import search as module
from pagefold.adapters.sqlite.pages import SqlitePages
from pagefold.adapters.sqlite.search import SqliteSearch
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


NAMES = [
    "load_config",
    "loadConfig",
    "src/pages/store.py",
    "C:\\work\\app.ini",
    "E0308",
    "404",
    "0x7fff5fbff8c0",
    "192.168.10.7",
    "v1.24.3-rc2",
    "std::vector",
    "--no-cache",
    "user@example.com",
    "a1b2c3d4-0001-4002",
    "größe_ändern",
]


@pytest.mark.parametrize("name", NAMES)
def test_a_name_is_found_as_typed_before_pages_that_only_have_its_words(
    store: SqlitePages, index: SqliteSearch, name: str
) -> None:
    words = " ".join("".join(one if one.isalnum() else " " for one in name).split())
    # The words alone, more often and in shorter texts, which is what BM25 prefers; and the name within a longer one.
    for n in range(30):
        if words != name:
            store.put(f"{n} {words} {words} {words}\n".encode())
        store.put(f"{n} x{name}x\n".encode())
    page = store.put(f"some text before\nthen {name}, and more after it\n{'filler ' * 300}".encode())

    found = index.search(name)

    assert found[0].page == page
    assert found[0].exact == (name,)
    assert name in found[0].excerpt


def test_words_rank_by_how_rare_they_are_and_how_many_match(store: SqlitePages, index: SqliteSearch) -> None:
    for n in range(20):
        store.put(f"the cache number {n} is warm".encode())
    both = store.put(b"the cache is cold because the lease expired")
    one = store.put(b"a lease of some other thing, of which there is more to say at length")

    assert pages_of(index, "lease cache")[:2] == [both, one]


def test_a_quoted_phrase_is_one_name(store: SqlitePages, index: SqliteSearch) -> None:
    store.put(b"reset by the peer, connection lost, connection reset")
    page = store.put(b"read: connection reset by peer")

    assert pages_of(index, '"connection reset by peer"') == [page]


def test_a_search_in_one_history_finds_nothing_of_another_not_even_by_its_name_there(
    store: SqlitePages, index: SqliteSearch
) -> None:
    shared = store.put(b"shared words", history="one", name="Read secret_plan.md", kind=PageKind.EVIDENCE)
    store.put(b"shared words", history="two", name="Read notes.md", kind=PageKind.CONVERSATION)
    alone = store.put(b"words of one", history="one")

    assert pages_of(index, "words", "two") == [shared]
    assert sorted(pages_of(index, "words", "one")) == sorted([shared, alone])
    assert pages_of(index, "words", "three") == []
    assert pages_of(index, "secret_plan.md", "one") == [shared]
    assert pages_of(index, "secret_plan.md", "two") == []
    (found,) = index.search("words", history="two")
    assert (found.name, found.kind, found.history) == ("Read notes.md", PageKind.CONVERSATION, "two")


def test_a_page_is_found_by_its_name_once(store: SqlitePages, index: SqliteSearch) -> None:
    page = store.put(b"fn main() {}", history="h", name="Read src/main.rs", kind=PageKind.EVIDENCE)

    (found,) = index.search("src/main.rs main")

    assert (found.page, found.name, found.history, found.exact) == (page, "Read src/main.rs", "h", ("src/main.rs",))


def test_what_is_put_after_a_search_is_found_by_the_next(store: SqlitePages, index: SqliteSearch) -> None:
    assert pages_of(index, "word") == []
    first = store.put(b"word one")
    assert pages_of(index, "word") == [first]
    second = store.put(b"word two")
    assert sorted(pages_of(index, "word")) == sorted([first, second])


def test_collected_pages_are_gone_and_what_takes_their_places_is_found(store: SqlitePages, index: SqliteSearch) -> None:
    for n in range(5):
        store.put(f"old word {n}".encode(), history="h", name=f"name {n}", now=n)
    assert len(pages_of(index, "word")) == 5

    store.collect(before=3.0)
    assert len(pages_of(index, "word")) == 2
    store.collect(max_bytes=0)
    # SQLite gives their keys and places away again.
    fresh = [store.put(f"new word {n}".encode(), history="h", name="fresh") for n in range(3)]

    assert sorted(pages_of(index, "word")) == sorted(fresh)
    assert pages_of(index, "old") == []
    assert sorted(pages_of(index, "fresh", "h")) == sorted(fresh)


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


@pytest.mark.parametrize(
    "query",
    ["", "   ", "->", '""', '"', "''", "AND", "NEAR(a b)", "a*", "text:x", "^a", '"a" OR', "\0", "\ud800x", "(" * 99],
)
def test_no_query_is_an_error(store: SqlitePages, index: SqliteSearch, query: str) -> None:
    store.put(b"text: a and b, near x")

    index.search(query)


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(query=st.text(max_size=30), content=st.binary(max_size=60))
def test_any_query_over_any_content_answers(
    query: str, content: bytes, store: SqlitePages, index: SqliteSearch
) -> None:
    # A history of its own, so that one file serves every example.
    history = f"{query}|{content!r}"
    page = store.put(content, history=history, name=query)

    assert set(pages_of(index, query, history)) <= {page}


@settings(max_examples=25, deadline=None)
@given(
    contents=st.lists(st.lists(st.sampled_from(["alpha", "beta", "gamma_ray", "x1"]), max_size=4), max_size=8),
    word=st.sampled_from(["alpha", "beta", "gamma_ray", "x1"]),
)
def test_it_finds_what_a_plain_scan_finds(
    contents: list[list[str]], word: str, tmp_path_factory: pytest.TempPathFactory
) -> None:
    with (
        closing(SqlitePages(tmp_path_factory.mktemp("scan") / "s.db")) as store,
        closing(SqliteSearch(store)) as index,
    ):
        pages = {store.put(" ".join(words).encode()): words for words in contents}
        expected = {page for page, words in pages.items() if word in words}

        assert set(pages_of(index, word, limit=20)) == expected


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

    library = Library(tmp_path / "s.db")
    answer = library.search("anything")
    library.close()
    assert isinstance(answer, SearchFailed)
    assert "move it away" in answer.text


def test_the_librarys_answer_is_told_in_words_and_nothing_found_is_no_failure(tmp_path: Path) -> None:
    library = Library(tmp_path / "s.db")
    page = library.put(b"line one\nthe needle\nline three", history="h", kind=PageKind.EVIDENCE, name="Read hay.txt")
    found, nothing = library.search("needle"), library.search("camel")
    status = library.status(levels={"full": 1}, faults={"refetch": 2})
    library.close()

    assert isinstance(found, SearchResults)
    assert found.found[0].page == page == id_of(b"line one\nthe needle\nline three")
    assert (
        found.text == f"1. {found.found[0].handle} (Read hay.txt, evidence, line 1)\nline one\nthe needle\nline three"
    )
    assert nothing == SearchResults("camel", ())
    assert nothing.text == "No page speaks of 'camel'."
    assert (status.pages, status.sessions, status.searches, status.sink) == (1, 1, 2, None)
    assert (status.levels, status.faults) == ({"full": 1}, {"refetch": 2})
