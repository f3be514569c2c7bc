"""Finds the best choice of every group at a given price of a token, and what every other choice would lose.

This is the Lagrangian relaxation: the budget is dropped, and each token costs its price instead.
"""

import math
from operator import itemgetter
from typing import NamedTuple

from pagefold.knapsack.problem import GroupChoice, KnapsackProblem

ROUNDING = 1e-12  # of the whole value: differences below are noise of float sums


class Move(NamedTuple):
    """A choice other than the base, with the base choices below it: its change of cost and value, and its loss."""

    loss: float
    group: int
    pick: int | None
    cost: int
    value: float
    opens: bool


class PricedChoice(NamedTuple):
    """A choice, or none, with the base choices below it. Its worth is its value less its cost at the price."""

    worth: float
    cost: int
    value: float
    pick: int | None
    opens: bool


_NONE = PricedChoice(0.0, 0, 0.0, None, False)
_NOTHING = (0.0, 0, 0.0)
_COST = itemgetter(1)


class BaseSolution(NamedTuple):
    """The best choice of every group at a price. No solution exceeds `bound`.

    `nearest` is the least loss of another choice in each group. `below` is worth, cost and value of the base choices
    below each group; None where there are no trees.
    """

    price: float
    picks: list[int | None]
    opens: list[bool]
    nearest: list[float]
    below: list[tuple[float, int, float]] | None
    cost: int
    value: float
    bound: float

    def options(self, problem: KnapsackProblem, index: int) -> list[PricedChoice]:
        most = problem.room[index] if problem.room else math.inf
        return _options(problem.choices[index], most, self.price, self.below[index] if self.below else _NOTHING)


def base(problem: KnapsackProblem, price: float) -> BaseSolution:
    """Returns the base at a price. Of choices of equal worth it takes the dearer one as far as the budget goes."""
    solution, hair = _best(problem, price, {}), 1e-9
    while solution.cost > problem.budget:  # rounding took the dearer end of a tie
        # Values too small for the sum leave no price at all: begin with the rounding error.
        price = price * (1 + hair) or ROUNDING * solution.bound / (problem.budget or 1)
        hair *= 2
        solution = _best(problem, price, {})
    dearer = _dearer(problem, solution, problem.budget - solution.cost)
    return _best(problem, price, dearer) if dearer else solution


def _best(problem: KnapsackProblem, price: float, fixed: dict[int, int | None]) -> BaseSolution:
    count = len(problem.choices)
    picks: list[int | None] = [None] * count
    opens = [False] * count
    nearest = [0.0] * count
    parents, room = problem.parents, problem.room
    below = None if parents is None else [_NOTHING] * count
    noise = ROUNDING * price * problem.budget
    total_worth, total_cost, total_value = _NOTHING
    most: float = math.inf
    for index in range(count - 1, -1, -1):
        choices = problem.choices[index]
        under = below[index] if below else _NOTHING
        worth_below = under[0]
        if room:
            most = room[index]
        best, second, pick = 0.0, -math.inf, None
        for number, choice in enumerate(choices):
            worth = choice[1] - price * choice[0]
            if choice[2]:
                worth += worth_below
            if worth > second and choice[0] <= most:
                if worth > best:
                    best, second, pick = worth, best, number
                else:
                    second = worth
        nearest[index] = best - second
        if best - second <= noise:
            options = _options(choices, most, price, under)
            tied = [option for option in options if option.worth >= best - noise]
            option = min(tied, key=_COST)
            if index in fixed:
                option = next(option for option in options if option.pick == fixed[index])
            best, cost, value, pick, opened = option
        elif pick is None:
            continue
        else:
            cost, value, opened = choices[pick]
            if opened and below:
                cost += under[1]
                value += under[2]
        picks[index], opens[index] = pick, opened
        parent = parents[index] if parents else None
        if parent is None or below is None:
            total_worth, total_cost, total_value = total_worth + best, total_cost + cost, total_value + value
        else:
            over = below[parent]
            below[parent] = over[0] + best, over[1] + cost, over[2] + value
    bound = total_worth + price * problem.budget
    return BaseSolution(price, picks, opens, nearest, below, total_cost, total_value, bound)


def _dearer(problem: KnapsackProblem, base: BaseSolution, spare: int) -> dict[int, int | None]:
    """Spends spare tokens from the roots down, on picks of the same worth as the base's that cost more."""
    noise = ROUNDING * base.price * problem.budget
    dearer: dict[int, int | None] = {}
    if not spare or not base.price or min(base.nearest, default=math.inf) > noise:
        return dearer
    opens = list(base.opens)
    for index, parent in enumerate(problem.parents or [None] * len(opens)):
        if parent is not None and not opens[parent]:
            opens[index] = False
        elif base.nearest[index] <= noise:
            options = base.options(problem, index)
            at = next(option for option in options if option.pick == base.picks[index])
            affordable = [it for it in options if it.worth >= at.worth - noise and it.cost - at.cost <= spare]
            taken = max(affordable, key=_COST)
            if taken.cost > at.cost:
                dearer[index], opens[index] = taken.pick, taken.opens
                spare -= taken.cost - at.cost
    return dearer


def moves(problem: KnapsackProblem, base: BaseSolution, limit: float) -> list[Move]:
    """Returns every move whose loss is within the limit, by rising loss."""
    within: list[Move] = []
    for index, least in enumerate(base.nearest):
        if least > limit:
            continue
        options = base.options(problem, index)
        at = next(option for option in options if option.pick == base.picks[index])
        within += [
            Move(at.worth - worth, index, pick, cost - at.cost, value - at.value, opens)
            for worth, cost, value, pick, opens in options
            if pick != at.pick and at.worth - worth <= limit
        ]
    within.sort(key=itemgetter(0))
    return within


def hinge(problem: KnapsackProblem, base: BaseSolution, limit: float) -> int | None:
    """Returns the group to branch on, where opening or not makes the least difference. None beyond the limit."""
    if problem.parents is None or base.below is None:
        return None
    reached = [True] * len(base.opens)
    least, group = limit, None
    for index, parent in enumerate(problem.parents):
        reached[index] = parent is None or (reached[parent] and base.opens[parent])
        if reached[index] and base.below[index][1] and base.nearest[index] <= least:
            options = base.options(problem, index)
            best = max(option.worth for option in options)
            other = max((it.worth for it in options if it.opens != base.opens[index]), default=-math.inf)
            if best - other < least:
                least, group = best - other, index
    return group


def _options(
    choices: tuple[GroupChoice, ...], most: float, price: float, under: tuple[float, int, float]
) -> list[PricedChoice]:
    options = [_NONE]
    for pick, (cost, value, opens) in enumerate(choices):
        if cost <= most:
            worth_below, cost_below, value_below = under if opens else _NOTHING
            worth = value - price * cost + worth_below
            options.append(PricedChoice(worth, cost + cost_below, value + value_below, pick, opens))
    return options
