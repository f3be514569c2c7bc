"""The journal in the database of the pages.

Promises: what `stage` or `commit` answered is there after any kill, and after a power failure as far as the server's
settings promise; a line changes in one transaction; writers of one principal take turns, and one that had read an older
version is rejected, never merged.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from pagefold.adapters.columns import spelled
from pagefold.adapters.journal_rows import COLUMNS, entry_column, line_of
from pagefold.adapters.postgres.server import Server
from pagefold.errors import StoreError
from pagefold.pages.journal import JournalEntry, JournalLine, JournalRecord, LineState, Rules, applied
from pagefold.pages.journal_steps import JournalBase
from pagefold.pages.store import PageStore

_ROWS = f"SELECT {COLUMNS} FROM journal_lines WHERE principal = %(principal)s"
_PENDING = f"{_ROWS} AND owner = %(owner)s AND state IN ('staged', 'validated') ORDER BY number"
_LISTED = f"""{_ROWS} AND (%(scope)s::bytea IS NULL OR scope = %(scope)s)
    AND (%(state)s::text IS NULL OR state = %(state)s) ORDER BY number"""
_COMMITTED = f"{_ROWS} AND scope = %(scope)s AND key = %(key)s AND version > %(seen)s ORDER BY version"
_OWN = f"{_ROWS} AND number = %(number)s AND owner = %(owner)s"
_ALREADY = f"{_ROWS} AND owner = %(owner)s AND token = %(token)s"
_STAGE = """
    INSERT INTO journal_lines (principal, owner, token, scope, key, entry, state, detail, staged_at)
    VALUES (%s, %s, %s, %s, %s, %s, %s, '', %s) RETURNING number
"""
_MOVE = """
    UPDATE journal_lines SET state = %s, reason = %s, detail = %s, boundary = %s, version = %s
    WHERE number = %s RETURNING 1
"""
_TAKE_TURNS = "SELECT pg_advisory_xact_lock(hashtextextended(encode(%s, 'hex'), 1))"


class PostgresJournal(JournalBase):
    """`closed` is called when the journal is closed; the connections are the store's."""

    def __init__(
        self,
        server: Server,
        rules: Rules,
        pages: PageStore,
        *,
        owner: str,
        principal: str,
        closed: Callable[[], None] | None = None,
    ) -> None:
        super().__init__(rules, pages, owner, server.where)
        self._server, self._principal, self._closed = server, spelled(principal), closed
        # Committed lines never change, so what they said needs reading only once.
        self._records: dict[tuple[str, str], JournalRecord] = {}

    def stage(self, entry: JournalEntry, *, token: str = "", now: float = 0.0) -> JournalLine:
        owner, mark = spelled(self.owner), spelled(token) if token else None
        names = (self._principal, owner, mark, spelled(entry.scope), spelled(entry.key))
        with self._changing():
            known = self._lines(_ALREADY, token=mark) if mark else []
            if known:
                return known[0]
            number = self._server.ask(_STAGE, (*names, entry_column(entry), LineState.STAGED, float(now)))[0][0]
            return JournalLine(number, self.owner, entry, staged_at=now)

    def record(self, scope: str, key: str) -> JournalRecord | None:
        return self._record(scope, key)

    def lines(self, *, scope: str | None = None, state: LineState | None = None) -> Sequence[JournalLine]:
        return self._lines(_LISTED, scope=None if scope is None else spelled(scope), state=state)

    def pending(self) -> Sequence[JournalLine]:
        return self._lines(_PENDING)

    def close(self) -> None:
        if self._closed is not None:
            self._closed()

    @contextmanager
    def _changing(self) -> Iterator[None]:
        with self._server.transaction() as db:
            db.execute(_TAKE_TURNS, (self._principal,))
            yield

    def _own_line(self, number: int) -> JournalLine | None:
        lines = self._lines(_OWN, number=number)
        return lines[0] if lines else None

    def _record(self, scope: str, key: str) -> JournalRecord | None:
        record = self._records.get((scope, key))
        seen = record.version if record else 0
        for line in self._lines(_COMMITTED, scope=spelled(scope), key=spelled(key), seen=seen):
            record = applied(line.entry, record)
            if line.version != record.version:
                raise self._damaged(f"version {record.version} of {key} is missing")
        if record is not None:
            self._records[scope, key] = record
        return record

    def _replace(self, line: JournalLine) -> None:
        row = (line.state, line.reason, spelled(line.detail), line.boundary, line.version or None, line.number)
        self._server.ask(_MOVE, row)

    def _lines(self, statement: str, **values: Any) -> list[JournalLine]:
        values = {"principal": self._principal, "owner": spelled(self.owner), **values}
        lines = []
        for row in self._server.ask(statement, values):
            try:
                lines.append(line_of(row))
            except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
                raise self._damaged(f"line {row[0]}: {error}") from error
        return lines

    def _damaged(self, detail: str) -> StoreError:
        return StoreError(f"the journal {self.where}: {detail}: restore it from a backup", kind="damaged page")
