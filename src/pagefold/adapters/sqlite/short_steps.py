"""Runs a long change of a store's file in steps so short that no put waits long.

A put that finds the file locked asks again after 25 ms at most (SQLite's own waiting), so it gets its turn in the rest
after a step, whoever's process it is in. It waits for the disk where it finds the log long, which it then moves into
the file, and where it is the first to write after somebody else did that. Therefore the log is emptied between steps
before it gets long, and right before a step instead of a rest.
"""

import time
from collections.abc import Callable

_SHORT_SECONDS = 0.004  # what one step may take
_FEWEST, _MOST = 8, 4000
_MOST_RESTS = 8
_LOG_FRAMES = 500  # a put empties a log of four times as many


def in_short_steps(
    step: Callable[[int], bool],
    empty_log: Callable[[], int],
    rest: Callable[[], object],
    clock: Callable[[], float] = time.perf_counter,
) -> None:
    """Runs `step` with how much it may do, as much as takes a few milliseconds, until it returns False; rests after
    each, and longer after one that took longer, as it does on a busy machine. `empty_log` returns how many frames were
    in the log."""
    size, steps, due = _FEWEST, 0, 1
    while True:
        if steps == due:
            steps, due = 0, _next_due(due, empty_log())
        began = clock()
        if not step(size):
            return
        took = clock() - began
        size, steps = _adapted(size, took), steps + 1
        for _ in range(min(_MOST_RESTS, 1 + int(took / _SHORT_SECONDS))):
            rest()


def _next_due(due: int, frames: int) -> int:
    """After how many steps the log is emptied next, so that about as many frames are in it as may be."""
    return max(1, min(2 * due, due * _LOG_FRAMES // max(1, frames)))


def _adapted(size: int, seconds: float) -> int:
    if seconds > _SHORT_SECONDS:
        return max(_FEWEST, size - size // 4)
    return min(_MOST, size + max(1, size // 4)) if seconds < _SHORT_SECONDS / 2 else size
