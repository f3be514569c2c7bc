"""What is forgotten leaves no byte behind, in no file of the store and not in the sink; what others have stays."""

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from pagefold.adapters.library import Library
from pagefold.adapters.protection import Protection
from pagefold.adapters.stores import open_store
from pagefold.pages.forgetting import Choice
from pagefold.pages.page import handle_of
from pagefold.pages.recall import Recalled, Unknown
from pagefold.pages.scope import StoreScope
from pagefold.pages.store import Store
from pagefold.pages.writeback import Scopes
from tests.adapters.kept_objects import KeptObjects
from tests.adapters.sessions_to_forget import files_with, fill, forget

HERE, THERE = StoreScope("", "/here"), StoreScope("", "/there")


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with closing(open_store(tmp_path / "store.sqlite3", scope=HERE)) as store:
        yield store


def test_no_byte_of_a_session_is_left_in_any_file_and_others_keep_all(store: Store, tmp_path: Path) -> None:
    fill(store, "monday", 1.0, "zebra")
    fill(store, "second", 2.0, "otter")
    shared = store.pages.put(b"shared by both", history="monday", now=1.0)
    store.pages.put(b"shared by both", history="second", now=2.0)
    beside = {"store.sqlite3-wal", "store.sqlite3.search-wal", "store.journal.sqlite3"}
    assert beside <= set(files_with(tmp_path, b"zebra"))

    forgotten = forget(store, Choice("monday"))

    assert forgotten.sessions == ("monday",)
    assert (forgotten.pages, forgotten.kept, forgotten.notes, forgotten.journal_lines) == (44, 1, 40, 1)
    assert files_with(tmp_path, b"zebra") == files_with(tmp_path, b"monday") == []
    assert store.search_index.search("zebra") == []
    assert len(store.search_index.search("otter")) > 1
    assert store.pages.get(shared) == b"shared by both"
    assert len(store.pages.listed("second")) == 5
    assert store.notes.newest("note-otter-7") == b"otter noted 7"
    assert files_with(tmp_path, b"zebra") == [], "the index that was made anew"


def test_what_another_session_holds_stays_readable_to_it(store: Store) -> None:
    page = store.pages.put(b"listed by the first alone", history="monday", now=1.0)
    store.pages.hold(page, "second")

    assert forget(store, Choice("monday")).kept == 1

    assert store.pages.get(page) == b"listed by the first alone"
    assert store.pages.listed("monday") == []
    store.pages.release("second")


def test_a_project_is_forgotten_by_itself_and_comes_back_as_a_new_one(store: Store, tmp_path: Path) -> None:
    fill(store, "monday", 1.0, "zebra")
    store.pages.put(b"zebra of no session", now=1.0)
    other = store.scoped(THERE)
    fill(other, "second", 1.0, "otter")

    forget(store, Choice())

    assert files_with(tmp_path, b"zebra") == files_with(tmp_path, b"/here") == []
    assert len(other.pages.listed("second")) == 4
    page = store.pages.put(b"anew", history="monday", now=3.0)
    assert (store.pages.get(page), other.pages.get(page)) == (b"anew", None)


def test_before_a_time_go_those_whose_last_turn_was_earlier(store: Store, tmp_path: Path) -> None:
    fill(store, "old", 1.0, "zebra")
    fill(store, "begun early", 1.0, "otter")
    store.pages.renew("begun early", 9.0)
    store.pages.put(b"zebra of no session", now=1.0)
    store.notes.put("note of none", b"zebra noted", now=1.0)
    everything = store.scoped(HERE.own)

    assert forget(everything, Choice(before=5.0)).sessions == ("old",)

    assert files_with(tmp_path, b"zebra") == []
    assert len(store.pages.listed("begun early")) == 4
    assert forget(everything, Choice(before=5.0)).is_nothing


def test_a_session_that_goes_on_in_an_open_process_is_kept_anew(store: Store) -> None:
    fill(store, "live", 1.0, "zebra")
    scopes = Scopes("live")
    with closing(store.open_journal(scopes.rules, "live")) as journal:
        before = journal.record(scopes.names[0], "notes")
        forget(store, Choice("live"))
        assert before is not None
        assert journal.record(scopes.names[0], "notes") is None
        fill(store, "live", 2.0, "otter")
        after = journal.record(scopes.names[0], "notes")

    assert after is not None
    assert (after.version, after.value[0]["text"]) == (1, "otter written back")


def test_an_encrypted_store_forgets_too(tmp_path: Path) -> None:
    with closing(open_store(tmp_path / "store.sqlite3", protection=Protection("5e" * 32))) as store:
        fill(store, "monday", 1.0, "zebra")
        fill(store, "second", 1.0, "otter")
        forget(store, Choice("monday"))

        assert store.search_index.search("zebra") == []
        assert len(store.pages.listed("second")) == 4


def test_the_sink_forgets_the_session_also_what_the_store_has_lost(tmp_path: Path) -> None:
    objects = KeptObjects()
    with closing(Library(open_store(tmp_path / "store.sqlite3", sender="me"), objects)) as library:
        pages = [library.put(f"{name} said".encode(), history=name, now=1.0) for name in ("a", "ab", "c", "d")]
        library.put(b"d said late", history="d", now=9.0)
        library.store.notes.put("note", b"of a", history="a", now=1.0)
    with closing(Library(open_store(tmp_path / "store.sqlite3"), objects)) as library:
        assert library.sessions() == ["a", "ab", "c", "d"]
        library.store.pages.collect(before=5.0)

        assert library.forget(Choice("a"), dry_run=True)[1] == 2
        assert library.sessions() == ["a", "ab", "c", "d"]
        assert library.forget(Choice("a"))[1] == 2
        assert library.sessions() == ["ab", "c", "d"]
        assert isinstance(library.recall(handle_of(pages[0])), Unknown)
        assert isinstance(library.recall(handle_of(pages[1])), Recalled)
        assert library.forget(Choice(before=5.0))[1] == 4
        assert library.sessions() == ["d"]
