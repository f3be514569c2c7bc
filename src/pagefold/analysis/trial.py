"""Compares the two groups of a trial: sessions behind a policy with sessions that went on as they came.

Sessions cannot be paired, so each measure compares the two groups as wholes. What every session has some of (cost,
turns, working time) is compared by Welch's t-test on its logarithm: the difference is a ratio of geometric means, in
percent. The cost is compared at the same length too: with what longer sessions cost more, as seen within both groups,
taken out, it varies far less. What many sessions have none of (errors, re-reads, failed edits, corrections) is compared
as a rate, such as failed edits per edit: a ratio of sums, with a jackknife over sessions. Each interval holds the true
ratio in 95 of 100 trials by itself. Where an interval is so wide that it says nothing, that is the verdict.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass, field
from math import exp, log, sqrt
from statistics import NormalDist, fmean, variance
from typing import Any

from pagefold.derive.session_row import SessionRow
from pagefold.derive.trial import Arm
from pagefold.number_format import several

LEVEL = 0.95
LEAST = 5
"""Sessions in each group below which nothing is said."""
_LEAST_EVENTS = 5
_WIDE = log(1.5)  # an interval of more than this to each side tells nothing
_POWER = 0.8


@dataclass(frozen=True, slots=True)
class Measure:
    """What is compared: `of` in a session, per `per` of them where it is a rate, or in sessions with the same of
    `beside`. `more` and `less` say it in words; `effect` is the difference for which it is told how many sessions show
    it."""

    name: str
    of: Callable[[SessionRow], float]
    more: str
    less: str
    per: Callable[[SessionRow], float] | None = None
    beside: Callable[[SessionRow], float] | None = None
    effect: float = 1.2


MEASURES = (
    Measure("cost", lambda row: row.usd, "dearer", "cheaper", effect=1.1),
    Measure(
        "cost at the same length",
        lambda row: row.usd,
        "dearer at the same length",
        "cheaper at the same length",
        beside=lambda row: row.turns,
        effect=1.1,
    ),
    Measure("turns", lambda row: row.turns, "more turns", "fewer turns"),
    Measure("working time", lambda row: row.seconds, "more time", "less time"),
    Measure("tool errors", lambda row: row.errors, "more tool errors", "fewer tool errors", lambda row: row.results),
    Measure("re-reads", lambda row: row.rereads, "more re-reads", "fewer re-reads", lambda row: row.results),
    Measure(
        "failed edits", lambda row: row.failed_edits, "more failed edits", "fewer failed edits", lambda row: row.edits
    ),
    Measure("corrections", lambda row: row.corrections, "more corrections", "fewer corrections", lambda row: row.asks),
)


@dataclass(frozen=True, slots=True)
class Compared:
    """One measure: how many times as much the treated group has, with an interval; None where nothing can be said.
    `treated` and `held_out` are the mean of a session, or the rate. `needed` is about how many sessions in all show a
    difference of 10 % in cost, and of 20 % in everything else."""

    name: str
    treated: float
    held_out: float
    ratio: float | None = None
    low: float = 0.0
    high: float = 0.0
    needed: int = 0
    sentence: str = ""


@dataclass(frozen=True, slots=True)
class TrialResult:
    treated: int
    held_out: int
    mixed: int = 0
    policies: tuple[str, ...] = ()
    measures: tuple[Compared, ...] = field(default=())

    @property
    def sessions(self) -> int:
        return self.treated + self.held_out

    @property
    def verdict(self) -> str:
        """All measures in one sentence, the cost first."""
        if min(self.treated, self.held_out) < LEAST:
            groups = f"{several(self.treated, 'session')} behind pagefold and {self.held_out:,} held out"
            return f"Not enough sessions to tell anything yet: {groups}; at least {LEAST} in each group are needed."
        said = [one.sentence for one in self.measures if one.ratio is not None]
        open_ = [one.name for one in self.measures if one.ratio is None]
        if open_:
            said.append(f"not enough sessions to tell about {', '.join(open_)}")
        return f"{'; '.join(said)[:1].upper()}{'; '.join(said)[1:]}."

    def to_dict(self) -> dict[str, Any]:
        return {
            "sessions": {"treated": self.treated, "held_out": self.held_out, "mixed": self.mixed},
            "policies": list(self.policies),
            "verdict": self.verdict,
            "measures": [asdict(one) for one in self.measures],
        }


NO_TRIAL = TrialResult(0, 0)


def compared(rows: Iterable[SessionRow]) -> TrialResult:
    """The result of a trial so far. Sessions outside any trial, or in both groups, are left out."""
    treated, held_out, mixed = list[SessionRow](), list[SessionRow](), 0
    for row in rows:
        if row.arm == Arm.TREATED:
            treated.append(row)
        elif row.arm == Arm.HELD_OUT:
            held_out.append(row)
        else:
            mixed += bool(row.arm)
    policies = tuple(sorted({row.policy for row in treated}))
    measures = tuple(_compared(measure, treated, held_out) for measure in MEASURES)
    return TrialResult(len(treated), len(held_out), mixed, policies, measures)


def sessions_needed(spread: float, effect: float, share: float) -> int:
    """How many sessions in all show that one group has `effect` times as much as the other, in 80 of 100 trials, where
    logarithms have this standard deviation and so large a share is held out."""
    reach = (NormalDist().inv_cdf((1 + LEVEL) / 2) + NormalDist().inv_cdf(_POWER)) * spread / log(effect)
    return round(reach**2 / (share * (1 - share)))


def _compared(measure: Measure, treated: Sequence[SessionRow], held_out: Sequence[SessionRow]) -> Compared:
    if measure.per is None:
        kept = [[row for row in group if measure.of(row) > 0] for group in (treated, held_out)]
        mean, other = (fmean(map(measure.of, group)) if group else 0.0 for group in kept)
        logs = [[log(measure.of(row)) for row in group] for group in kept]
        beside = measure.beside
        lengths = [[log(max(1.0, beside(row))) if beside else 0.0 for row in group] for group in kept]
        found = _of_logarithms(logs, lengths)
    else:
        pairs = [[(measure.of(row), measure.per(row)) for row in group] for group in (treated, held_out)]
        mean, other = map(_rate, pairs)
        found = _of_rates(pairs)
    plain = Compared(measure.name, mean, other)
    if found is None:
        return plain
    difference, half, spread = found
    needed = 0
    if spread:
        needed = sessions_needed(spread, measure.effect, len(held_out) / (len(treated) + len(held_out)))
    ratio, low, high = exp(difference), exp(difference - half), exp(difference + half)
    said = _sentence(measure, ratio, low, high)
    known = half <= _WIDE or low > 1 or high < 1
    return Compared(measure.name, mean, other, ratio if known else None, low, high, needed, said if known else "")


def _sentence(measure: Measure, ratio: float, low: float, high: float) -> str:
    if low <= 1 <= high:
        worse = f"a difference in {measure.name}" if measure.name.startswith("cost") else measure.more
        return f"no sign of {worse} ({100 * (low - 1):+.0f} to {100 * (high - 1):+.0f} %)"
    words = measure.less if ratio < 1 else measure.more
    return f"{words} by {abs(100 * (ratio - 1)):.0f} % ± {50 * (high - low):.0f}"


def _of_logarithms(
    groups: Sequence[Sequence[float]], beside: Sequence[Sequence[float]]
) -> tuple[float, float, float] | None:
    """The difference of means, half of its interval by Welch's t-test, and the pooled standard deviation. What goes
    along with `beside` within both groups is taken out first."""
    if min(map(len, groups)) < LEAST:
        return None
    slope, doubt = _slope(groups, beside)
    rest = [
        [one - slope * length for one, length in zip(group, lengths, strict=True)]
        for group, lengths in zip(groups, beside, strict=True)
    ]
    (mean, part, size), (other_mean, other_part, other_size) = (
        (fmean(group), variance(group) / len(group), len(group)) for group in rest
    )
    error = part + other_part
    if not error:
        return mean - other_mean, 0.0, 0.0
    freedom = error**2 / (part**2 / (size - 1) + other_part**2 / (other_size - 1))
    spread = sqrt((part * size * (size - 1) + other_part * other_size * (other_size - 1)) / (size + other_size - 2))
    if doubt:  # of the slope, as far as lengths differ between the groups
        error += (spread * (fmean(beside[0]) - fmean(beside[1]))) ** 2 / doubt
    return mean - other_mean, t_quantile(freedom) * sqrt(error), spread


def _slope(groups: Sequence[Sequence[float]], beside: Sequence[Sequence[float]]) -> tuple[float, float]:
    """How one goes along with the other within groups, and the sum of squares that this is seen in."""
    along = squares = 0.0
    for group, lengths in zip(groups, beside, strict=True):
        mean, length = fmean(group), fmean(lengths)
        along += sum((y - mean) * (x - length) for y, x in zip(group, lengths, strict=True))
        squares += sum((x - length) ** 2 for x in lengths)
    return (along / squares, squares) if squares else (0.0, 0.0)


def _of_rates(groups: Sequence[Sequence[tuple[float, float]]]) -> tuple[float, float, float] | None:
    """The same for the logarithm of a ratio of rates, each with its jackknife over sessions."""
    if min(map(len, groups)) < LEAST or any(sum(count for count, _ in group) < _LEAST_EVENTS for group in groups):
        return None
    logs, parts = list[float](), list[float]()
    for group in groups:
        counts, wholes = sum(count for count, _ in group), sum(per for _, per in group)
        without = [log((counts - count) / (wholes - per)) for count, per in group if counts > count and wholes > per]
        if len(without) < len(group):
            return None  # all of them come from one session
        mean = fmean(without)
        logs.append(log(counts / wholes))
        parts.append((len(group) - 1) / len(group) * sum((one - mean) ** 2 for one in without))
    freedom = min(map(len, groups)) - 1
    size = sum(map(len, groups))
    share = len(groups[1]) / size
    spread = sqrt(sum(parts) * share * (1 - share) * size)
    return logs[0] - logs[1], t_quantile(freedom) * sqrt(sum(parts)), spread


def _rate(group: Sequence[tuple[float, float]]) -> float:
    whole = sum(per for _, per in group)
    return sum(count for count, _ in group) / whole if whole else 0.0


def t_quantile(freedom: float, level: float = LEVEL) -> float:
    """Student's t that is not exceeded to either side at this level: Cornish and Fisher's expansion about the normal,
    which is off by less than 0.5 % from four degrees of freedom on."""
    z = NormalDist().inv_cdf((1 + level) / 2)
    n = max(freedom, 3.0)
    return (
        z
        + (z**3 + z) / (4 * n)
        + (5 * z**5 + 16 * z**3 + 3 * z) / (96 * n**2)
        + (3 * z**7 + 19 * z**5 + 17 * z**3 - 15 * z) / (384 * n**3)
        + (79 * z**9 + 776 * z**7 + 1482 * z**5 - 1920 * z**3 - 945 * z) / (92160 * n**4)
    )
