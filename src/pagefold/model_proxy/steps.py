"""Runs pagefold's own steps of one request, each where it holds up nobody; the single fail-open point of this surface.

A step that raises is counted and reported, and from then on the request and its answer pass as they came. What a
derived request names is saved before it leaves; where that fails, another request is made of it.
"""

from collections.abc import Callable
from functools import partial
from typing import Any, cast

from pagefold.errors import StoreError
from pagefold.model_proxy.exchange import Exchange
from pagefold.model_proxy.host import Host
from pagefold.model_proxy.threads import is_done

AT_ONCE = 16_000  # characters that are worked on within one loop iteration; for more, no other client waits


class Steps:
    """The steps of one request. `failed`: one has raised, and the others are not done any more."""

    def __init__(self, proxy: Host) -> None:
        self._proxy = proxy
        self.failed = self._unstored = False

    def fail_open(self, step: Callable[..., Any], *shown: object) -> Any:
        """Runs a step here. Returns None where it raises, or one before has."""
        if self.failed:
            return None
        try:
            return step(*shown)
        except Exception as error:  # noqa: BLE001 - the single fail-open point of this surface
            self.failed = True
            self._proxy.fault(error)
            return None

    async def run(self, step: Callable[..., Any], characters: int, *shown: object, waits: bool = True) -> Any:
        """Runs a step that works on so many characters: on the event loop if it is short, and does not wait for the
        store while the worker is busy there, else in a thread where it does not hold up the worker."""
        is_short = characters <= AT_ONCE and (not waits or self._proxy.is_free())
        step = partial(step, *shown)
        return self.fail_open(step if is_short else await self._proxy.work_aside(step))

    async def ask_store(self, exchange: Exchange, now: float) -> bool:
        """Asks the store what reading and deriving want to know. Returns whether nothing had to be asked, or all was
        answered in time: then they do not wait for the store."""
        question = self.fail_open(exchange.question, now)
        if question is None:
            return not self.failed
        pending = self.fail_open(self._proxy.soon, question)
        if pending is None:
            return False
        if await is_done(pending.step, pending.seconds):
            self.fail_open(pending.step.result)
            return True
        pending.step.cancel()
        pending.give_up()
        return False

    async def run_in_worker(self, exchange: Exchange, step: Callable[..., Any], *shown: object) -> Any:
        """Runs a step that is for the store, and saves what the derived request names then."""

        def both() -> Any:
            made = step(*shown)
            self._save(exchange)
            return made

        return self.fail_open(await self._proxy.work(both))

    async def save(self, exchange: Exchange) -> None:
        """Saves what the derived request names, where that was not tried yet."""
        if not self.failed and not exchange.unsaved.is_empty and not self._unstored:
            self.fail_open(await self._proxy.work(partial(self._save, exchange)))  # the worker alone saves, and once

    async def storable(self, exchange: Exchange | None, derived: bytes | None) -> bytes | None:
        """Returns the request, or where its pages could not be stored one that does not name them."""
        if not self._unstored or self.failed or exchange is None:
            return derived
        self._unstored = False
        return cast("bytes | None", self.fail_open(await self._proxy.work(exchange.without_store)))

    def _save(self, exchange: Exchange) -> None:
        try:
            self._proxy.saving.save(exchange)
        except StoreError as error:
            self._unstored = True
            self._proxy.fault(error)
