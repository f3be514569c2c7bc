"""The rows of a store in Postgres, to be copied: see `adapters.store_rows`."""

from collections.abc import Generator, Iterable

import psycopg

from pagefold.adapters.columns import spelled
from pagefold.adapters.postgres.bodies import LargeBodies
from pagefold.adapters.postgres.store import PostgresStore
from pagefold.adapters.store_rows import PAGES, Row, Table
from pagefold.pages.scope import NOTES

_AT_ONCE = 500
_EMPTY = "SELECT NOT EXISTS (SELECT 1 FROM pages) AND NOT EXISTS (SELECT 1 FROM journal_lines)"
_PAGES = """
    SELECT id, bytes, last_put, stored, (SELECT min(key) FROM bodies WHERE page = id) FROM pages ORDER BY id
"""
_UNINDEXED = """
    INSERT INTO unindexed SELECT place FROM listings JOIN scopes ON number = scope WHERE project != %s
"""
# The next number is one that no copied row has.
_COUNTED = {"scopes": "number", "listings": "place", "journal_lines": "number"}


class PostgresRows:
    """Reads and writes within one transaction, of which `finish` makes what was written count."""

    def __init__(self, url: str, large: LargeBodies | None = None) -> None:
        self._store = store = PostgresStore(url, large=large)
        self.where, self._telling = store.where, store.server.telling
        self._db = store.server.connect()
        self._db.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ

    def is_empty(self) -> bool:
        with self._telling():
            return self._db.execute(_EMPTY).fetchone() == (True,)

    def read(self, table: Table) -> Generator[Row, None, None]:
        statement = f"SELECT {table.names} FROM {table.name} ORDER BY {table.order}".encode()
        with self._telling(), self._db.cursor(f"all_{table.name}") as rows:
            rows.itersize = _AT_ONCE
            if table is not PAGES:
                yield from rows.execute(statement)
                return
            for page, length, last_put, stored, key in rows.execute(_PAGES):
                # As it is: what has one length with the content is not packed.
                body = self._store.pages.content(page, length, stored, key) if key and not stored else stored
                yield page, length, last_put, body

    def write(self, table: Table, rows: Iterable[Row]) -> None:
        names, types = table.names, list(table.columns.values())
        if table is PAGES:
            names, types = f"{names}, stored_bytes", [*types, "int8"]
            rows = ((*row, len(row[3])) for row in rows)
        with self._telling(), self._db.cursor() as cursor:
            # COPY writes the numbers that rows have, also where the database would count them itself.
            with cursor.copy(f"COPY {table.name} ({names}) FROM STDIN (FORMAT BINARY)".encode()) as copying:
                copying.set_types(types)
                for row in rows:
                    copying.write_row(row)
            if number := _COUNTED.get(table.name):
                highest = f"(SELECT coalesce(max({number}), 0) + 1 FROM {table.name})"
                sequence = f"pg_get_serial_sequence('{table.name}', '{number}')"
                cursor.execute(f"SELECT setval({sequence}, {highest}, false)".encode())

    def finish(self) -> None:
        with self._telling():
            self._db.execute(_UNINDEXED, (spelled(NOTES),))
            if self._store.bodies is not None:
                self._store.bodies.move_out(self._db, self._store.pages.content)
            self._db.commit()

    def close(self) -> None:
        self._db.close()
        self._store.close()
