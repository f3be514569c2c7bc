"""Compares policies with windows on the same recorded sessions: what each costs and misses, and its worst session.

Costs are relative to sending the history as it is, misses priced in. Only policies that miss little are ranked. The
intervals come from drawing sessions anew, with a fixed seed, so that the same logs give the same numbers.
"""

import random
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from pagefold.analysis.engine import SessionResult
from pagefold.analysis.problems import FileProblem, ProblemCounts
from pagefold.analysis.replay import replay
from pagefold.analysis.replay_figures import ReplayFigures
from pagefold.analysis.replay_job import ReplayJob
from pagefold.number_format import change, rate
from pagefold.wire.transcripts import Session

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

    def __str__(self) -> str:
        return f"{self.policy} at {self.window:,}"


def compare_session(
    session: Session, job: ReplayJob, *, choices: tuple[PolicyChoice, ...]
) -> tuple[ReplayFigures, ...]:
    """Returns the session's figures under each choice, the first of which is identity."""
    job = job.of(session).with_head_of(session)
    first, *others = (job.terms(choice.policy, window=choice.window) for choice in choices)
    plain = replay(session, first)
    figures = (plain, *(replay(session, terms, held=plain) for terms in others))
    for one in figures:
        one.tools.clear()
    return figures


@dataclass(slots=True)
class ComparedPolicy:
    """One choice on all sessions, relative to `base`, what the history costs as it is.

    `low` and `high` hold the effective ratio in 95 of 100 draws of sessions.
    """

    choice: PolicyChoice
    total: ReplayFigures = field(default_factory=ReplayFigures)
    base: float = 0.0
    low: float = 0.0
    high: float = 0.0
    worst: float = 0.0
    worst_session: str = ""

    @property
    def cost(self) -> float:
        return self.total.cost / self.base if self.base else 1.0

    @property
    def effective(self) -> float:
        """The cost with the misses priced in."""
        return self.total.effective / self.base if self.base else 1.0

    @property
    def missed(self) -> float:
        return self.total.missed_share

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
    policies: list[ComparedPolicy] = field(default_factory=list)
    problems: ProblemCounts = field(default_factory=ProblemCounts)
    _base: list[float] = field(default_factory=list)
    _effective: list[list[float]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.policies = [ComparedPolicy(choice) for choice in self.choices]
        self._effective = [[] for _ in self.choices]

    @property
    def sessions(self) -> int:
        return len(self._base)

    def add(self, result: SessionResult[tuple[ReplayFigures, ...]] | FileProblem) -> None:
        if isinstance(result, FileProblem):
            self.problems.add(result)
            return
        base = result.value[0].cost
        self._base.append(base)
        for policy, figures, kept in zip(self.policies, result.value, self._effective, strict=True):
            policy.total.add(figures)
            policy.base += base
            kept.append(figures.effective)
            ratio = figures.effective / base if base else 1.0
            if figures.requests >= WORST_FROM and ratio > policy.worst:
                policy.worst, policy.worst_session = ratio, result.id

    def ranked(self) -> list[ComparedPolicy]:
        """Those that miss little, the cheapest first; then the others, the cheapest first."""
        draws = draw_ratios(self._base, self._effective)
        for index, policy in enumerate(self.policies):
            ratios = sorted(draw[index] for draw in draws)
            if ratios:
                policy.low, policy.high = ratios[int(0.025 * len(ratios))], ratios[int(0.975 * (len(ratios) - 1))]
        # Of two that cost the same, the one with the larger window is easier to please.
        return sorted(
            self.policies,
            key=lambda one: (not one.eligible, round(one.effective, 9), -one.choice.window, one.choice.policy),
        )

    def verdict(self) -> str:
        """The winner and why, in words."""
        if not self.sessions:
            return "No session was found in these recordings."
        everyone = self.ranked()
        ranked = [one for one in everyone if one.eligible]
        if not ranked:
            return f"No policy missed {rate(MISSED)} or less of what answers used."
        best = ranked[0]
        if len(everyone) > 1 and {round(one.effective, 9) for one in everyone} == {1.0}:
            return "None of these differs: on these recordings each costs what the history as it is costs."
        if len(everyone) > 1 and round(best.effective, 9) == 1.0:
            sentences = [f"None that misses {rate(MISSED)} or less is cheaper than the history as it is."]
        else:
            sentences = self._won(best, ranked)
        if cheaper := [one for one in everyone if not one.eligible and one.effective < best.effective]:
            names = ", ".join(f"{one.choice} ({change(one.effective)}, {rate(one.missed)} missed)" for one in cheaper)
            sentences.append(f"Cheaper, but missing too much: {names}.")
        return " ".join(sentences)

    def _won(self, best: ComparedPolicy, ranked: Sequence[ComparedPolicy]) -> list[str]:
        """By how much the winner wins, whom it is ahead of, and who costs the same."""
        interval = (
            f" ({change(best.low)} to {change(best.high)} in 95 of 100 draws of the sessions)" if best.high else ""
        )
        worst = f", {change(best.worst)} in its worst session" if best.worst else ""
        won = f"{best.choice} wins: {change(best.effective)} against the history as it is, misses priced in"
        sentences = [f"{won}{interval}; {rate(best.missed)} missed{worst}."]
        if others := [one for one in ranked if one.effective > best.effective]:
            second = others[0]
            ahead = f" in {100 * self._ahead(best, second):.0f} % of the draws" if best.high else ""
            sentences.append(f"It is ahead of {second.choice} ({change(second.effective)}){ahead}.")
        if same := [one for one in ranked[1:] if one.effective == best.effective]:
            sentences.append(f"{', '.join(str(one.choice) for one in same)} cost the same.")
        return sentences

    def _ahead(self, one: ComparedPolicy, other: ComparedPolicy) -> float:
        """In which share of the draws one policy is cheaper than the other."""
        first, second = self.policies.index(one), self.policies.index(other)
        draws = draw_ratios(self._base, self._effective)
        return sum(draw[first] < draw[second] for draw in draws) / len(draws)


def draw_ratios(base: Sequence[float], effective: Sequence[Sequence[float]]) -> list[list[float]]:
    """Ratios of every choice on sessions drawn anew (a bootstrap), each draw the same sessions for all choices."""
    if len(base) < 2:
        return []
    dice = random.Random(_SEED)  # noqa: S311 - a draw of sessions, not a secret
    everyone = range(len(base))
    times = max(100, min(_DRAWS, _WORK // len(base)))
    ratios = []
    for _ in range(times):
        drawn = dice.choices(everyone, k=len(base))
        whole = sum([base[index] for index in drawn])
        if whole:
            ratios.append([sum([kept[index] for index in drawn]) / whole for kept in effective])
    return ratios
