"""One exact solver for both choices pagefold makes: what of a result is shown, and at which level each page stands.

A multiple-choice knapsack: of every group at most one choice, the most value within a budget of tokens. A group with a
parent may pick only if its parent picked a choice that opens, so that trees are cut along their branches.

How it goes about it. The concave hull of every subtree gives the price of a token, the slope at which the relaxation
spends the last of the budget (`fronts`). At that price every group has a best choice, its base, and every other choice
is a move with a loss: what it gives away even if the tokens it frees or needs are worth their price (`base`). A dynamic
program over the moves of least loss finds the best and proves it (`search`); a tree of which the relaxation opens only
half is first told apart (`branch`). Nothing is rounded: exact means to the precision of a sum of floats.

Ties. Within a group the cheaper choice wins, then the earlier one, and none before one that adds nothing. Between whole
solutions of one value the cheaper of those looked at wins. The same groups always give the same picks.

Refused with ValueError, as mistakes of the caller: a budget or a cost below zero, a value that is negative or not
finite, a parent that does not stand before its child.
"""

from collections.abc import Sequence
from math import fsum

from pagefold.knapsack.branch_and_bound import Branching
from pagefold.knapsack.problem import Choice, Group, Solution, problem

__all__ = ["WORK", "Choice", "Group", "Solution", "solve"]

WORK = 400_000  # states looked at before the best found is returned with its gap: some tenths of a second


def solve(groups: Sequence[Group], budget: int, *, work: int = WORK) -> Solution:
    """The picks of most value whose cost is within the budget. `work` bounds the states that are looked at."""
    asked = problem(groups, budget)
    branching = Branching(asked, work)
    branching.run()
    picks = branching.picks
    chosen = [choices[pick] for choices, pick in zip(asked.choices, picks, strict=True) if pick is not None]
    cost, value = sum([choice[0] for choice in chosen]), fsum([choice[1] for choice in chosen])
    missing = branching.missing
    return Solution(
        tuple(picks), cost, value, missing / (value + missing) if missing else 0.0, not missing, branching.work
    )
