"""Counts how long things took, in the buckets of a Prometheus histogram."""

from bisect import bisect_left
from dataclasses import dataclass, field

BUCKETS = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)


@dataclass(slots=True)
class Histogram:
    """Seconds by bucket; the last count is of what took longer than all of them. Adding is safe in any thread: a count
    may be lost where two threads add at once, never the whole."""

    counts: list[int] = field(default_factory=lambda: [0] * (len(BUCKETS) + 1))
    seconds: float = 0.0

    def add(self, seconds: float) -> None:
        self.counts[bisect_left(BUCKETS, seconds)] += 1
        self.seconds += seconds

    @property
    def count(self) -> int:
        return sum(self.counts)

    def cumulative(self) -> list[tuple[str, int]]:
        """The upper limit of each bucket, as Prometheus spells it, and how many took no longer."""
        found: list[tuple[str, int]] = []
        below = 0
        for limit, count in zip((*map(str, BUCKETS), "+Inf"), self.counts, strict=True):
            below += count
            found.append((limit, below))
        return found
