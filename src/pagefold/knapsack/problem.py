"""Defines the problem and the solution of a knapsack, and derives the two problems of a branch.

Named tuples, because there are thousands of them and they are fast to make.
"""

import math
from collections.abc import Sequence
from itertools import chain
from operator import itemgetter
from sys import float_info
from typing import NamedTuple


class GroupChoice(NamedTuple):
    """One thing a group may pick. `opens` says whether the groups below it may then pick too."""

    cost: int
    value: float
    opens: bool = True


class Group(NamedTuple):
    """At most one of `choices` is picked; `parent` is the index of a group that stands before this one."""

    choices: tuple[GroupChoice, ...]
    parent: int | None = None


class Solution(NamedTuple):
    """`picks` has the index of a choice, or None, for every group.

    `gap` is how far below the proven bound the value may lie, as a share of the bound: 0 where it is exact. `work` is
    how many states were looked at.
    """

    picks: tuple[int | None, ...]
    cost: int
    value: float
    gap: float
    exact: bool
    work: int = 0


class KnapsackProblem(NamedTuple):
    """Groups that were checked. `room` is what each may cost at most, given what its ancestors cost at least."""

    choices: list[tuple[GroupChoice, ...]]
    parents: list[int | None] | None  # None where no group has one
    room: list[int] | None  # None where every choice fits
    budget: int
    typical: float  # value of a choice
    unit: float  # two different values of whole solutions are at least this far apart: 1 for whole numbers, else 0


_COST, _VALUE = itemgetter(0), itemgetter(1)
_UNAFFORDABLE = GroupChoice(1 << 62, 0.0, False)


def checked_problem(groups: Sequence[Group], budget: int) -> KnapsackProblem:
    """Raises ValueError for wrong input. Rounds the budget down to what the costs can add up to."""
    if budget < 0:
        raise ValueError(f"budget = {budget}: expected 0 or more tokens")
    choices = [group[0] for group in groups]
    every = list(chain.from_iterable(choices))
    costs = list(map(_COST, every)) or [0]
    values = list(map(_VALUE, every)) or [0.0]
    if min(costs) < 0:
        raise ValueError(f"cost = {min(costs)}: expected 0 or more tokens")
    total = sum(values)
    if not (min(values) >= 0 and math.isfinite(total)):
        raise ValueError("every value must be a finite number of 0 or more")
    if min(filter(None, values), default=1.0) < float_info.min:  # too small to divide
        choices = [tuple(map(_worth_something, some)) for some in choices]
    parents = [group[1] for group in groups]
    flat = parents.count(None) == len(parents)
    for index, parent in enumerate(() if flat else parents):
        if parent is not None and not 0 <= parent < index:
            raise ValueError(f"group {index} has the parent {parent}: expected an index before its own")
    budget -= budget % (math.gcd(*costs) or 1)
    unit = 0.0 if any(value % 1 for value in values) else 1.0
    asked = KnapsackProblem(choices, None if flat else parents, None, budget, total / len(values), unit)
    return asked if flat and max(costs) <= budget else _with_room(asked)


def _worth_something(choice: GroupChoice) -> GroupChoice:
    return choice if choice.value >= float_info.min else choice._replace(value=0.0)


def opened(of: KnapsackProblem, group: int) -> tuple[KnapsackProblem, dict[int, int]] | None:
    """Returns the problem that is left if a group opens, and with it all groups above it.

    Their cheapest opening choices are taken and returned: they replace "no choice", and what else these groups offer is
    counted against them. None where the budget is too small.
    """
    assert of.parents is not None
    choices, parents, budget = list(of.choices), list(of.parents), of.budget
    taken: dict[int, int] = {}
    above: int | None = group
    while above is not None:
        opening = [(cost, -value, pick) for pick, (cost, value, opens) in enumerate(of.choices[above]) if opens]
        if not opening:
            return None
        least, negative, taken[above] = min(opening)
        budget -= least
        choices[above] = tuple(
            GroupChoice(cost - least, value + negative, opens) if opens and value + negative >= 0 else _UNAFFORDABLE
            for cost, value, opens in choices[above]
        )
        above = parents[above]
    if budget < 0:
        return None
    parents = [None if parent in taken else parent for parent in parents]
    return _with_room(of._replace(choices=choices, parents=parents, budget=budget)), taken


def closed(of: KnapsackProblem, group: int) -> KnapsackProblem:
    """Returns the problem that is left if a group does not open."""
    assert of.parents is not None
    choices = list(of.choices)
    choices[group] = tuple(_UNAFFORDABLE if choice.opens else choice for choice in choices[group])
    return _with_room(of._replace(choices=choices))


def _with_room(of: KnapsackProblem) -> KnapsackProblem:
    choices, parents = of.choices, of.parents
    room = [of.budget] * len(choices)
    if parents is None or parents.count(None) == len(parents):
        return of._replace(parents=None, room=room)
    below: dict[int, int] = {}
    for index, parent in enumerate(parents):
        if parent is not None:
            if parent not in below:
                opening = [choice[0] for choice in choices[parent] if choice[2]]
                below[parent] = room[parent] - min(opening) if opening else -1
            room[index] = below[parent]
    return of._replace(room=room)
