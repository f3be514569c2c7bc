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

_SECONDS = 60.0


@contextmanager
def counting(settings: Settings, surface: str, counts: Callable[[], Counter[str]]) -> Iterator[None]:
    """Adds what was counted since the last time, once a minute while the block runs and once more at its end."""
    written: Counter[str] = Counter()
    ended = threading.Event()

    def add() -> None:
        from pagefold.adapters.sqlite import counters

        try:
            path = LocalFiles(config.store_path(settings)).counters
            counters.add(path, surface, f"{datetime.now(tz=UTC):%Y-%m-%d}", counters.fresh(counts(), written))
        except (StoreError, ConfigError) as error:
            print(f"pagefold: {error}", file=sys.stderr)

    def minutes() -> None:
        while not ended.wait(_SECONDS):
            add()

    thread = threading.Thread(target=minutes, name="pagefold-counting", daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()
        add()
