"""Two arms compared, run by run: the same task and seed in both. Differences come with intervals, and a plain verdict.

Margins are stated before anything is run. An arm is *worse* where the whole interval lies on the wrong side of none and
the difference is larger than the margin; *no worse* where the whole interval is within the margin; else nobody can
tell. The intervals are at a level that keeps all measures together at 95 %.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from math import exp, log, sqrt
from statistics import NormalDist, fmean, stdev
from typing import Any

LEVEL = 0.95


@dataclass(frozen=True, slots=True)
class Result:
    """One run of a task in an arm."""

    task: str
    kind: str
    seed: int
    size: int
    arm: str
    solved: bool
    turns: int
    usd: float
    looked_again: int = 0
    failed_edits: int = 0
    largest: int = 0
    folds: int = 0
    reason: str = ""

    @property
    def pair(self) -> tuple[str, int, int]:
        """What has to be the same in another arm."""
        return self.task, self.seed, self.size


class Finding(StrEnum):
    WORSE = "worse"
    NO_WORSE = "no worse"
    BETTER = "better"
    UNCLEAR = "cannot tell"


@dataclass(frozen=True, slots=True)
class Measure:
    """What is compared: `margin` is the difference that does not matter; `ratio` where it is one of proportions."""

    name: str
    of: Callable[[Result], float]
    margin: float
    ratio: bool = False


SOLVED = Measure("solved", lambda run: float(run.solved), 0.05)
MEASURES = (
    SOLVED,
    Measure("cost", lambda run: run.usd, 0.05, ratio=True),
    Measure("turns", lambda run: float(run.turns), 0.10, ratio=True),
    Measure("files read again", lambda run: float(run.looked_again), 0.5),
    Measure("failed edits", lambda run: float(run.failed_edits), 0.25),
)


@dataclass(frozen=True, slots=True)
class Difference:
    """An arm against another by one measure: the means, the difference or ratio, its interval and what it says."""

    measure: str
    before: float
    after: float
    value: float
    low: float
    high: float
    pairs: int
    finding: Finding

    def to_dict(self) -> dict[str, Any]:
        named = {"measure": self.measure, "before": self.before, "after": self.after, "difference": self.value}
        return {**named, "interval": [self.low, self.high], "pairs": self.pairs, "finding": str(self.finding)}


def compared(results: Iterable[Result], before: str, after: str) -> list[Difference]:
    """The differences of two arms over all runs that both have. None where they share fewer than two."""
    by_pair: dict[tuple[str, int, int], dict[str, Result]] = {}
    for result in results:
        by_pair.setdefault(result.pair, {})[result.arm] = result
    pairs = [(arms[before], arms[after]) for arms in by_pair.values() if before in arms and after in arms]
    if len(pairs) < 2:
        return []
    level = 1 - (1 - LEVEL) / len(MEASURES)
    return [_difference(measure, pairs, level) for measure in MEASURES]


def _difference(measure: Measure, pairs: Sequence[tuple[Result, Result]], level: float) -> Difference:
    values = [(measure.of(first), measure.of(second)) for first, second in pairs]
    means = fmean(first for first, _ in values), fmean(second for _, second in values)
    if measure is SOLVED:
        value, low, high = means[1] - means[0], *_paired_shares(values, level)
        return Difference(
            measure.name, *means, value, low, high, len(pairs), _finding(-value, -high, -low, measure.margin)
        )
    if measure.ratio:
        value, low, high = _interval([log(second / first) for first, second in values if first and second], level)
        finding = _finding(value, low, high, log(1 + measure.margin))
        return Difference(measure.name, *means, exp(value), exp(low), exp(high), len(pairs), finding)
    value, low, high = _interval([second - first for first, second in values], level)
    return Difference(measure.name, *means, value, low, high, len(pairs), _finding(value, low, high, measure.margin))


def _finding(worse_by: float, low: float, high: float, margin: float) -> Finding:
    if low > 0 and worse_by > margin:
        return Finding.WORSE
    if high < 0:
        return Finding.BETTER
    return Finding.NO_WORSE if high <= margin else Finding.UNCLEAR


def _interval(values: Sequence[float], level: float) -> tuple[float, float, float]:
    """The mean with its interval by Student's distribution, approximated from the normal one."""
    mean = fmean(values)
    if len(values) < 2:
        return mean, float("-inf"), float("inf")
    z = NormalDist().inv_cdf((1 + level) / 2)
    half = (z + (z**3 + z) / (4 * (len(values) - 1))) * stdev(values) / sqrt(len(values))
    return mean, mean - half, mean + half


def _paired_shares(values: Sequence[tuple[float, float]], level: float) -> tuple[float, float]:
    """The interval of a difference of paired shares, by Bonett and Price: honest where nearly all pairs agree."""
    lost = sum(first > second for first, second in values)
    won = sum(second > first for first, second in values)
    n = len(values) + 2
    more, fewer = (won + 1) / n, (lost + 1) / n
    half = NormalDist().inv_cdf((1 + level) / 2) * sqrt((more + fewer - (more - fewer) ** 2) / n)
    return max(-1.0, more - fewer - half), min(1.0, more - fewer + half)


def pairs_needed(share_apart: float, margin: float = SOLVED.margin, power: float = 0.8) -> int:
    """How many pairs it takes to find no difference of solve rates larger than the margin, where this share of pairs
    comes out differently by chance."""
    z = NormalDist()
    level = 1 - (1 - LEVEL) / len(MEASURES)
    needed = (z.inv_cdf((1 + level) / 2) + z.inv_cdf(power)) ** 2 * share_apart / margin**2
    return int(needed) + 1


def sentence(differences: Sequence[Difference], after: str, before: str) -> str:
    """The verdict in words."""
    if not differences:
        return f"{after} and {before} share too few runs to be compared."
    told = [f"{difference.measure} {difference.finding}: {_told(difference)}" for difference in differences]
    return f"{after} against {before}, {differences[0].pairs} pairs. " + "; ".join(told) + "."


def _told(difference: Difference) -> str:
    if difference.measure in {measure.name for measure in MEASURES if measure.ratio}:
        return f"{difference.value - 1:+.0%} ({difference.low - 1:+.0%} to {difference.high - 1:+.0%})"
    points = difference.measure == SOLVED.name
    value, low, high = ((100 if points else 1) * bound for bound in (difference.value, difference.low, difference.high))
    return f"{value:+.1f}{' points' if points else ''} ({low:+.1f} to {high:+.1f})"


def by_arm(results: Iterable[Result]) -> Mapping[str, list[Result]]:
    arms: dict[str, list[Result]] = {}
    for result in results:
        arms.setdefault(result.arm, []).append(result)
    return arms
