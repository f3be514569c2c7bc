"""Measures the selection: what it costs, how near to the best it is, whether floors hold, and what it gains in folds.

    python bench/selection.py [--selections 100000] [--traces DIR] [--families 'coding-c*'] [--every 5] [--window 64000]

pages       random pages with four levels each; processor time, the least of three runs. The peer is the greedy selector
            of the literature: floors, then all upgrades by value a token in one pass.
selections  random pages, levels that their kinds do not have among them, under random budgets.
folds       every choice that a fold makes on recorded sessions where not everything fits, against one pass by value a
            token, which the fold made its choices by before.
"""

import argparse
import random
import statistics
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from time import process_time_ns
from unittest import mock

from pagefold.adapters import recordings
from pagefold.analysis.replay import expired
from pagefold.derive import line_selection
from pagefold.derive.policies.economic import Economic
from pagefold.derive.policy import Notes
from pagefold.derive.selection import Candidate, Offer, Reason, Selected, floor_at, select
from pagefold.derive.working_set import digest
from pagefold.pages.kinds import PageKind, ResidencyLevel
from pagefold.wire.message import Role
from pagefold.wire.transcripts import Problem, Session

LEVELS = tuple(ResidencyLevel)
SHARES = {LEVELS[0]: (1, 1), LEVELS[1]: (0.6, 0.95), LEVELS[2]: (0.3, 0.6), LEVELS[3]: (0.02, 0.1)}
KINDS = [PageKind.EVIDENCE] * 6 + [PageKind.CONVERSATION] * 3 + [PageKind.PLAN, PageKind.CONSTRAINT]
RUNS = 3


def candidate(dice: random.Random, number: int, *, sane: bool = True) -> Candidate:
    """A page with costs and values as they come; not sane ones also offer levels their kind does not have."""
    kind = dice.choice(KINDS if sane else list(PageKind))
    whole, value = int(2 ** dice.uniform(5, 11)), dice.random() * dice.choice([1, 5, 20])
    levels = kind.degradation_path() if sane or dice.random() < 0.7 else LEVELS
    offers = tuple(
        Offer(level, max(4, int(whole * SHARES[level][0] * dice.uniform(0.9, 1.1))), value * SHARES[level][1])
        for level in levels
    )
    floor = floor_at(offers, dice.choice(levels)) if not sane and dice.random() < 0.5 else None
    return Candidate(number, offers, len(offers) - 1 if sane else floor, kind)


def greedy(candidates: Sequence[Candidate], budget: int, share: int | None = None) -> float:
    """Floors, then all upgrades by value a token in one pass; the value."""
    at = [one.floor for one in candidates]
    left = budget - sum(one.offers[one.floor].cost for one in candidates if one.floor is not None)
    left -= 0 if share is None else budget - min(budget, share)
    upgrades = []
    for index, one in enumerate(candidates):
        stands = one.floor
        below, worth = (0, 0.0) if one.floor is None else one.offers[one.floor][1:]
        start = len(one.offers) if one.floor is None else one.floor
        for place in range(start - 1, -1, -1):
            _, cost, value = one.offers[place]
            if cost > below and value > worth:
                upgrades.append(((value - worth) / (cost - below), -index, place, cost - below, stands))
                below, worth, stands = cost, value, place
    for _, index, place, cost, stands in sorted(upgrades, key=lambda one: one[:4], reverse=True):
        if cost <= left and at[-index] == stands:
            at[-index] = place
            left -= cost
    return sum(one.offers[place].value for one, place in zip(candidates, at, strict=True) if place is not None)


def pages(count: int) -> None:
    dice = random.Random(count)
    took, peer, gaps, gains = [], [], [], []
    for _ in range(20):
        found = [candidate(dice, number) for number in range(count)]
        least = float("inf")
        for _ in range(RUNS):
            start = process_time_ns()
            selected = select(found, count * 150)
            least = min(least, (process_time_ns() - start) / 1e6)
        start = process_time_ns()
        value = greedy(found, count * 150)
        peer.append((process_time_ns() - start) / 1e6)
        took.append(least)
        gaps.append(selected.gap)
        gains.append(selected.value / value - 1)
    greedy_took = f"the greedy {statistics.median(peer):.2f} ms"
    print(
        f"{count:6} pages: {statistics.median(took):7.2f} ms, at most {max(took):.2f}; {greedy_took}; "
        f"gap at most {max(gaps):.3%}; {statistics.mean(gains):.2%} more value than the greedy"
    )


def violations(selections: int, seed: int) -> bool:
    """Random pages under random budgets: whether no floor or budget broke and every page that is missing was named."""
    broken = unexplained = 0
    for number in range(selections):
        dice = random.Random(seed + number)
        budget = dice.choice([0, 40, 200, 1000, 5000])
        found = [candidate(dice, at, sane=False) for at in range(dice.randint(0, 12))]
        selected = select(found, budget)
        named = {one.page for one in selected.refusals if one.reason is not Reason.OFF_PATH}
        for one, offer in zip(found, selected.offers, strict=True):
            broken += offer is not None and not one.kind.allows(offer.level)
            short = offer is None or (one.floor is not None and one.offers.index(offer) > one.floor)
            unexplained += one.floor is not None and short and one.page not in named
        broken += selected.cost > budget
    print(
        f"{selections:,} random selections: {broken} floors or budgets broken, {unexplained} missing without a reason"
    )
    return not broken and not unexplained


def folds(paths: Sequence[Path], window: int, every: int) -> None:
    for path in paths:
        took, gains, gaps = list[float](), list[float](), list[float]()

        def watched(candidates: Sequence[Candidate], budget: int, share: int | None = None) -> Selected:
            start = process_time_ns()
            selected = select(candidates, budget, share)
            spent = (process_time_ns() - start) / 1e6
            whole = sum(max((offer.cost for offer in one.offers), default=0) for one in candidates)
            if selected.missing == 0 and whole > (budget if share is None else min(budget, share)):
                took.append(spent)  # noqa: B023 - used before the next path
                gaps.append(selected.gap)  # noqa: B023
                if value := greedy(candidates, budget, share):
                    gains.append(selected.value / value - 1)  # noqa: B023
            return selected

        with mock.patch.object(digest, "select", watched), mock.patch.object(line_selection, "select", watched):
            for number, session in enumerate(recorded(path)):
                if number % every == 0:
                    replay(session, window)
        if took:
            took.sort()
            name, median = path.name.partition(".")[0], took[len(took) // 2]
            print(
                f"{name:28} {len(took):5} choices: {median:.2f} ms, at most {took[-1]:.2f}; gap {max(gaps):.3%}; "
                f"{statistics.mean(gains):.3%} more value than the greedy, at least {min(gains):.3%}"
            )


def recorded(path: Path) -> Iterator[Session]:
    for batch in recordings.batches(path, given=None, max_bytes=1 << 30):
        yield from (one for one in recordings.sessions(batch, max_bytes=1 << 30) if not isinstance(one, Problem))


def replay(session: Session, window: int) -> None:
    policy = Economic(window=window)
    state, cold = policy.begin(), frozenset(expired(session, policy.prices.ttl_seconds))
    for place, message in enumerate(session.messages):
        if message.role is Role.ASSISTANT:
            state, _ = policy.request(state, Notes(cold=place in cold))
        state = policy.step(state, message)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "--selections", type=int, default=100_000, help="random selections to look for broken floors in"
    )
    parser.add_argument("--seed", type=int, default=0, help="of the first of them")
    parser.add_argument("--traces", type=Path, default=Path("../shared/traces"))
    parser.add_argument("--families", default="coding-c*")
    parser.add_argument("--every", type=int, default=5, help="of the recorded sessions, each so many-th")
    parser.add_argument("--window", type=int, default=64_000)
    arguments = parser.parse_args()
    for count in (25, 200, 2000):
        pages(count)
    good = violations(arguments.selections, arguments.seed)
    folds(sorted(arguments.traces.glob(f"{arguments.families}.jsonl*")), arguments.window, arguments.every)
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
