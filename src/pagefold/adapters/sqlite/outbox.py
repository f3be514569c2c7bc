"""The outbox in the file of the pages: notes of what is to be sent to the history sink, and of what was sent.

The note is written in the transaction of the put, so a kill forgets nothing, and the backlog needs no memory.
"""

from collections.abc import Sequence
from pathlib import Path

from pagefold.adapters.sqlite.database import Guard, read_back, spelled, transaction
from pagefold.adapters.sqlite.pages import connect, kind_of
from pagefold.pages.manifest import ManifestEntry
from pagefold.pages.page import PageId, id_range
from pagefold.pages.store import UnsentPage

_BATCH = """
    SELECT history, page, kind, name, bytes, first_put, place
    FROM awaiting JOIN listings USING (place) JOIN pages ON pages.id = listings.page
    WHERE owner = ? ORDER BY tries, place LIMIT ?
"""
_WAITING = """
    SELECT count(*), coalesce(sum(bytes), 0)
    FROM awaiting JOIN listings USING (place) JOIN pages ON pages.id = listings.page
"""
# A place may have been given to another page meanwhile, if its own was collected.
_SENT = """
    DELETE FROM awaiting WHERE place = (SELECT place FROM listings WHERE history = ? AND page = ?)
"""
_ENQUEUE = """
    INSERT OR IGNORE INTO awaiting (place, owner) SELECT place, ? FROM listings
    WHERE history = ? AND NOT EXISTS (
        SELECT 1 FROM sunk WHERE sunk.page = listings.page AND sunk.history = listings.history)
"""


class SqliteOutbox:
    """The notes in the store at `path`, over a connection of its own: sending delays no put of the same process."""

    def __init__(self, path: Path, sender: str) -> None:
        self._sender = sender
        self._guard = Guard(path, "page store")
        with self._guard:
            self._db = connect(path)
            self.store_id: str = self._db.execute("SELECT identity FROM facts").fetchone()[0]

    def adopt(self) -> int:
        with self._guard:
            return self._db.execute("UPDATE awaiting SET owner = ? WHERE owner != ?", (self._sender,) * 2).rowcount

    def enqueue(self, session: str) -> int:
        with self._guard:
            return self._db.execute(_ENQUEUE, (self._sender, spelled(session))).rowcount

    def next_batch(self, pages: int, length: int) -> Sequence[UnsentPage]:
        with self._guard:
            rows = self._db.execute(_BATCH, (self._sender, pages)).fetchall()
        batch: list[UnsentPage] = []
        for history, page, kind, name, size, first_put, place in rows:
            length -= size
            if batch and length < 0:
                break
            entry = ManifestEntry(PageId(page), kind_of(kind), read_back(name), size, first_put, place)
            batch.append(UnsentPage(read_back(history), entry))
        return batch

    def mark_sent(self, batch: Sequence[UnsentPage]) -> None:
        rows = [(spelled(unsent.session), unsent.entry.page) for unsent in batch]
        with self._guard, transaction(self._db) as db:
            db.executemany(_SENT, rows)
            db.executemany("INSERT OR IGNORE INTO sunk (history, page) VALUES (?, ?)", rows)

    def mark_tried(self, batch: Sequence[UnsentPage]) -> None:
        with self._guard, transaction(self._db) as db:
            rows = [(unsent.entry.place,) for unsent in batch]
            db.executemany("UPDATE awaiting SET tries = tries + 1 WHERE place = ?", rows)

    def note_in_sink(self, session: str, pages: Sequence[PageId]) -> None:
        with self._guard, transaction(self._db) as db:
            rows = [(page, spelled(session)) for page in pages]
            db.executemany("INSERT OR IGNORE INTO sunk (page, history) VALUES (?, ?)", rows)

    def find_sent(self, handle: str) -> Sequence[tuple[PageId, str]]:
        span = id_range(handle)
        if span is None:
            return []
        with self._guard:
            rows = self._db.execute("SELECT page, history FROM sunk WHERE page >= ? AND page < ?", span).fetchall()
        return [(PageId(page), read_back(history)) for page, history in rows]

    def backlog(self) -> tuple[int, int]:
        with self._guard:
            pages, length = self._db.execute(_WAITING).fetchone()
        return pages, length

    def close(self) -> None:
        with self._guard:
            self._db.close()
