"""What stands still between turns and is dear to ask for: the store's size, and what the MCP proxies have counted.

Asked for at most every few seconds, by a thread; whoever wants it gets what was found last.
"""

import asyncio
import threading
import time
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from pagefold.adapters import counters
from pagefold.adapters.library import Library
from pagefold.errors import PagefoldError

_SECONDS = 3.0


@dataclass(frozen=True, slots=True)
class StoreFigures:
    """`wrong` says what could not be asked. Counts of MCP proxies are sums over all days, by their own names."""

    pages: int = 0
    bytes: int = 0
    stored_bytes: int = 0
    histories: int = 0
    mcp: Mapping[str, int] = field(default_factory=dict)
    wrong: str = ""


class StoreView:
    """The store as the dashboard reads it. `open_library` is called until it gives one: a store that is not there yet
    is not made by looking for it. Threads may ask at once; after `close` there is no store."""

    def __init__(self, open_library: Callable[[], Library | None], counts: Path | None) -> None:
        self._open, self._counts = open_library, counts
        self._library: Library | None = None
        self._guard, self._closed = threading.Lock(), False
        self._found = StoreFigures()
        self._asked = 0.0
        self._asking: asyncio.Future[StoreFigures] | None = None

    @property
    def figures(self) -> StoreFigures:
        """What was found last. Asking anew goes on beside."""
        if self._asking is not None and self._asking.done():
            self._found, self._asking = self._asking.result(), None
        if self._asking is None and time.monotonic() - self._asked > _SECONDS:
            self._asked = time.monotonic()
            self._asking = asyncio.ensure_future(asyncio.to_thread(self.ask))
        return self._found

    async def fresh(self) -> StoreFigures:
        """What is found now."""
        self._found = await asyncio.to_thread(self.ask)
        self._asked = time.monotonic()
        return self._found

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
        """What is found now, for whoever may wait for it."""
        try:
            sums: Counter[str] = Counter()
            for one in counters.read(self._counts) if self._counts else ():
                if one.surface != "model":
                    sums[one.name] += one.count
            library = self.library()
            if library is None:
                return StoreFigures(mcp=dict(sums))
            stats = library.store.pages.stats()
            return StoreFigures(stats.pages, stats.bytes, stats.stored_bytes, stats.histories, dict(sums))
        except PagefoldError as error:
            return StoreFigures(wrong=str(error))
