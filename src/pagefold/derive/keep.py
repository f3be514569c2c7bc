"""Which lines of a stretch of history are kept, so that what they tell is worth more than what they cost.

Every fact is looked for where it was last told: there one line that holds it is its home. A line is worth the facts it
is home to. Without need every line that pays for itself stays; under a budget the solver picks, passage by passage, how
far down its lines it goes.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from math import inf
from operator import itemgetter
from typing import TypeAlias

from pagefold.derive.digest import Kept
from pagefold.derive.passages import Passage, Speaker, cost_of
from pagefold.knapsack import Choice, Group, solve
from pagefold.pages.kinds import PageKind
from pagefold.pages.page import Page, PageId

_TITLE = 8.0
_NEXT_RUN = 1.0
_STEPS = (64.0, 16.0, 6.0, 2.5, 1.0)
_DEARER = 2.0
_WHOLE = 0.75
_SAID_LONGEST = 4_000
_SAID, _MISSED = 8.0, 100.0
_WORK = 20_000  # states: what may be missed then is less than a line, and values are estimates


@dataclass(slots=True)
class _Entry:
    """A passage with the lines that are home to facts: what those are worth together."""

    passage: Passage
    place: int
    index: int
    homes: dict[int, float] = field(default_factory=dict)

    def cost(self, index: int) -> float:
        return cost_of(self.passage.lines[index][0]) + _NEXT_RUN


_Home: TypeAlias = tuple[float, int, float, float]
"""A line that pays for itself: its density, negative so that the densest sorts first, which line it is, what it costs
and what it is worth. Bare, as lines are."""


def keep(
    stretch: Sequence[tuple[int, Sequence[Passage]]],
    worth: Mapping[int, Mapping[str, float]],
    *,
    rate: float,
    budget: int | None = None,
    recalled: frozenset[PageId] = frozenset(),
) -> dict[int, list[Kept]]:
    """What is kept of each message, by its place.

    `stretch` has the passages of each message; `worth` the facts that are at home there, with their values.

    `rate` is the least worth of a token. `budget`, in tokens, is about what all that is kept may cost. What was
    `recalled` after it had been folded is kept whole: it was missed.
    """
    kept: dict[int, list[Kept]] = {}
    entries: list[_Entry] = []
    for place, passages in stretch:
        kept[place] = [Kept(passage, ()) for passage in passages]
        facts, held = worth.get(place), [_held(passage, recalled) for passage in passages]
        if not facts and not any(held):
            continue
        found = [_Entry(passage, place, index) for index, passage in enumerate(passages)]
        _settle(found, facts or {})
        for entry, times in zip(found, held, strict=True):
            _hold(entry, rate * times)
        entries += [entry for entry in found if entry.homes]
    chosen = [_worthy(entry, rate) for entry in entries]
    if budget is not None and sum(map(_cost, chosen)) > budget:
        chosen = _within(chosen, rate, budget)
    for entry, homes in zip(entries, chosen, strict=True):
        kept[entry.place][entry.index] = _kept(entry.passage, homes)
    return kept


def _settle(entries: Sequence[_Entry], worth: Mapping[str, float]) -> None:
    """Gives every fact one line: one that is home already, or that defines it, or the cheapest."""
    # The dearest first, and by name where two are worth the same.
    homes: dict[int, float] = {}
    for fact, value in sorted(sorted(worth.items()), key=itemgetter(1), reverse=True):
        least, home = inf, -1
        for entry in entries:
            for index in entry.passage.where.get(fact, ()):
                if index in entry.homes:
                    least, home, homes = 0.0, index, entry.homes
                    break
                dear = cost_of(entry.passage.lines[index][0])
                if index in entry.passage.defining:
                    dear /= _DEARER
                if dear < least:
                    least, home, homes = dear, index, entry.homes
            if not least:
                break
        if home >= 0:
            homes[home] = homes.get(home, 0.0) + value


def _held(passage: Passage, recalled: frozenset[PageId]) -> float:
    """How many times its price each line is worth by itself: what the user said, as far as it is not a flood, and above
    all what was missed."""
    if passage.speaker is Speaker.USER:
        return _SAID if len(passage.text) <= _SAID_LONGEST else 0.0
    result = recalled and passage.speaker is Speaker.RESULT
    return _MISSED if result and Page.of(PageKind.EVIDENCE, passage.text).id in recalled else 0.0


def _hold(entry: _Entry, worth: float) -> None:
    """Gives every line of a passage a worth of its own, so many times its cost."""
    if worth:
        for index in range(len(entry.passage.lines)):
            entry.homes[index] = entry.homes.get(index, 0.0) + worth * entry.cost(index)


def _worthy(entry: _Entry, rate: float) -> list[_Home]:
    """The lines that pay for themselves, the densest first; none where not even the title is paid for."""
    homes = [
        (-value / cost, index, cost, value)
        for index, value in entry.homes.items()
        if value >= rate * (cost := entry.cost(index))
    ]
    homes.sort()
    gain = sum([value - rate * cost for _, _, cost, value in homes])
    return homes if gain >= rate * _TITLE or entry.passage.speaker is Speaker.USER else []


def _cost(homes: Sequence[_Home]) -> float:
    return sum([cost for _, _, cost, _ in homes]) + (_TITLE if homes else 0)


def _within(chosen: Sequence[list[_Home]], rate: float, budget: int) -> list[list[_Home]]:
    """The best that fits: each passage down to one of a few densities, picked by the solver."""
    fitting: list[list[_Home]] = [[] for _ in chosen]
    asked = [at for at, homes in enumerate(chosen) if homes]
    levels = [_levels(chosen[at], rate) for at in asked]
    groups = [Group(tuple(choice for _, choice in level)) for level in levels]
    for at, level, pick in zip(asked, levels, solve(groups, max(0, budget), work=_WORK).picks, strict=True):
        if pick is not None:
            fitting[at] = chosen[at][: level[pick][0]]
    return fitting


def _levels(homes: Sequence[_Home], rate: float) -> list[tuple[int, Choice]]:
    """How many of the lines, the densest first, may stay together, and what they are worth then."""
    levels: list[tuple[int, Choice]] = []
    end, cost, value = 0, 0.0, 0.0
    for step in _STEPS:
        before = end
        while end < len(homes) and -homes[end][0] >= rate * step:
            cost += homes[end][2]
            value += homes[end][3]
            end += 1
        if end > before:
            levels.append((end, Choice(round(cost + _TITLE), value)))
    return levels


def _kept(passage: Passage, homes: Sequence[_Home]) -> Kept:
    if not homes:
        return Kept(passage, ())
    # Where most of it stays, gaps would cost what the rest does.
    many = 2 * len(homes) >= len(passage.lines)
    if many and sum([home[2] for home in homes]) >= _WHOLE * sum([cost_of(line[0]) for line in passage.lines]):
        return Kept(passage, passage.lines)
    return Kept(passage, tuple([passage.lines[index] for index in sorted([home[1] for home in homes])]))
