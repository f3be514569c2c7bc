"""Opens SQLite files that many processes and threads share, and brings them up to date.

A file that is damaged, another program's or a newer pagefold's is refused with a StoreError that names the file and
what to do. A connection stays in the process that made it: SQLite does not survive a fork.
"""

import os
import sqlite3
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from errno import ENOSPC
from pathlib import Path
from types import TracebackType
from typing import Literal

import zstandard

from pagefold.errors import StoreError

_BUSY_SECONDS = 10.0

# What is wrong, and what to do about it.
DAMAGED = ("is damaged", "move it away and pagefold starts a new one")
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


class Guard:
    """Lets one thread at a time use a connection, and turns foreign errors into StoreError.

    `what` is how messages call the file. A class, because a generator would cost a tenth of the time of a get.
    """

    def __init__(self, path: Path, what: str) -> None:
        self._path, self._what = path, what
        self._lock = threading.Lock()

    def __enter__(self) -> None:
        self._lock.acquire()

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None) -> None:
        self._lock.release()
        if isinstance(error, sqlite3.Error | zstandard.ZstdError | UnicodeDecodeError | OSError):
            raise refusal(self._what, self._path, _advice_on(error), error) from error


def open_database(
    path: Path,
    what: str,
    application: int,
    migrations: Sequence[str],
    *,
    synchronous: Literal["NORMAL", "FULL"],
) -> sqlite3.Connection:
    """Opens the file in WAL mode; it is made where there is none, and brought to the newest version.

    NORMAL survives any kill; FULL a power failure too, for a sync with every commit.
    """
    _create(path)
    db = sqlite3.connect(path, timeout=_BUSY_SECONDS, isolation_level=None, check_same_thread=False)
    try:
        migrate(db, path, what, application, migrations)
        _switch_to_wal(db)
        db.execute(f"PRAGMA synchronous = {synchronous}")
    except BaseException:
        db.close()
        raise
    return db


@contextmanager
def transaction(db: sqlite3.Connection, lock: str = "IMMEDIATE") -> Iterator[sqlite3.Connection]:
    try:
        db.execute(f"BEGIN {lock}")
        yield db
        db.execute("COMMIT")
    except BaseException:
        # Some errors, such as a full disk, have SQLite roll back by itself.
        if db.in_transaction:
            db.execute("ROLLBACK")
        raise


def refusal(what: str, path: Path, advice: tuple[str, str], detail: object) -> StoreError:
    wrong, remedy = advice
    return StoreError(f"the {what} {path} {wrong} ({detail}): {remedy}")


def migrate(db: sqlite3.Connection, path: Path, what: str, application: int, steps: Sequence[str]) -> None:
    """Brings the file up to the newest version, all steps in one transaction, whichever process is first."""
    if _pragma(db, "user_version") == len(steps) and _pragma(db, "application_id") == application:
        return
    with transaction(db):
        version = _pragma(db, "user_version")
        tables = db.execute("SELECT count(*) FROM sqlite_schema").fetchone()[0]
        if (version or tables) and _pragma(db, "application_id") != application:
            raise StoreError(f"{path} is another program's database: name another file for the {what}")
        if version not in range(len(steps) + 1):
            raise StoreError(
                f"the {what} {path} was made by a newer pagefold (its version is {version}, the newest "
                f"known here is {len(steps)}): upgrade pagefold or name another file"
            )
        for statement in ";".join(steps[version:]).split(";"):
            db.execute(statement)
        db.execute(f"PRAGMA user_version = {len(steps)}")


def spelled(text: str) -> bytes:
    """Text of the caller's as it stands in a column, as bytes: not every str is SQLite text."""
    return text.encode("utf-8", "surrogatepass")


def read_back(column: bytes) -> str:
    return column.decode("utf-8", "surrogatepass")


def _pragma(db: sqlite3.Connection, name: str) -> int:
    value: int = db.execute(f"PRAGMA {name}").fetchone()[0]
    return value


def _advice_on(error: Exception) -> tuple[str, str]:
    if isinstance(error, OSError):
        return _FULL if error.errno == ENOSPC else _SHUT
    if isinstance(error, sqlite3.ProgrammingError):
        return _CLOSED
    # Any other error is a contradiction in the file that only damage explains.
    return _ADVICE.get(_kind_of(error), DAMAGED)


def _kind_of(error: Exception) -> int:
    """Returns the primary code, the low byte of the extended one; errors of other libraries have none."""
    code: int = getattr(error, "sqlite_errorcode", sqlite3.SQLITE_CORRUPT)
    return code & 0xFF


def _create(path: Path) -> None:
    """Makes the file and its directory for their owner alone; SQLite gives its side files the same permissions."""
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    # Closing any descriptor of a file drops every lock its process has there, another store's too. So an existing
    # file is not opened at all, and nothing opens a file that another thread is still making.
    with _creating, suppress(FileExistsError):
        os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600))


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
        with transaction(db, "EXCLUSIVE"):
            pass
