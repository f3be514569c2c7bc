"""How many turns a session still has, given how many it has had: what a fold has to pay for itself with."""

from bisect import bisect_right
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class TurnsLeft:
    """From `so_far[i]` turns on, half of the recorded sessions had at least `left[i]` more."""

    so_far: tuple[int, ...] = (0, 10, 20, 40, 80, 160)
    left: tuple[int, ...] = (30, 27, 31, 34, 35, 55)

    def turns(self, so_far: int) -> int:
        return self.left[max(0, bisect_right(self.so_far, so_far) - 1)]


SHIPPED = TurnsLeft()
