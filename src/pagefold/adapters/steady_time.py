"""Tells the time in seconds since 1970 by a clock that nobody sets.

How long a provider's cache has been idle decides whether a fold is free: a wall clock that is set forward would fold
what is warm, one that is set back would keep what is cold. So the wall clock is read once, and from then on a clock
that only runs, also while the computer sleeps.
"""

import time
from collections.abc import Callable


def _running() -> float:
    """A clock that runs on while the computer sleeps, where the system has one."""
    if hasattr(time, "CLOCK_BOOTTIME"):
        return time.clock_gettime(time.CLOCK_BOOTTIME)
    if hasattr(time, "CLOCK_MONOTONIC"):  # on macOS this one counts sleep, and time.monotonic() does not
        return time.clock_gettime(time.CLOCK_MONOTONIC)
    return time.monotonic()


class SteadyTime:
    def __init__(self, wall: Callable[[], float] = time.time, running: Callable[[], float] = _running) -> None:
        self._running = running
        self._began = wall() - running()

    def __call__(self) -> float:
        return self._began + self._running()


steady_time = SteadyTime()
