"""What is asked and what is answered. Tuples, because there are thousands of them and a tuple is made in no time."""

import math
from collections.abc import Sequence
from itertools import chain
from operator import itemgetter
from sys import float_info
from typing import NamedTuple


class Choice(NamedTuple):
    """What a group may be shown as. `opens` says whether the groups below it may then pick too."""

    cost: int
    value: float
    opens: bool = True


class Group(NamedTuple):
    """At most one of `choices` is picked; `parent` is the index of a group that stands before this one."""

    choices: tuple[Choice, ...]
    parent: int | None = None


class Solution(NamedTuple):
    """`gap` is how far below the proven bound the value may lie, as a share of the bound: 0 where it is exact.

    `picks` has one index of a choice, or None, for every group; `work` is how many states were looked at.
    """

    picks: tuple[int | None, ...]
    cost: int
    value: float
    gap: float
    exact: bool
    work: int = 0


class KnapsackProblem(NamedTuple):
    """The groups, checked. `room` is what each may cost at most, given what its ancestors cost at least."""

    choices: list[tuple[Choice, ...]]
    parents: list[int | None] | None  # None where no group has one
    room: list[int] | None  # None where every choice fits
    budget: int
    typical: float  # value of a choice
    unit: float  # two different values of whole solutions are at least this far apart: 1 for whole numbers, else 0


_COST, _VALUE = itemgetter(0), itemgetter(1)
_UNAFFORDABLE = Choice(1 << 62, 0.0, False)


def problem(groups: Sequence[Group], budget: int) -> KnapsackProblem:
    """Raises ValueError where it is none. The budget is rounded down to what the costs can add up to."""
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
    if min(filter(None, values), default=1.0) < float_info.min:  # a share of so little is nothing, and so is this
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


def _worth_something(choice: Choice) -> Choice:
    return choice if choice.value >= float_info.min else choice._replace(value=0.0)


def opened(of: KnapsackProblem, group: int) -> tuple[KnapsackProblem, dict[int, int]] | None:
    """The problem that is left if this group opens, so that all above it do: their cheapest opening choices are taken.

    They are returned as the picks that now stand for none; what such a group offers is then counted against that pick.
    None where the budget does not reach.
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
            Choice(cost - least, value + negative, opens) if opens and value + negative >= 0 else _UNAFFORDABLE
            for cost, value, opens in choices[above]
        )
        above = parents[above]
    if budget < 0:
        return None
    parents = [None if parent in taken else parent for parent in parents]
    return _with_room(of._replace(choices=choices, parents=parents, budget=budget)), taken


def closed(of: KnapsackProblem, group: int) -> KnapsackProblem:
    """The problem that is left if this group does not open."""
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
