"""Adds a proxy's counts to the counters file beside the store, once a minute and at the end.

`pagefold stats` reads that file. If it cannot be written the proxy goes on, and stderr says so.
"""

import sys
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime

from pagefold import config
from pagefold.adapters.local_files import LocalFiles
from pagefold.errors import ConfigError, StoreError
from pagefold.settings.sections import Settings

SECONDS = 60.0


def adding(settings: Settings, surface: str, counts: Callable[[], Counter[str]]) -> Callable[[], None]:
    """Returns a function that adds what was counted since its last call."""

    def add() -> None:
        from pagefold.adapters.sqlite import counters

        try:
            path = LocalFiles(config.store_path(settings)).counters
            counters.add(path, surface, f"{datetime.now(tz=UTC):%Y-%m-%d}", counters.fresh(counts(), written))
        except (StoreError, ConfigError) as error:
            print(f"pagefold: {error}", file=sys.stderr)

    written: Counter[str] = Counter()
    return add


@contextmanager
def every_minute(add: Callable[[], None]) -> Iterator[None]:
    """Calls `add` once a minute from a thread while the block runs, and once more at its end."""
    ended = threading.Event()

    def minutes() -> None:
        while not ended.wait(SECONDS):
            add()

    thread = threading.Thread(target=minutes, name="pagefold-counting", daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()
        add()
