"""Pages on disk: the store protocol over one SQLite file that many processes and threads share.

Promises: a page that `put` acknowledged is whole after any kill (a power failure may take the last few, never the
file); a held page is never collected, whoever collects; a content that does not match its id is never handed out.
Refuses a file that is damaged, another program's or a newer pagefold's, with a StoreError that names the file and what
to do. What a collection frees is used again by later pages; the file itself does not shrink.

A store object stays in the process that made it: SQLite does not survive a fork.
"""

import os
import sqlite3
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from errno import ENOSPC
from pathlib import Path
from types import TracebackType

import zstandard

from pagefold.errors import StoreError
from pagefold.pages.page import PageId, id_of, id_range
from pagefold.pages.store import Collected

_APPLICATION_ID = 0x70666F6C
_BUSY_SECONDS = 10.0
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
)

# `earlier` is what removing every older unheld page frees.
_DOOMED = """
    SELECT id, key, bytes FROM (
        SELECT id, key, bytes, last_put, coalesce(sum(bytes) OVER (
            ORDER BY last_put, id ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING), 0) AS earlier
        FROM pages WHERE id NOT IN (SELECT page FROM holds))
    WHERE last_put < :before OR (SELECT coalesce(sum(bytes), 0) FROM pages) - earlier > :max_bytes
"""
_FOUND = "SELECT bytes, stored FROM pages LEFT JOIN contents USING (key) WHERE id = ?"
_BETWEEN = "SELECT id FROM pages WHERE id >= ? AND id < ? ORDER BY id"
_LISTED = "SELECT page FROM listings WHERE history = ? ORDER BY place"
_HELD = "SELECT count(*) FROM pages WHERE id IN (SELECT page FROM holds)"
_STATS = """
    SELECT count(*), coalesce(sum(bytes), 0), coalesce(sum(stored_bytes), 0), count(*) FILTER (
        WHERE id IN (SELECT page FROM holds))
    FROM pages
"""

# What is wrong, and what to do about it.
_DAMAGED = ("is damaged", "move it away and pagefold starts a new one")
_FULL = ("has no room to grow", "make room on its disk")
_LOCKED = ("stays locked", "stop the process that keeps it locked")
_SHUT = ("cannot be opened for writing", "make sure that it is a file and that you may write it and its directory")
_FAILING = ("cannot be read or written", "check its disk, and the room there")
_TOO_LARGE = ("cannot take so large a content", "go on without storing it")
_CLOSED = ("is closed", "open it again")

_ADVICE = {
    sqlite3.SQLITE_FULL: _FULL,
    sqlite3.SQLITE_BUSY: _LOCKED,
    sqlite3.SQLITE_LOCKED: _LOCKED,
    sqlite3.SQLITE_PROTOCOL: _LOCKED,
    sqlite3.SQLITE_CANTOPEN: _SHUT,
    sqlite3.SQLITE_PERM: _SHUT,
    sqlite3.SQLITE_READONLY: _SHUT,
    sqlite3.SQLITE_IOERR: _FAILING,
    sqlite3.SQLITE_TOOBIG: _TOO_LARGE,
}

_creating = threading.Lock()


@dataclass(frozen=True, slots=True)
class Stats:
    """How much a store keeps: contents as they were put and as they are stored, and how many pages are held."""

    pages: int
    bytes: int
    stored_bytes: int
    held: int


class SqliteStore:
    """The pages in the SQLite file at `path`, which is made, with its directory, where there is none."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path).absolute()
        self._guard = _Guard(self.path)
        self._compressor = zstandard.ZstdCompressor(level=_ZSTD_LEVEL)
        self._decompressor = zstandard.ZstdDecompressor()
        with self._guard:
            _create(self.path)
            self._db = sqlite3.connect(self.path, timeout=_BUSY_SECONDS, isolation_level=None, check_same_thread=False)
            try:
                self._migrate(_MIGRATIONS)
                _switch_to_wal(self._db)
                self._db.execute("PRAGMA synchronous = NORMAL")
            except BaseException:
                self._db.close()
                raise

    def put(self, content: bytes, *, history: str = "", now: float = 0.0) -> PageId:
        page = id_of(content)
        with self._guard:
            # Compressed before the write lock is taken, so that processes wait only for each other's writes.
            stored = None if self._has(page) else self._stored(content)
            with _transaction(self._db) as db:
                refreshed = db.execute("UPDATE pages SET last_put = max(last_put, ?) WHERE id = ?", (now, page))
                if not refreshed.rowcount:
                    stored = self._stored(content) if stored is None else stored
                    key = db.execute("INSERT INTO contents (stored) VALUES (?)", (stored,)).lastrowid
                    row = (page, key, len(content), len(stored), now)
                    db.execute("INSERT INTO pages (id, key, bytes, stored_bytes, last_put) VALUES (?, ?, ?, ?, ?)", row)
                if history:
                    listing = (_spelled(history), page)
                    db.execute("INSERT OR IGNORE INTO listings (history, page) VALUES (?, ?)", listing)
        return page

    def get(self, page: PageId) -> bytes | None:
        with self._guard:
            row = self._db.execute(_FOUND, (page,)).fetchone()
            return None if row is None else self._content(page, *row)

    def read(self, page: PageId, start: int, end: int) -> bytes | None:
        # The whole is read even for a part: only the whole can be checked against its id.
        content = self.get(page)
        return None if content is None else content[max(0, start) : max(0, end)]

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
            return [PageId(row[0]) for row in self._db.execute(_LISTED, (_spelled(history),))]

    def hold(self, page: PageId, history: str) -> bool:
        with self._guard:
            # Held first, asked second: a page that is there afterwards cannot be collected any more.
            self._db.execute("INSERT OR IGNORE INTO holds (history, page) VALUES (?, ?)", (_spelled(history), page))
            return self._has(page)

    def release(self, history: str) -> None:
        with self._guard:
            self._db.execute("DELETE FROM holds WHERE history = ?", (_spelled(history),))

    def collect(self, *, before: float | None = None, max_bytes: int | None = None) -> Collected:
        with self._guard, _transaction(self._db) as db:
            # As a float, because SQLite's integers end where a generous limit may go on.
            limits = {"before": before, "max_bytes": None if max_bytes is None else float(max_bytes)}
            doomed = db.execute(_DOOMED, limits).fetchall()
            if doomed:
                db.executemany("DELETE FROM pages WHERE id = ?", ((page,) for page, _, _ in doomed))
                db.executemany("DELETE FROM contents WHERE key = ?", ((key,) for _, key, _ in doomed))
                db.execute("DELETE FROM listings WHERE page NOT IN (SELECT id FROM pages)")
            held = db.execute(_HELD).fetchone()[0]
        return Collected(len(doomed), sum(length for _, _, length in doomed), held)

    def stats(self) -> Stats:
        with self._guard:
            return Stats(*self._db.execute(_STATS).fetchone())

    def close(self) -> None:
        with self._guard:
            self._db.close()

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
            raise _refusal(self.path, _DAMAGED, f"page {page} is not what was put there")
        return content

    def _migrate(self, steps: Sequence[str]) -> None:
        """Bring the file up to the newest version, whichever process is first; one step and its number are one."""
        if self._pragma("user_version") == len(steps) and self._pragma("application_id") == _APPLICATION_ID:
            return
        with _transaction(self._db) as db:
            version = self._pragma("user_version")
            tables = db.execute("SELECT count(*) FROM sqlite_schema").fetchone()[0]
            if (version or tables) and self._pragma("application_id") != _APPLICATION_ID:
                raise StoreError(f"{self.path} is another program's database: name another file for the page store")
            if version not in range(len(steps) + 1):
                raise StoreError(
                    f"the page store {self.path} was made by a newer pagefold (its version is {version}, the newest "
                    f"known here is {len(steps)}): upgrade pagefold or name another file"
                )
            for statement in ";".join(steps[version:]).split(";"):
                db.execute(statement)
            db.execute(f"PRAGMA user_version = {len(steps)}")

    def _pragma(self, name: str) -> int:
        value: int = self._db.execute(f"PRAGMA {name}").fetchone()[0]
        return value


class _Guard:
    """One thread at a time on connection and zstd contexts; the only place where foreign errors become ours.

    A class, because entering and leaving a generator would cost a tenth of a get.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._lock = threading.Lock()

    def __enter__(self) -> None:
        self._lock.acquire()

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None) -> None:
        self._lock.release()
        if isinstance(error, sqlite3.Error | zstandard.ZstdError | UnicodeDecodeError | OSError):
            raise _refusal(self._path, _advice_on(error), error) from error


def _refusal(path: Path, advice: tuple[str, str], detail: object) -> StoreError:
    wrong, remedy = advice
    return StoreError(f"the page store {path} {wrong} ({detail}): {remedy}")


def _advice_on(error: Exception) -> tuple[str, str]:
    if isinstance(error, OSError):
        return _FULL if error.errno == ENOSPC else _SHUT
    if isinstance(error, sqlite3.ProgrammingError):
        return _CLOSED
    # What is not listed is a contradiction in the file that only damage explains.
    return _ADVICE.get(_kind_of(error), _DAMAGED)


def _kind_of(error: Exception) -> int:
    """The primary code, which is the low byte of the extended one; zstd and text that is no text have none."""
    code: int = getattr(error, "sqlite_errorcode", sqlite3.SQLITE_CORRUPT)
    return code & 0xFF


def _create(path: Path) -> None:
    """Make the file and its directory for their owner alone; SQLite gives its side files the same permissions."""
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    # Closing any descriptor of a file drops every lock its process has there, another store's too. So an existing
    # file is not opened at all, and no store opens a file that another thread is still making.
    with _creating, suppress(FileExistsError):
        os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600))


@contextmanager
def _transaction(db: sqlite3.Connection, lock: str = "IMMEDIATE") -> Iterator[sqlite3.Connection]:
    try:
        db.execute(f"BEGIN {lock}")
        yield db
        db.execute("COMMIT")
    except BaseException:
        # Some errors, such as a full disk, have SQLite roll back by itself.
        if db.in_transaction:
            db.execute("ROLLBACK")
        raise


def _switch_to_wal(db: sqlite3.Connection) -> None:
    while True:
        try:
            db.execute("PRAGMA journal_mode = WAL")
        except sqlite3.OperationalError as error:
            if _kind_of(error) != sqlite3.SQLITE_BUSY:
                raise
        else:
            return
        # SQLite does not wait for the lock that this change needs; it does wait for the same one here.
        with _transaction(db, "EXCLUSIVE"):
            pass


def _spelled(history: str) -> bytes:
    return history.encode("utf-8", "surrogatepass")
