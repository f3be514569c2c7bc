"""The access stores that pass the conformance suite."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path

import pytest

from pagefold.access.store import AccessStore, MemoryAccess
from pagefold.adapters.protection import UNPROTECTED, Protection
from pagefold.adapters.stores import open_access
from tests.conformance.access_suite import AccessSuite
from tests.postgres import PostgresServer, running_postgres


@pytest.fixture(scope="module")
def postgres() -> Iterator[PostgresServer]:
    with running_postgres() as server:
        yield server


class TestMemoryAccess(AccessSuite):
    @pytest.fixture
    def reopen(self) -> Callable[[], AccessStore]:
        store = MemoryAccess()
        return lambda: store


@contextmanager
def opening(where: str | Path, protection: Protection = UNPROTECTED) -> Iterator[Callable[[], AccessStore]]:
    """Opens the same store again and again, and closes all of them."""
    with ExitStack() as stack:
        yield lambda: stack.enter_context(closing(open_access(where, protection)))


class TestSqliteAccess(AccessSuite):
    @pytest.fixture
    def reopen(self, tmp_path: Path) -> Iterator[Callable[[], AccessStore]]:
        with opening(tmp_path / "store.sqlite3") as opened:
            yield opened


class TestEncryptedAccess(AccessSuite):
    @pytest.fixture
    def reopen(self, tmp_path: Path) -> Iterator[Callable[[], AccessStore]]:
        with opening(tmp_path / "store.sqlite3", Protection("5e" * 32)) as opened:
            yield opened


class TestPostgresAccess(AccessSuite):
    @pytest.fixture
    def reopen(self, postgres: PostgresServer) -> Iterator[Callable[[], AccessStore]]:
        with opening(postgres.new_schema()) as opened:
            yield opened
