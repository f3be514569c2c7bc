"""Turns what a caller gives as a store, the store itself or where it is, into a store.

A path or an address is opened; the databases are imported only then, because whoever keeps pages in memory needs none.
"""

from importlib import import_module
from pathlib import Path

from pagefold.pages.store import Store


def given_store(store: Store | str | Path | None) -> Store | None:
    """Returns None where none was given. Raises StoreError, and ConfigError for an address that cannot be one."""
    if not isinstance(store, str | Path):
        return store
    opened: Store = import_module("pagefold.adapters.stores").open_store(store)
    return opened
