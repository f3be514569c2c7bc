"""The stores that pass the conformance suite, and a random life of each."""

import tempfile
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import settings

from pagefold.adapters.sqlite.store import SqliteStore
from pagefold.pages.memory_store import MemoryStore
from pagefold.pages.store import Store
from tests.conformance.random_life import RandomLife
from tests.conformance.store_suite import StoreSuite


class TestMemoryStore(StoreSuite):
    @pytest.fixture
    def reopen(self) -> Callable[..., Store]:
        store = MemoryStore()

        def reopen(sender: str = "") -> Store:
            store.sender = store.pages.sender = sender
            return store

        return reopen


class TestSqliteStore(StoreSuite):
    @pytest.fixture
    def reopen(self, tmp_path: Path) -> Callable[..., Store]:
        return lambda sender="": SqliteStore(tmp_path / "store.db", sender=sender)


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


TestMemoryLife = MemoryLife.TestCase
TestMemoryLife.settings = settings(deadline=None, max_examples=60, stateful_step_count=30)
TestSqliteLife = SqliteLife.TestCase
TestSqliteLife.settings = settings(deadline=None, max_examples=60, stateful_step_count=30)
