"""The stores that pass the conformance suite, and a random life of each."""

import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from hypothesis import settings
from hypothesis.stateful import run_state_machine_as_test

from pagefold.adapters.postgres.bodies import LargeBodies
from pagefold.adapters.postgres.store import PostgresStore
from pagefold.adapters.s3 import S3Objects
from pagefold.adapters.sqlite.store import SqliteStore
from pagefold.pages.memory_store import MemoryStore
from pagefold.pages.store import Store
from pagefold.settings.sections import SinkSettings
from tests.buckets import running_bucket
from tests.conformance.random_life import RandomLife
from tests.conformance.store_suite import StoreSuite
from tests.postgres import PostgresServer, running_postgres


@pytest.fixture(scope="session")
def postgres() -> Iterator[PostgresServer]:
    with running_postgres() as server:
        yield server


@pytest.fixture(scope="session")
def moto_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SinkSettings]:
    with running_bucket("moto_server", tmp_path_factory.mktemp("moto")) as settings:
        yield settings


@pytest.fixture(scope="session")
def s3rver(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SinkSettings]:
    with running_bucket("s3rver", tmp_path_factory.mktemp("s3rver")) as settings:
        yield settings


class BoundedNotes:
    """What the stores promise that a proxy uses: a conversation's saved folds do not pile up."""

    def test_what_is_put_if_possible_takes_room_once(self, store: Store) -> None:
        notes = store.scoped(store.scope.notes).pages
        shared = notes.put(b"fold 3", history="another")
        held = notes.put(b"fold 5", history="another")
        notes.hold(held, "somebody")
        for number in range(9):
            store.notes.put_if_possible("fold", b"fold %d" % number, now=float(number), history="h")

        assert [notes.get(page) for page in notes.listed("fold")] == [b"fold 8"]
        assert (notes.get(shared), notes.get(held)) == (b"fold 3", b"fold 5")
        assert notes.stats().pages == 3


class TestMemoryStore(BoundedNotes, StoreSuite):
    @pytest.fixture
    def reopen(self) -> Callable[..., Store]:
        store = MemoryStore()

        def reopen(sender: str = "") -> Store:
            store.pages.shared.sender = sender
            return store

        return reopen


class TestSqliteStore(BoundedNotes, StoreSuite):
    @pytest.fixture
    def reopen(self, tmp_path: Path) -> Callable[..., Store]:
        return lambda sender="": SqliteStore(tmp_path / "store.db", sender=sender)


class TestEncryptedStore(BoundedNotes, StoreSuite):
    @pytest.fixture
    def reopen(self, tmp_path: Path) -> Callable[..., Store]:
        return lambda sender="": SqliteStore(tmp_path / "store.db", sender=sender, key="5e" * 32)


class TestPostgresStore(BoundedNotes, StoreSuite):
    @pytest.fixture
    def reopen(self, postgres: PostgresServer) -> Callable[..., Store]:
        url = postgres.new_schema()
        return lambda sender="": PostgresStore(url, sender=sender)


class TestPostgresStoreWithObjects(BoundedNotes, StoreSuite):
    """Everything above a few bytes is in a bucket."""

    @pytest.fixture(params=["moto_server", "s3rver"])
    def reopen(self, postgres: PostgresServer, request: pytest.FixtureRequest) -> Callable[..., Store]:
        url, large = postgres.new_schema(), LargeBodies(8, S3Objects(request.getfixturevalue(request.param)))
        return lambda sender="": PostgresStore(url, sender=sender, large=large)


class MemoryLife(RandomLife):
    def __init__(self) -> None:
        store = MemoryStore()
        super().__init__(lambda: store)


class SqliteLife(RandomLife):
    def __init__(self) -> None:
        self.folder = tempfile.TemporaryDirectory()
        super().__init__(lambda: SqliteStore(Path(self.folder.name) / "pages.db"))

    def teardown(self) -> None:
        super().teardown()
        self.folder.cleanup()


class PostgresLife(RandomLife):
    def __init__(self) -> None:
        url = next(self.schemas)
        super().__init__(lambda: PostgresStore(url))

    schemas: Iterator[str]


TestMemoryLife = MemoryLife.TestCase
TestMemoryLife.settings = settings(deadline=None, max_examples=60, stateful_step_count=30)
TestSqliteLife = SqliteLife.TestCase
TestSqliteLife.settings = settings(deadline=None, max_examples=60, stateful_step_count=30)


def test_a_random_life_in_postgres(postgres: PostgresServer) -> None:
    PostgresLife.schemas = iter(postgres.new_schema, None)
    run_state_machine_as_test(PostgresLife, settings=settings(deadline=None, max_examples=10, stateful_step_count=25))
