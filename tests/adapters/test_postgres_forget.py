"""What is forgotten leaves no byte behind in the tables of a Postgres store, and no object; what others have stays."""

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import psycopg
import pytest

from pagefold.adapters.library import Library
from pagefold.adapters.postgres.bodies import LargeBodies
from pagefold.adapters.postgres.store import PostgresStore
from pagefold.pages.forgetting import Choice
from pagefold.pages.scope import StoreScope
from pagefold.pages.writeback import Scopes
from tests.adapters.kept_objects import KeptObjects
from tests.adapters.sessions_to_forget import files_with, fill, forget
from tests.postgres import PostgresServer, running_postgres

HERE, THERE = StoreScope("", "/here"), StoreScope("", "/there")


@pytest.fixture(scope="module")
def postgres() -> Iterator[PostgresServer]:
    with running_postgres() as server:
        yield server


@pytest.fixture
def url(postgres: PostgresServer) -> str:
    return postgres.new_schema()


@pytest.fixture
def store(url: str) -> Iterator[PostgresStore]:
    with closing(PostgresStore(url, scope=HERE)) as store:
        yield store


def tables_with(postgres: PostgresServer, secret: bytes) -> list[str]:
    """The files of tables that hold it: not the server's log."""
    with psycopg.connect(postgres.url, autocommit=True) as db:
        db.execute("CHECKPOINT")
    return files_with(Path(postgres.data, "base"), secret)


def test_no_byte_of_a_session_is_left_in_any_table_and_others_keep_all(
    store: PostgresStore, postgres: PostgresServer
) -> None:
    fill(store, "monday", 1.0, "zebra")
    fill(store, "second", 2.0, "otter")
    shared = store.pages.put(b"shared by both", history="monday", now=1.0, name="Read zebra of monday")
    store.pages.put(b"shared by both", history="second", now=2.0)
    held = store.pages.put(b"held by the second", history="monday", now=1.0)
    store.pages.hold(held, "second")
    store.search_index.search("zebra")
    assert tables_with(postgres, b"zebra")

    forgotten = forget(store, Choice("monday"))

    assert forgotten.sessions == ("monday",)
    assert (forgotten.pages, forgotten.kept, forgotten.notes, forgotten.journal_lines) == (44, 2, 40, 1)
    assert tables_with(postgres, b"zebra") == tables_with(postgres, b"monday") == []
    assert store.search_index.search("zebra") == []
    assert len(store.search_index.search("otter")) > 1
    assert [store.pages.get(page) for page in (shared, held)] == [b"shared by both", b"held by the second"]
    assert len(store.pages.listed("second")) == 5
    assert store.notes.newest("note-otter-7") == b"otter noted 7"
    assert forget(store, Choice("monday")).is_nothing


def test_a_project_is_forgotten_by_itself_and_comes_back_as_a_new_one(
    store: PostgresStore, postgres: PostgresServer, url: str
) -> None:
    lonely = StoreScope("", "/lonely")
    store = store.scoped(lonely)
    fill(store, "monday", 1.0, "zebra")
    store.pages.put(b"zebra of no session", now=1.0)
    other = store.scoped(THERE)
    fill(other, "second", 1.0, "otter")

    forget(store, Choice())

    assert tables_with(postgres, b"zebra") == tables_with(postgres, b"/lonely") == []
    assert len(other.pages.listed("second")) == 4
    with closing(PostgresStore(url, scope=lonely)) as again:
        page = again.pages.put(b"anew", history="monday", now=3.0)
        assert (again.pages.get(page), other.pages.get(page)) == (b"anew", None)


def test_before_a_time_go_those_whose_last_turn_was_earlier(store: PostgresStore, postgres: PostgresServer) -> None:
    fill(store, "old", 1.0, "zebra")
    fill(store, "begun early", 1.0, "otter")
    store.pages.renew("begun early", 9.0)
    store.pages.put(b"zebra of no session", now=1.0)
    store.notes.put("note of none", b"zebra noted", now=1.0)
    everything = store.scoped(HERE.own)

    assert forget(everything, Choice(before=5.0)).sessions == ("old",)

    assert tables_with(postgres, b"zebra") == []
    assert len(store.pages.listed("begun early")) == 4
    scopes = Scopes("begun early")
    with closing(store.open_journal(scopes.rules, "begun early")) as journal:
        assert journal.record(scopes.names[0], "notes") is not None
    assert forget(everything, Choice(before=5.0)).is_nothing


def test_large_contents_and_the_sink_are_forgotten_too(url: str) -> None:
    bucket, sink = KeptObjects(), KeptObjects()
    opened = PostgresStore(url, sender="me", large=LargeBodies(1000, bucket))
    with closing(Library(opened, sink)) as library:
        for name in ("a", "b"):
            library.put(f"{name} said ".encode() * 500, history=name, now=1.0)
            library.put(b"both said " * 500, history=name, now=1.0)
    opened = PostgresStore(url, large=LargeBodies(1000, bucket))
    with closing(Library(opened, sink)) as library:
        forgotten, objects = library.forget(Choice("a"))

        assert (forgotten.pages, forgotten.kept) == (1, 1)
        assert objects == 3
        assert not [key for key, content in bucket.objects.items() if b"a said" in content]
        assert library.sessions() == ["b"]
        assert [len(library.store.pages.get(page) or b"") for page in library.store.pages.listed("b")] == [3500, 5000]
