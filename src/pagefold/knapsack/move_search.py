"""Finds the best combination of moves away from the base, by a dynamic program over the moves of least loss.

A solution that uses a move stays below the bound by at least the move's loss. So each round takes twice as many moves,
by rising loss, and once the best solution is closer to the bound than the first move left out, it is proven.
"""

import math
from bisect import bisect_right
from operator import itemgetter
from typing import Any, NamedTuple

from pagefold.knapsack.lagrangian import ROUNDING, BaseSolution, Move, moves
from pagefold.knapsack.problem import KnapsackProblem

_FIRST_ROUND = 12  # moves; every round has twice as many as the one before
_EXPECTED = 6  # moves that the first collection aims at; it finds more, as good choices crowd around the price
_MORE = 8  # times the loss in the next collection

# One way to decide the groups so far: cost and value against the base, the state before it, and the last move.
State = tuple[int, float, Any, Any]
_BEGIN: State = (0, 0.0, None, None)
_COST = itemgetter(0)


class _GroupMoves(NamedTuple):
    """A group to decide: its moves, whether its base opens, and the index behind everything below it."""

    moves: list[Move]
    opens: bool
    skip: int


class MoveSearch:
    """Searches for a state worth more than `least`: `best` is the best so far, `missing` how much more there may be."""

    def __init__(self, problem: KnapsackProblem, base: BaseSolution, least: float, limit: int) -> None:
        self.problem = problem
        self.base = base
        self.slack = problem.budget - base.cost
        # What is not better by more than this is not better.
        self.step = max(ROUNDING * base.bound, problem.unit * (1 - 1e-6))
        self.most = base.bound - base.value  # no state is worth more
        self.best = _BEGIN
        if least > base.value:
            self.best = (0, least - base.value, None, None)
        self.work = 0
        self.limit = limit
        self.missing = 0.0

    def run(self) -> None:
        """Runs until the best is proven or the work is spent."""
        proven = 0.0
        collected = _EXPECTED * self.problem.typical / (len(self.problem.choices) or 1)
        while self.most - self.best[1] > proven + self.step:
            collected = min(collected, self.most - self.best[1])
            nearest = moves(self.problem, self.base, collected)
            count = _FIRST_ROUND
            while self.most - self.best[1] > proven + self.step:
                if not self._round(nearest[:count]):
                    self.missing = self.most - self.best[1] - proven
                    return
                if count >= len(nearest):
                    proven = collected
                    break
                proven = nearest[count].loss
                count *= 2
            collected *= _MORE

    def changed(self) -> dict[int, Move]:
        """Returns the moves of the best state, by group."""
        by_group: dict[int, Move] = {}
        state = self.best
        while state[3] is not None:
            by_group[state[3].group] = state[3]
            state = state[2]
        return by_group

    def _round(self, chosen: list[Move]) -> bool:
        """Tries all combinations of these moves that may beat the best; returns whether the work was enough."""
        order = self._order(chosen)
        bounds = _slopes_from(order)
        waiting: list[list[State]] = [[] for _ in range(len(order) + 1)]
        waiting[0].append(_BEGIN)
        for place, (options, opens, skip) in enumerate(order):
            states = self._promising(waiting[place], *bounds[place])
            waiting[place] = []
            self.work += len(states) * (len(options) + 1)
            if self.work > self.limit:
                return False
            waiting[place + 1 if opens else skip] += states
            for move in options:
                target = place + 1 if move.opens else skip
                waiting[target] += self._moved(states, move, *bounds[target])
        return True

    def _promising(self, states: list[State], up: float, down: float) -> list[State]:
        """Returns by cost the states that no other dominates and that may still beat the best.

        `up` is the most that the rest can gain for a token more, `down` the least that it loses for a token fewer.
        """
        states.sort(key=_COST)
        slack, least = self.slack, self.best[1] + self.step
        kept: list[State] = []
        top = -math.inf
        for state in states:
            cost, value, _, _ = state
            if value > top:
                left = slack - cost
                if value + left * (up if left >= 0 else down) > least:
                    top = value
                    if kept and kept[-1][0] == cost:
                        kept[-1] = state
                    else:
                        kept.append(state)
        return kept

    def _moved(self, states: list[State], move: Move, up: float, down: float) -> list[State]:
        """Returns these states, which rise in cost and value, after a move, and keeps the best."""
        step, gain = move.cost, move.value
        left = self.slack - step
        fitting = bisect_right(states, left, key=_COST)
        if fitting:
            last = states[fitting - 1]
            cost, value = last[0] + step, last[1] + gain
            if value > self.best[1] or (value == self.best[1] and cost < self.best[0]):
                self.best = (cost, value, last, move)
        least = self.best[1] + self.step - gain
        under = least - left * up
        moved = [
            (state[0] + step, state[1] + gain, state, move)
            for state in states[:fitting]
            if state[1] - state[0] * up > under
        ]
        if down < math.inf:
            over = least - left * down
            moved += [
                (state[0] + step, state[1] + gain, state, move)
                for state in states[fitting:]
                if state[1] - state[0] * down > over
            ]
        return moved

    def _order(self, chosen: list[Move]) -> list[_GroupMoves]:
        """Orders the groups of these moves: those closest to the price first, each before what is below it."""
        by_group: dict[int, list[Move]] = {}
        for move in chosen:
            by_group.setdefault(move.group, []).append(move)
        far_first = sorted(by_group, key=lambda index: min(map(_distance, by_group[index])), reverse=True)
        if self.problem.parents is None:
            far_first.reverse()
            return [_GroupMoves(by_group[index], True, place + 1) for place, index in enumerate(far_first)]
        below: dict[int | None, list[int]] = {}
        for index in far_first:
            above = self._above(index, by_group)
            if above != index:
                below.setdefault(above, []).append(index)
        order: list[_GroupMoves] = []
        waiting = [(index, -1) for index in below.get(None, ())]
        while waiting:
            index, place = waiting.pop()
            if place >= 0:
                order[place] = order[place]._replace(skip=len(order))
                continue
            waiting.append((index, len(order)))
            waiting += [(inner, -1) for inner in below.get(index, ())]
            order.append(_GroupMoves(by_group[index], self.base.opens[index], len(order) + 1))
        return order

    def _above(self, index: int, by_group: dict[int, list[Move]]) -> int | None:
        """Returns the nearest group above with moves, None for none, or `index` where a closed base shuts it out."""
        parents = self.problem.parents
        assert parents is not None
        above = parents[index]
        while above is not None and above not in by_group:
            if not self.base.opens[above]:
                return index
            above = parents[above]
        return above


def _distance(move: Move) -> float:
    return move.loss / abs(move.cost) if move.cost else math.inf


def _slopes_from(order: list[_GroupMoves]) -> list[tuple[float, float]]:
    """Returns for every index and the end: the most a token more may gain from there on, the least one fewer loses."""
    up, down = 0.0, math.inf
    slopes = [(up, down)]
    for options, _, _ in reversed(order):
        for move in options:
            if move.cost > 0:
                up = max(up, move.value / move.cost)
            elif move.cost < 0:
                down = min(down, move.value / move.cost)
        slopes.append((up, down))
    slopes.reverse()
    return slopes
