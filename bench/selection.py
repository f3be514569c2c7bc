"""Measures residency selection: the cost of a turn and of a fold point, how near to the best it is, and the floors.

    python bench/selection.py [--turns 600] [--selections 1000000]

A turn adds three pages, demands one and ages all; after it, and not in its time, the three oldest are forgotten, so
that the number of pages stays. Times are processor time, of a turn the least of three runs. The floor of a turn is
the insertion of its steps into a sorted list; the peer is the greedy selector of the literature, which looks at every
upgrade of every page on every turn.
"""

import argparse
import gc
import random
import statistics
import sys
import tracemalloc
from bisect import insort
from time import process_time_ns

from pagefold.derive.selection import Candidate, Demand, Offer, Reason, Selection
from pagefold.knapsack import Choice, Group, solve
from pagefold.pages.kinds import PageKind, ResidencyLevel
from pagefold.pages.page import PageId

LEVELS = tuple(ResidencyLevel)
SHARES = {LEVELS[0]: (1, 1), LEVELS[1]: (0.6, 0.95), LEVELS[2]: (0.3, 0.6), LEVELS[3]: (0.02, 0.1)}
KINDS = [PageKind.EVIDENCE] * 6 + [PageKind.CONVERSATION] * 3 + [PageKind.PLAN, PageKind.CONSTRAINT]
GAP = 0.001
RUNS = 3


def candidate(dice: random.Random, number: int, *, sane: bool = True) -> Candidate:
    """A page with costs and values as they come; not sane ones also offer levels their kind does not have."""
    kind = dice.choice(KINDS if sane else list(PageKind))
    whole, value = int(2 ** dice.uniform(5, 11)), dice.random() * dice.choice([1, 5, 20])
    levels = kind.degradation_path() if sane or dice.random() < 0.7 else LEVELS
    if not sane:
        levels = tuple(level for level in levels if dice.random() < 0.9) or levels
    offers = (
        Offer(level, max(4, int(whole * SHARES[level][0] * dice.uniform(0.9, 1.1))), value * SHARES[level][1])
        for level in levels
    )
    return Candidate(PageId(f"page-{number}"), kind, tuple(offers), sane or dice.random() < 0.8)


def paper_greedy(standing: dict[PageId, Candidate], budget: int) -> float:
    """Floors, then all upgrades of all pages by value a token in one pass: what the literature's selector does."""
    at = {page: len(one.offers) - 1 for page, one in standing.items()}
    left = budget - sum(one.offers[-1].cost for one in standing.values())
    upgrades = []
    for page, one in standing.items():
        for place in range(len(one.offers) - 1, 0, -1):
            cost = one.offers[place - 1].cost - one.offers[place].cost
            gain = one.offers[place - 1].value - one.offers[place].value
            if cost > 0:
                upgrades.append((gain / cost, page, place - 1, cost))
    upgrades.sort(reverse=True)
    for _, page, place, cost in upgrades:
        if at[page] == place + 1 and cost <= left:
            at[page] = place
            left -= cost
    return sum(one.offers[at[page]].value for page, one in standing.items())


class Told:
    """The same pages, kept independently: what they are worth now, and the exact optimum by the solver over all."""

    def __init__(self, budget: int, decay: float) -> None:
        self.budget = budget
        self.decay = decay
        self.pages: dict[PageId, Candidate] = {}
        self.weights: dict[PageId, float] = {}
        self.demand: Demand | None = None

    def turn(self, added: list[Candidate], demand: Demand | None, forgotten: list[PageId]) -> None:
        for page in self.weights:
            self.weights[page] *= self.decay
        for page in forgotten:
            del self.pages[page], self.weights[page]
        for one in added:
            self.pages[one.page], self.weights[one.page] = one, 1.0
        self.demand = demand
        if demand:
            self.weights[demand.page] += 1.0

    def best(self) -> float:
        groups, value, left = [], 0.0, self.budget
        for page, one in self.pages.items():
            whole = self.demand is not None and self.demand.page == page
            offers = [offer for offer in one.offers if offer.level is LEVELS[0]] if whole else one.offers
            floor = min(offers, key=lambda offer: (offer.cost, -offer.value))
            left -= floor.cost
            value += self.weights[page] * floor.value
            better = (offer for offer in offers if offer.value > floor.value)
            choices = (Choice(o.cost - floor.cost, self.weights[page] * (o.value - floor.value)) for o in better)
            groups.append(Group(tuple(choices)))
        return value + solve(groups, left, work=10_000_000).value


Turn = tuple[list[Candidate], Demand, list[PageId]]


def planned(pages: int, count: int) -> tuple[list[Candidate], list[Turn]]:
    """Pages to begin with, and for every turn what comes, what is demanded and what is forgotten after it."""
    dice = random.Random(pages)
    first = [candidate(dice, number) for number in range(pages)]
    known = [one.page for one in first]
    plan: list[Turn] = []
    for turn in range(count):
        added = [candidate(dice, pages + 3 * turn + number) for number in range(3)]
        plan.append((added, Demand(dice.choice(known)), known[:3]))
        known = known[3:] + [one.page for one in added]
    return first, plan


def timed(first: list[Candidate], plan: list[Turn], decay: float) -> list[float]:
    """Microseconds of every turn, the least of some runs, so that other programs do not count."""
    least = [float("inf")] * len(plan)
    for _ in range(RUNS):
        selection = Selection(len(first) * 150, decay=decay)
        for one in first:
            selection.turn([one])
        gc.collect()
        for number, (added, demand, forgotten) in enumerate(plan):
            start = process_time_ns()
            selection.turn(added, [demand])
            least[number] = min(least[number], (process_time_ns() - start) / 1000)
            selection.turn(forgotten=forgotten)
    return least


def floor_of(pages: int, count: int) -> float:
    """Microseconds to insert sixteen steps into a sorted list of as many as the pages have."""
    dice = random.Random(1)
    steps = sorted((dice.random(), number, 0, 0) for number in range(3 * pages))
    took = []
    for _ in range(count):
        keys = [(dice.random(), 0, 0, 0) for _ in range(16)]
        start = process_time_ns()
        for key in keys:
            insort(steps, key)
        took.append((process_time_ns() - start) / 1000)
        for key in keys:
            steps.remove(key)
    return statistics.median(took)


def turns(pages: int, count: int, decay: float, target: float | None) -> bool:
    first, plan = planned(pages, count)
    took = sorted(timed(first, plan, decay))
    selection, told = Selection(pages * 150, decay=decay), Told(pages * 150, decay)
    for one in first:
        selection.turn([one])
        told.turn([one], None, [])
    peer, folds, gaps = [], [], []
    for number, (added, demand, forgotten) in enumerate(plan):
        selected = selection.turn(added, [demand])
        told.turn(added, demand, [])
        if number % 20 == 0:
            best = told.best()
            gaps.append(1 - selected.value / best)
            start = process_time_ns()
            paper_greedy(told.pages, selection.budget)
            peer.append((process_time_ns() - start) / 1000)
            start = process_time_ns()
            folded = selection.fold()
            folds.append((process_time_ns() - start) / 1e6)
            gaps.append(1 - folded.value / best)
        selection.turn(forgotten=forgotten)
        told.turn([], None, forgotten)
    median, late = took[count // 2], took[int(count * 0.95)]
    wanted = "" if target is None else f"<= {target:g}"
    print(
        f"{pages:6} {decay:6} {median:9.1f} {wanted:>7} {late:7.1f} {late / median:5.1f}"
        f" {median / floor_of(pages, count):6.1f} {statistics.median(peer) / median:6.1f}"
        f" {max(gaps):8.4%} {statistics.median(folds):7.2f} {max(folds):7.2f}"
    )
    right = max(gaps) <= GAP and statistics.median(folds) <= 5
    return right and (target is None or (median <= target and late <= 3 * median))


def memory(pages: int) -> float:
    """Bytes a page, without its text and without the caller's own numbers."""
    dice = random.Random(1)
    candidates = [candidate(dice, number) for number in range(pages)]
    gc.collect()
    tracemalloc.start()
    selection = Selection(pages * 150)
    selection.turn(candidates)
    size = tracemalloc.get_traced_memory()[0] / pages
    tracemalloc.stop()
    return size


def violations(selections: int, seed: int) -> tuple[int, int, int]:
    """Random pages under random budgets: selections made, floors or budgets broken, pages missing without a reason."""
    made = broken = unexplained = 0
    while made < selections:
        dice = random.Random(seed)
        seed += 1
        selection = Selection(dice.choice([0, 40, 200, 1000, 5000]), decay=dice.choice([0.5, 0.88, 0.99, 1.0]))
        known: dict[PageId, Candidate] = {}
        for turn in range(12):
            added = [candidate(dice, 3 * turn + number, sane=False) for number in range(dice.randint(0, 3))]
            known |= {one.page: one for one in added}
            wanted = [Demand(dice.choice(list(known)), dice.choice(LEVELS))] if known and dice.random() < 0.5 else []
            result = selection.fold() if dice.random() < 0.05 else selection.turn(added, wanted)
            named = {one.page for one in result.refusals if one.reason is Reason.PHYSICAL_INSUFFICIENCY}
            cost = 0
            for page, level in selection.levels().items():
                one = known[page]
                if level is None:
                    unexplained += one.required and page not in named
                else:
                    broken += not one.kind.allows(level)
                    cost += next(offer.cost for offer in one.offers if offer.level is level)
            broken += cost > selection.budget or cost != result.cost
            made += 1
    return made, broken, unexplained


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--turns", type=int, default=600, help="turns a line of the table")
    parser.add_argument(
        "--selections", type=int, default=1_000_000, help="random selections to look for broken floors in"
    )
    parser.add_argument("--seed", type=int, default=0, help="of the first of them")
    arguments = parser.parse_args()
    good = True
    if arguments.turns:
        print(" pages  decay  turn, us  target     p95     x  floor  paper      gap fold ms   worst")
        for pages, target in ((25, None), (200, 50.0), (2000, 200.0)):
            for decay in (0.88, 0.98, 1.0):
                good &= turns(pages, arguments.turns, decay, target)
        size = memory(2000)
        print(f"{size:.0f} bytes a page")
        good &= size <= 1024
    if arguments.selections:
        made, broken, unexplained = violations(arguments.selections, arguments.seed)
        print(f"{made} random selections: {broken} floors or budgets broken, {unexplained} missing without a reason")
        good &= not broken and not unexplained
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
