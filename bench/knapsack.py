"""Checks the solver against trying everything and against a one-pass greedy, and measures how long it takes.

    python bench/knapsack.py [--cases 100000] [--runs 20]

The greedy takes choices by value a token, lighter ones first among equals, one a group, whatever still fits, in a tree
with what stands above them in its cheapest form; its time is the floor that the ratios are against. Times are processor
time, of a problem the least of three runs. Problems whose value follows their cost (strong) are what the solver finds
hardest: there it may stop early, and the gap it then proves is printed.
"""

import argparse
import random
import statistics
import sys
from collections.abc import Callable, Sequence
from time import process_time

from pagefold.knapsack import Group, GroupChoice, Solution, solve

GAP = 0.001
REPEATS = 3


def levels(dice: random.Random) -> tuple[GroupChoice, ...]:
    """A page: the whole text and what is left of its value at shorter forms."""
    whole, value = int(2 ** dice.uniform(4, 10)), dice.random() * dice.choice([1, 5, 20])
    shares = ((0.05, 0.1, False), (0.3, 0.5, True), (0.6, 0.8, True), (1, 1, True))
    return tuple(GroupChoice(max(1, int(whole * cost)), value * worth, opens) for cost, worth, opens in shares)


def uniform(dice: random.Random) -> tuple[GroupChoice, ...]:
    costs, values = sorted(dice.randint(1, 60) for _ in range(4)), sorted(dice.random() for _ in range(4))
    return tuple(GroupChoice(cost, value) for cost, value in zip(costs, values, strict=True))


def counts(dice: random.Random) -> tuple[GroupChoice, ...]:
    """Small whole numbers, as counts of elements are: full of ties."""
    return tuple(GroupChoice(cost, dice.randint(1, 10)) for cost in sorted(dice.randint(1, 60) for _ in range(4)))


def strong(dice: random.Random) -> tuple[GroupChoice, ...]:
    return tuple(GroupChoice(cost, cost + 10) for cost in sorted(dice.randint(1, 100) for _ in range(4)))


FAMILIES = (levels, uniform, counts, strong)


def flat(dice: random.Random, family: Callable[[random.Random], tuple[GroupChoice, ...]], count: int) -> list[Group]:
    return [Group(family(dice)) for _ in range(count)]


def tangled(dice: random.Random, family: Callable[[random.Random], tuple[GroupChoice, ...]], count: int) -> list[Group]:
    """A tree in which every group may stand over others and most cost as much as what is below them."""
    groups = [Group(family(dice))]
    for index in range(1, count):
        groups.append(Group(family(dice), max(0, index - dice.randint(1, 1 + index // 3))))
    return groups


def document(dice: random.Random, count: int) -> list[Group]:
    """A tree as JSON has it: containers are cheap, leaves cost."""
    groups: list[Group] = []
    containers: list[int] = []
    while len(groups) < count:
        parent = dice.choice(containers[-8:]) if containers else None
        if not containers or dice.random() < 0.25:
            containers.append(len(groups))
            keys = GroupChoice(2 + dice.randint(2, 8), 0.2, opens=False)
            groups.append(Group((GroupChoice(2, 0.05, opens=False), keys, GroupChoice(3, 0.1)), parent))
        else:
            whole = int(2 ** dice.uniform(2, 8))
            value = dice.choice([0.2, 1, 1, 1, 4]) * dice.random() * whole ** dice.choice([0, 0.5])
            costs = (2, max(3, whole // 8), max(3, whole // 3), whole + 3)
            shares = (0.05, 0.4, 0.7, 1)
            choices = (GroupChoice(cost, value * share) for cost, share in zip(costs, shares, strict=True))
            groups.append(Group(tuple(choices), parent))
    return groups


def small(dice: random.Random) -> tuple[list[Group], int]:
    """A problem of up to six groups, with every oddity: no choices, no cost, no value, ties, trees, closed choices."""
    largest, whole, alike = dice.choice([5, 20, 100]), dice.random() < 0.5, dice.random() < 0.3
    trees = dice.random() < 0.5
    groups = []
    for index in range(dice.randint(0, 6)):
        choices = []
        for _ in range(dice.randint(0, 4)):
            cost = dice.randint(0, largest)
            value = dice.random() * largest
            if whole:
                value = cost + dice.randint(0, 3) if alike else dice.randint(0, largest)
            choices.append(GroupChoice(cost, value, dice.random() < 0.7))
        parent = dice.randrange(index) if trees and index and dice.random() < 0.8 else None
        groups.append(Group(tuple(choices), parent))
    return groups, dice.randint(0, int(largest * len(groups) * 0.6) + 1)


def best_of_all(groups: Sequence[Group], budget: int) -> float:
    """By trying everything."""

    def most(index: int, opened: tuple[bool, ...], left: int) -> float:
        if index == len(groups):
            return 0.0
        choices, parent = groups[index]
        found = most(index + 1, (*opened, False), left)
        if parent is None or opened[parent]:
            for cost, value, opens in choices:
                if cost <= left:
                    found = max(found, value + most(index + 1, (*opened, opens), left - cost))
        return found

    return most(0, (), budget)


def greedy(groups: Sequence[Group], budget: int) -> float:
    """One pass over all choices by value a token; what stands above a choice comes with it in its cheapest form."""
    every = [(index, choice) for index, group in enumerate(groups) for choice in group.choices]
    every.sort(key=lambda one: (-one[1].value / max(one[1].cost, 1e-9), one[1].cost))
    taken: dict[int, GroupChoice] = {}
    for index, choice in every:
        wanted = {index: choice}
        above = groups[index].parent
        while above is not None and above not in taken:
            opening = [one for one in groups[above].choices if one.opens]
            wanted[above] = min(opening) if opening else GroupChoice(budget + 1, 0.0)
            above = groups[above].parent
        shut = index in taken or (above is not None and not taken[above].opens)
        cost = sum(one.cost for one in wanted.values())
        if cost <= budget and not shut:
            taken |= wanted
            budget -= cost
    return sum(choice.value for choice in taken.values())


def holds(groups: Sequence[Group], budget: int, solution: Solution) -> bool:
    """Whether the answer is one: within the budget, its sums right, nothing picked below what is closed."""
    picked = [None if pick is None else group.choices[pick] for group, pick in zip(groups, solution.picks, strict=True)]
    cost = sum(choice.cost for choice in picked if choice)
    value = sum(choice.value for choice in picked if choice)
    for choice, group in zip(picked, groups, strict=True):
        above = picked[group.parent] if group.parent is not None else None
        if choice and group.parent is not None and not (above and above.opens):
            return False
    return cost == solution.cost <= budget and abs(value - solution.value) <= 1e-9 * max(1.0, value)


def against_all(cases: int) -> bool:
    wrong = trees = 0
    gains = []
    for seed in range(cases):
        groups, budget = small(random.Random(seed))
        trees += any(group.parent is not None for group in groups)
        solution, best = solve(groups, budget), best_of_all(groups, budget)
        right = solution.exact and holds(groups, budget, solution) and abs(solution.value - best) <= 1e-9 * max(1, best)
        quick = greedy(groups, budget)
        wrong += not right or quick > solution.value * (1 + 1e-9)
        if quick:
            gains.append(solution.value / quick - 1)
    print(
        f"{cases} small problems, {trees} of them trees: {wrong} differ from trying everything or lose to the greedy;"
    )
    print(f"mean gain over the greedy {statistics.mean(gains):.2%}, in {sum(gain > 1e-9 for gain in gains)} of them\n")
    return not wrong


def timed(name: str, problems: Sequence[Sequence[Group]], budget: int, target: float | None) -> bool:
    """One line of the table; whether the target, in milliseconds, and the promises about the gap are kept."""
    ours, floor, gains, gaps = [], [], [], []
    good = True
    for groups in problems:
        least_ours = least_floor = float("inf")
        for _ in range(REPEATS):
            start = process_time()
            solution = solve(groups, budget)
            between = process_time()
            quick = greedy(groups, budget)
            least_floor = min(least_floor, process_time() - between)
            least_ours = min(least_ours, between - start)
        floor.append(least_floor)
        ours.append(least_ours)
        gains.append(solution.value / quick - 1 if quick else 0.0)
        gaps.append(solution.gap)
        good &= holds(groups, budget, solution) and solution.gap <= GAP and gains[-1] >= -1e-9
    median, worst = statistics.median(ours) * 1e3, max(ours) * 1e3
    ratio = statistics.median(a / b for a, b in zip(ours, floor, strict=True))
    exact = sum(gap == 0 for gap in gaps)
    wanted = "" if target is None else f"<= {target:g}"
    print(
        f"{name:34} {budget:7} {median:8.1f} {wanted:>7} {worst:8.1f} {ratio:6.1f} {exact:4}/{len(gaps)}"
        f" {max(gaps):8.4%} {statistics.mean(gains):7.2%}"
    )
    return good and (target is None or median <= target)


def measure(runs: int) -> bool:
    print(
        f"{'':34} {'budget':>7} {'ms':>8} {'target':>7} {'worst':>8} {'ratio':>6} {'exact':>7} {'gap':>8} {'gain':>7}"
    )
    good = True
    for count, target, some in ((1000, 5.0, runs), (10_000, 100.0, max(3, runs // 5))):
        for family in FAMILIES:
            problems = [flat(random.Random(seed), family, count) for seed in range(some)]
            # The targets are for values that are not made to be hard.
            wanted = None if family is strong else target
            good &= timed(f"{count} groups, {family.__name__}", problems, 8000, wanted)
    for budget in (2000, 8000):
        trees = [document(random.Random(seed), 2000) for seed in range(runs)]
        good &= timed("tree of 2000, document", trees, budget, 30.0)
        for family in FAMILIES:
            trees = [tangled(random.Random(seed), family, 2000) for seed in range(max(3, runs // 5))]
            good &= timed(f"tree of 2000, tangled, {family.__name__}", trees, budget, None)
    return good


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cases", type=int, default=100_000, help="small problems to try everything on")
    parser.add_argument("--runs", type=int, default=20, help="problems a line of the table")
    arguments = parser.parse_args()
    right = against_all(arguments.cases) if arguments.cases else True
    fast = measure(arguments.runs) if arguments.runs else True
    return 0 if right and fast else 1


if __name__ == "__main__":
    sys.exit(main())
