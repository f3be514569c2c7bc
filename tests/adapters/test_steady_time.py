"""A clock that nobody sets: the wall clock may jump, and what was long ago stays as long ago."""

import time

import pytest

from pagefold.adapters.steady_time import SteadyTime, steady_time


@pytest.mark.parametrize("jump", [-86_400.0, -1.0, 1.0, 86_400.0])
def test_a_wall_clock_that_jumps_changes_nothing(jump: float) -> None:
    wall, running = [1_000.0], [50.0]
    clock = SteadyTime(lambda: wall[0], lambda: running[0])
    before = clock()

    wall[0] += jump
    running[0] += 7

    assert clock() - before == 7


def test_it_tells_the_time_of_day() -> None:
    assert abs(steady_time() - time.time()) < 5
