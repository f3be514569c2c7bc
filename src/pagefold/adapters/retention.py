"""Collects a store by itself, in a thread of its own: what is older or more than the settings allow.

Promises: no put waits for it longer than one short step, because it writes over a connection of its own and rests
between steps; of all processes on one store one collects at a time; a failure is reported and tried again at the next
round; closing waits for at most one step.
"""

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from pagefold.errors import StoreError
from pagefold.pages.store import Collected, PageStore

DAY = 86_400.0
_FIRST_SECONDS = 30.0  # after a start, which has better things to do
_EVERY_SECONDS = 3600.0
_REST_SECONDS = 0.025  # longer than a put that waits for the lock sleeps before it asks again


@dataclass(frozen=True, slots=True)
class Limits:
    """How old and how large a store may get; None is no bound. Conversations of the last `lease_days` lose nothing."""

    max_age_days: float | None = None
    max_bytes: int | None = None
    lease_days: float = 7.0

    @property
    def is_endless(self) -> bool:
        return self.max_age_days is None and self.max_bytes is None


@runtime_checkable
class CollectedPages(Protocol):
    """Pages that can be collected in steps, with a rest after each."""

    def claim_collection(self, now: float, seconds: float) -> bool: ...

    def collect(
        self,
        *,
        before: float | None = None,
        max_bytes: int | None = None,
        leased: float | None = None,
        rest: Callable[[], object] = lambda: None,
    ) -> Collected: ...

    def make_shrinkable(self) -> None: ...

    def close(self) -> None: ...


def collect(
    pages: PageStore | CollectedPages,
    limits: Limits,
    now: float,
    rest: Callable[[], object] = lambda: None,
    *,
    anew: bool = False,
) -> Collected:
    """Removes what is beyond the limits, and gives its room back where the store can.

    A file that cannot, because an earlier version made it, is written `anew` once if that is asked for: then writers
    wait for seconds. Raises StoreError.
    """
    age = limits.max_age_days
    before = None if age is None else now - age * DAY
    leased = now - limits.lease_days * DAY
    if not isinstance(pages, CollectedPages):
        return pages.collect(before=before, max_bytes=limits.max_bytes, leased=leased)
    collected = pages.collect(before=before, max_bytes=limits.max_bytes, leased=leased, rest=rest)
    if anew:
        pages.make_shrinkable()
    return collected


class Retention:
    """Collects the store that `opened` opens, from `start` to `close`: soon, and then once in an hour.

    `report` gets a sentence about every collection that removed something, and about every failure.
    """

    def __init__(
        self,
        opened: Callable[[], CollectedPages],
        limits: Limits,
        report: Callable[[str], None] = lambda sentence: None,
        *,
        first_seconds: float = _FIRST_SECONDS,
        every_seconds: float = _EVERY_SECONDS,
    ) -> None:
        self._open, self._limits, self._report = opened, limits, report
        self._first, self._every = first_seconds, every_seconds
        self._closing = threading.Event()
        self._thread = threading.Thread(target=self._live, name="pagefold-retention", daemon=True)

    def start(self) -> None:
        if not self._limits.is_endless:
            self._thread.start()

    def close(self) -> None:
        self._closing.set()
        if self._thread.is_alive():
            self._thread.join(2.0)

    def _live(self) -> None:
        pause = self._first
        while not self._closing.wait(pause):
            pause = self._every
            try:
                self._round()
            except _Closing:
                return
            except StoreError as error:
                self._report(f"the store could not be collected, and is tried again in an hour: {error}")

    def _round(self) -> None:
        pages = self._open()
        try:
            now = time.time()
            if not pages.claim_collection(now, self._every / 2):
                return
            gone = collect(pages, self._limits, now, self._rest)
            if gone.pages:
                lost = f"; {gone.unsent:,} of them had not been sent to the history sink" if gone.unsent else ""
                self._report(f"{gone.pages:,} stored pages, {gone.bytes:,} bytes, were too old or too many{lost}")
        finally:
            pages.close()

    def _rest(self) -> None:
        if self._closing.wait(_REST_SECONDS):
            raise _Closing


class _Closing(Exception):  # noqa: N818  no error: the process ends
    """The process ends in the middle of a collection; the next one goes on."""
