"""The rows of a store in SQLite files, to be copied: see `adapters.store_rows`."""

from collections.abc import Generator, Iterable
from pathlib import Path

from pagefold.adapters.sqlite import journal, pages
from pagefold.adapters.sqlite.database import Connection, Guard
from pagefold.adapters.store_rows import JOURNAL, PAGES, Row, Table

_CONTENTS = "SELECT id, bytes, last_put, stored FROM pages LEFT JOIN contents USING (key) ORDER BY id"

_PAGE = "INSERT INTO pages (id, key, bytes, stored_bytes, last_put) VALUES (?, ?, ?, ?, ?)"


class SqliteRows:
    """Reads within one snapshot of each file, and writes within one transaction."""

    def __init__(self, path: Path, key: str = "") -> None:
        self.where, self._path = str(path), path
        with self._telling():
            self._pages = pages.connect(path, key)
            self._journal = journal.connect(journal.beside(path), key)
            for db in (self._pages, self._journal):
                db.execute("BEGIN")

    def is_empty(self) -> bool:
        with self._telling():
            counts = (self._pages.execute("SELECT 1 FROM pages"), self._journal.execute("SELECT 1 FROM lines"))
            return all(rows.fetchone() is None for rows in counts)

    def read(self, table: Table) -> Generator[Row, None, None]:
        with self._telling():
            if table is PAGES:
                yield from self._pages.execute(_CONTENTS)
            else:
                name = "lines" if table is JOURNAL else table.name
                yield from self._db(table).execute(f"SELECT {table.names} FROM {name} ORDER BY {table.order}")  # noqa: S608

    def write(self, table: Table, rows: Iterable[Row]) -> None:
        marks = ", ".join("?" * len(table.columns))
        with self._telling():
            if table is PAGES:
                self._write_pages(rows)
                return
            name = "lines" if table is JOURNAL else table.name
            if name == "scopes":
                self._pages.execute("DELETE FROM scopes")  # a new file has some already
            self._db(table).executemany(f"INSERT INTO {name} ({table.names}) VALUES ({marks})", rows)  # noqa: S608

    def finish(self) -> None:
        with self._telling():
            for db in (self._journal, self._pages):
                db.execute("COMMIT")

    def close(self) -> None:
        with self._telling():
            for db in (self._pages, self._journal):
                db.close()

    def _write_pages(self, rows: Iterable[Row]) -> None:
        first = self._pages.execute("SELECT coalesce(max(key), 0) + 1 FROM contents").fetchone()[0]
        for key, (page, length, last_put, stored) in enumerate(rows, first):
            self._pages.execute("INSERT INTO contents (key, stored) VALUES (?, ?)", (key, stored))
            row = (page, key, length, len(stored), last_put)
            self._pages.execute(
                "INSERT INTO pages (id, key, bytes, stored_bytes, last_put) VALUES (?, ?, ?, ?, ?)", row
            )

    def _db(self, table: Table) -> Connection:
        return self._journal if table is JOURNAL else self._pages

    def _telling(self) -> Guard:
        """Turns foreign errors into StoreError. A guard for each call: one in which a reader stopped stays locked."""
        return Guard(self._path, "page store")
