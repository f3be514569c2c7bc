"""Connections to SQLite files that are encrypted as a whole: tables, indexes, write-ahead log and backups.

SQLite3 Multiple Ciphers (the package apsw-sqlite3mc, the extra `encryption`) encrypts and authenticates every page of a
file with AEGIS-256 under the key. A connection here offers what pagefold uses of one of `sqlite3`, and raises the same
errors with their codes, so that nothing else has to know which of the two it has.
"""

import re
import sqlite3
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

import apsw

_CIPHER = "aegis"
_READS = re.compile(r"\s*SELECT\b")

T = TypeVar("T")


class Rows:
    """The rows of a statement; of one that changes rows, how many it changed and the key of the last.

    Rows of a `SELECT` are fetched as they are asked for, all others at once: apsw 3.54 keeps a cursor for ever that
    goes away after one that was made later, and what every statement costs grows with a connection's cursors.
    """

    __slots__ = ("_cursor", "lastrowid", "rowcount")

    def __init__(self, cursor: "apsw.Cursor | _Fetched", rowcount: int = -1, lastrowid: int = 0) -> None:
        self._cursor, self.rowcount, self.lastrowid = cursor, rowcount, lastrowid

    def __iter__(self) -> Iterator[Any]:
        while (row := self.fetchone()) is not None:
            yield row

    def fetchone(self) -> Any:
        try:
            return self._cursor.fetchone()
        except apsw.Error as error:
            raise _translation(error) from error

    def fetchall(self) -> list[Any]:
        try:
            return self._cursor.fetchall()
        except apsw.Error as error:
            raise _translation(error) from error


class _Fetched:
    """Rows that were fetched already."""

    __slots__ = ("_rows",)

    def __init__(self, rows: Iterable[Any]) -> None:
        self._rows = iter(rows)

    def fetchone(self) -> Any:
        return next(self._rows, None)

    def fetchall(self) -> list[Any]:
        return list(self._rows)


class EncryptedConnection:
    """A connection to the file at `path` under `key`, 64 hex digits. The file is made where there is none."""

    def __init__(self, path: Path | str, key: str, timeout: float) -> None:
        self._db = _translated(lambda: apsw.Connection(str(path)))
        self._db.set_busy_timeout(round(1000 * timeout))
        self.execute(f"PRAGMA cipher = '{_CIPHER}'")
        self.execute(f"PRAGMA key = '{pragma_key(key)}'")

    def execute(self, statement: str, values: Sequence[Any] | Mapping[str, Any] = ()) -> Rows:
        db = self._db
        try:
            if _READS.match(statement):  # a get is two of these, and what it costs counts
                return Rows(db.execute(statement, values or None))
            before = db.total_changes()
            rows = _Fetched(db.execute(statement, values or None).fetchall())
            return Rows(rows, db.changes() if db.total_changes() != before else 0, db.last_insert_rowid())
        except apsw.Error as error:
            raise _translation(error) from error

    def executemany(self, statement: str, rows: Iterable[Sequence[Any]]) -> Rows:
        def run() -> Rows:
            before = self._db.total_changes()
            fetched = _Fetched(self._db.executemany(statement, rows).fetchall())
            return Rows(fetched, self._db.total_changes() - before, self._db.last_insert_rowid())

        return _translated(run)

    def executescript(self, statements: str) -> None:
        _translated(lambda: self._db.execute(statements).fetchall())

    @property
    def in_transaction(self) -> bool:
        return self._db.in_transaction

    def interrupt(self) -> None:
        self._db.interrupt()

    def close(self) -> None:
        _translated(self._db.close)


def encrypt_file(path: Path, key: str) -> None:
    """Encrypts a plain file that nobody else uses, all of it, in its place."""
    db = _translated(lambda: apsw.Connection(str(path)))
    try:
        for statement in (f"PRAGMA cipher = '{_CIPHER}'", f"PRAGMA rekey = '{pragma_key(key)}'"):
            _translated(lambda statement=statement: db.execute(statement).fetchall())  # type: ignore[misc]
    finally:
        db.close()


def pragma_key(key: str) -> str:
    """The key as SQLite takes it where it is not to be stretched: it is random already."""
    return f"raw:{key}"


def _translated(run: Callable[[], T]) -> T:
    try:
        return run()
    except apsw.Error as error:
        raise _translation(error) from error


def _translation(error: apsw.Error) -> sqlite3.Error:
    """What sqlite3 would have raised."""
    if isinstance(error, apsw.ConnectionClosedError | apsw.CursorClosedError):
        return sqlite3.ProgrammingError(str(error))
    code = getattr(error, "extendedresult", 0) or getattr(error, "result", sqlite3.SQLITE_ERROR)
    constraint = code & 0xFF == sqlite3.SQLITE_CONSTRAINT
    translated = (sqlite3.IntegrityError if constraint else sqlite3.OperationalError)(str(error))
    translated.sqlite_errorcode = code
    return translated
