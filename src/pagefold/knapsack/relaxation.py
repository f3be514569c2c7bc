"""Computes the price of a token: the slope at which the LP relaxation spends the last of the budget.

A front is the concave hull of the value of a subtree over its cost: points (cost, value) from the cheapest on, or the
value at no cost and the steps from there, each (slope, cost). The relaxation takes the steepest steps first.
"""

from itertools import pairwise

from pagefold.knapsack.problem import GroupChoice, KnapsackProblem

_SAMPLE = 100  # groups that give a first guess of the price where there are many
_SPREAD = 1.25  # times the guess, and as far below it: groups whose choice is the same at both ends need no front

Point = tuple[int, float]
Step = tuple[float, int]


def price(problem: KnapsackProblem) -> float:
    """Returns the price of a token, 0 where the budget is enough for everything."""
    if problem.parents is not None:
        return _spend(_tree(problem, problem.parents), problem.budget)
    choices = problem.choices
    if problem.room is not None:
        choices = [tuple(choice for choice in group if choice[0] <= problem.budget) for group in choices]
    every = len(choices) // _SAMPLE
    if every > 1:
        sample = choices[every // 2 :: every]
        guess = _spend(_flat(sample), problem.budget * len(sample) // len(choices))
        open_between, fixed = _undecided(choices, guess / _SPREAD, guess * _SPREAD)
        found = _spend(_flat(open_between), problem.budget - fixed)
        # A guess that is far too low leaves groups that cost more than the budget whatever the others do.
        if fixed <= problem.budget and guess / _SPREAD < found < guess * _SPREAD:
            return found
    return _spend(_flat(choices), problem.budget)


def _spend(steps: list[Step], budget: int) -> float:
    """Returns the slope of the first step that the budget does not reach."""
    steps.sort(reverse=True)
    for slope, cost in steps:
        budget -= cost
        if budget < 0:
            return slope
    return 0.0


def _undecided(
    choices: list[tuple[GroupChoice, ...]], low: float, high: float
) -> tuple[list[tuple[GroupChoice, ...]], int]:
    """Returns the groups whose best choice differs between two prices, and what the others cost together."""
    undecided: list[tuple[GroupChoice, ...]] = []
    fixed = 0
    for group in choices:
        at_low = at_high = 0.0
        low_cost = high_cost = 0
        for choice in group:
            cost, value = choice[0], choice[1]
            worth = value - low * cost
            if worth > at_low:
                at_low, low_cost = worth, cost
            worth = value - high * cost
            if worth > at_high:
                at_high, high_cost = worth, cost
        if low_cost == high_cost:
            fixed += low_cost
        else:
            undecided.append(group)
    return undecided, fixed


def _flat(choices: list[tuple[GroupChoice, ...]]) -> list[Step]:
    steps: list[Step] = []
    for group in choices:
        steps += _steps(front([(choice[0], choice[1]) for choice in group], (0, 0.0)))
    return steps


def _tree(problem: KnapsackProblem, parents: list[int | None]) -> list[Step]:
    assert problem.room is not None
    steps_below: dict[int, list[Step]] = {}
    value_below: dict[int, float] = {}
    top: list[Step] = []
    for index in range(len(parents) - 1, -1, -1):
        choices, parent, room = problem.choices[index], parents[index], problem.room[index]
        if index in steps_below:
            value, steps = _inner(choices, room, value_below.pop(index), steps_below.pop(index))
        else:
            points = front([(choice[0], choice[1]) for choice in choices if choice[0] <= room], (0, 0.0))
            value, steps = points[0][1], _steps(points)
        if parent is None:
            top += steps
        else:
            steps_below.setdefault(parent, []).extend(steps)
            value_below[parent] = value_below.get(parent, 0.0) + value
    return top


def _inner(
    choices: tuple[GroupChoice, ...], room: int, value_below: float, below: list[Step]
) -> tuple[float, list[Step]]:
    """Returns the front of a group with what it opens; `below` are the steps of its children."""
    # By index, as taking a named tuple apart is slow.
    opening = sorted([(it[0], it[1] + value_below) for it in choices if it[2] and it[0] <= room])
    closed = [(it[0], it[1]) for it in choices if not it[2] and it[0] <= room]
    if not opening:
        points = front(closed, (0, 0.0))
        return points[0][1], _steps(points)
    # Opening choices share what is below them, so their front and the one below add up step by step.
    own = front(opening[1:], opening[0])
    below = sorted(below + _steps(own), reverse=True)
    dearest = max(closed)[0] if closed else 0
    cost, value = own[0]
    reached = [(cost, value)]
    # Closed choices and the origin bend only the beginning: once two points of the sum follow each other, all do.
    while True:
        done = len(reached) - 1
        for slope, step in below[done : 2 * done + 4]:
            cost, value = cost + step, value + slope * step
            reached.append((cost, value))
        points = front(closed + reached, (0, 0.0))
        if len(reached) > len(below) or (cost >= dearest and points[-2:] == reached[-2:]):
            return points[0][1], _steps(points) + below[len(reached) - 1 :]


def front(points: list[Point], origin: Point) -> list[Point]:
    """Returns the front of these points from `origin` on, which none of them costs less than."""
    points.sort()
    hull = [origin]
    for cost, value in points:
        at_cost, at_value = hull[-1]
        if value <= at_value:
            continue
        while len(hull) > 1:
            from_cost, from_value = hull[-2]
            if (value - at_value) * (at_cost - from_cost) < (at_value - from_value) * (cost - at_cost):
                break
            hull.pop()
            at_cost, at_value = from_cost, from_value
        if cost == at_cost:
            hull.pop()
        hull.append((cost, value))
    return hull


def _steps(points: list[Point]) -> list[Step]:
    return [
        ((value - at_value) / (cost - at_cost), cost - at_cost)
        for (at_cost, at_value), (cost, value) in pairwise(points)
    ]
