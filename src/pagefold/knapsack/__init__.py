"""Solves the multiple-choice knapsack exactly: of every group at most one choice, the most value within a budget.

It decides which part of a result is shown and at which level each page stands. A group with a parent may pick only if
its parent picked a choice that opens, so that trees are cut along their branches.

Method. The LP relaxation gives the price of a token: the slope of the concave hulls at which the budget runs out
(`relaxation`). At that price every group has a best choice, its base; every other choice is a move with a loss, which
is what it gives away even if tokens are worth their price (`lagrangian`). A dynamic program over the moves of least
loss finds the best solution and proves it (`move_search`). Where the relaxation opens half of a group, the problem is
first split into "it opens" and "it does not" (`branch_and_bound`). Exact means to the precision of a sum of floats.

Ties. Within a group the cheaper choice wins, then the earlier one; nothing is picked where a choice adds no value.
Between whole solutions of equal value the cheaper of those looked at wins. The same groups always give the same picks.

Raises ValueError for a budget or a cost below zero, a value that is negative or not finite, and a parent that does not
stand before its child.
"""

from collections.abc import Sequence
from math import fsum

from pagefold.knapsack.branch_and_bound import Branching
from pagefold.knapsack.problem import Group, GroupChoice, Solution, checked_problem

__all__ = ["WORK", "Group", "GroupChoice", "Solution", "solve"]

WORK = 400_000  # states looked at before the best found is returned with its gap: some tenths of a second


def solve(groups: Sequence[Group], budget: int, *, work: int = WORK) -> Solution:
    """Returns the picks of most value whose cost is within the budget. `work` bounds the states that are looked at."""
    asked = checked_problem(groups, budget)
    branching = Branching(asked, work)
    branching.run()
    picks = branching.picks
    chosen = [choices[pick] for choices, pick in zip(asked.choices, picks, strict=True) if pick is not None]
    cost, value = sum([choice[0] for choice in chosen]), fsum([choice[1] for choice in chosen])
    missing = branching.missing
    return Solution(
        tuple(picks), cost, value, missing / (value + missing) if missing else 0.0, not missing, branching.work
    )
