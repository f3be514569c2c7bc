"""Opens SQLite files that many processes and threads share, and brings them up to date.

A file that is damaged, another program's or a newer pagefold's is refused with a StoreError that names the file and
what to do. A connection stays in the process that made it: SQLite does not survive a fork.
"""

import os
import sqlite3
import threading
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from errno import ENOSPC
from pathlib import Path
from types import TracebackType
from typing import Any, Literal, NamedTuple, Protocol

from pagefold import zstd
from pagefold.adapters.private_files import make_private
from pagefold.errors import StoreError

_BUSY_SECONDS = 10.0
_LOG_FRAMES = 2000  # a commit that finds more in the log empties it, and waits for the disk; a collection comes first


class Advice(NamedTuple):
    """One word for what is wrong, what is wrong, and what to do about it."""

    kind: str
    wrong: str
    remedy: str


DAMAGED = Advice("damaged", "is damaged", "move it away and pagefold starts a new one")
DAMAGED_PAGE = Advice("damaged page", "is damaged", "move it away and pagefold starts a new one")
_FULL = Advice("full", "has no room to grow", "make room on its disk")
_LOCKED = Advice("locked", "stays locked", "stop the process that keeps it locked")
_SHUT = Advice(
    "shut", "cannot be opened for writing", "make sure that it is a file and that you may write it and its directory"
)
_FAILING = Advice("failing", "cannot be read or written", "check its disk, and the room there")
_TOO_LARGE = Advice("too large", "cannot take so large a content", "go on without storing it")
_CLOSED = Advice("closed", "is closed", "open it again")
_NO_KEY = Advice("no key", "is encrypted", "give its key (store.key, store.key_command or store.keyring)")
_WRONG_KEY = Advice("wrong key", "cannot be read with this key", "give the key that it was made with")
_NOT_ENCRYPTED = Advice(
    "not encrypted",
    "is not encrypted, though there is a key",
    "`pagefold store encrypt` encrypts it, or set no key",
)
_PLAIN_HEAD = b"SQLite format 3\0"
_ENCRYPTED_MARK = slice(21, 24), b"\x40\x20\x20"  # the part of a head that SQLite leaves readable under any key

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


class Cursor(Protocol):
    """The rows of a statement, or how many rows it changed."""

    @property
    def rowcount(self) -> int: ...

    @property
    def lastrowid(self) -> int | None: ...

    def fetchone(self) -> Any: ...

    def fetchall(self) -> list[Any]: ...

    def __iter__(self) -> Iterator[Any]: ...


class Connection(Protocol):
    """What is used of a connection, of a plain file (sqlite3) or of an encrypted one."""

    @property
    def in_transaction(self) -> bool: ...

    def execute(self, statement: str, values: Sequence[Any] | Mapping[str, Any] = (), /) -> Cursor: ...

    def executemany(self, statement: str, rows: Iterable[Sequence[Any]], /) -> Cursor: ...

    def executescript(self, statements: str, /) -> object:
        """Executes statements to their end, outside of a transaction: `execute` ends one after its first step where it
        has no columns."""

    def interrupt(self) -> None:
        """Ends the statement that another thread executes: it raises there, and what it did is taken back."""

    def close(self) -> None: ...


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
        if isinstance(error, sqlite3.Error | zstd.ZstdError | UnicodeDecodeError | OSError):
            raise refusal(self._what, self._path, _advice_on(error), error) from error


def open_database(
    path: Path,
    what: str,
    application: int,
    migrations: Sequence[str],
    *,
    synchronous: Literal["NORMAL", "FULL"],
    key: str = "",
) -> Connection:
    """Opens the file in WAL mode; it is made where there is none, and brought to the newest version.

    NORMAL survives any kill; FULL a power failure too, for a sync with every commit. With a `key` (64 hex digits) the
    file and its log are encrypted.
    """
    _create(path)
    db = connect_to(path, key, _BUSY_SECONDS)
    try:
        _read_head(db, path, what, key)
        if not path.stat().st_size:
            db.execute("PRAGMA auto_vacuum = INCREMENTAL")  # in an empty file alone
        db.execute("PRAGMA secure_delete = ON")  # what is removed leaves no bytes behind
        migrate(db, path, what, application, migrations)
        _switch_to_wal(db)
        db.execute(f"PRAGMA synchronous = {synchronous}")
        db.execute(f"PRAGMA wal_autocheckpoint = {_LOG_FRAMES}").fetchall()
    except BaseException:
        db.close()
        raise
    return db


@contextmanager
def transaction(db: Connection, lock: str = "IMMEDIATE") -> Iterator[Connection]:
    try:
        db.execute(f"BEGIN {lock}")
        yield db
        db.execute("COMMIT")
    except BaseException:
        # Some errors, such as a full disk, have SQLite roll back by itself.
        if db.in_transaction:
            db.execute("ROLLBACK")
        raise


def refusal(what: str, path: Path, advice: Advice, detail: object) -> StoreError:
    return StoreError(f"the {what} {path} {advice.wrong} ({detail}): {advice.remedy}", kind=advice.kind)


def migrate(db: Connection, path: Path, what: str, application: int, steps: Sequence[str]) -> None:
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


def attach(db: Connection, path: Path, name: str, key: str) -> None:
    """Makes the file at `path`, which has the same key, known to this connection under a name."""
    if not key:
        db.execute(f"ATTACH ? AS {name}", (str(path),))
        return
    from pagefold.adapters.sqlite.encrypted import pragma_key  # noqa: PLC0415  an extra

    db.execute(f"ATTACH ? AS {name} KEY ?", (str(path), pragma_key(key)))


def connect_to(path: Path, key: str, timeout: float) -> Connection:
    """A connection to a file as it is. It waits `timeout` seconds for whoever has the file locked."""
    if not key:
        return sqlite3.connect(path, timeout=timeout, isolation_level=None, check_same_thread=False)
    try:
        from pagefold.adapters.sqlite.encrypted import EncryptedConnection  # noqa: PLC0415  an extra
    except ImportError as error:
        raise StoreError(
            f"{path}: an encrypted store needs the extra encryption: install it by pip install 'pagefold[encryption]'"
        ) from error
    return EncryptedConnection(path, key, timeout)


def _read_head(db: Connection, path: Path, what: str, key: str) -> None:
    """Refuses a file that is encrypted where there is no key, or with another one, or not at all."""
    try:
        db.execute("SELECT count(*) FROM sqlite_schema").fetchone()
    except sqlite3.Error as error:
        if _kind_of(error) != sqlite3.SQLITE_NOTADB:
            raise
        with path.open("rb") as file:
            head = file.read(100)
        place, mark = _ENCRYPTED_MARK
        if head.startswith(_PLAIN_HEAD):
            advice = _NOT_ENCRYPTED if key else DAMAGED
        else:
            advice = DAMAGED if head[place] != mark else _WRONG_KEY if key else _NO_KEY
        raise refusal(what, path, advice, error) from error


def _pragma(db: Connection, name: str) -> int:
    value: int = db.execute(f"PRAGMA {name}").fetchone()[0]
    return value


def _advice_on(error: Exception) -> Advice:
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
    """Makes the file and its directory for their owner alone; SQLite gives its side files the same permissions.

    Raises StoreError where the file is another user's."""
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    # Closing any descriptor of a file drops every lock its process has there, another store's too. So an existing
    # file is not opened at all, and nothing opens a file that another thread is still making.
    with _creating, suppress(FileExistsError):
        os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600))
    make_private(path)


def _switch_to_wal(db: Connection) -> None:
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
