"""Counts requests once they have finished: a few at a time and soon, but never while a client waits."""

import asyncio
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Mapping

from pagefold.model_proxy.host import FinishedRequest
from pagefold.model_proxy.totals import Seen, Totals

_MOST_UNCOUNTED = 500
_AT_ONCE = 8  # requests that are counted in one iteration of the loop: a millisecond or so
_MOST_FINISHED, _MOST_FINISHED_BYTES, _COUNT_SECONDS = 64, 4 << 20, 0.08


class RequestCounts:
    """What a proxy has counted. `meter` is told of each exchange, with the headers of its request."""

    def __init__(self) -> None:
        self._seen: list[Seen] = []
        self._finished: deque[FinishedRequest] = deque()
        self._finished_bytes, self._timer_pending, self._last_catch_up = 0, False, 0.0
        self._counting = threading.RLock()
        self._totals = Totals()
        self.meter: Callable[[Seen, Mapping[bytes, bytes]], None] = lambda seen, headers: None

    @property
    def totals(self) -> Totals:
        """Counts what has finished and returns all totals. For the event loop's thread."""
        self.count_finished()
        return self.totals_so_far

    @property
    def totals_so_far(self) -> Totals:
        """Returns the totals without requests that finished just now, for any thread. Those are counted on the event
        loop only, because listeners are not thread-safe."""
        with self._counting:
            seen, self._seen = self._seen, []
            if seen:
                self._totals += Totals.of(*seen)
            return self._totals

    def add(self, counts: Totals) -> None:
        with self._counting:
            self._totals = self.totals_so_far + counts

    def record_seen(self, seen: Seen, headers: Mapping[bytes, bytes]) -> None:
        self._seen.append(seen)
        self.meter(seen, headers)
        if len(self._seen) >= _MOST_UNCOUNTED:  # counting several together is faster; the limit bounds memory
            self.add(Totals())

    def enqueue_finished(self, request: FinishedRequest) -> None:
        """Queues a finished request to be counted soon: several together take half the time, and no client waits."""
        self._finished.append(request)
        self._finished_bytes += request.held
        # Only one timer at a time: `count_finished` may empty the queue while one is pending.
        if not self._timer_pending:
            self._timer_pending = True
            asyncio.get_running_loop().call_later(_COUNT_SECONDS, self._on_timer)
        elif len(self._finished) >= _MOST_FINISHED or self._finished_bytes >= _MOST_FINISHED_BYTES:
            # Not at once: uvloop writes at the end of a loop iteration, and the client must not wait for counting.
            asyncio.get_running_loop().call_soon(self._count_some)

    def count_finished(self, most: int = sys.maxsize) -> None:
        """Counts the requests in the queue, or `most` of them."""
        with self._counting:
            while self._finished and most:
                self._finished.popleft().count()
                most -= 1
            if not self._finished:
                self._finished_bytes = 0

    def _count_some(self, then: Callable[[], None] = lambda: None) -> None:
        """Counts the requests in the queue, a few in each iteration of the loop, and goes on to the next step."""
        self.count_finished(_AT_ONCE)
        if self._finished:
            asyncio.get_running_loop().call_soon(self._count_some, then)
        else:
            then()

    def catch_up(self) -> None:
        """Counts and records all finished requests, for a reader that polls."""
        self._last_catch_up = time.monotonic()
        self.count_and_flush()

    def _on_timer(self) -> None:
        # If `catch_up` ran less than _COUNT_SECONDS ago, postpone: polling already does this work.
        left = self._last_catch_up + _COUNT_SECONDS - time.monotonic()
        if left > 0:
            asyncio.get_running_loop().call_later(left, self._on_timer)
            return
        self._timer_pending = False
        self._count_some(self.flush)

    def count_and_flush(self) -> None:
        """Counts the requests in the queue, and has written what came of them."""
        self.count_finished()
        self.flush()

    def flush(self) -> None:
        """Writes what came of counted requests."""
