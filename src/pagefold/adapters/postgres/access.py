"""The access store in the Postgres database of the pages."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from pagefold.adapters.access_rows import Execute
from pagefold.adapters.postgres.schema import migrate
from pagefold.adapters.postgres.server import Server

_WAIT_SECONDS = 2.0


class PostgresAccessTables:
    """The tables at a `url`, made where there are none. Raises StoreError and ConfigError."""

    def __init__(self, url: str) -> None:
        self._server = Server(url)
        self._server.wait_at_most(_WAIT_SECONDS)
        self.where = self._server.where
        migrate(self._server)

    @contextmanager
    def transaction(self) -> Iterator[Execute]:
        with self._server.transaction() as db:

            def execute(statement: str, values: Sequence[Any]) -> list[Any]:
                done = db.execute(statement.replace("?", "%s").encode(), values)
                return done.fetchall() if done.description else []

            yield execute

    def close(self) -> None:
        self._server.close()
