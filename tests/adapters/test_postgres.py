"""What a store in Postgres does beyond the conformance suite: copies, damages, races, outages, two versions."""

import random
import signal
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path

import psycopg
import pytest

from pagefold.adapters.postgres.schema import MIGRATIONS, Migration, migrate
from pagefold.adapters.postgres.server import Server
from pagefold.adapters.postgres.store import PostgresStore
from pagefold.adapters.postgres.verifying import verify
from pagefold.adapters.sqlite.store import SqliteStore
from pagefold.adapters.store_copy import copy_store
from pagefold.adapters.stores import open_steady_store, open_store, rows_of
from pagefold.errors import ConfigError, StoreError
from pagefold.pages.journal import SCHEMAS, Boundary, JournalEntry, Op, Rules, flush
from pagefold.pages.kinds import PageKind
from pagefold.pages.page import PageId, id_of
from pagefold.pages.scope import StoreScope
from pagefold.pages.store import Store
from tests.postgres import PostgresServer, running_postgres

ANN = StoreScope("ann", "/work/a")
RULES = Rules(SCHEMAS, frozenset({"session:1"}))


@pytest.fixture(scope="module")
def postgres() -> Iterator[PostgresServer]:
    with running_postgres(sync=True) as server:
        yield server


def fill(store: Store, count: int = 40) -> list[PageId]:
    """Something of everything that a store keeps."""
    pages = [
        store.pages.put(f"page {n} \udc80".encode("utf-8", "surrogatepass") * (1 + n * 50), history=f"h{n % 3}", now=n)
        for n in range(count)
    ]
    store.scoped(ANN).pages.put(b"ann's", history="h", kind=PageKind.EVIDENCE, name="Read a.py", shown_form=pages[0])
    store.pages.hold(pages[1], "h1")
    store.pages.renew("h2", 99.0)
    store.notes.put("note", b"first", history="h2")
    store.notes.put_if_absent("decision", b"mine")
    store.outbox.mark_sent(store.outbox.next_batch(5, 10**9))
    with closing(store.open_journal(RULES, "me")) as journal:
        for text in ("one", "two"):
            journal.stage(
                JournalEntry.of(Op.APPEND, "session:1", "notes", "note", {"text": text}, provenance=[pages[0]]),
                token=text,
            )
        assert len(flush(journal, Boundary.RESET).committed) == 2
    return pages


def test_a_store_is_copied_whole_into_postgres_and_back(postgres: PostgresServer, tmp_path: Path) -> None:
    url, here, back = postgres.new_schema(), tmp_path / "a.db", tmp_path / "b.db"
    with closing(SqliteStore(here, sender="me")) as store:
        pages = fill(store)
    digests = []
    for source, target in ((here, url), (url, back)):
        with closing(rows_of(source)) as rows, closing(rows_of(target)) as into:
            digests.append(copy_store(rows, into).digest)

    assert digests[0] == digests[1]
    with closing(PostgresStore(url, sender="me")) as store:
        assert [store.pages.exists(page) for page in pages] == [True] * len(pages)
        assert (store.notes.newest("note"), store.notes.put_if_absent("decision", b"late")) == (b"first", b"mine")
        assert [hit.name for hit in store.scoped(ANN).search_index.search("a.py")] == ["Read a.py"]
        assert store.scoped(ANN).pages.original_of(pages[0]) == b"ann's"
        assert store.outbox.backlog()[0] == 36
        store.scoped(StoreScope("bob")).pages.put(b"new", history="h")  # numbers go on behind what was copied
        assert verify(store).damages == ()


def test_a_copy_refuses_a_store_that_holds_something_and_a_damaged_page(
    postgres: PostgresServer, tmp_path: Path
) -> None:
    url, path = postgres.new_schema(), tmp_path / "a.db"
    for where in (url, path):
        with closing(open_store(where)) as store:
            store.pages.put(b"something")
    with (
        closing(rows_of(path)) as source,
        closing(rows_of(url)) as target,
        pytest.raises(StoreError, match="not empty"),
    ):
        copy_store(source, target)
    with psycopg.connect(url, autocommit=True) as db:
        db.execute("UPDATE pages SET stored = 'nothing!!'")

    into = tmp_path / "b.db"
    with closing(rows_of(url)) as source, closing(rows_of(into)) as target, pytest.raises(StoreError, match="damaged"):
        copy_store(source, target)
    with closing(SqliteStore(tmp_path / "b.db")) as store:
        assert store.pages.stats().pages == 0


DAMAGES = {
    "a byte": "UPDATE pages SET stored = set_byte(stored, %(n)s %% length(stored), "
    "get_byte(stored, %(n)s %% length(stored)) # 4) WHERE id = %(page)s",
    "its end": "UPDATE pages SET stored = substr(stored, 1, length(stored) - 1) WHERE id = %(page)s",
    "its length": "UPDATE pages SET bytes = bytes + 1 WHERE id = %(page)s",
    "its stored length": "UPDATE pages SET stored_bytes = stored_bytes + 1 WHERE id = %(page)s",
    "its scope": "UPDATE listings SET scope = 999 WHERE page = %(page)s",
}


def test_verify_finds_each_of_fifty_damages(postgres: PostgresServer) -> None:
    url = postgres.new_schema()
    with closing(PostgresStore(url, sender="me")) as store:
        pages = fill(store, 60)
        assert verify(store).damages == ()
        chosen = random.Random(5).sample(pages, 50)
        with psycopg.connect(url, autocommit=True) as db:
            for n, page in enumerate(chosen):
                db.execute(list(DAMAGES.values())[n % len(DAMAGES)].encode(), {"n": n, "page": page})

        told = [damage.what for damage in verify(store).damages]

    assert [sum(page in what for what in told) for page in chosen] == [1] * 50
    assert len(told) == 50


def test_verify_reads_the_journal(postgres: PostgresServer) -> None:
    url = postgres.new_schema()
    with closing(PostgresStore(url, sender="me")) as store:
        fill(store)
        with psycopg.connect(url, autocommit=True) as db:
            db.execute("UPDATE journal_lines SET version = 5 WHERE version = 1")
        [damage] = verify(store).damages
        assert "version 1 of notes is missing" in damage.what


def test_of_many_that_decide_at_once_one_stands(postgres: PostgresServer) -> None:
    url = postgres.new_schema()
    stores = [PostgresStore(url) for _ in range(4)]
    begin = threading.Barrier(4)

    def decide(n: int) -> list[bytes]:
        answers = []
        for name in range(25):
            begin.wait()
            answers.append(stores[n].notes.put_if_absent(f"d{name}", bytes([n])))
        return answers

    with ThreadPoolExecutor(4) as pool:
        answers = list(pool.map(decide, range(4)))
    assert answers[0] == answers[1] == answers[2] == answers[3]
    assert [stores[0].notes.newest(f"d{name}") for name in range(25)] == answers[0]
    for store in stores:
        store.close()


def test_a_page_that_was_held_while_others_collect_is_there(postgres: PostgresServer) -> None:
    url = postgres.new_schema()
    keeper, collector = PostgresStore(url), PostgresStore(url)
    ended = threading.Event()

    def collect() -> None:
        while not ended.is_set():
            collector.pages.collect(max_bytes=0)

    thread = threading.Thread(target=collect)
    thread.start()
    lost = []
    for n in range(150):
        page = keeper.pages.put(f"content {n}".encode(), history="h")
        if keeper.pages.hold(page, "h") and keeper.pages.get(page) is None:
            lost.append(n)
    ended.set()
    thread.join()
    assert lost == []
    keeper.close()
    collector.close()


def test_a_closed_connection_is_replaced_and_the_call_done_again(postgres: PostgresServer) -> None:
    with closing(PostgresStore(postgres.new_schema())) as store:
        page = store.pages.put(b"kept")
        for how in (signal.SIGINT, signal.SIGQUIT):
            postgres.stop(how)
            postgres.start()
            assert store.pages.get(page) == b"kept"


def test_a_server_that_is_away_is_told_without_the_password(postgres: PostgresServer) -> None:
    away = f"postgresql://me:geheim@127.0.0.1:{postgres.port + 1}/db"
    with pytest.raises(StoreError, match=r"postgresql://me@127.0.0.1:\d+/db") as refused:
        PostgresStore(away)
    assert refused.value.kind == "away"
    assert "geheim" not in str(refused.value)
    with pytest.raises(ConfigError) as unread:
        PostgresStore("postgresql://me:geheim@[::1/db")
    assert "geheim" not in str(unread.value)


def test_a_steady_store_outlives_ten_restarts_of_its_server() -> None:
    with running_postgres(sync=True) as server:
        url, told = server.new_schema(), []
        store = open_steady_store(url, report=lambda kind, _: told.append(kind), round_seconds=0.1)
        acknowledged = []
        for n in range(10):
            server.stop(signal.SIGQUIT if n % 2 else signal.SIGINT)
            began = time.monotonic()
            with pytest.raises(StoreError):
                store.pages.put(b"while it is away")
            store.notes.put(f"note{n}", b"noted while it is away")
            assert time.monotonic() - began < 1.0
            server.start()
            wait_for(store, lambda n=n: acknowledged.append(store.pages.put(f"put {n}".encode(), history="h")))
        assert store.health().errors.total() >= 10
        assert "store back" in told
        assert [store.notes.newest(f"note{n}") for n in range(10)] == [b"noted while it is away"] * 10
        store.close()
        with closing(PostgresStore(url)) as again:
            assert list(again.pages.listed("h")) == acknowledged
            assert [again.notes.newest(f"note{n}") for n in range(10)] == [b"noted while it is away"] * 10


def test_what_an_older_copy_of_the_server_has_forgotten_is_put_there_again() -> None:
    with running_postgres(sync=True) as server:
        url = server.new_schema()
        with closing(PostgresStore(url)) as store:
            store.pages.put(b"before")
        server.stop()
        server.copy_aside()
        server.start()
        steady = open_steady_store(url, round_seconds=0.1)
        page = steady.pages.put(b"acknowledged", history="h")
        server.stop()
        server.take_copy()
        server.start()
        wait_for(steady, lambda: steady.pages.put(b"after", history="h"))
        for _ in range(300):
            time.sleep(0.05)
            if steady.health().mended and not steady.is_out:
                break
        assert set(steady.pages.listed("h")) == {page, id_of(b"after")}
        assert steady.health().mended == 1
        steady.close()


def wait_for(store: Store, step: object) -> None:
    assert callable(step)
    for _ in range(300):
        try:
            step()
        except StoreError:
            time.sleep(0.05)
        else:
            return
    raise AssertionError("the store did not come back within 15 s")


def test_two_versions_run_on_one_database_unless_one_cannot(postgres: PostgresServer) -> None:
    url = postgres.new_schema()
    newer = [*MIGRATIONS, Migration("CREATE TABLE added (a int)")]
    newest = [*newer, Migration("ALTER TABLE turns RENAME TO ended", readable_from=len(MIGRATIONS) + 2)]
    with closing(PostgresStore(url)) as running:
        server = Server(url)
        assert (migrate(server, newer), migrate(server, newer)) == (1, 0)
        page = running.pages.put(b"by the version before")
        with closing(PostgresStore(url)) as started:
            assert started.pages.exists(page)
        migrate(server, newest)
        with pytest.raises(StoreError, match="made by a newer pagefold"):
            PostgresStore(url)
        server.close()


def test_instances_that_start_at_once_make_the_tables_once(postgres: PostgresServer) -> None:
    url = postgres.new_schema()
    with ThreadPoolExecutor(6) as pool:
        stores = list(pool.map(lambda _: PostgresStore(url), range(6)))
    for store in stores:
        store.close()
    with psycopg.connect(url) as db:
        assert db.execute("SELECT count(*) FROM pagefold_versions").fetchone() == (len(MIGRATIONS),)


@pytest.mark.parametrize("version", range(len(MIGRATIONS)))
def test_a_database_of_every_earlier_version_is_brought_up_to_date(postgres: PostgresServer, version: int) -> None:
    url = postgres.new_schema()
    with closing(Server(url)) as server:
        assert migrate(server, MIGRATIONS[:version]) == version
        if version:
            server.run(lambda db: db.execute("INSERT INTO scopes (principal, project) VALUES ('', '')"))
    with closing(PostgresStore(url)) as store:
        page = store.pages.put(b"put after", history="h")
        assert store.pages.get(page) == b"put after"
        assert verify(store).damages == ()
    with psycopg.connect(url) as db:
        assert db.execute("SELECT max(number) FROM pagefold_versions").fetchone() == (len(MIGRATIONS),)
