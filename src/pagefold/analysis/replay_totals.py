"""Sums the figures of many replays: by source and in all, with the costliest sessions and what could not be used.

Bounded, however many sessions there are.
"""

import heapq
from dataclasses import dataclass, field
from typing import Any

from pagefold.analysis.engine import SessionResult
from pagefold.analysis.problems import ProblemCounts
from pagefold.analysis.replay_figures import ReplayFigures
from pagefold.derive.cost import Prices

_COSTLIEST = 10


@dataclass(slots=True)
class ReplayTotals:
    prices: Prices
    total: ReplayFigures = field(default_factory=ReplayFigures)
    sources: dict[str, ReplayFigures] = field(default_factory=dict)
    problems: ProblemCounts = field(default_factory=ProblemCounts)
    _costliest: list[tuple[float, int, str, ReplayFigures]] = field(default_factory=list)

    def add(self, result: SessionResult[Any], figures: ReplayFigures) -> None:
        self.total.add(figures)
        self.sources.setdefault(result.source, ReplayFigures()).add(figures)
        # Of two sessions that cost the same, the earlier one stands higher.
        entry = (figures.cost, -self.total.sessions, result.id, figures)
        (heapq.heappush if len(self._costliest) < _COSTLIEST else heapq.heappushpop)(self._costliest, entry)

    def costliest(self) -> list[tuple[str, ReplayFigures]]:
        return [(name, figures) for _, _, name, figures in sorted(self._costliest, reverse=True)]

    def priced(self, figures: ReplayFigures) -> dict[str, Any]:
        return figures.to_dict() | {"cost_usd": round(self.prices.usd(figures.cost), 4)}

    def to_dict(self) -> dict[str, Any]:
        return {
            "sources": {name: self.priced(figures) for name, figures in sorted(self.sources.items())},
            "total": self.priced(self.total),
            "prices": {"name": self.prices.name, "source": self.prices.source},
            "problems": self.problems.count,
            "skipped": self.problems.skipped,
            "examples": self.problems.examples,
        }
