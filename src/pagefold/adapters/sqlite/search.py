"""Search over the pages of a store: SQLite's full-text index with BM25 ranking, in a file of its own beside the pages.

The index is brought up to date when it is searched, so that a put costs nothing more. It holds words and places, not
texts. It can be deleted at any time and is made again. Collected pages are never found; their words leave the index
when it is made anew, once they are too many.
"""

from collections.abc import Iterator, Sequence
from copy import copy
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

from pagefold import zstd
from pagefold.adapters.columns import kind_of, read_back, spelled
from pagefold.adapters.sqlite.database import Connection, Cursor, Guard, attach, open_database, transaction
from pagefold.adapters.sqlite.pages import SqlitePages
from pagefold.adapters.sqlite.rewriting import rewrite
from pagefold.pages.page import PageId, id_of
from pagefold.pages.search import LIMIT, Document, Query, SearchHit, parse_query, ranked, split_names, words_in

_APPLICATION_ID = 0x70666C73
# A document is a page's content, or, where its place is not 0, the name of that listing. Numbers are never given again:
# SQLite before 3.43 cannot take a document out of an index that does not hold its text.
_MIGRATIONS = (
    f"PRAGMA application_id = {_APPLICATION_ID}",
    """
    CREATE TABLE documents (number INTEGER PRIMARY KEY AUTOINCREMENT, page TEXT NOT NULL, place INTEGER NOT NULL,
        UNIQUE (page, place));
    CREATE TABLE progress (identity TEXT, collections INTEGER, key INTEGER, place INTEGER, generation INTEGER);
    INSERT INTO progress VALUES ('', 0, 0, 0, 0);
    CREATE VIRTUAL TABLE words USING fts5 (text, content = '', tokenize = 'unicode61 remove_diacritics 2')
    """,
    "UPDATE progress SET identity = ''",  # made anew: names that are written in one word are found by their words
)

_BATCH_BYTES = 2_000_000
_BATCH_DOCUMENTS = 500
_STALE = 1000  # documents of collected pages that are put up with, on top of as many as there are live ones
_LARGEST = 1 << 30
_EXAMINED = 500

_MATCHES = """
    SELECT documents.page, -bm25(words) FROM words JOIN documents ON documents.number = words.rowid
    WHERE words MATCH :words AND CASE WHEN documents.place = 0
        THEN EXISTS (SELECT 1 FROM store.listings WHERE page = documents.page AND {scope}
            AND (:history IS NULL OR history = :history))
        ELSE EXISTS (SELECT 1 FROM store.listings AS listing WHERE listing.place = documents.place
            AND listing.page = documents.page AND {scope} AND (:history IS NULL OR history = :history)) END
"""
_BEST_FIRST = "ORDER BY bm25(words) LIMIT :limit"
# Where it is listed with a name goes before where it is kept without one.
_LISTED = """
    SELECT history, kind, name FROM store.listings WHERE page = :page AND {scope}
    AND (:history IS NULL OR history = :history) ORDER BY history = x'', place DESC LIMIT 1
"""
_NEW_PAGES = "SELECT key FROM store.contents WHERE key > ? ORDER BY key"
_NEW_LISTINGS = "SELECT place FROM store.listings WHERE place > ? AND name != x'' ORDER BY place"
_MISSING_PAGES = """SELECT key FROM store.pages
    WHERE NOT EXISTS (SELECT 1 FROM documents WHERE page = pages.id AND place = 0) ORDER BY key"""
_MISSING_LISTINGS = """SELECT place FROM store.listings AS listing WHERE name != x''
    AND NOT EXISTS (SELECT 1 FROM documents WHERE page = listing.page AND place = listing.place) ORDER BY place"""
_COLLECTED = """
    DELETE FROM documents WHERE CASE WHEN place = 0
        THEN NOT EXISTS (SELECT 1 FROM store.pages WHERE id = documents.page)
        ELSE NOT EXISTS (SELECT 1 FROM store.listings AS listing
            WHERE listing.place = documents.place AND listing.page = documents.page) END
"""
_STALE_COUNT = """
    SELECT (SELECT coalesce(max(seq), 0) FROM sqlite_sequence WHERE name = 'documents') - count(*), count(*)
    FROM documents
"""
_MY_PROGRESS = "SELECT identity, collections, key, place, generation FROM progress"
_NOTE = "UPDATE progress SET identity = ?, collections = ?, key = ?, place = ? WHERE generation = ?"
_ANEW = """
    UPDATE progress SET identity = ?, collections = ?, key = 0, place = 0, generation = generation + 1
    WHERE generation = ?
"""
_STORE_PROGRESS = """
    SELECT identity, collections, (SELECT coalesce(max(key), 0) FROM store.contents),
        (SELECT coalesce(max(place), 0) FROM store.listings)
    FROM store.facts
"""

_Numbers: TypeAlias = Sequence[tuple[int]]


@dataclass(frozen=True, slots=True)
class _Progress:
    """How far the index has come: in which store, after how many of its collections, up to which key and place."""

    identity: str
    collections: int
    key: int
    place: int


def index_beside(store: Path) -> Path:
    """Where the search index of a store lies."""
    return store.with_name(store.name + ".search")


def connect(path: Path, key: str = "") -> Connection:
    """Opens the file of an index. Raises what sqlite3 raises."""
    return open_database(path, "search index", _APPLICATION_ID, _MIGRATIONS, synchronous="NORMAL", key=key)


class SqliteSearch:
    """The index of the pages in one file. Its own file has the same name with `.search` behind it."""

    def __init__(self, pages: SqlitePages) -> None:
        self.path = index_beside(pages.path)
        self.pages = pages
        self._guard = Guard(self.path, "search index")
        with self._guard:
            self._db = connect(self.path, pages.key)
            attach(self._db, pages.path, "store", pages.key)

    def scoped(self, pages: SqlitePages) -> "SqliteSearch":
        """The same index for the scope of these pages, over the same connection."""
        index = copy(self)
        index.pages = pages
        return index

    def search(self, query: str, *, history: str | None = None, limit: int = LIMIT) -> Sequence[SearchHit]:
        asked = parse_query(query)
        if not asked.terms or limit <= 0:
            return ()
        with self._guard:
            self._refresh()
            return self._hits(asked, None if history is None else spelled(history), limit)

    def refresh(self) -> int:
        """Brings the index up to date; returns how many documents that took."""
        with self._guard:
            return self._refresh()

    def forget(self) -> None:
        """Takes every word out of the index: the next search makes it anew from the pages that there are then."""
        with self._guard:
            _, generation, store = self._progress()
            self._begin_anew(store, generation)
            rewrite(self._db, f"the search index {self.path}")

    def close(self) -> None:
        with self._guard:
            self._db.close()

    # ---- asking ----------------------------------------------------------------------------------------------

    def _hits(self, asked: Query, history: bytes | None, limit: int) -> list[SearchHit]:
        scores: dict[PageId, float] = {}
        documents: dict[PageId, Document] = {}
        whole = 0
        if asked.naming:
            for page, score in self._matches(asked.naming, " AND ", history, _EXAMINED):
                if page not in documents and (document := self._document(page, asked, history)):
                    scores[page], documents[page] = score, document
                    whole += document.exact == asked.naming
                if whole >= limit:
                    break
        for page, score in self._matches(asked.terms, " OR ", history, 4 * limit):
            if page in documents or (document := self._document(page, asked, history)) is None:
                scores[page] = max(score, scores.get(page, score))
            else:
                scores[page], documents[page] = score, document
        return ranked(documents, scores, asked, limit)

    def _matches(
        self, terms: Sequence[str], joined: str, history: bytes | None, limit: int
    ) -> list[tuple[PageId, float]]:
        # A quoted string is one phrase to FTS5, which splits it as it split the texts.
        words = joined.join(map(_phrases, terms))
        return self._ask(_MATCHES + _BEST_FIRST, words=words, limit=limit, history=history).fetchall()

    def _document(self, page: PageId, asked: Query, history: bytes | None) -> Document | None:
        content = self.pages.get(page)
        if content is None:
            return None
        row = self._ask(_LISTED, page=page, history=history).fetchone()
        listing = (read_back(row[0]), kind_of(row[1]), read_back(row[2])) if row else ("", None, "")
        return Document.of(content, asked, *listing)

    def _ask(self, statement: str, **values: object) -> Cursor:
        clause = self.pages.clause
        return self._db.execute(statement.format(scope=clause.text), {**clause.values, **values})

    # ---- filling ---------------------------------------------------------------------------------------------

    def _refresh(self) -> int:
        before, generation, store = self._progress()
        if before == store:
            return 0
        same_store, collected = before.identity == store.identity, before.collections != store.collections
        if not same_store or (collected and self._is_mostly_stale()):
            self._begin_anew(store, generation)
            return self._refresh()
        pages, listings = self._missing() if collected else self._new(before)
        self._index(pages, listings)
        # Noted is how far the store was before anything was read, so that what came or went since then is looked at
        # again; and nothing is noted of an index that was begun anew meanwhile.
        noted = (store.identity, store.collections, store.key, store.place, generation)
        self._db.execute(_NOTE, noted)
        return len(pages) + len(listings)

    def _progress(self) -> tuple[_Progress, int, _Progress]:
        """Of the index, with how often it was begun anew, and of the store as it is."""
        *mine, generation = self._db.execute(_MY_PROGRESS).fetchone()
        return _Progress(*mine), generation, _Progress(*self._db.execute(_STORE_PROGRESS).fetchone())

    def _new(self, before: _Progress) -> tuple[_Numbers, _Numbers]:
        """The keys and places that came after those. A key is given again only after a collection."""
        db = self._db
        return db.execute(_NEW_PAGES, (before.key,)).fetchall(), db.execute(_NEW_LISTINGS, (before.place,)).fetchall()

    def _missing(self) -> tuple[_Numbers, _Numbers]:
        return self._db.execute(_MISSING_PAGES).fetchall(), self._db.execute(_MISSING_LISTINGS).fetchall()

    def _is_mostly_stale(self) -> bool:
        """Take out the documents of collected pages, and tell whether the words they leave behind are too many."""
        with transaction(self._db, "DEFERRED") as db:
            db.execute(_COLLECTED)
            stale, live = db.execute(_STALE_COUNT).fetchone()
        return bool(stale > live + _STALE)

    def _begin_anew(self, store: _Progress, generation: int) -> None:
        with transaction(self._db, "DEFERRED") as db:
            # The first write is to a plain table: only there SQLite waits for another process that writes.
            if db.execute(_ANEW, (store.identity, store.collections, generation)).rowcount:
                db.execute("INSERT INTO words (words) VALUES ('delete-all')")
                db.execute("DELETE FROM documents")
                db.execute("DELETE FROM sqlite_sequence WHERE name = 'documents'")

    def _index(self, pages: _Numbers, listings: _Numbers) -> None:
        """In batches, so that another process that searches does not wait for long.

        A transaction that begins by writing to the index takes no lock in the store, of which it only reads.
        """
        documents = self._documents(pages, listings)
        while True:
            batch, length = [], 0
            for document in documents:
                batch.append(document)
                length += len(document[2])
                if length >= _BATCH_BYTES or len(batch) >= _BATCH_DOCUMENTS:
                    break
            if not batch:
                return
            with transaction(self._db, "DEFERRED") as db:
                for page, place, text in batch:
                    new = db.execute("INSERT OR IGNORE INTO documents (page, place) VALUES (?, ?)", (page, place))
                    if new.rowcount and text:
                        db.execute("INSERT INTO words (rowid, text) VALUES (?, ?)", (new.lastrowid, text))

    def _documents(self, pages: _Numbers, listings: _Numbers) -> Iterator[tuple[str, int, str]]:
        for key in pages:
            row = self._db.execute("SELECT stored FROM store.contents WHERE key = ?", key).fetchone()
            if row and (page := self._content(*key, row[0])):
                yield page[0], 0, _indexable(page[1].decode("utf-8", "replace"))
        for place in listings:
            row = self._db.execute("SELECT page, name FROM store.listings WHERE place = ?", place).fetchone()
            if row:
                yield row[0], *place, _indexable(read_back(row[1]))

    def _content(self, key: int, stored: bytes) -> tuple[PageId, bytes] | None:
        """A content and whose it is: the id is its hash, so that no table has to be kept in order of its keys."""
        for content in (self._unpacked(stored), stored):
            if content is not None:
                page = id_of(content)
                if self._db.execute("SELECT 1 FROM store.pages WHERE id = ? AND key = ?", (page, key)).fetchone():
                    return page, content
        return None

    def _unpacked(self, stored: bytes) -> bytes | None:
        """None for a content that is stored as it is, which may look like a packed one; and for a damaged one."""
        try:
            if (zstd.get_frame_info(stored).decompressed_size or 0) <= _LARGEST:
                return zstd.ZstdDecompressor().decompress(stored, _LARGEST)
        except zstd.ZstdError:
            return None
        return None


def _phrases(term: str) -> str:
    """A term as it was typed, or as the words it is made of."""
    spelled = dict.fromkeys((_sqlite_text(term).replace('"', " "), " ".join(words_in(_sqlite_text(term)))))
    return "(" + " OR ".join(f'"{words}"' for words in spelled if words.strip()) + ")"


def _indexable(text: str) -> str:
    """A text with the words of its names that are written in one."""
    text = _sqlite_text(text)
    names = split_names(text)
    return f"{text}\n{names}" if names else text


def _sqlite_text(text: str) -> str:
    """As SQLite takes it: no surrogates, and nothing that ends a string early."""
    return text.encode("utf-8", "replace").decode().replace("\0", " ")
