"""Searches a problem, and splits it where the relaxation opens half of a costly group: the group opens, or it does not.

Both branches are problems with a price and a bound of their own. The one with the higher bound is searched first, until
no branch that is left can beat the best solution. Without trees there is one problem and one search.
"""

import heapq
from math import fsum
from typing import NamedTuple

from pagefold.knapsack.lagrangian import ROUNDING, BaseSolution, base, hinge
from pagefold.knapsack.move_search import MoveSearch
from pagefold.knapsack.problem import KnapsackProblem, closed, opened
from pagefold.knapsack.relaxation import price

_STATES_A_GROUP = 10  # before a search gives way to two branches; a branch costs about as much as that many states


class _Branch(NamedTuple):
    """`taken` are the picks that replace "no choice", worth `value` together; `order` breaks ties of the heap."""

    negative_bound: float
    order: int
    problem: KnapsackProblem
    taken: dict[int, int]
    value: float


class Branching:
    """`picks` is the best solution found; `missing` is how much more value there may be."""

    def __init__(self, asked: KnapsackProblem, limit: int) -> None:
        self.asked = asked
        self.picks: list[int | None] = [None] * len(asked.choices)
        self.value = 0.0
        self.missing = 0.0
        self.work = 0
        self.limit = limit
        self.waiting: list[_Branch] = []
        self.unit = asked.unit * (1 - 1e-6)
        self.unfinished = 0.0  # the highest bound of a branch that was given up

    def run(self) -> None:
        """Runs until no branch can beat the best solution, or the work is spent."""
        self._add(self.asked, {}, 0.0, float("inf"))
        while self.waiting and self.work <= self.limit:
            branch = heapq.heappop(self.waiting)
            if self._may_beat(-branch.negative_bound):
                self._follow(branch)
        bound = max([-branch.negative_bound for branch in self.waiting] + [self.unfinished])
        self.missing = bound - self.value if self._may_beat(bound) else 0.0

    def _may_beat(self, bound: float) -> bool:
        return bound - self.value > max(self.value * ROUNDING, self.unit)

    def _add(self, problem: KnapsackProblem, taken: dict[int, int], value: float, bound: float) -> None:
        heapq.heappush(self.waiting, _Branch(-bound, self.work, problem, taken, value))

    def _follow(self, branch: _Branch) -> None:
        """Searches a branch, and splits it where that takes too long."""
        base_solution = base(branch.problem, price(branch.problem))
        bound = min(-branch.negative_bound, branch.value + base_solution.bound)
        size = len(branch.problem.choices)
        flat = branch.problem.parents is None
        missing = self._search(branch, base_solution, self.limit if flat else self.work + _STATES_A_GROUP * size)
        at = hinge(branch.problem, base_solution, missing) if missing else None
        if missing and at is None and not flat:
            missing = self._search(branch, base_solution, self.limit)
        if not missing:
            return
        bound = min(bound, self.value + missing)
        if at is None:
            self.unfinished = max(self.unfinished, bound)
            return
        self.work += 2 * size
        inner = opened(branch.problem, at)
        if inner is not None:
            problem, taken = inner
            value = branch.value + fsum(branch.problem.choices[group][pick].value for group, pick in taken.items())
            self._add(problem, branch.taken | taken, value, bound)
        self._add(closed(branch.problem, at), branch.taken, branch.value, bound)

    def _search(self, branch: _Branch, base_solution: BaseSolution, limit: int) -> float:
        """Keeps a better solution, if there is one; returns how much more than the best the branch may hold."""
        search = MoveSearch(
            branch.problem, base_solution, self.value - branch.value, min(limit, self.limit) - self.work
        )
        search.run()
        self.work += search.work
        value = branch.value + base_solution.value + search.best[1]
        if value > self.value:
            self.value = value
            self.picks = _picks(self.asked, branch, base_solution, search)
        return search.missing


def _picks(
    asked: KnapsackProblem, branch: _Branch, base_solution: BaseSolution, search: MoveSearch
) -> list[int | None]:
    picks = list(base_solution.picks)
    for group, move in search.changed().items():
        picks[group] = move.pick
    for group, pick in branch.taken.items():
        if picks[group] is None:
            picks[group] = pick
    for index, parent in enumerate(asked.parents or ()):
        if parent is not None and picks[index] is not None:
            above = picks[parent]
            if above is None or not asked.choices[parent][above].opens:
                picks[index] = None  # below a group that did not open
    return picks
