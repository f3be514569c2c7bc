"""Opens the store for the dashboard, and keeps its size and the MCP proxies' counts, which take long to ask for.

A thread asks for them every few seconds at most; meanwhile the last answer is shown.
"""

import asyncio
import threading
import time
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from pagefold.adapters.library import Library
from pagefold.adapters.sqlite import counters
from pagefold.errors import PagefoldError

_SECONDS = 3.0


@dataclass(frozen=True, slots=True)
class StoreFigures:
    """The store's size, and the MCP proxies' counts summed over all days. `wrong` says why they could not be read.
    `unsent` pages, of so many bytes, have not reached the history sink yet."""

    pages: int = 0
    bytes: int = 0
    stored_bytes: int = 0
    histories: int = 0
    mcp: Mapping[str, int] = field(default_factory=dict)
    wrong: str = ""
    unsent: int = 0
    unsent_bytes: int = 0


class StoreView:
    """The store as the dashboard reads it. Thread-safe; after `close` there is no store.

    `open_library` is called until it returns one: a store that does not exist yet is not made by looking for it. With
    `whole`, what waits for the history sink is told, whosever it is.
    """

    def __init__(self, open_library: Callable[[], Library | None], counts: Path | None, *, whole: bool = True) -> None:
        self._open, self._counts, self._whole = open_library, counts, whole
        self._library: Library | None = None
        self._guard, self._closed = threading.Lock(), False
        self._last = StoreFigures()
        self._asked = 0.0
        self._asking: asyncio.Future[StoreFigures] | None = None

    @property
    def figures(self) -> StoreFigures:
        """The last answer. If it is old, a thread asks again."""
        if self._asking is not None and self._asking.done():
            self._last, self._asking = self._asking.result(), None
        if self._asking is None and time.monotonic() - self._asked > _SECONDS:
            self._asked = time.monotonic()
            self._asking = asyncio.ensure_future(asyncio.to_thread(self.ask))
        return self._last

    async def fresh(self) -> StoreFigures:
        """Asks in a thread and returns the answer."""
        self._last = await asyncio.to_thread(self.ask)
        self._asked = time.monotonic()
        return self._last

    def library(self) -> Library | None:
        """Raises StoreError and ConfigError."""
        with self._guard:
            if self._library is None and not self._closed:
                self._library = self._open()
            return self._library

    def close(self) -> None:
        with self._guard:
            library, self._library, self._closed = self._library, None, True
        if library is not None:
            library.close()

    def ask(self) -> StoreFigures:
        """Asks in this thread and returns the answer."""
        try:
            sums: Counter[str] = Counter()
            for counted in counters.read(self._counts) if self._counts else ():
                if counted.surface != "model":
                    sums[counted.name] += counted.count
            library = self.library()
            if library is None:
                return StoreFigures(mcp=dict(sums))
            stats = library.store.pages.stats()
            unsent, length = library.store.outbox.backlog() if self._whole else (0, 0)
            sizes = (stats.pages, stats.bytes, stats.stored_bytes, stats.histories)
            return StoreFigures(*sizes, dict(sums), unsent=unsent, unsent_bytes=length)
        except PagefoldError as error:
            return StoreFigures(wrong=str(error))
