"""What a store has yet to send to the history sink, and what it has sent: the notes beside the pages.

The store notes in the transaction of a put that the page awaits being sent, so nothing is forgotten by a kill, and the
backlog needs no memory. Every note has one owner, the process that put it; one that starts adopts all that it finds.
Everything may raise StoreError.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from pagefold.adapters.sqlite.database import Guard, transaction
from pagefold.adapters.sqlite.pages import connect, kind_of, read_back, spelled
from pagefold.pages.manifest import ManifestEntry
from pagefold.pages.page import PageId, id_range

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


@dataclass(frozen=True, slots=True)
class UnsentPage:
    session: str
    entry: ManifestEntry


class SqliteOutbox:
    """The notes in the store at `path`, over a connection of its own: sending holds up no put of the same process."""

    def __init__(self, path: Path, owner: str) -> None:
        self._owner = owner
        self._guard = Guard(path, "page store")
        with self._guard:
            self._db = connect(path)
            self.store: str = self._db.execute("SELECT identity FROM facts").fetchone()[0]

    def adopt(self) -> int:
        """Take over what other processes left behind, or are about to send: sending a page twice does no harm."""
        with self._guard:
            return self._db.execute("UPDATE awaiting SET owner = ? WHERE owner != ?", (self._owner,) * 2).rowcount

    def enqueue(self, session: str) -> int:
        """Have all of a session sent that was not: what was put before there was a sink, too."""
        with self._guard:
            return self._db.execute(_ENQUEUE, (self._owner, spelled(session))).rowcount

    def batch(self, pages: int, length: int) -> Sequence[UnsentPage]:
        """What is to be sent next, the least tried and the oldest first: as much as fits, and at least one."""
        with self._guard:
            rows = self._db.execute(_BATCH, (self._owner, pages)).fetchall()
        batch: list[UnsentPage] = []
        for history, page, kind, name, size, first_put, place in rows:
            length -= size
            if batch and length < 0:
                break
            entry = ManifestEntry(PageId(page), kind_of(kind), read_back(name), size, first_put, place)
            batch.append(UnsentPage(read_back(history), entry))
        return batch

    def sent(self, batch: Sequence[UnsentPage]) -> None:
        rows = [(spelled(one.session), one.entry.page) for one in batch]
        with self._guard, transaction(self._db) as db:
            db.executemany(_SENT, rows)
            db.executemany("INSERT OR IGNORE INTO sunk (history, page) VALUES (?, ?)", rows)

    def tried(self, batch: Sequence[UnsentPage]) -> None:
        with self._guard, transaction(self._db) as db:
            rows = [(one.entry.place,) for one in batch]
            db.executemany("UPDATE awaiting SET tries = tries + 1 WHERE place = ?", rows)

    def note_sunk(self, session: str, pages: Sequence[PageId]) -> None:
        """These are known to be in the sink: they came from there."""
        with self._guard, transaction(self._db) as db:
            rows = [(page, spelled(session)) for page in pages]
            db.executemany("INSERT OR IGNORE INTO sunk (page, history) VALUES (?, ?)", rows)

    def sunk(self, handle: str) -> Sequence[tuple[PageId, str]]:
        """The pages a handle may name that were sent, each with its session, also when the store has them no more."""
        span = id_range(handle)
        if span is None:
            return []
        with self._guard:
            rows = self._db.execute("SELECT page, history FROM sunk WHERE page >= ? AND page < ?", span).fetchall()
        return [(PageId(page), read_back(history)) for page, history in rows]

    def waiting(self) -> tuple[int, int]:
        """How many pages await being sent, whoever owns them, and their bytes."""
        with self._guard:
            pages, length = self._db.execute(_WAITING).fetchone()
        return pages, length

    def close(self) -> None:
        with self._guard:
            self._db.close()
