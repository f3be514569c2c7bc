"""How much of a subscription's five-hour windows was used, from what the provider says with each answer.

Only an account's total is reported. Its increase from one answer to the next is what was used in between; divided by
what those answers cost at list prices it says what a share of the window is worth.
"""

from dataclasses import dataclass

from pagefold.frozen import frozen
from pagefold.wire.quota import Quota

_SAME = 60.0  # seconds by which reports of one window's end may differ
_LEAST = 0.01  # of a window: providers report whole percents, and less than one says nothing


@dataclass(slots=True)
class WindowUse:
    """Follows one account. `last` is the newest report, if there is any."""

    last: Quota | None = None

    def increase(self, quota: Quota | None) -> float:
        """The share of a window that was used since the last report; 0 at the first, which holds what came before."""
        if quota is None:
            return 0.0
        last, self.last = self.last, quota
        if last is None:
            return 0.0
        if quota.resets > last.resets + _SAME or (not quota.resets and quota.used < last.used / 2):
            return quota.used  # of a window that began since
        if quota.used < last.used or quota.resets < last.resets - _SAME:
            self.last = last  # an answer that was overtaken by another
            return 0.0
        return quota.used - last.used


@frozen
class WindowWorth:
    """What was used of five-hour windows, and what that cost at list prices."""

    windows: float = 0.0
    usd: float = 0.0

    def share(self, usd: float) -> float | None:
        """The share of a window that so much money is; None where too little was reported to say."""
        return usd * self.windows / self.usd if self.windows >= _LEAST and self.usd > 0 else None
