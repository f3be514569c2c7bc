"""What was used of five-hour windows, from the totals that a provider reports."""

import pytest

from pagefold.derive.quota import WindowWorth
from pagefold.wire.quota import Quota, WindowUse


@pytest.mark.parametrize(
    ("reports", "used"),
    [
        ([], 0.0),
        ([Quota(0.40, 100)], 0.0),
        ([Quota(0.40, 100), None, Quota(0.43, 100), Quota(0.45, 130)], 0.05),
        ([Quota(0.90, 100), Quota(0.02, 18_100)], 0.02),
        ([Quota(0.90), Quota(0.02)], 0.02),
        ([Quota(0.40, 100), Quota(0.43, 100), Quota(0.41, 100), Quota(0.43, 100)], 0.03),
        ([Quota(0.90, 100), Quota(0.02, 18_100), Quota(0.91, 100), Quota(0.03, 18_100)], 0.03),
    ],
)
def test_what_was_used_is_the_increase_within_each_window(reports: list[Quota | None], used: float) -> None:
    use = WindowUse()

    assert sum(map(use.increase, reports)) == pytest.approx(used)


def test_money_is_a_share_of_the_window_by_what_the_window_cost_so_far() -> None:
    assert WindowWorth(0.10, 5.0).share(2.5) == pytest.approx(0.05)


@pytest.mark.parametrize("worth", [WindowWorth(), WindowWorth(0.001, 1.0), WindowWorth(0.5, 0.0)])
def test_too_little_is_reported_to_say(worth: WindowWorth) -> None:
    assert worth.share(1.0) is None
