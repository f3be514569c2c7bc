"""Policies with windows on the same recorded sessions: what each costs, what it misses, whom it serves worst.

Costs are relative to sending the history as it is, misses priced in. Ranked are those that miss little; the intervals
come from drawing sessions anew, with a fixed seed, so that the same logs give the same numbers.
"""

import random
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from pagefold.adapters import recordings
from pagefold.analysis.replay import SessionReplay, Terms
from pagefold.analysis.replay_figures import ReplayFigures
from pagefold.derive.cost import Prices
from pagefold.derive.learned import SHIPPED, Learned
from pagefold.derive.policies import policy_named
from pagefold.tokens import counter
from pagefold.wire.transcripts import Format, Problem

MISSED = 0.003
"""A policy that misses more than this share of the facts that answers used is shown, and not ranked."""

WORST_FROM = 10
"""Requests of a session before it can be the worst: a short one says little."""

IDENTITY = "identity"
_SEED = 20_261
_DRAWS, _WORK = 1_000, 2_000_000


class PolicyChoice(NamedTuple):
    policy: str
    window: int


@dataclass(frozen=True, slots=True)
class Job:
    """What every session is replayed under, in values that travel between processes. The first choice is identity."""

    choices: tuple[PolicyChoice, ...]
    prices: Prices
    tokens: str
    format: Format | None
    max_line_bytes: int
    overhead: int = 0
    learned: Learned = SHIPPED


@dataclass(frozen=True, slots=True)
class Compared:
    """One session's figures by choice, or a problem without a session."""

    path: Path
    id: str = ""
    source: str = ""
    figures: tuple[ReplayFigures, ...] = ()
    problem: Problem | None = None


def compared(batches: Sequence[recordings.LogBatch], job: Job) -> list[Compared]:
    terms = [
        Terms(
            policy_named(
                choice.policy,
                window=choice.window,
                prices=job.prices,
                tokens=job.tokens,
                learned=job.learned,
                offline=True,
            ),
            job.prices,
            counter(job.tokens),
            choice.window,
            job.overhead,
        )
        for choice in job.choices
    ]
    found: list[Compared] = []
    for batch in batches:
        for item in recordings.sessions(batch, max_bytes=job.max_line_bytes):
            if isinstance(item, Problem):
                found.append(Compared(batch.path, problem=item))
                continue
            plain = _replayed(SessionReplay(item, terms[0]))
            figures = (plain, *(_replayed(SessionReplay(item, one, held=plain)) for one in terms[1:]))
            found.append(Compared(batch.path, item.id, item.source or batch.path.name.partition(".")[0], figures))
    return found


def _replayed(run: SessionReplay) -> ReplayFigures:
    for _ in run:
        pass
    run.figures.tools.clear()
    return run.figures


@dataclass(slots=True)
class ComparedPolicy:
    """One choice on all sessions. `low` and `high` hold the effective ratio in 95 of 100 draws of sessions."""

    choice: PolicyChoice
    total: ReplayFigures = field(default_factory=ReplayFigures)
    cost: float = 0.0
    effective: float = 0.0
    low: float = 0.0
    high: float = 0.0
    missed: float = 0.0
    worst: float = 0.0
    worst_session: str = ""

    @property
    def eligible(self) -> bool:
        return self.missed <= MISSED

    def to_dict(self) -> dict[str, Any]:
        return {
            "policy": self.choice.policy,
            "window": self.choice.window,
            "eligible": self.eligible,
            "cost_ratio": round(self.cost, 4),
            "effective_ratio": round(self.effective, 4),
            "interval": [round(self.low, 4), round(self.high, 4)],
            "missed": round(self.missed, 6),
            "worst": {"ratio": round(self.worst, 4), "session": self.worst_session},
            "total": self.total.to_dict(),
        }


@dataclass(slots=True)
class Comparison:
    """Adds sessions up. What is kept of each is one number a choice."""

    choices: tuple[PolicyChoice, ...]
    standings: list[ComparedPolicy] = field(default_factory=list)
    paths: int = 0
    problems: list[str] = field(default_factory=list)
    _base: list[float] = field(default_factory=list)
    _effective: list[list[float]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.standings = [ComparedPolicy(choice) for choice in self.choices]
        self._effective = [[] for _ in self.choices]

    @property
    def sessions(self) -> int:
        return len(self._base)

    def add(self, one: Compared) -> None:
        if one.problem is not None:
            line = f":{one.problem.line}" if one.problem.line else ""
            self.problems.append(f"{one.path}{line}: {one.problem.what}")
            return
        base = one.figures[0].cost
        self._base.append(base)
        for standing, figures, kept in zip(self.standings, one.figures, self._effective, strict=True):
            standing.total.add(figures)
            kept.append(figures.effective)
            ratio = figures.effective / base if base else 1.0
            if figures.requests >= WORST_FROM and ratio > standing.worst:
                standing.worst, standing.worst_session = ratio, one.id

    def ranked(self) -> list[ComparedPolicy]:
        """Those that miss little, the cheapest first; then the others, the cheapest first."""
        base = sum(self._base)
        draws = drawn(self._base, self._effective)
        for at, standing in enumerate(self.standings):
            total = standing.total
            standing.cost = total.cost / base if base else 1.0
            standing.effective = total.effective / base if base else 1.0
            standing.missed = total.missed / total.demanded if total.demanded else 0.0
            ratios = sorted(draw[at] for draw in draws)
            if ratios:
                standing.low, standing.high = ratios[int(0.025 * len(ratios))], ratios[int(0.975 * (len(ratios) - 1))]
        # Of two that cost the same, the one with the larger window is easier to please.
        return sorted(
            self.standings,
            key=lambda one: (not one.eligible, round(one.effective, 9), -one.choice.window, one.choice.policy),
        )

    def verdict(self) -> str:
        """The winner and why, in words."""
        if not self.sessions:
            return "No session was found in these recordings."
        ranked = [one for one in self.ranked() if one.eligible]
        if not ranked:
            return f"No policy missed {MISSED:.1%} or less of what answers used."
        best = ranked[0]
        interval = f" ({best.low:.3f} to {best.high:.3f} in 95 of 100 draws of the sessions)" if best.high else ""
        worst = f", {best.worst:.2f} in its worst session" if best.worst else ""
        said = (
            f"{named(best.choice)} wins: {best.effective:.3f} of what the history costs as it is, misses priced in"
            f"{interval}, {best.missed:.2%} missed{worst}."
        )
        if others := [one for one in ranked if one.effective > best.effective]:
            second = others[0]
            ahead = f" in {self._ahead(best, second):.0%} of the draws" if best.high else ""
            said += f" It is ahead of {named(second.choice)} ({second.effective:.3f}){ahead}."
        if same := [one for one in ranked[1:] if one.effective == best.effective]:
            said += f" {', '.join(named(one.choice) for one in same)} cost the same."
        cheaper = [one for one in self.ranked() if not one.eligible and one.effective < best.effective]
        if cheaper:
            told = ", ".join(f"{named(one.choice)} ({one.effective:.3f}, {one.missed:.2%} missed)" for one in cheaper)
            said += f" Cheaper, but missing too much: {told}."
        return said

    def _ahead(self, one: ComparedPolicy, other: ComparedPolicy) -> float:
        at, beside = self.standings.index(one), self.standings.index(other)
        draws = drawn(self._base, self._effective)
        return sum(draw[at] < draw[beside] for draw in draws) / len(draws)


def named(choice: PolicyChoice) -> str:
    return f"{choice.policy} at {choice.window:,}"


def drawn(base: Sequence[float], effective: Sequence[Sequence[float]]) -> list[list[float]]:
    """Ratios of every choice on sessions drawn anew, each draw the same sessions for all choices."""
    if len(base) < 2:
        return []
    dice = random.Random(_SEED)  # noqa: S311 - a draw of sessions, not a secret
    everyone = range(len(base))
    times = max(100, min(_DRAWS, _WORK // len(base)))
    found = []
    for _ in range(times):
        drawn = dice.choices(everyone, k=len(base))
        whole = sum([base[at] for at in drawn])
        if whole:
            found.append([sum([kept[at] for at in drawn]) / whole for kept in effective])
    return found
