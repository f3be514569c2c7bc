"""The access store in a file of its own, for an instance whose store is a file."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from pagefold.adapters.access_rows import SCHEMA, Execute
from pagefold.adapters.sqlite.database import Guard, open_database, transaction

_APPLICATION = 0x70666163  # "pfac"
_STEP = f"{SCHEMA}; PRAGMA application_id = {_APPLICATION}"
_WHAT = "access store"


class SqliteAccessFile:
    """The file at `path`, made where there is none; with a `key` it is encrypted. Raises StoreError."""

    def __init__(self, path: Path, key: str = "") -> None:
        self.where = str(path)
        self._guard = Guard(path, _WHAT)
        with self._guard:
            self._db = open_database(path, _WHAT, _APPLICATION, (_STEP,), synchronous="FULL", key=key)

    @contextmanager
    def transaction(self) -> Iterator[Execute]:
        def execute(statement: str, values: Sequence[Any]) -> list[Any]:
            return self._db.execute(statement, tuple(values)).fetchall()

        with self._guard, transaction(self._db):
            yield execute

    def close(self) -> None:
        with self._guard:
            self._db.close()
