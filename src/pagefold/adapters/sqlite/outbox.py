"""The outbox in the file of the pages: notes of what is to be sent to the history sink, and of what was sent.

The note is written in the transaction of the put, so a kill forgets nothing, and the backlog needs no memory.
"""

from collections.abc import Sequence
from copy import copy
from pathlib import Path

from pagefold.adapters.columns import kind_of, read_back, spelled
from pagefold.adapters.sqlite.database import Guard, transaction
from pagefold.adapters.sqlite.pages import connect
from pagefold.adapters.sqlite.scope import ScopeClause
from pagefold.pages.manifest import ManifestEntry
from pagefold.pages.page import PageId, id_range
from pagefold.pages.scope import THIS_USER, StoreScope
from pagefold.pages.store import UnsentPage

_BATCH = """
    SELECT principal, project, history, page, kind, name, bytes, first_put, place
    FROM awaiting JOIN listings USING (place) JOIN pages ON pages.id = listings.page JOIN scopes ON number = scope
    WHERE owner = ? ORDER BY tries, place LIMIT ?
"""
_WAITING = """
    SELECT count(*), coalesce(sum(bytes), 0)
    FROM awaiting JOIN listings USING (place) JOIN pages ON pages.id = listings.page
"""
# A place may have been given to another page meanwhile, if its own was collected.
_SENT = """
    DELETE FROM awaiting WHERE place = (SELECT place FROM listings WHERE history = ? AND page = ?
        AND scope = (SELECT number FROM scopes WHERE principal = ? AND project = ?))
"""
_SUNK = """
    INSERT OR IGNORE INTO sunk (history, page, scope)
    SELECT ?, ?, number FROM scopes WHERE principal = ? AND project = ?
"""
_FIND = "SELECT DISTINCT page, history FROM sunk WHERE page >= :first AND page < :end AND {scope}"
_ENQUEUE = """
    INSERT OR IGNORE INTO awaiting (place, owner) SELECT place, :owner FROM listings
    WHERE {scope} AND history = :history AND history != x'' AND NOT EXISTS (SELECT 1 FROM sunk
        WHERE sunk.scope = listings.scope AND sunk.page = listings.page AND sunk.history = listings.history)
"""


class SqliteOutbox:
    """The notes in the store at `path`, over a connection of its own: sending delays no put of the same process."""

    def __init__(self, path: Path, sender: str, key: str = "", scope: StoreScope = THIS_USER) -> None:
        self._sender, self.clause = sender, ScopeClause(scope)
        self._guard = Guard(path, "page store")
        with self._guard:
            self._db = connect(path, key)
            self.store_id: str = self._db.execute("SELECT identity FROM facts").fetchone()[0]

    def scoped(self, scope: StoreScope) -> "SqliteOutbox":
        """The same outbox for another scope, over the same connection."""
        outbox = copy(self)
        outbox.clause = ScopeClause(scope)
        return outbox

    def adopt(self) -> int:
        with self._guard:
            return self._db.execute("UPDATE awaiting SET owner = ? WHERE owner != ?", (self._sender,) * 2).rowcount

    def enqueue(self, session: str) -> int:
        values = {"owner": self._sender, "history": spelled(session)}
        with self._guard:
            return self._db.execute(_ENQUEUE.format(scope=self.clause.text), {**self.clause.values, **values}).rowcount

    def next_batch(self, pages: int, length: int) -> Sequence[UnsentPage]:
        with self._guard:
            rows = self._db.execute(_BATCH, (self._sender, pages)).fetchall()
        batch: list[UnsentPage] = []
        for principal, project, history, page, kind, name, size, first_put, place in rows:
            length -= size
            if batch and length < 0:
                break
            entry = ManifestEntry(PageId(page), kind_of(kind), read_back(name), size, first_put, place)
            batch.append(UnsentPage(read_back(history), entry, StoreScope(read_back(principal), read_back(project))))
        return batch

    def mark_sent(self, batch: Sequence[UnsentPage]) -> None:
        rows = [
            (spelled(unsent.session), unsent.entry.page, spelled(unsent.scope.principal), spelled(unsent.scope.written))
            for unsent in batch
        ]
        with self._guard, transaction(self._db) as db:
            db.executemany(_SENT, rows)
            db.executemany(_SUNK, rows)

    def mark_tried(self, batch: Sequence[UnsentPage]) -> None:
        with self._guard, transaction(self._db) as db:
            rows = [(unsent.entry.place,) for unsent in batch]
            db.executemany("UPDATE awaiting SET tries = tries + 1 WHERE place = ?", rows)

    def note_in_sink(self, session: str, pages: Sequence[PageId]) -> None:
        with self._guard:
            scope = self.clause.number(self._db)
            with transaction(self._db) as db:
                rows = [(scope, page, spelled(session)) for page in pages]
                db.executemany("INSERT OR IGNORE INTO sunk (scope, page, history) VALUES (?, ?, ?)", rows)

    def find_sent(self, handle: str) -> Sequence[tuple[PageId, str]]:
        span = id_range(handle)
        if span is None:
            return []
        values = {"first": span[0], "end": span[1]}
        with self._guard:
            rows = self._db.execute(_FIND.format(scope=self.clause.text), {**self.clause.values, **values}).fetchall()
        return [(PageId(page), read_back(history)) for page, history in rows]

    def backlog(self) -> tuple[int, int]:
        with self._guard:
            pages, length = self._db.execute(_WAITING).fetchone()
        return pages, length

    def close(self) -> None:
        with self._guard:
            self._db.close()
