"""What a crash of the database's server may forget, and how it comes back.

The servers here write their log to the disk once in ten seconds unless somebody waits for it, so that a crash forgets.
"""

import signal
import time
from collections.abc import Callable, Iterator
from contextlib import closing, suppress

import psycopg
import pytest

from pagefold.adapters.postgres.store import PostgresStore
from pagefold.adapters.stores import open_steady_store
from pagefold.errors import StoreError
from pagefold.pages.journal import SCHEMAS, JournalEntry, Op, Rules
from pagefold.pages.page import id_of
from pagefold.pages.scope import StoreScope
from tests.adapters.test_postgres import wait_for
from tests.postgres import PostgresServer, running_postgres

RULES = Rules(SCHEMAS, frozenset({"session:1"}))


@pytest.fixture(scope="module")
def forgetful() -> Iterator[PostgresServer]:
    with running_postgres(sync=True) as server:
        with psycopg.connect(server.url, autocommit=True) as db:
            db.execute("ALTER SYSTEM SET wal_writer_delay = '10s'")
            db.execute("ALTER SYSTEM SET full_page_writes = off")  # whole pages of the log are written at once
        server.stop()
        server.start()
        yield server


def crash(server: PostgresServer) -> None:
    server.stop(signal.SIGQUIT)
    server.start()


def test_a_steady_store_puts_again_what_a_crash_forgot(forgetful: PostgresServer) -> None:
    url = forgetful.new_schema()
    contents = [f"page {n}".encode() for n in range(30)]
    with closing(open_steady_store(url, round_seconds=0.1)) as store, closing(PostgresStore(url)) as again:
        pages = [store.pages.put(content, history="h") for content in contents]
        store.notes.put("note", b"noted")
        assert store.notes.put_if_absent("decision", b"decided") == b"decided"
        crash(forgetful)

        def stands() -> bool:
            return (again.pages.listed("h"), again.notes.newest("note"), again.notes.newest("decision")) == (
                pages,
                b"noted",
                b"decided",
            )

        ends = time.monotonic() + 20
        while time.monotonic() < ends:  # at no time does the store say that they are not there
            assert store.pages.get(pages[-1]) == contents[-1]
            assert store.notes.newest("decision") == b"decided"
            with suppress(StoreError):
                if not store.is_out and stands():
                    break
        assert stands()
        assert [again.pages.get(page) for page in pages] == contents
        assert store.health().lost_pages == 0


def test_what_was_put_again_last_hides_no_loss(forgetful: PostgresServer) -> None:
    url = forgetful.new_schema()
    with closing(PostgresStore(url)) as first:
        known = first.pages.put(b"before", history="h")
    with closing(open_steady_store(url, round_seconds=0.1)) as store, closing(PostgresStore(url)) as again:
        lost = store.pages.put(b"forgotten by the crash", history="h")
        assert store.pages.put(b"before", history="h") == known
        crash(forgetful)
        wait_for(store, lambda: store.pages.put(b"after"))
        until(lambda: {known, lost} <= set(again.pages.listed("h")))


def test_a_decision_alone_is_missed_too(forgetful: PostgresServer) -> None:
    url = forgetful.new_schema()
    with closing(PostgresStore(url)) as first:
        first.pages.put(b"before")
    with closing(open_steady_store(url, round_seconds=0.1)) as store, closing(PostgresStore(url)) as again:
        store.notes.put_if_absent("decision", b"decided")
        crash(forgetful)
        wait_for(store, lambda: store.pages.put(b"after"))
        until(lambda: again.notes.newest("decision") == b"decided")


def until(holds: Callable[[], bool]) -> None:
    """Waits until something is so in the database itself, whether the crash forgot it or not: a busy server writes its
    log now and then although nobody waits for it."""
    for _ in range(300):
        with suppress(StoreError):
            if holds():
                return
        time.sleep(0.05)
    raise AssertionError("it was not put again within 15 s")


def test_what_nobody_puts_again_waits_for_the_disk(forgetful: PostgresServer) -> None:
    """Numbers of scopes and the journal, and all pages of a store that nobody remembers."""
    url = forgetful.new_schema()
    entry = JournalEntry.of(Op.APPEND, "session:1", "notes", "note", {"text": "staged"}, provenance=[])
    with closing(PostgresStore(url, remembered=True)) as store:
        numbers = store.scoped(StoreScope("ann")).pages.clause.number(store.server)
        store.pages.put(b"page before it", history="h")
        with closing(store.open_journal(RULES, "me")) as journal:
            journal.stage(entry)
        store.pages.put(b"page behind it", history="h")
        crash(forgetful)
    with closing(PostgresStore(url)) as store, closing(store.open_journal(RULES, "me")) as journal:
        assert [line.entry for line in journal.pending()] == [entry]
        assert store.pages.listed("h") == [id_of(b"page before it")]
        assert store.scoped(StoreScope("ann")).pages.clause.number(store.server) == numbers
        waiting = store.pages.put(b"page of a store that nobody remembers", history="h")
        crash(forgetful)
    with closing(PostgresStore(url)) as store:
        assert waiting in store.pages.listed("h")


def test_a_crash_right_behind_a_new_scope_does_not_forget_its_number(forgetful: PostgresServer) -> None:
    url = forgetful.new_schema()
    with closing(PostgresStore(url, remembered=True)) as store:
        store.pages.put(b"page before it", history="h")  # a server that has slept writes its log once it is woken
        number = store.scoped(StoreScope("ann")).pages.clause.number(store.server)
        crash(forgetful)
    with closing(PostgresStore(url)) as store:
        assert store.scoped(StoreScope("ann")).pages.clause.number(store.server) == number


@pytest.mark.parametrize("said", ["address", "database"])
def test_an_operator_can_have_every_page_wait(forgetful: PostgresServer, said: str) -> None:
    url = forgetful.new_schema()
    if said == "address":
        url += "%20-csynchronous_commit%3Don"
    else:
        with psycopg.connect(forgetful.url, autocommit=True) as db:
            db.execute("ALTER DATABASE postgres SET synchronous_commit = on")  # after all other tests
    with closing(PostgresStore(url, remembered=True)) as store:
        store.pages.put(b"page", history="h")
        crash(forgetful)
    with closing(PostgresStore(url)) as store:
        assert store.pages.listed("h") == [id_of(b"page")]
