"""Sums of what a proxy counts, added to the file beside the store: once a minute, and at the end.

Whoever counts goes on where the file cannot be used; that is told.
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
from pagefold.settings import Settings

SECONDS = 60.0


def adding(settings: Settings, surface: str, counts: Callable[[], Counter[str]]) -> Callable[[], None]:
    """Adds what was counted since it was last called."""

    def add() -> None:
        from pagefold.adapters import counters

        try:
            path = LocalFiles(config.store_path(settings)).counters
            counters.add(path, surface, f"{datetime.now(tz=UTC):%Y-%m-%d}", counters.fresh(counts(), written))
        except (StoreError, ConfigError) as error:
            print(f"pagefold: {error}", file=sys.stderr)

    written: Counter[str] = Counter()
    return add


@contextmanager
def every_minute(add: Callable[[], None]) -> Iterator[None]:
    """From a thread of its own, and once more at the end."""
    over = threading.Event()

    def minutes() -> None:
        while not over.wait(SECONDS):
            add()

    thread = threading.Thread(target=minutes, name="pagefold-counting", daemon=True)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()
        add()
