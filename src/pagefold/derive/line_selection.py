"""Which lines of a stretch of history are kept, so that what they tell is worth more than what they cost.

Every fact is looked for where it was last told: there one line that holds it is its home. A line is worth the facts it
is home to. Without need every line that pays for itself stays; under a budget the solver picks, passage by passage, how
far down its lines it goes.
"""

from bisect import bisect_right
from collections.abc import Iterable, Mapping, Sequence
from itertools import accumulate
from math import fsum, inf
from operator import itemgetter
from typing import NamedTuple, TypeAlias

from pagefold.derive.quotable import Line, Passage, cost_of
from pagefold.derive.selection import Candidate, Offer, select
from pagefold.pages.kinds import ResidencyLevel

LONGEST_LABEL = 80  # characters of a label that a title shows
_TITLE = 6.0  # what a title costs besides its label
_NEXT_RUN = 1.0
_STEPS = (64.0, 16.0, 6.0, 2.5, 1.0)  # times its price that a line is worth: where a passage may be cut
_DEARER = 2.0
_WHOLE = 0.75


class KeptLines(NamedTuple):
    """What of one passage is kept: the indexes of its lines, in order. `whole` where all of it stands."""

    passage: Passage
    indexes: Sequence[int] = ()

    @property
    def whole(self) -> bool:
        return len(self.indexes) == len(self.passage.lines)

    @property
    def lines(self) -> list[Line]:
        lines = self.passage.lines
        return [lines[index] for index in self.indexes]


Settled: TypeAlias = Mapping[str, tuple[int, int]]
"""Where the facts of a message are at home: in which of its passages, and in which line there."""

_Homes: TypeAlias = dict[int, float]
"""The lines of a passage that are home to facts, and what those are worth together."""

_Home: TypeAlias = tuple[float, int, float, float]
"""A line that pays for itself: its density, negative so that the densest sorts first, which line it is, what it costs
and what it is worth. Bare, as lines are."""


def settle(
    stretch: Iterable[tuple[int, Sequence[Passage]]],
    worth: Mapping[int, Mapping[str, float]],
    before: Mapping[int, Settled],
) -> dict[int, Settled]:
    """Gives every fact of each message one line. Where it was at home `before` it stays: only what is new there moves
    in."""
    return {
        place: _settled(passages, worth[place], before.get(place, {})) for place, passages in stretch if place in worth
    }


def keep(
    stretch: Sequence[tuple[int, Sequence[Passage]]],
    worth: Mapping[int, Mapping[str, float]],
    settled: Mapping[int, Settled],
    *,
    rate: float,
    budget: int | None = None,
) -> dict[int, list[KeptLines]]:
    """What is kept of each message, by its place.

    `stretch` has the passages of each message; `worth` the facts that are at home there, with their values, and
    `settled` says in which lines.

    `rate` is the least worth of a token. `budget`, in tokens, is about what all that is kept may cost.
    """
    kept: dict[int, list[KeptLines]] = {}
    found: list[tuple[list[KeptLines], int, list[_Home]]] = []
    for place, passages in stretch:
        stands = kept[place] = [KeptLines(passage) for passage in passages]
        lived_in: list[_Homes] = [{} for _ in passages]
        facts = worth.get(place, {})
        for fact, (index, line) in settled.get(place, {}).items():
            homes = lived_in[index]
            homes[line] = homes.get(line, 0.0) + facts[fact]
        for index, (passage, homes) in enumerate(zip(passages, lived_in, strict=True)):
            if homes:
                found.append((stands, index, _worthy(passage, homes, rate)))
    chosen = [lines for _, _, lines in found]
    titles = [_title_cost(stands[index].passage) for stands, index, _ in found]
    if budget is not None and fsum(map(_cost, titles, chosen)) > budget:
        chosen = _within(titles, chosen, rate, budget)
    for (stands, index, _), lines in zip(found, chosen, strict=True):
        if lines:
            stands[index] = _kept(stands[index].passage, lines)
    return kept


def _settled(passages: Sequence[Passage], worth: Mapping[str, float], before: Settled) -> Settled:
    """Gives every fact one line: one that is home already, or that defines it, or the cheapest."""
    if before.keys() == worth.keys():
        return before
    settled = {fact: home for fact, home in before.items() if fact in worth}
    taken = set(settled.values())
    new = {fact: value for fact, value in worth.items() if fact not in settled}
    holders: dict[str, list[int]] = {}  # many passages hold few of the facts each
    for at, passage in enumerate(passages):
        for fact in passage.where.keys() & new.keys():
            holders.setdefault(fact, []).append(at)
    # The dearest first, and by name where two are worth the same.
    for fact, _ in sorted(sorted(new.items()), key=itemgetter(1), reverse=True):
        least, home = inf, None
        for at in holders.get(fact, ()):
            passage = passages[at]
            for line in passage.where[fact]:
                if (at, line) in taken:
                    least, home = 0.0, (at, line)
                    break
                dear = passage.costs[line] / _DEARER if line in passage.defining else passage.costs[line]
                if dear < least:
                    least, home = dear, (at, line)
            if not least:
                break
        if home is not None:
            settled[fact] = home
            taken.add(home)
    return settled


def _worthy(passage: Passage, homes: _Homes, rate: float) -> list[_Home]:
    """The lines that pay for themselves, the densest first; none where not even the title is paid for."""
    costs = passage.costs
    lines = [
        (-value / cost, index, cost, value)
        for index, value in homes.items()
        if value >= rate * (cost := costs[index] + _NEXT_RUN)
    ]
    lines.sort()
    gain = fsum([value - rate * cost for _, _, cost, value in lines])
    return lines if gain >= rate * _TITLE else []


def _title_cost(passage: Passage) -> float:
    """About what the line above the quoted ones costs: it names where they are from."""
    return _TITLE + cost_of(passage.label[:LONGEST_LABEL] + passage.doubt)


def _cost(title: float, homes: Sequence[_Home]) -> float:
    return fsum([title, *(cost for _, _, cost, _ in homes)]) if homes else 0.0


def _within(titles: Sequence[float], chosen: Sequence[list[_Home]], rate: float, budget: int) -> list[list[_Home]]:
    """The best that fits: of each passage its densest lines, as many as the selection picks."""
    fitting: list[list[_Home]] = [[] for _ in chosen]
    asked = [at for at, homes in enumerate(chosen) if homes]
    counts = [_counts(chosen[at], rate) for at in asked]
    candidates = [
        Candidate(at, _offers(titles[at], chosen[at], count)) for at, count in zip(asked, counts, strict=True)
    ]
    selected = select(candidates, max(0, budget)).offers
    for at, candidate, count, offer in zip(asked, candidates, counts, selected, strict=True):
        if offer is not None:
            fitting[at] = chosen[at][: count[candidate.offers.index(offer)]]
    return fitting


def _counts(homes: Sequence[_Home], rate: float) -> list[int]:
    """How many of the lines, the densest first, may stay together, the most first: all that are worth so many times
    their price. Finer steps keep no more of what is needed: worth is an estimate."""
    counts = {bisect_right(homes, -rate * step, key=itemgetter(0)) for step in _STEPS}
    return sorted(counts - {0}, reverse=True)


def _offers(title: float, homes: Sequence[_Home], counts: Sequence[int]) -> tuple[Offer, ...]:
    """What the densest lines cost and are worth together, for each of these counts."""
    costs = list(accumulate([cost for _, _, cost, _ in homes], initial=title))
    values = list(accumulate([value for _, _, _, value in homes], initial=0.0))
    return tuple([Offer(ResidencyLevel.STRUCTURED, round(costs[count]), values[count]) for count in counts])


def _kept(passage: Passage, homes: Sequence[_Home]) -> KeptLines:
    # Where most of it stays, gaps would cost what the rest does.
    many = 2 * len(homes) >= len(passage.lines)
    if many and fsum([home[2] for home in homes]) >= _WHOLE * fsum(passage.costs):
        return KeptLines(passage, range(len(passage.lines)))
    return KeptLines(passage, sorted([home[1] for home in homes]))
