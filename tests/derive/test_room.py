"""A window that has too little room beside the system prompt and the tools is told in a sentence."""

import pytest

from pagefold.derive.room import crowded


@pytest.mark.parametrize(
    ("head", "usable", "window", "expected"),
    [
        (0, 10_000, 12_000, ""),
        (17_000, 28_000, 32_000, ""),
        (27_000, 31_500, 36_000, "leave 4,500 for the conversation"),
        (40_000, 31_500, 36_000, "do not fit"),
    ],
)
def test_a_crowded_window_is_told(head: int, usable: int, window: int, expected: str) -> None:
    told = crowded(head, usable, window)
    assert (expected in told) if expected else not told


def test_the_window_that_is_recommended_is_not_crowded() -> None:
    assert "at least 52,000" in crowded(27_000, 31_500, 36_000)
    assert not crowded(27_000, 52_000 - 4_500, 52_000)
