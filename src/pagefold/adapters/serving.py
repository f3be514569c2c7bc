"""Whether a model proxy works on a store: a lock on a file beside it, which ends with its process however that ends.

The MCP proxy asks it for every result: two proxies on one store can tell each other what was shown (`Store.said_by`),
and one alone has nobody to tell. Where there are no such locks, whoever has ever served counts as serving.
"""

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from pagefold.errors import StoreError

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]


def beside(store: Path) -> Path:
    """The file for a store's lock."""
    return store.with_name(f"{store.stem}.serving")


@contextmanager
def serving(store: Path) -> Iterator[None]:
    """Says so until the block ends. Raises StoreError."""
    try:
        store.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        descriptor = os.open(beside(store), os.O_RDWR | os.O_CREAT, 0o600)
    except OSError as error:
        raise StoreError(f"{beside(store)} cannot be opened ({error.strerror}): make its directory writable") from error
    try:
        with suppress(OSError):  # some file systems have no locks
            if fcntl is not None:
                fcntl.flock(descriptor, fcntl.LOCK_SH)
        yield
    finally:
        os.close(descriptor)


def is_served(store: Path) -> bool:
    """Whether anybody says so now."""
    try:
        descriptor = os.open(beside(store), os.O_RDWR)
    except OSError:
        return False
    try:
        if fcntl is not None:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return False
    except OSError:
        pass
    finally:
        os.close(descriptor)
    return True
