"""What a share of a subscription's five-hour window is worth in money, from what the provider says with each answer.

Only an account's total is reported. What it rose by while answers were given, divided by what those answers cost at
list prices, says what a share of the window is worth.
"""

from pagefold.frozen import frozen

_LEAST = 0.01  # of a window: providers report whole percents, and less than one says nothing


@frozen
class WindowWorth:
    """What was used of five-hour windows, and what that cost at list prices."""

    windows: float = 0.0
    usd: float = 0.0

    def share(self, usd: float) -> float | None:
        """The share of a window that so much money is; None where too little was reported to say."""
        return usd * self.windows / self.usd if self.windows >= _LEAST and self.usd > 0 else None
