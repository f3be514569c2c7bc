"""Adds a proxy's counts to the counters file beside the store for `pagefold stats`, once a minute and at the end."""

from collections import Counter
from collections.abc import Callable
from contextlib import AbstractContextManager
from datetime import UTC, datetime

from pagefold import config
from pagefold.adapters.local_files import LocalFiles
from pagefold.cli.each_minute import each_minute
from pagefold.settings.sections import Settings


def counting(settings: Settings, surface: str, counts: Callable[[], Counter[str]]) -> AbstractContextManager[None]:
    """Adds what was counted since the last time, once a minute while the block runs and once more at its end."""
    written: Counter[str] = Counter()

    def add() -> None:
        from pagefold.adapters.sqlite import counters

        path = LocalFiles(config.store_path(settings)).counters
        counters.add(path, surface, f"{datetime.now(tz=UTC):%Y-%m-%d}", counters.fresh(counts(), written))

    return each_minute(add, "pagefold-counting")
