"""Saves what derived requests need before they leave; what could not be saved waits, by history, for the store."""

import threading
from collections.abc import Callable
from contextlib import suppress

from pagefold.adapters.steady_time import steady_time
from pagefold.derive.runner import Unsaved
from pagefold.errors import StoreError
from pagefold.model_proxy.exchange import Exchange
from pagefold.pages.memory_store import MemoryPages


class Saving:
    """`put` stores pages and holds them, and `write_back` stores pins before a fold. Both may raise StoreError."""

    def __init__(
        self,
        put: Callable[..., object] | None = None,
        write_back: Callable[..., object] = lambda pins, boundary, **more: None,
    ) -> None:
        self._put, self._write_back = put or MemoryPages().put_held, write_back
        self._waiting: dict[str, Exchange] = {}
        self._busy = threading.Lock()

    def save(self, exchange: Exchange) -> None:
        """Saves what a derived request needs. After a StoreError it waits for the store, or for the next request of its
        history."""
        unsaved, history = exchange.unsaved, exchange.name
        if unsaved.is_empty:
            return
        try:
            self._store(unsaved, history)
        except StoreError:
            self._waiting[history] = exchange
            raise
        self._waiting.pop(history, None)
        exchange.saved()

    @property
    def waiting(self) -> int:
        """How many histories wait for the store."""
        return len(self._waiting)

    def save_waiting(self) -> None:
        """Saves what waits, now that the store is back. What cannot be saved yet waits on."""
        with self._busy, suppress(StoreError):  # counted where it was raised, as every error of the store
            for exchange in list(self._waiting.values()):
                self.save(exchange)

    def _store(self, unsaved: Unsaved, history: str) -> None:
        if unsaved.pages:
            self._put(list({page.id: page for page in unsaved.pages}.values()), history=history, now=steady_time())
        if unsaved.boundary is not None and unsaved.pins.held:
            self._write_back(unsaved.pins, unsaved.boundary, history=history, now=steady_time())
