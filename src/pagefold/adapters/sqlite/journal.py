"""The journal on disk: one SQLite file that many processes and threads write to.

Promises: what `stage` or `commit` answered is there after any kill and any power failure; a line is moved by one
statement in one transaction, so no kill leaves it in between; writers take turns, and one that had read an older
version is rejected, never merged. The pages that a committed line came from are held in the store and stay readable.

The file is not the store's: the store may lose its newest pages in a power failure, is collected, and starts anew when
it is damaged, and none of that may happen to what has to outlive the window. Nor does a line wait for somebody's large
page to be written.
"""

import json
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from pagefold.adapters.sqlite.database import DAMAGED, Guard, open_database, refusal, transaction
from pagefold.pages.faults import Boundary
from pagefold.pages.journal import (
    JournalEntry,
    JournalLine,
    JournalRecord,
    LineState,
    Op,
    Rejected,
    Rules,
    applied,
    ended,
    judged,
)
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


class SqliteJournal:
    """The journal at `path` as one owner writes it. Lines belong to their owner, and its next process goes on.

    `store` keeps the pages that entries come from.
    """

    def __init__(self, path: str | os.PathLike[str], rules: Rules, store: PageStore, *, owner: str = "") -> None:
        self.path = Path(path).absolute()
        self.rules, self.owner = rules, owner
        self._store = store
        self._guard = Guard(self.path, _WHAT)
        # Committed lines never change, so what they said needs reading only once.
        self._records: dict[tuple[str, str], JournalRecord] = {}
        with self._guard:
            self._db = open_database(self.path, _WHAT, _APPLICATION_ID, _MIGRATIONS, synchronous="FULL")

    def stage(self, entry: JournalEntry, *, token: str = "", now: float = 0.0) -> JournalLine:
        owner, mark = _spelled(self.owner), _spelled(token) if token else None
        row = (owner, mark, _spelled(entry.scope), _spelled(entry.key), _written(entry), LineState.STAGED, b"", now)
        with self._guard, transaction(self._db) as db:
            known = db.execute(_ALREADY, (owner, mark)).fetchone() if mark else None
            if known is not None:
                return self._line(known)
            number = db.execute(_STAGE, row).lastrowid
            assert number is not None
            return JournalLine(number, self.owner, entry, staged_at=now)

    def validate(self, number: int) -> JournalLine:
        with self._guard, transaction(self._db):
            line = self._one(number)
            if line.state is not LineState.STAGED:
                return line
            record = self._record(line.entry.scope, line.entry.key)
            return self._move(judged(line, record, self.rules, self._store.exists))

    def commit(self, number: int, boundary: Boundary) -> JournalLine:
        with self._guard:
            line = self._one(number)
        if line.state is not LineState.VALIDATED:
            return ended(line, None, self.rules, self._store.exists, boundary)
        # Held before the lock is taken: a page that is there afterwards stays for as long as the line does.
        hold = f"{_WHAT} {self.path} {number}"
        held = {page: self._store.hold(page, hold) for page in line.entry.provenance}
        with self._guard, transaction(self._db):
            line = self._one(number)
            record = self._record(line.entry.scope, line.entry.key)
            line = self._move(ended(line, record, self.rules, held.__getitem__, boundary))
        if line.state is LineState.REJECTED:
            self._store.release(hold)
        return line

    def record(self, scope: str, key: str) -> JournalRecord | None:
        with self._guard:
            return self._record(scope, key)

    def lines(self, *, scope: str | None = None, state: LineState | None = None) -> Sequence[JournalLine]:
        wanted = {"scope": None if scope is None else _spelled(scope), "state": state}
        with self._guard:
            return [self._line(row) for row in self._db.execute(_LISTED, wanted)]

    def pending(self) -> Sequence[JournalLine]:
        with self._guard:
            return [self._line(row) for row in self._db.execute(_PENDING, (_spelled(self.owner),))]

    def close(self) -> None:
        with self._guard:
            self._db.close()

    def _one(self, number: int) -> JournalLine:
        row = self._db.execute(_ONE, (number, _spelled(self.owner))).fetchone()
        if row is None:
            raise ValueError(f"{self.path} has no line {number} of {self.owner!r}")
        return self._line(row)

    def _record(self, scope: str, key: str) -> JournalRecord | None:
        record = self._records.get((scope, key))
        seen = record.version if record else 0
        for row in self._db.execute(_COMMITTED, (_spelled(scope), _spelled(key), seen)):
            line = self._line(row)
            record = applied(line.entry, record)
            if line.version != record.version:
                raise refusal(_WHAT, self.path, DAMAGED, f"version {record.version} of {key} is missing")
        if record is not None:
            self._records[scope, key] = record
        return record

    def _move(self, line: JournalLine) -> JournalLine:
        row = (line.state, line.reason, _spelled(line.detail), line.boundary, line.version or None, line.number)
        self._db.execute(_MOVE, row)
        return line

    def _line(self, row: tuple[Any, ...]) -> JournalLine:
        try:
            return _line_of(*row)
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
            raise refusal(_WHAT, self.path, DAMAGED, f"line {row[0]}: {error}") from error


def _line_of(
    number: int,
    owner: bytes,
    scope: bytes,
    key: bytes,
    entry: str,
    state: str,
    reason: str | None,
    detail: bytes,
    boundary: str | None,
    version: int | None,
    staged_at: float,
) -> JournalLine:
    said = json.loads(entry)
    return JournalLine(
        number,
        _read(owner),
        JournalEntry(
            Op(said["op"]),
            _read(scope),
            _read(key),
            said["schema"],
            said["value"],
            tuple(PageId(page) for page in said["provenance"]),
            said["read"],
        ),
        LineState(state),
        None if reason is None else Rejected(reason),
        _read(detail),
        None if boundary is None else Boundary(boundary),
        version or 0,
        staged_at,
    )


def _written(entry: JournalEntry) -> str:
    names = ("op", "schema", "value", "provenance", "read")
    return json.dumps({name: getattr(entry, name) for name in names})


def _spelled(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")


def _read(text: bytes) -> str:
    return text.decode("utf-8", "surrogatepass")
