"""Tells whether a model proxy runs on a store: it holds a lock on a file beside the store for as long as it lives.

The MCP proxy asks for every result. Only where a model proxy runs too is it worth noting which original a shown form
stands for (`original_of`). The lock ends with the process, however that ends. On systems without file locks, a model
proxy that has ever run counts as running.
"""

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from pagefold.errors import StoreError

if sys.platform != "win32":
    import fcntl


@contextmanager
def hold_model_proxy_lock(lock: Path, policy: str = "") -> Iterator[None]:
    """Holds the lock until the block ends; several processes may hold it. `policy` is what the newest of them derives
    requests by. Raises StoreError."""
    try:
        lock.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        descriptor = os.open(lock, os.O_RDWR | os.O_CREAT, 0o600)
    except OSError as error:
        raise StoreError(f"{lock} cannot be opened ({error.strerror}): make its directory writable") from error
    try:
        with suppress(OSError):  # some file systems have no locks
            if sys.platform != "win32":
                fcntl.flock(descriptor, fcntl.LOCK_SH)
        with suppress(OSError):  # nothing but `doctor` needs it
            os.ftruncate(descriptor, 0)
            os.write(descriptor, policy.encode())
        yield
    finally:
        os.close(descriptor)


def model_proxy_is_running(lock: Path) -> bool:
    """Whether any process holds the lock now."""
    try:
        descriptor = os.open(lock, os.O_RDWR)
    except OSError:
        return False
    try:
        if sys.platform != "win32":
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return False
    except OSError:
        pass
    finally:
        os.close(descriptor)
    return True


def running_policy(lock: Path) -> str:
    """The policy of the newest model proxy that holds the lock, or "" where none does or it does not say."""
    try:
        return lock.read_text(encoding="utf-8", errors="replace").strip() if model_proxy_is_running(lock) else ""
    except OSError:
        return ""
