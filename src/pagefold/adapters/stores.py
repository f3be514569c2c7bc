"""Opens stores: the one place that knows which kinds of stores there are."""

from pathlib import Path

from pagefold.adapters.sqlite.journal import SqliteJournal, beside
from pagefold.adapters.sqlite.store import SqliteStore
from pagefold.pages.journal import Journal, Rules
from pagefold.pages.memory_store import MemoryPages
from pagefold.pages.store import Store


def open_store(where: str | Path, *, sender: str = "") -> Store:
    """Opens the store at a path, and makes it where there is none. Raises StoreError.

    `sender` names who sends to the history sink what is put under a history; without it nothing is noted to be sent.
    """
    return SqliteStore(where, sender=sender)


def read_journal(where: str | Path) -> Journal:
    """Opens the journal of a store to read it. The store itself is not opened, and nothing is made."""
    return SqliteJournal(beside(Path(where)), Rules({}, frozenset()), MemoryPages())


def open_existing(where: str | Path) -> Store | None:
    """Opens the store at a path, or returns None where there is none. Raises StoreError."""
    return SqliteStore(where) if Path(where).exists() else None
