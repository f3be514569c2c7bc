"""Connections to a Postgres database, and what its errors mean.

Promises: a connection that the server has closed is replaced, and the call done once more; whoever calls again within
a call gets the same connection; a server that has lost what was put there is not used; every foreign error becomes a
StoreError that names the server without its password.

A statement may count before the server has written it to its disk (`remembered`): then a crash of the server forgets
up to half a second, which whoever remembers it puts there again. Transactions always wait, and with them all before.
"""

import logging
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, LiteralString, TypeAlias, TypeVar

import psycopg
import psycopg_pool
from psycopg import errors
from psycopg.conninfo import conninfo_to_dict

from pagefold import zstd
from pagefold.errors import ConfigError, StoreError

T = TypeVar("T")
Connection: TypeAlias = "psycopg.Connection[tuple[Any, ...]]"
Statement: TypeAlias = LiteralString

_WAIT_SECONDS = 10.0
_MOST_CONNECTIONS = 8
_SESSION = "SET lock_timeout = '5s'; SET idle_in_transaction_session_timeout = '60s'"
# Unless the address, the user or the database says otherwise.
_COMMIT_LATER = """
    SELECT set_config('synchronous_commit', 'off', false) FROM pg_settings
    WHERE name = 'synchronous_commit' AND source NOT IN ('client', 'user', 'database', 'database user')
"""
_COMMIT_NOW = "SET LOCAL synchronous_commit TO DEFAULT"
# A server that vanished without a word is noticed after seconds and not after hours.
_LINK = {
    "connect_timeout": "3",
    "keepalives_idle": "10",
    "keepalives_interval": "5",
    "keepalives_count": "3",
    "tcp_user_timeout": "10000",
}
_FOREIGN = (psycopg.Error, psycopg_pool.PoolTimeout, psycopg_pool.PoolClosed, zstd.ZstdError, UnicodeDecodeError)


class Server:
    """The database at a `url`, over a few connections that are made when they are needed. `remembered` says that the
    caller remembers what it has put lately, and puts it again where the server has lost it."""

    def __init__(self, url: str, *, remembered: bool = False) -> None:
        self._conninfo, self.where = read_url(url)
        self._wait, self._remembered = _WAIT_SECONDS, remembered
        self._current = threading.local()
        self.has_lost: Callable[[Connection], bool] = lambda db: False
        """Is asked about every new connection before anybody uses it: whether the server lacks what was put there."""
        self.lost = self._is_used_lost = False
        with self.telling():
            # Tried once here, because the pool would not say why it gets no connection.
            psycopg.connect(**self._conninfo).close()
            self._pool = psycopg_pool.ConnectionPool(
                kwargs={**self._conninfo, "autocommit": True},
                min_size=0,
                max_size=_MOST_CONNECTIONS,
                configure=self._configure,
                reconnect_timeout=0.0,
                num_workers=2,
                name="pagefold",
                open=True,
            )

    def wait_at_most(self, seconds: float) -> None:
        """How long a call waits for a connection."""
        self._wait = seconds

    def ask(self, statement: str, values: Any = None) -> list[tuple[Any, ...]]:
        """Executes a statement that may be executed twice, and returns its rows. Raises StoreError."""
        return self.run(lambda db: db.execute(statement.encode(), values).fetchall())

    def run(self, step: Callable[[Connection], T]) -> T:
        """Does a step that may be done twice. Raises StoreError."""
        with self.telling():
            if (current := getattr(self._current, "connection", None)) is not None:
                return step(current)
            with self._connection() as db:
                try:
                    return step(db)
                except (psycopg.OperationalError, psycopg.InterfaceError):
                    if not db.closed:
                        raise
            self._pool.check()  # the server closed it, and others as well perhaps
            with self._connection() as db:
                return step(db)

    def ask_and_wait(self, statement: str, values: Any = None) -> list[tuple[Any, ...]]:
        """The same as `ask`, for what must not be forgotten by a crash of the server."""

        def step(db: Connection) -> list[tuple[Any, ...]]:
            with db.transaction():
                db.execute(_COMMIT_NOW)
                return db.execute(statement.encode(), values).fetchall()

        return self.run(step)

    @contextmanager
    def transaction(self) -> Iterator[Connection]:
        """A transaction, done once: it is not known whether one has happened whose connection broke."""
        with self.telling(), self._connection() as db, db.transaction():
            if self._remembered:
                db.execute(_COMMIT_NOW)
            yield db

    def use_lost(self) -> None:
        """Lets what is left be read, where the server has lost something."""
        self._is_used_lost = True

    def connect(self) -> Connection:
        """A connection of the caller's own, with a transaction from its first statement on. Raises StoreError."""
        with self.telling():
            return psycopg.connect(**self._conninfo)

    def close(self) -> None:
        self._pool.close(timeout=1.0)

    @contextmanager
    def _connection(self) -> Iterator[Connection]:
        with self._pool.connection(timeout=self._wait) as db:
            if self.lost and not self._is_used_lost:
                raise StoreError(f"the store {self.where} lacks what was put there last", kind="gone")
            self._current.connection = db
            try:
                yield db
            finally:
                self._current.connection = None

    def _configure(self, db: Connection) -> None:
        db.execute(_SESSION)
        if self._remembered:
            db.execute(_COMMIT_LATER)
        self.lost = self.lost or self.has_lost(db)

    @contextmanager
    def telling(self) -> Iterator[None]:
        """Turns foreign errors into StoreError."""
        try:
            yield
        except _FOREIGN as error:
            kind, remedy = _advice_on(error)
            raise StoreError(f"the store {self.where}: {_first_line(error)}: {remedy}", kind=kind) from error


def read_url(url: str) -> tuple[dict[str, Any], str]:
    """What psycopg connects by, and the same for people: without the password. Raises ConfigError."""
    try:
        parts = {**_LINK, "application_name": "pagefold", **conninfo_to_dict(url)}
    except psycopg.Error:
        raise ConfigError("store.url: expected postgresql://USER@HOST:PORT/DATABASE, and cannot read it") from None
    user = f"{parts['user']}@" if "user" in parts else ""
    port = f":{parts['port']}" if "port" in parts else ""
    return parts, f"postgresql://{user}{parts.get('host', '')}{port}/{parts.get('dbname', '')}"


def _first_line(error: BaseException) -> str:
    return (str(error).strip() or type(error).__name__).split("\n", 1)[0]


def _advice_on(error: BaseException) -> tuple[str, str]:
    """One word for what is wrong, and what to do about it."""
    for kinds, kind, remedy in _ADVICE:
        if isinstance(error, kinds):
            return kind, remedy
    return "failing", "look at the server's log"


_ADVICE: tuple[tuple[tuple[type[BaseException], ...], str, str], ...] = (
    ((psycopg_pool.PoolClosed,), "closed", "open it again"),
    ((psycopg_pool.PoolTimeout,), "away", "start it, or check its address"),
    ((errors.DiskFull,), "full", "make room on its disk"),
    ((errors.LockNotAvailable, errors.DeadlockDetected, errors.QueryCanceled), "locked", "try again"),
    ((errors.InsufficientPrivilege, errors.ReadOnlySqlTransaction), "shut", "make sure that you may write there"),
    ((errors.InvalidPassword, errors.InvalidAuthorizationSpecification), "shut", "check user and password"),
    ((errors.UndefinedTable, errors.InvalidCatalogName), "gone", "the tables were taken away; start pagefold again"),
    ((errors.ProgramLimitExceeded,), "too large", "go on without storing it"),
    ((errors.DataCorrupted, errors.IndexCorrupted, zstd.ZstdError), "damaged page", "restore it from a backup"),
    ((psycopg.OperationalError, psycopg.InterfaceError), "away", "start it, or check its address"),
)

# What the pool says while it tries again is counted and told as errors of the store.
logging.getLogger("psycopg.pool").addHandler(logging.NullHandler())
