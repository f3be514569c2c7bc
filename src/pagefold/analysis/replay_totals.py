"""Sums over a run: by source and in all, the costliest sessions, what was wrong. Bounded, however long the run is."""

import heapq
from dataclasses import dataclass, field
from typing import Any

from pagefold.analysis.replay_figures import ReplayFigures
from pagefold.analysis.runs import Outcome
from pagefold.derive.cost import Prices

_SHOWN = 10


@dataclass(slots=True)
class ReplayTotals:
    prices: Prices
    total: ReplayFigures = field(default_factory=ReplayFigures)
    sources: dict[str, ReplayFigures] = field(default_factory=dict)
    problems: int = 0
    skipped: int = 0
    examples: list[str] = field(default_factory=list)
    _costliest: list[tuple[float, int, str, ReplayFigures]] = field(default_factory=list)

    def add(self, outcome: Outcome) -> None:
        if outcome.problem is not None:
            self._add_problem(outcome)
            return
        self.total.add(outcome.figures)
        self.sources.setdefault(outcome.source, ReplayFigures()).add(outcome.figures)
        # Of two sessions that cost the same, the earlier one stands higher.
        entry = (outcome.figures.cost, -self.total.sessions, outcome.id, outcome.figures)
        (heapq.heappush if len(self._costliest) < _SHOWN else heapq.heappushpop)(self._costliest, entry)

    def costliest(self) -> list[tuple[str, ReplayFigures]]:
        return [(name, figures) for _, _, name, figures in sorted(self._costliest, reverse=True)]

    def priced(self, figures: ReplayFigures) -> dict[str, Any]:
        return figures.to_dict() | {"cost_usd": round(self.prices.usd(figures.cost), 4)}

    def to_dict(self) -> dict[str, Any]:
        return {
            "sources": {name: self.priced(figures) for name, figures in sorted(self.sources.items())},
            "total": self.priced(self.total),
            "prices": {"name": self.prices.name, "source": self.prices.source},
            "problems": self.problems,
            "skipped": self.skipped,
            "examples": self.examples,
        }

    def _add_problem(self, outcome: Outcome) -> None:
        problem = outcome.problem
        assert problem is not None
        self.problems += 1
        self.skipped += problem.skipped
        if len(self.examples) < _SHOWN:
            line = f":{problem.line}" if problem.line else ""
            kept = "" if problem.skipped else " (kept)"
            self.examples.append(f"{outcome.path}{line}: {problem.what}{kept}")
