"""Opens stores: the one place that knows which kinds of stores there are.

Where a store is, is a path or the address of a Postgres database (`postgresql://…`).
"""

from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING

from pagefold.adapters.access_rows import SqlAccess
from pagefold.adapters.local_files import LocalFiles
from pagefold.adapters.protection import UNPROTECTED, Protection
from pagefold.adapters.retention import Limits, Retention
from pagefold.adapters.sqlite.access import SqliteAccessFile
from pagefold.adapters.sqlite.journal import SqliteJournal, beside
from pagefold.adapters.sqlite.pages import SqlitePages
from pagefold.adapters.sqlite.rows import SqliteRows
from pagefold.adapters.sqlite.store import SqliteStore, moved_aside
from pagefold.adapters.sqlite.verifying import Verified, verify
from pagefold.adapters.steady_store import DEADLINE_SECONDS, SteadyStore
from pagefold.adapters.store_rows import StoreRows
from pagefold.adapters.store_thread import ROUND_SECONDS
from pagefold.errors import ConfigError
from pagefold.pages.journal import Journal, Rules
from pagefold.pages.memory_store import MemoryPages
from pagefold.pages.scope import THIS_USER, StoreScope
from pagefold.pages.store import Store
from pagefold.settings.sections import StoreSettings

if TYPE_CHECKING:  # an extra, imported where it is used
    from pagefold.adapters.postgres.store import PostgresStore

_READING = Rules({}, frozenset())


def address_of(where: str | Path) -> str:
    """The address of a database; "" where it is a path."""
    return where if isinstance(where, str) and where.startswith(("postgresql://", "postgres://")) else ""


def open_store(
    where: str | Path, *, sender: str = "", scope: StoreScope = THIS_USER, protection: Protection = UNPROTECTED
) -> Store:
    """Opens a store for a scope, and makes it where there is none. Raises StoreError, and ConfigError for an address.

    `sender` names who sends to the history sink what is put under a history; without it nothing is noted to be sent.
    """
    if url := address_of(where):
        return _open_postgres(url, sender, scope, protection)
    return SqliteStore(where, sender=sender, scope=scope, key=protection.key, redactor=protection.redactor)


def open_steady_store(
    where: str | Path,
    *,
    sender: str = "",
    scope: StoreScope = THIS_USER,
    protection: Protection = UNPROTECTED,
    deadline: float = DEADLINE_SECONDS,
    settling: float = 0.0,
    report: Callable[[str, str], None] = lambda kind, sentence: None,
    round_seconds: float = ROUND_SECONDS,
) -> SteadyStore:
    """Opens a store for somebody who cannot wait for it: see `adapters.steady_store`. Raises ConfigError for an address
    that cannot be one, and nothing else."""
    if url := address_of(where):
        return SteadyStore(
            lambda: _open_postgres(url, sender, scope, protection, remembered=True),
            _postgres().without_password(url),
            sender=sender,
            scope=scope,
            deadline=deadline,
            settling=settling,
            report=report,
            round_seconds=round_seconds,
        )
    path = Path(where).absolute()
    return SteadyStore(
        lambda: SqliteStore(path, sender=sender, scope=scope, key=protection.key, redactor=protection.redactor),
        str(path),
        set_aside=lambda: moved_aside(path),
        sender=sender,
        scope=scope,
        deadline=deadline,
        settling=settling,
        report=report,
        round_seconds=round_seconds,
    )


def retention_of(
    where: str | Path,
    settings: StoreSettings,
    protection: Protection,
    report: Callable[[str], None] = lambda sentence: None,
) -> Retention:
    """Collects a store by itself, as the settings say."""
    limits = limits_of(settings)
    if url := address_of(where):
        return Retention(lambda: _open_postgres(url, "", THIS_USER, protection).pages, limits, report)
    return Retention(lambda: SqlitePages(where, key=protection.key), limits, report)


def limits_of(settings: StoreSettings) -> Limits:
    return Limits(settings.max_age_days or None, settings.max_bytes or None)


def read_journal(where: str | Path, protection: Protection = UNPROTECTED) -> Journal:
    """Opens the journal of a store to read it; of a store in a file nothing else is opened, and nothing is made."""
    if url := address_of(where):
        return _open_postgres(url, "", THIS_USER, protection).open_journal(_READING, closes_store=True)
    return SqliteJournal(beside(Path(where)), _READING, MemoryPages(), key=protection.key)


def open_existing(where: str | Path, protection: Protection = UNPROTECTED) -> Store | None:
    """Opens a store, or returns None where there is none. Raises StoreError."""
    if not address_of(where) and not Path(where).exists():
        return None
    return open_store(where, protection=protection)


def verify_store(where: str | Path, protection: Protection = UNPROTECTED) -> Verified:
    """Checks all of a store. Raises StoreError where there is none."""
    if url := address_of(where):
        from pagefold.adapters.postgres.verifying import verify as verify_postgres  # noqa: PLC0415  an extra

        with closing(_open_postgres(url, "", THIS_USER, protection)) as store:
            return verify_postgres(store)
    return verify(Path(where), protection.key)


def open_access(where: str | Path, protection: Protection = UNPROTECTED) -> SqlAccess:
    """Opens the access store of a store: tables of its database, or a file beside its file. Raises StoreError."""
    if url := address_of(where):
        _postgres()
        from pagefold.adapters.postgres.access import PostgresAccessTables  # noqa: PLC0415  an extra

        return SqlAccess(PostgresAccessTables(url))
    return SqlAccess(SqliteAccessFile(LocalFiles(Path(where).absolute()).access, protection.key))


def rows_of(where: str | Path, protection: Protection = UNPROTECTED) -> StoreRows:
    """All rows of a store, which is made where there is none. Raises StoreError."""
    if url := address_of(where):
        _postgres()
        from pagefold.adapters.postgres.rows import PostgresRows  # noqa: PLC0415

        return PostgresRows(url, protection.large)
    return SqliteRows(Path(where).absolute(), protection.key)


def _open_postgres(
    url: str, sender: str, scope: StoreScope, protection: Protection, *, remembered: bool = False
) -> "PostgresStore":
    if protection.key:
        raise ConfigError("store.key: it encrypts files; a server encrypts its own disk: set no key with store.url")
    store: PostgresStore = _postgres().PostgresStore(
        url,
        sender=sender,
        scope=scope,
        redactor=protection.redactor,
        large=protection.large,
        remembered=remembered,
    )
    return store


def _postgres() -> ModuleType:
    try:
        from pagefold.adapters.postgres import store  # noqa: PLC0415  an extra
    except ImportError as error:
        raise ConfigError("store.url: install the extra by pip install 'pagefold[postgres]'") from error
    return store
