"""Pages in one SQLite file that many processes and threads share.

Promises: a page that `put` acknowledged is whole after any kill (a power failure may take the last few, never the
file); a held page is never collected, whoever collects; a content that does not match its id is never handed out.
Refuses a file that is damaged, another program's or a newer pagefold's, with a StoreError that names the file and what
to do. What a collection frees is used again by later pages; the file itself does not shrink.

With a `sender`, a put under a history notes in the same transaction that the page is to be sent to the history sink;
`adapters.sqlite.outbox` reads those notes. An object stays in the process that made it: SQLite does not survive a fork.
"""

import os
import sqlite3
from collections.abc import Sequence
from pathlib import Path

import zstandard

from pagefold.adapters.sqlite.database import DAMAGED, Guard, open_database, read_back, refusal, spelled, transaction
from pagefold.pages.kinds import PageKind
from pagefold.pages.page import PageId, id_of, id_range
from pagefold.pages.store import Collected, ListedPage, StoreStats

_APPLICATION_ID = 0x70666F6C
_ZSTD_LEVEL = 3

# Pages stand apart from their contents, so that finding, refreshing and collecting do not touch the large rows.
# A content is stored as it is where its stored length is its length. A history is a BLOB: not every str is SQLite text.
_MIGRATIONS: Sequence[str] = (
    f"""
    PRAGMA application_id = {_APPLICATION_ID};
    CREATE TABLE contents (key INTEGER PRIMARY KEY, stored BLOB NOT NULL);
    CREATE TABLE pages (id TEXT PRIMARY KEY, key INTEGER NOT NULL, bytes INTEGER NOT NULL,
        stored_bytes INTEGER NOT NULL, last_put REAL NOT NULL) WITHOUT ROWID;
    CREATE TABLE listings (place INTEGER PRIMARY KEY, history BLOB NOT NULL, page TEXT NOT NULL,
        UNIQUE (history, page));
    CREATE TABLE holds (history BLOB NOT NULL, page TEXT NOT NULL, PRIMARY KEY (history, page)) WITHOUT ROWID;
    """,
    # `collections` tells an index whether keys and places may have been given away again. A page that was `sunk` is in
    # the history sink, and stays noted when the store has collected it.
    """
    ALTER TABLE listings ADD COLUMN kind TEXT NOT NULL DEFAULT '';
    ALTER TABLE listings ADD COLUMN name BLOB NOT NULL DEFAULT x'';
    ALTER TABLE listings ADD COLUMN first_put REAL NOT NULL DEFAULT 0;
    CREATE TABLE facts (identity TEXT NOT NULL, collections INTEGER NOT NULL);
    INSERT INTO facts VALUES (lower(hex(randomblob(8))), 0);
    CREATE TABLE awaiting (place INTEGER PRIMARY KEY, owner TEXT NOT NULL, tries INTEGER NOT NULL DEFAULT 0);
    CREATE INDEX awaiting_in_turn ON awaiting (owner, tries, place);
    CREATE TABLE sunk (page TEXT NOT NULL, history BLOB NOT NULL, PRIMARY KEY (page, history)) WITHOUT ROWID;
    """,
    "CREATE TABLE shown (text TEXT PRIMARY KEY, page TEXT NOT NULL) WITHOUT ROWID",
)

# `earlier` is what removing every older unheld page frees.
_DOOMED = """
    SELECT id, key, bytes FROM (
        SELECT id, key, bytes, last_put, coalesce(sum(bytes) OVER (
            ORDER BY last_put, id ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING), 0) AS earlier
        FROM pages WHERE id NOT IN (SELECT page FROM holds))
    WHERE last_put < :before OR (SELECT coalesce(sum(bytes), 0) FROM pages) - earlier > :max_bytes
"""
_CONTENT = "SELECT bytes, stored FROM pages LEFT JOIN contents USING (key) WHERE id = ?"
_ORIGINAL = "SELECT id, bytes, stored FROM shown JOIN pages ON id = page LEFT JOIN contents USING (key) WHERE text = ?"
_BETWEEN = "SELECT id FROM pages WHERE id >= ? AND id < ? ORDER BY id"
_LISTED = "SELECT page FROM listings WHERE history = ? ORDER BY place"
_NEWEST = """
    SELECT id, bytes, stored FROM listings JOIN pages ON id = page LEFT JOIN contents USING (key)
    WHERE history = ? ORDER BY place DESC LIMIT 1
"""
_LISTINGS = "SELECT page, kind, name, first_put FROM listings WHERE history = ? ORDER BY place"
_LIST = "INSERT OR IGNORE INTO listings (history, page, kind, name, first_put) VALUES (?, ?, ?, ?, ?)"
_AWAIT = """
    INSERT OR IGNORE INTO awaiting (place, owner) SELECT place, ? FROM listings AS listing
    WHERE history = ? AND page = ? AND NOT EXISTS (
        SELECT 1 FROM sunk WHERE sunk.page = listing.page AND sunk.history = listing.history)
"""
_HELD = "SELECT count(*) FROM pages WHERE id IN (SELECT page FROM holds)"
_STATS = """
    SELECT count(*), coalesce(sum(bytes), 0), coalesce(sum(stored_bytes), 0), count(*) FILTER (
        WHERE id IN (SELECT page FROM holds)), (SELECT count(DISTINCT history) FROM listings)
    FROM pages
"""


class SqlitePages:
    """The pages in the SQLite file at `path`, which is made, with its directory, where there is none.

    `sender` names who sends to the history sink what is put here; where it is empty, nothing is noted to be sent.
    """

    def __init__(self, path: str | os.PathLike[str], *, sender: str = "") -> None:
        self.path = Path(path).absolute()
        self._sender = sender
        self._guard = Guard(self.path, "page store")
        self._compressor = zstandard.ZstdCompressor(level=_ZSTD_LEVEL)
        self._decompressor = zstandard.ZstdDecompressor()
        with self._guard:
            self._db = connect(self.path)

    def put(
        self,
        content: bytes,
        *,
        history: str = "",
        now: float = 0.0,
        kind: PageKind | None = None,
        name: str = "",
        shown_form: PageId | None = None,
    ) -> PageId:
        with self._guard:
            page = id_of(content)
            # Compressed before the write lock is taken, so that processes wait only for each other's writes.
            stored = None if self._has(page) else self._stored(content)
            with transaction(self._db) as db:
                self._keep(page, content, stored, now)
                if history:
                    self._list(page, history, kind or "", name, now)
                if shown_form:
                    db.execute("INSERT OR IGNORE INTO shown (text, page) VALUES (?, ?)", (shown_form, page))
        return page

    def put_first(self, content: bytes, *, history: str, now: float = 0.0) -> bytes:
        """Puts a content under a history that lists nothing yet; returns what the history listed last, or lists now."""
        with self._guard, transaction(self._db) as db:
            newest = db.execute(_NEWEST, (spelled(history),)).fetchone()
            if newest is not None:
                return self._content(*newest)
            page = id_of(content)
            self._keep(page, content, None, now)
            self._list(page, history, "", "", now)
        return content

    def get(self, page: PageId) -> bytes | None:
        with self._guard:
            row = self._db.execute(_CONTENT, (page,)).fetchone()
            return None if row is None else self._content(page, *row)

    def original_of(self, text: PageId) -> bytes | None:
        with self._guard:
            row = self._db.execute(_ORIGINAL, (text,)).fetchone()
            return None if row is None else self._content(*row)

    def exists(self, page: PageId) -> bool:
        with self._guard:
            return self._has(page)

    def find(self, handle: str) -> Sequence[PageId]:
        span = id_range(handle)
        if span is None:
            return []
        with self._guard:
            return [PageId(row[0]) for row in self._db.execute(_BETWEEN, span)]

    def listed(self, history: str) -> Sequence[PageId]:
        with self._guard:
            return [PageId(row[0]) for row in self._db.execute(_LISTED, (spelled(history),))]

    def listings(self, history: str) -> Sequence[ListedPage]:
        with self._guard:
            rows = self._db.execute(_LISTINGS, (spelled(history),)).fetchall()
        return [ListedPage(PageId(page), kind_of(kind), read_back(name), put) for page, kind, name, put in rows]

    def hold(self, page: PageId, history: str) -> bool:
        with self._guard:
            # Held first, asked second: a page that is there afterwards cannot be collected any more.
            self._db.execute("INSERT OR IGNORE INTO holds (history, page) VALUES (?, ?)", (spelled(history), page))
            return self._has(page)

    def release(self, history: str) -> None:
        with self._guard:
            self._db.execute("DELETE FROM holds WHERE history = ?", (spelled(history),))

    def collect(self, *, before: float | None = None, max_bytes: int | None = None) -> Collected:
        with self._guard, transaction(self._db) as db:
            # As a float, because SQLite's integers end where a generous limit may go on.
            limits = {"before": before, "max_bytes": None if max_bytes is None else float(max_bytes)}
            doomed = db.execute(_DOOMED, limits).fetchall()
            unsent = 0
            if doomed:
                db.executemany("DELETE FROM pages WHERE id = ?", ((page,) for page, _, _ in doomed))
                db.executemany("DELETE FROM contents WHERE key = ?", ((key,) for _, key, _ in doomed))
                db.execute("DELETE FROM listings WHERE page NOT IN (SELECT id FROM pages)")
                db.execute("DELETE FROM shown WHERE page NOT IN (SELECT id FROM pages)")
                gone = db.execute("DELETE FROM awaiting WHERE place NOT IN (SELECT place FROM listings)")
                unsent = gone.rowcount
                db.execute("UPDATE facts SET collections = collections + 1")
            held = db.execute(_HELD).fetchone()[0]
        return Collected(len(doomed), sum(length for _, _, length in doomed), held, unsent)

    def stats(self) -> StoreStats:
        with self._guard:
            return StoreStats(*self._db.execute(_STATS).fetchone())

    def close(self) -> None:
        with self._guard:
            self._db.close()

    def _keep(self, page: PageId, content: bytes, stored: bytes | None, now: float) -> None:
        refreshed = self._db.execute("UPDATE pages SET last_put = max(last_put, ?) WHERE id = ?", (now, page))
        if not refreshed.rowcount:
            stored = self._stored(content) if stored is None else stored
            key = self._db.execute("INSERT INTO contents (stored) VALUES (?)", (stored,)).lastrowid
            row = (page, key, len(content), len(stored), now)
            self._db.execute("INSERT INTO pages (id, key, bytes, stored_bytes, last_put) VALUES (?, ?, ?, ?, ?)", row)

    def _list(self, page: PageId, history: str, kind: str, name: str, now: float) -> None:
        column = spelled(history)
        self._db.execute(_LIST, (column, page, kind, spelled(name), now))
        if self._sender:
            self._db.execute(_AWAIT, (self._sender, column, page))

    def _has(self, page: PageId) -> bool:
        return self._db.execute("SELECT 1 FROM pages WHERE id = ?", (page,)).fetchone() is not None

    def _stored(self, content: bytes) -> bytes:
        packed = self._compressor.compress(content)
        return packed if len(packed) < len(content) else content

    def _content(self, page: PageId, length: object, stored: object) -> bytes:
        # In a damaged file a column may hold anything, and a zstd frame may ask for any amount of memory.
        content = None
        if isinstance(stored, bytes):
            if len(stored) == length:
                content = stored
            elif zstandard.frame_content_size(stored) == length:
                content = self._decompressor.decompress(stored)
        if content is None or id_of(content) != page:
            raise refusal("page store", self.path, DAMAGED, f"page {page} is not what was put there")
        return content


def connect(path: Path) -> sqlite3.Connection:
    """Opens the file of a store. Raises what sqlite3 raises."""
    return open_database(path, "page store", _APPLICATION_ID, _MIGRATIONS, synchronous="NORMAL")


def kind_of(column: str) -> PageKind | None:
    return PageKind(column) if column in PageKind.__members__.values() else None
