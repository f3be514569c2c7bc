"""What came of every arm, size by size: solved shares with intervals, means of the rest, and how arms compare."""

from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, replace
from math import sqrt
from statistics import NormalDist, fmean
from typing import Any

from pagefold.number_format import money, several, short
from pagefold.solve.arms import AS_IT_IS
from pagefold.solve.verdict import LEVEL, MEASURES, SOLVED, Difference, Result, by_arm, compared, pairs_needed, sentence

COLUMNS = (
    "arm",
    "runs",
    "solved",
    "95 of 100",
    "cost a run",
    "turns",
    "files read again",
    "failed edits",
    "folds",
    "largest request",
)
ALL_SIZES = 0


@dataclass(frozen=True, slots=True)
class ArmFigures:
    """One arm at one size: counts of runs, the solved share with its interval, means a run; `largest` is of all."""

    arm: str
    runs: int
    solved: float
    low: float
    high: float
    usd: float
    turns: float
    looked_again: float
    failed_edits: float
    folds: float
    largest: int

    def cells(self) -> tuple[str, ...]:
        return (
            self.arm,
            f"{self.runs:,}",
            f"{self.solved:.1%}",
            f"{self.low:.1%} to {self.high:.1%}",
            money(self.usd),
            f"{self.turns:.1f}",
            f"{self.looked_again:.2f}",
            f"{self.failed_edits:.2f}",
            f"{self.folds:.2f}",
            short(self.largest),
        )


@dataclass(frozen=True, slots=True)
class SizeFigures:
    """All arms at one size, or at ALL_SIZES together, and the verdict on each against the arm `as it is`."""

    size: int
    arms: Sequence[ArmFigures]
    verdicts: Sequence[tuple[str, Sequence[Difference]]]

    @property
    def title(self) -> str:
        return f"histories past {self.size // 1000}k tokens" if self.size else "all sizes together"

    def sentences(self) -> list[str]:
        return [sentence(differences, arm, AS_IT_IS) for arm, differences in self.verdicts]

    def to_dict(self) -> dict[str, Any]:
        verdicts = {arm: [difference.to_dict() for difference in found] for arm, found in self.verdicts}
        return {"size": self.size, "arms": [asdict(arm) for arm in self.arms], "against as it is": verdicts}


def figures_of(results: Iterable[Result]) -> list[SizeFigures]:
    """The figures of every size; of all together last, where there are several."""
    runs = [_without_window(result) for result in results]
    sizes = sorted({run.size for run in runs})
    parts = [(size, [run for run in runs if run.size == size]) for size in sizes]
    return [_at(size, part) for size, part in [*parts, *([(ALL_SIZES, runs)] if len(sizes) > 1 else [])]]


def kinds_of(results: Iterable[Result]) -> list[tuple[str, ...]]:
    """Rows of a table: how many runs of each kind of task every arm solved."""
    runs = [_without_window(result) for result in results]
    arms = list(_ordered(run.arm for run in runs))
    rows: list[tuple[str, ...]] = [("kind of task", *arms)]
    for kind in sorted({run.kind for run in runs}):
        solved = [[run.solved for run in runs if run.kind == kind and run.arm == arm] for arm in arms]
        rows.append((kind, *(f"{sum(some)} of {len(some)}" if some else "" for some in solved)))
    return rows


def sample_told(pairs: int) -> str:
    """What a sample of this size can say about solve rates: told before anything is run."""
    first, *others = [(pairs_needed(apart), apart) for apart in (0.02, 0.05, 0.1, 0.2)]
    needed = [f"{first[0]:,} pairs if {first[1]:.0%} of them come out differently by chance"]
    needed += [f"{count:,} if {apart:.0%} do" for count, apart in others]
    margins = ", ".join(
        f"{measure.name} {measure.margin:.0%}"
        if measure is SOLVED or measure.ratio
        else f"{measure.name} {measure.margin}"
        for measure in MEASURES
    )
    return (
        f"{several(pairs, 'pair')} an arm. Margins: {margins}. To find an arm no worse at solving, 4 times "
        f"out of 5, takes {', '.join(needed)}."
    )


def wilson(solved: int, runs: int) -> tuple[float, float]:
    """The interval of a share, by Wilson."""
    z = NormalDist().inv_cdf((1 + LEVEL) / 2)
    middle, scale = solved / runs + z * z / (2 * runs), 1 + z * z / runs
    half = z * sqrt(solved / runs * (1 - solved / runs) / runs + z * z / (4 * runs * runs))
    return max(0.0, (middle - half) / scale), min(1.0, (middle + half) / scale)


def _at(size: int, runs: Sequence[Result]) -> SizeFigures:
    arms = by_arm(runs)
    names = list(_ordered(arms))
    others = [name for name in names if name != AS_IT_IS] if AS_IT_IS in arms else []
    verdicts = [(name, compared(runs, AS_IT_IS, name)) for name in others]
    return SizeFigures(size, [_arm(name, arms[name]) for name in names], verdicts)


def _arm(name: str, runs: Sequence[Result]) -> ArmFigures:
    solved = sum(run.solved for run in runs)
    return ArmFigures(
        name,
        len(runs),
        solved / len(runs),
        *wilson(solved, len(runs)),
        fmean(run.usd for run in runs),
        fmean(run.turns for run in runs),
        fmean(run.looked_again for run in runs),
        fmean(run.failed_edits for run in runs),
        fmean(run.folds for run in runs),
        max(run.largest for run in runs),
    )


def _ordered(names: Iterable[str]) -> Iterable[str]:
    """`as it is` first, then by name."""
    return sorted(set(names), key=lambda name: (name != AS_IT_IS, name))


def _without_window(result: Result) -> Result:
    """An arm that keeps the window of its task's size has one name at all sizes."""
    return replace(result, arm=result.arm.removesuffix(f" {result.size // 1000}k"))
