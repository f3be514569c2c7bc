"""The journal in one SQLite file that many processes and threads write to.

Promises: what `stage` or `commit` answered is there after any kill and any power failure; a line changes by one
statement in one transaction, so no kill leaves it in between; writers take turns, and one that had read an older
version is rejected, never merged.

The file is not that of the pages: that one may lose its newest pages in a power failure, is collected, and is replaced
when it is damaged, and none of that may happen to what has to outlive the window. Nor does a line wait for a large page
to be written.
"""

import hashlib
import json
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

from pagefold.adapters.columns import spelled
from pagefold.adapters.journal_rows import entry_column, line_of
from pagefold.adapters.sqlite.database import DAMAGED, Connection, Guard, open_database, refusal, transaction
from pagefold.pages.journal import JournalEntry, JournalLine, JournalRecord, LineState, Rules, applied
from pagefold.pages.journal_steps import JournalBase
from pagefold.pages.redaction import Redactor
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
    # A line belongs to a principal. What was written before there were any is the user's own.
    """
    DROP VIEW listed;
    DROP INDEX pending;
    ALTER TABLE lines RENAME TO old_lines;
    CREATE TABLE lines (number INTEGER PRIMARY KEY AUTOINCREMENT, principal BLOB NOT NULL, owner BLOB NOT NULL,
        token BLOB, scope BLOB NOT NULL, key BLOB NOT NULL, entry TEXT NOT NULL, state TEXT NOT NULL, reason TEXT,
        detail BLOB NOT NULL, boundary TEXT, version INTEGER, staged_at REAL NOT NULL,
        UNIQUE (principal, scope, key, version), UNIQUE (principal, owner, token));
    INSERT INTO lines SELECT number, x'', owner, token, scope, key, entry, state, reason, detail, boundary, version,
        staged_at FROM old_lines;
    DROP TABLE old_lines;
    CREATE VIEW listed AS SELECT number, owner, scope, key, entry, state, reason, detail, boundary, version, staged_at,
        principal FROM lines;
    CREATE INDEX pending ON lines (principal, owner, number) WHERE state IN ('staged', 'validated');
    """,
)

_PENDING = "SELECT * FROM listed WHERE principal = ? AND owner = ? AND state IN ('staged', 'validated') ORDER BY number"
_LISTED = """
    SELECT * FROM listed WHERE principal = :principal AND (:scope IS NULL OR scope = :scope)
    AND (:state IS NULL OR state = :state) ORDER BY number
"""
_COMMITTED = "SELECT * FROM listed WHERE principal = ? AND scope = ? AND key = ? AND version >= ? ORDER BY version"
_ONE = "SELECT * FROM listed WHERE number = ? AND principal = ? AND owner = ?"
_ALREADY = """
    SELECT * FROM listed WHERE number = (SELECT number FROM lines WHERE principal = ? AND owner = ? AND token = ?)
"""
_STAGE = """
    INSERT INTO lines (principal, owner, token, scope, key, entry, state, detail, staged_at)
    VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)
"""
_MOVE = "UPDATE lines SET state = ?, reason = ?, detail = ?, boundary = ?, version = ? WHERE number = ?"


def beside(store: Path) -> Path:
    """Where the journal of a store lies."""
    return store.with_name(f"{store.stem}.journal.sqlite3")


def connect(path: Path, key: str = "") -> Connection:
    """Opens the file of a journal. Raises what sqlite3 raises."""
    return open_database(path, _WHAT, _APPLICATION_ID, _MIGRATIONS, synchronous="FULL", key=key)


class SqliteJournal(JournalBase):
    """The journal in the SQLite file at `path`, which is made by the first write: reading makes none."""

    def __init__(
        self,
        path: str | os.PathLike[str],
        rules: Rules,
        pages: PageStore,
        *,
        owner: str = "",
        principal: str = "",
        key: str = "",
        redactor: Redactor | None = None,
    ) -> None:
        self.path, self._key, self._principal = Path(path).absolute(), key, spelled(principal)
        self._redactor = redactor
        super().__init__(rules, pages, owner, str(self.path))
        self._guard = Guard(self.path, _WHAT)
        # Committed lines never change, so what they said needs reading only once; with the number of the last.
        self._records: dict[tuple[str, str], tuple[JournalRecord, int]] = {}
        self._connection: Connection | None = None

    def stage(self, entry: JournalEntry, *, token: str = "", now: float = 0.0) -> JournalLine:
        entry, token = self._redacted(entry, token)
        owner, mark = spelled(self.owner), spelled(token) if token else None
        names = (self._principal, owner, mark, spelled(entry.scope), spelled(entry.key))
        row = (*names, entry_column(entry), LineState.STAGED, b"", now)
        with self._changing():
            known = self._db.execute(_ALREADY, names[:3]).fetchone() if mark else None
            if known is not None:
                return self._line(known)
            number = self._db.execute(_STAGE, row).lastrowid
            assert number is not None
            return JournalLine(number, self.owner, entry, staged_at=now)

    def _redacted(self, entry: JournalEntry, token: str) -> tuple[JournalEntry, str]:
        """An entry without its secrets. One that has some is staged once, whatever the token says: its writer does not
        find it in the record as it was, and would write it again with every flush."""
        if self._redactor is None:
            return entry, token
        try:
            value = json.dumps(self._redactor.redact_value(json.loads(entry.value)))
            changed = json.loads(value) != json.loads(entry.value)
        except (ValueError, RecursionError):  # it will be refused, and is kept to tell why
            value = self._redactor.redact_text(entry.value)
            changed = value != entry.value
        if not changed:
            return entry, token
        mark = hashlib.sha256(spelled("\0".join((entry.op, entry.scope, entry.key, value)))).hexdigest()
        return replace(entry, value=value), f"redacted {mark}"

    def record(self, scope: str, key: str) -> JournalRecord | None:
        with self._guard:
            return self._record(scope, key) if self._is_there() else None

    def lines(self, *, scope: str | None = None, state: LineState | None = None) -> Sequence[JournalLine]:
        wanted = {"principal": self._principal, "scope": None if scope is None else spelled(scope), "state": state}
        return self._listed(_LISTED, wanted)

    def pending(self) -> Sequence[JournalLine]:
        return self._listed(_PENDING, (self._principal, spelled(self.owner)))

    def close(self) -> None:
        with self._guard:
            if self._connection is not None:
                self._connection.close()

    @property
    def _db(self) -> Connection:
        if self._connection is None:
            self._connection = connect(self.path, self._key)
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
        row = self._db.execute(_ONE, (number, self._principal, spelled(self.owner))).fetchone()
        return None if row is None else self._line(row)

    def _record(self, scope: str, key: str) -> JournalRecord | None:
        record, number = self._records.get((scope, key), (None, 0))
        lines = self._committed(scope, key, record.version if record else 0)
        if record is not None and (not lines or lines.pop(0).number != number):
            # It was forgotten meanwhile, and may have begun anew.
            record, lines = None, self._committed(scope, key, 0)
            del self._records[scope, key]
        for line in lines:
            record = applied(line.entry, record)
            if line.version != record.version:
                raise refusal(_WHAT, self.path, DAMAGED, f"version {record.version} of {key} is missing")
            self._records[scope, key] = record, line.number
        return record

    def _committed(self, scope: str, key: str, version: int) -> list[JournalLine]:
        rows = self._db.execute(_COMMITTED, (self._principal, spelled(scope), spelled(key), version))
        return [self._line(row) for row in rows]

    def _replace(self, line: JournalLine) -> None:
        row = (line.state, line.reason, spelled(line.detail), line.boundary, line.version or None, line.number)
        self._db.execute(_MOVE, row)

    def _line(self, row: tuple[Any, ...]) -> JournalLine:
        try:
            return line_of(row)
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
            raise refusal(_WHAT, self.path, DAMAGED, f"line {row[0]}: {error}") from error
