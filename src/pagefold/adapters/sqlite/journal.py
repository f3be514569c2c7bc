"""The journal in one SQLite file that many processes and threads write to.

Promises: what `stage` or `commit` answered is there after any kill and any power failure; a line changes by one
statement in one transaction, so no kill leaves it in between; writers take turns, and one that had read an older
version is rejected, never merged.

The file is not that of the pages: that one may lose its newest pages in a power failure, is collected, and is replaced
when it is damaged, and none of that may happen to what has to outlive the window. Nor does a line wait for a large page
to be written.
"""

import json
import os
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from pagefold.adapters.sqlite.database import DAMAGED, Guard, open_database, read_back, refusal, spelled, transaction
from pagefold.pages.journal import (
    Boundary,
    JournalEntry,
    JournalLine,
    JournalRecord,
    LineState,
    Op,
    RejectReason,
    Rules,
    applied,
)
from pagefold.pages.journal_steps import JournalBase
from pagefold.pages.page import PageId
from pagefold.pages.store import PageStore

_APPLICATION_ID = 1_885_760_108
_WHAT = "journal"

# Foreign text is a BLOB: not every str is SQLite text. Two commits of one version cannot both stand.
_MIGRATIONS: Sequence[str] = (
    """
    PRAGMA application_id = 1885760108;
    CREATE TABLE lines (number INTEGER PRIMARY KEY AUTOINCREMENT, owner BLOB NOT NULL, token BLOB, scope BLOB NOT NULL,
        key BLOB NOT NULL, entry TEXT NOT NULL, state TEXT NOT NULL, reason TEXT, detail BLOB NOT NULL,
        boundary TEXT, version INTEGER, staged_at REAL NOT NULL,
        UNIQUE (scope, key, version), UNIQUE (owner, token));
    CREATE VIEW listed AS SELECT number, owner, scope, key, entry, state, reason, detail, boundary, version, staged_at
        FROM lines;
    CREATE INDEX pending ON lines (owner, number) WHERE state IN ('staged', 'validated');
    """,
)

_PENDING = "SELECT * FROM listed WHERE owner = ? AND state IN ('staged', 'validated') ORDER BY number"
_LISTED = """
    SELECT * FROM listed WHERE (:scope IS NULL OR scope = :scope) AND (:state IS NULL OR state = :state)
    ORDER BY number
"""
_COMMITTED = "SELECT * FROM listed WHERE scope = ? AND key = ? AND version > ? ORDER BY version"
_ONE = "SELECT * FROM listed WHERE number = ? AND owner = ?"
_ALREADY = "SELECT * FROM listed WHERE number = (SELECT number FROM lines WHERE owner = ? AND token = ?)"
_STAGE = "INSERT INTO lines (owner, token, scope, key, entry, state, detail, staged_at) VALUES (?, ?, ?, ?, ?, ?, ?, ?)"
_MOVE = "UPDATE lines SET state = ?, reason = ?, detail = ?, boundary = ?, version = ? WHERE number = ?"


def beside(store: Path) -> Path:
    """Where the journal of a store lies."""
    return store.with_name(f"{store.stem}.journal.sqlite3")


class SqliteJournal(JournalBase):
    """The journal in the SQLite file at `path`, which is made by the first write: reading makes none."""

    def __init__(self, path: str | os.PathLike[str], rules: Rules, pages: PageStore, *, owner: str = "") -> None:
        self.path = Path(path).absolute()
        super().__init__(rules, pages, owner, str(self.path))
        self._guard = Guard(self.path, _WHAT)
        # Committed lines never change, so what they said needs reading only once.
        self._records: dict[tuple[str, str], JournalRecord] = {}
        self._connection: sqlite3.Connection | None = None

    def stage(self, entry: JournalEntry, *, token: str = "", now: float = 0.0) -> JournalLine:
        owner, mark = spelled(self.owner), spelled(token) if token else None
        row = (owner, mark, spelled(entry.scope), spelled(entry.key), _written(entry), LineState.STAGED, b"", now)
        with self._changing():
            known = self._db.execute(_ALREADY, (owner, mark)).fetchone() if mark else None
            if known is not None:
                return self._line(known)
            number = self._db.execute(_STAGE, row).lastrowid
            assert number is not None
            return JournalLine(number, self.owner, entry, staged_at=now)

    def record(self, scope: str, key: str) -> JournalRecord | None:
        with self._guard:
            return self._record(scope, key) if self._is_there() else None

    def lines(self, *, scope: str | None = None, state: LineState | None = None) -> Sequence[JournalLine]:
        return self._listed(_LISTED, {"scope": None if scope is None else spelled(scope), "state": state})

    def pending(self) -> Sequence[JournalLine]:
        return self._listed(_PENDING, (spelled(self.owner),))

    def close(self) -> None:
        with self._guard:
            if self._connection is not None:
                self._connection.close()

    @property
    def _db(self) -> sqlite3.Connection:
        if self._connection is None:
            self._connection = open_database(self.path, _WHAT, _APPLICATION_ID, _MIGRATIONS, synchronous="FULL")
        return self._connection

    def _is_there(self) -> bool:
        return self._connection is not None or self.path.exists()

    def _listed(self, statement: str, wanted: Any) -> list[JournalLine]:
        with self._guard:
            return [self._line(row) for row in self._db.execute(statement, wanted)] if self._is_there() else []

    @contextmanager
    def _changing(self) -> Iterator[None]:
        with self._guard, transaction(self._db):
            yield

    def _own_line(self, number: int) -> JournalLine | None:
        row = self._db.execute(_ONE, (number, spelled(self.owner))).fetchone()
        return None if row is None else self._line(row)

    def _record(self, scope: str, key: str) -> JournalRecord | None:
        record = self._records.get((scope, key))
        seen = record.version if record else 0
        for row in self._db.execute(_COMMITTED, (spelled(scope), spelled(key), seen)):
            line = self._line(row)
            record = applied(line.entry, record)
            if line.version != record.version:
                raise refusal(_WHAT, self.path, DAMAGED, f"version {record.version} of {key} is missing")
        if record is not None:
            self._records[scope, key] = record
        return record

    def _replace(self, line: JournalLine) -> None:
        row = (line.state, line.reason, spelled(line.detail), line.boundary, line.version or None, line.number)
        self._db.execute(_MOVE, row)

    def _line(self, row: tuple[Any, ...]) -> JournalLine:
        try:
            return _line_of(row)
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
            raise refusal(_WHAT, self.path, DAMAGED, f"line {row[0]}: {error}") from error


def _line_of(row: tuple[Any, ...]) -> JournalLine:
    number, owner, scope, key, entry, state, reason, detail, boundary, version, staged_at = row
    fields = json.loads(entry)
    provenance = tuple(map(PageId, fields["provenance"]))
    place = (Op(fields["op"]), read_back(scope), read_back(key))
    return JournalLine(
        number,
        read_back(owner),
        JournalEntry(*place, fields["schema"], fields["value"], provenance, fields["read"]),
        LineState(state),
        None if reason is None else RejectReason(reason),
        read_back(detail),
        None if boundary is None else Boundary(boundary),
        version or 0,
        staged_at,
    )


def _written(entry: JournalEntry) -> str:
    fields = {name: getattr(entry, name) for name in ("op", "schema", "value", "provenance")}
    return json.dumps(fields | {"read": entry.read_version})
