"""Writes something to a file once a minute while a proxy runs, and once more at its end.

If it cannot be written the proxy goes on, and stderr says so.
"""

import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from pagefold.errors import ConfigError, StoreError

_SECONDS = 60.0


@contextmanager
def each_minute(write: Callable[[], None], name: str) -> Iterator[None]:
    """Calls `write` in a thread of this name while the block runs, and once more behind it."""
    ended = threading.Event()

    def write_or_say() -> None:
        try:
            write()
        except (StoreError, ConfigError) as error:
            print(f"pagefold: {error}", file=sys.stderr)

    def minutes() -> None:
        while not ended.wait(_SECONDS):
            write_or_say()

    thread = threading.Thread(target=minutes, name=name, daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()
        write_or_say()
