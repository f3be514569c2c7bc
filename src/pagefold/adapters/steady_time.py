"""Tells the time in seconds since 1970 by a clock that nobody sets.

How long a provider's cache has been idle decides whether a fold is free: a wall clock that is set forward would fold
what is warm, one that is set back would keep what is cold. So the wall clock is read once, and from then on a clock
that only runs, also while the computer sleeps.
"""

import sys
import time
from collections.abc import Callable


def _running() -> float:
    """A clock that runs on while the computer sleeps, where the system has one."""
    if sys.platform == "win32":
        return time.monotonic()
    else:  # noqa: RET505 - the type checker reads each branch on its own system only
        # On macOS the second one counts sleep, and time.monotonic() does not.
        return time.clock_gettime(getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC))


class SteadyTime:
    def __init__(self, wall: Callable[[], float] = time.time, running: Callable[[], float] = _running) -> None:
        self._running = running
        self._began = wall() - running()

    def __call__(self) -> float:
        return self._began + self._running()


steady_time = SteadyTime()
