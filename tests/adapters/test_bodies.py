"""Large contents of a store in Postgres in a real bucket: order of writing, parts, copies, damages, outages."""

import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import obstore
import psycopg
import pytest

from pagefold.adapters.library import Library
from pagefold.adapters.postgres.bodies import LargeBodies
from pagefold.adapters.postgres.store import PostgresStore
from pagefold.adapters.postgres.verifying import verify
from pagefold.adapters.protection import Protection
from pagefold.adapters.s3 import S3Objects
from pagefold.adapters.store_copy import copy_store
from pagefold.adapters.stores import open_steady_store, rows_of
from pagefold.errors import StoreError
from pagefold.pages.page import handle_of
from pagefold.pages.recall import Recalled
from pagefold.pages.scope import StoreScope
from pagefold.settings.sections import SinkSettings
from tests.buckets import FaultyBucket, running_bucket
from tests.postgres import PostgresServer, running_postgres

LARGE = bytes(range(256)) * 40
DEAD = SinkSettings(endpoint="http://127.0.0.1:9", bucket="none", timeout_seconds=0.5)


@pytest.fixture(scope="module")
def postgres() -> Iterator[PostgresServer]:
    with running_postgres() as server:
        yield server


@pytest.fixture(scope="module")
def bucket(tmp_path_factory: pytest.TempPathFactory) -> Iterator[S3Objects]:
    with running_bucket("moto_server", tmp_path_factory.mktemp("moto")) as settings:
        yield S3Objects(settings)


def keys_in(url: str) -> list[str]:
    with psycopg.connect(url) as db:
        return [row[0] for row in db.execute("SELECT key FROM bodies ORDER BY key")]


def test_each_scope_has_an_object_of_its_own_and_a_collection_deletes_them(
    postgres: PostgresServer, bucket: S3Objects
) -> None:
    url = postgres.new_schema()
    with closing(PostgresStore(url, large=LargeBodies(1000, bucket))) as store:
        page = store.pages.put(LARGE, history="h", now=1.0)
        store.pages.put(LARGE, history="again", now=1.0)
        store.scoped(StoreScope("ann")).pages.put(LARGE, now=1.0)
        store.pages.put(b"small", now=9.0)
        keys = keys_in(url)

        assert [bucket.get(key) for key in keys] == [LARGE, LARGE]
        assert len({key.rpartition("/")[0] for key in keys}) == 2
        assert store.pages.stats().stored_bytes == len(LARGE) + len(b"small")
        assert Library(store).read(handle_of(page), 250, 260) == Recalled(page, LARGE[250:260])
        assert store.pages.collect(before=5.0).pages == 1
        assert [bucket.get(key) for key in keys] == [None, None]
        assert store.pages.get(page) is None


def test_what_a_killed_put_wrote_is_deleted_after_a_day_and_what_a_row_names_is_not(
    postgres: PostgresServer, bucket: S3Objects
) -> None:
    url = postgres.new_schema()
    with closing(PostgresStore(url, large=LargeBodies(1000, bucket))) as store:
        assert store.bodies is not None
        page = store.pages.put(LARGE)
        lost = store.bodies.put(store.scope, page, LARGE)
        assert store.bodies.delete_removed() == 0
        with psycopg.connect(url, autocommit=True) as db:
            db.execute("UPDATE objects_to_delete SET due = now() - interval '1 hour'")
            db.execute("INSERT INTO objects_to_delete (key) SELECT key FROM bodies")

        assert store.bodies.delete_removed() == 1
        assert bucket.get(lost) is None
        assert store.pages.get(page) == LARGE


@pytest.mark.parametrize("damage", ["gone", "other"])
def test_verify_names_an_object_that_is_gone_or_changed(
    postgres: PostgresServer, bucket: S3Objects, damage: str
) -> None:
    url = postgres.new_schema()
    with closing(PostgresStore(url, large=LargeBodies(1000, bucket))) as store:
        store.pages.put(LARGE)
        assert verify(store).damages == ()
        [key] = keys_in(url)
        if damage == "gone":
            bucket.delete([key])
        else:
            obstore.put(bucket._bucket, key, LARGE[::-1])

        [found] = verify(store).damages
        assert key in found.what


def test_a_store_with_objects_is_copied_into_a_file_and_back(
    postgres: PostgresServer, bucket: S3Objects, tmp_path: Path
) -> None:
    url, back, path = postgres.new_schema(), postgres.new_schema(), tmp_path / "a.db"
    large = Protection(large=LargeBodies(1000, bucket))
    with closing(PostgresStore(url, large=large.large)) as store:
        page = store.pages.put(LARGE, history="h")
    for source, target in ((url, path), (path, back)):
        with closing(rows_of(source, large)) as rows, closing(rows_of(target, large)) as into:
            copy_store(rows, into)

    assert len(keys_in(back)) == 1
    with closing(PostgresStore(back, large=large.large)) as store:
        assert store.pages.get(page) == LARGE
        assert verify(store).damages == ()


def test_without_its_bucket_a_steady_store_goes_on_with_small_pages_and_counts(postgres: PostgresServer) -> None:
    protection = Protection(large=LargeBodies(1000, S3Objects(DEAD)))
    store = open_steady_store(postgres.new_schema(), protection=protection)
    for n in range(5):
        with pytest.raises(StoreError):
            store.pages.put(LARGE + bytes([n]))
        store.pages.put(f"small {n}".encode(), history="h")

    assert len(store.pages.listed("h")) == 5
    assert not store.is_out
    assert sum(count for kind, count in store.health().errors.items() if kind.startswith("objects")) == 5
    store.close()


@pytest.mark.parametrize(
    ("fault", "kind"), [("500", "objects failing"), ("slow", "objects failing"), ("denied", "objects denied")]
)
def test_a_bucket_that_fails_costs_no_small_page_and_no_time_and_every_fault_is_counted(
    postgres: PostgresServer, bucket: S3Objects, fault: str, kind: str
) -> None:
    faulty = FaultyBucket(bucket._settings)
    deadline, protection = 0.5, Protection(large=LargeBodies(1000, S3Objects(faulty.settings), 0.3))
    store = open_steady_store(postgres.new_schema(), protection=protection, deadline=deadline)
    kept = store.pages.put(LARGE, history="h")

    faulty.fault = fault
    for n in range(4):
        began = time.monotonic()
        with pytest.raises(StoreError):
            store.pages.put(LARGE + bytes([n]))
        assert time.monotonic() - began < deadline
        store.pages.put(f"small {n}".encode(), history="h")
    assert store.pages.get(kept) == LARGE  # it was put lately
    assert not store.is_out
    assert store.health().errors[kind] >= 1
    assert sum(store.health().errors.values()) == 5
    assert faulty.faults == store.health().errors[kind]

    faulty.fault = ""
    inner = store.direct()
    assert isinstance(inner, PostgresStore)
    assert inner.bodies is not None
    inner.bodies._again = 0.0  # as if seconds had passed
    assert store.pages.get(store.pages.put(LARGE[::-1])) == LARGE[::-1]
    assert len(store.pages.listed("h")) == 5
    store.close()
    faulty.close()


def test_what_a_failing_bucket_does_not_give_is_found_later_and_the_rest_is_found_now(
    postgres: PostgresServer, bucket: S3Objects
) -> None:
    faulty = FaultyBucket(bucket._settings)
    with closing(PostgresStore(postgres.new_schema(), large=LargeBodies(1000, S3Objects(faulty.settings)))) as store:
        large = store.pages.put(b"quince " * 200, history="h")
        small = store.pages.put(b"a medlar", history="h")
        faulty.fault = "500"
        assert [hit.page for hit in store.search_index.search("medlar")] == [small]
        assert store.search_index.search("quince") == []
        faulty.fault = ""
        assert [hit.page for hit in store.search_index.search("quince")] == [large]
    faulty.close()


def test_notes_stay_in_the_database_however_large(postgres: PostgresServer, bucket: S3Objects) -> None:
    url = postgres.new_schema()
    with closing(PostgresStore(url, large=LargeBodies(1000, bucket))) as store:
        store.notes.put("of a history", LARGE)
        assert store.notes.newest("of a history") == LARGE
    assert keys_in(url) == []
