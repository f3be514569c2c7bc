"""At which level every page stands, under a budget: floors first, what is demanded next, then the most value.

Pages come with what each level costs and is worth; how worth is estimated is not decided here. All values fade alike,
by `decay` a turn, and a demand adds a page's value anew. So ageing changes no order: values are kept as of one moment,
and what comes later counts for more by as much as the rest has faded.

Promised: no page stands below the floor of its kind; what would break it is refused with a reason. Where the floors, or
they and what is demanded, do not fit, that is said with the pages and the tokens missing, and the pages that matter
more still stand. `turn` costs what changed, not what is there, and says how far from the best it may be; `fold` has the
solver settle what lies close to the price of a token. The same calls give the same levels.

A selection belongs to whoever made it and changes in place. A fork makes its own by telling it the same pages.
"""

import math
from bisect import bisect_left
from collections.abc import Iterable
from dataclasses import replace

from pagefold.derive.selection.offers import (
    ABSENT,
    LEVELS,
    Candidate,
    Demand,
    HeldPage,
    Offer,
    Reason,
    Refusal,
    Selected,
    Step,
    cheapest,
    front_of,
    refused,
)
from pagefold.knapsack import Choice, Group, solve
from pagefold.pages.kinds import PageKind, ResidencyLevel
from pagefold.pages.page import PageId

__all__ = ["Candidate", "Demand", "Offer", "Reason", "Refusal", "Selected", "Selection", "refused"]

_AHEAD = 32  # steps looked at to fill what the first step that does not fit leaves over
_BACK = 8  # steps that may be given up for that
_ENOUGH = 0.0005  # of the value: a turn looks no further
_CORE = 32  # steps on either side of the price that a fold settles together; then ever more
_SETTLED = 0.0001  # that a fold is content with, where the solver has not had everything
_LARGEST_GAP = 0.001  # that a turn is content with; beyond, it asks the solver
_WORK = 20_000  # states of the solver: some milliseconds
_LARGEST = 1e150
_KINDS = tuple(PageKind)


class Selection:
    """Levels for pages that come, are demanded, fade and go, turn by turn."""

    def __init__(self, budget: int, *, decay: float = 0.88) -> None:
        if budget < 0:
            raise ValueError(f"budget = {budget}: expected 0 or more tokens")
        if not 0 < decay <= 1:
            raise ValueError(f"decay = {decay}: expected more than 0 and at most 1")
        self.budget = budget
        self._decay = decay
        self._weight = 1.0  # of a value that comes now; what came before keeps the weight it came with
        self._held: dict[PageId, HeldPage] = {}
        self._numbered: dict[int, HeldPage] = {}
        self._next = 0
        # Every step of every page, the best first; those before `_cut` are taken and cost `_used`.
        self._steps: list[Step] = []
        self._cut = 0
        self._used = 0
        self._gain = 0.0
        self._floors = 0
        self._floor_gain = 0.0
        self._demanded: list[HeldPage] = []
        self._missing = 0
        self._apart: dict[int, Offer] = {}  # pages that do not stand at what their taken steps say
        self._touched: set[int] = set()

    def levels(self) -> dict[PageId, ResidencyLevel | None]:
        return {page: held.shown for page, held in self._held.items()}

    def refused(self, page: PageId, level: ResidencyLevel) -> Refusal | None:
        """What speaks against this page standing at this level, whatever the budget."""
        held = self._held.get(page)
        if held is None:
            return Refusal(page, level, Reason.UNKNOWN_PAGE, f"{page} is no page of this selection")
        against = refused(page, held.candidate.kind, level)
        if against is None and all(offer.level is not level for offer in held.candidate.offers):
            return Refusal(page, level, Reason.NOT_OFFERED, f"{page} has no representation at {level}")
        return against

    def turn(
        self, added: Iterable[Candidate] = (), demanded: Iterable[Demand] = (), forgotten: Iterable[PageId] = ()
    ) -> Selected:
        """Let a turn pass: all values fade, pages go and come, and those demanded stand as demanded for this turn."""
        self._weight /= self._decay
        if self._weight > _LARGEST:
            self._renew()
        refusals: list[Refusal] = []
        released, self._demanded = self._demanded, []
        for held in released:
            self._release(held)
        for page in forgotten:
            self._forget(page)
        for candidate in added:
            self._add(candidate, refusals)
        for demand in demanded:
            self._demand(demand, refusals)
        gap, insufficient = self._settle()
        return self._selected(self._improved(gap, _LARGEST_GAP), refusals + insufficient)

    def fold(self) -> Selected:
        """The best levels for all pages at once, as near to the optimum as can be proven."""
        gap, refusals = self._settle()
        return self._selected(self._improved(gap, _SETTLED), refusals)

    def _improved(self, gap: float, enough: float) -> float:
        """Have the solver settle ever more of the pages around the cut until the gap is small enough."""
        reach = _CORE if len(self._steps) > 8 * _CORE else len(self._steps)
        while gap > enough:
            gap = self._solve(reach)
            if reach >= len(self._steps):
                break
            reach *= 8
        return gap

    def _add(self, candidate: Candidate, refusals: list[Refusal]) -> None:
        """A page that is there already is replaced, as one that comes anew."""
        path = candidate.kind.degradation_path()
        for offer in candidate.offers:
            if offer[0] not in path:
                against = [refused(candidate.page, candidate.kind, one.level) for one in candidate.offers]
                refusals += [one for one in against if one]
                allowed = tuple(one for one in candidate.offers if one.level in path)
                candidate = replace(candidate, offers=allowed)
                break
        if candidate.page in self._held:
            self._forget(candidate.page)
        if not candidate.offers:
            words = f"{candidate.page} has no representation at a level of its kind"
            refusals.append(Refusal(candidate.page, None, Reason.NOT_OFFERED, words))
            return
        held = HeldPage(candidate, self._next, self._weight)
        self._next += 1
        self._held[candidate.page] = self._numbered[held.number] = held
        self._queue(held)

    def _forget(self, page: PageId) -> None:
        held = self._held.pop(page, None)
        if held is not None:
            self._unqueue(held)
            del self._numbered[held.number]
            self._touched.discard(held.number)
            self._apart.pop(held.number, None)
            if held in self._demanded:
                self._demanded.remove(held)

    def _demand(self, demand: Demand, refusals: list[Refusal]) -> None:
        """Its value comes anew; its floor, for this turn, is the cheapest that satisfies the demand."""
        held = self._held.get(demand.page)
        if held is None:
            refusals.append(Refusal(*demand, Reason.UNKNOWN_PAGE, f"{demand.page} is no page of this selection"))
            return
        enough = LEVELS[: LEVELS.index(demand.level) + 1]
        satisfying = [offer for offer in held.active if offer.level in enough]
        self._unqueue(held)
        held.weight += self._weight
        if satisfying:
            if held.demanded is not None:
                self._demanded.remove(held)
            held.active, held.demanded = satisfying, cheapest(satisfying)
            held.front = (held.own_front[0], *front_of(held.demanded, satisfying))
            self._demanded.append(held)
        else:
            words = f"{demand.page} has no representation at {demand.level} or better"
            refusals.append(Refusal(*demand, Reason.NOT_OFFERED, words))
        self._queue(held)

    def _release(self, held: HeldPage) -> None:
        self._unqueue(held)
        held.active, held.demanded, held.front = held.candidate.offers, None, held.own_front
        self._queue(held)

    def _queue(self, held: HeldPage) -> None:
        """Put its steps where they belong; those that come before the cut are thereby taken."""
        steps, cut, weight, number = self._steps, self._cut, held.weight, held.number
        forced = held.demanded is not None
        front = held.front
        at = front[0]
        self._floors += at[1]
        self._floor_gain += weight * at[2]
        keys = []
        slope = -math.inf
        for index in range(len(front) - 1):
            to = front[index + 1]
            cost, gain = to[1] - at[1], weight * (to[2] - at[2])
            if index or not forced:
                # Steps of a page that are equally steep stay in their order, however the division rounds.
                steep = -gain / cost
                if steep > slope:
                    slope = steep
            key = (slope, number, index, cost)
            keys.append(key)
            place = bisect_left(steps, key)
            steps.insert(place, key)
            if place < cut:
                cut += 1
                self._used += cost
                self._gain += gain
                held.taken = index + 1
            at = to
        self._cut = cut
        held.keys = tuple(keys)
        self._touched.add(number)

    def _unqueue(self, held: HeldPage) -> None:
        front, steps = held.front, self._steps
        self._floors -= front[0][1]
        self._floor_gain -= held.weight * front[0][2]
        for key in held.keys:
            place = bisect_left(steps, key)
            del steps[place]
            if place < self._cut:
                self._cut -= 1
                self._used -= key[3]
        if held.taken:
            self._gain -= held.weight * (front[held.taken][2] - front[0][2])
        held.taken = 0
        held.keys = ()

    def _settle(self) -> tuple[float, list[Refusal]]:
        """Take steps, or give them back, until the next does not fit; then fill what is left over."""
        room = self.budget - self._floors
        self._touched.update(self._apart)
        self._apart = {}
        self._missing = -room
        for held in self._demanded:
            self._missing += held.keys[0][3]
        if self._missing > 0:
            return 0.0, self._ration(self._missing)
        steps, cut, used, touched = self._steps, self._cut, self._used, self._touched
        gain = 0.0
        while used > room:
            cut -= 1
            _, number, index, cost = steps[cut]
            used -= cost
            gain += self._stand(number, index)
            touched.add(number)
        while cut < len(steps) and used + steps[cut][3] <= room:
            _, number, index, cost = steps[cut]
            used += cost
            gain += self._stand(number, index + 1)
            touched.add(number)
            cut += 1
        self._cut, self._used = cut, used
        self._gain += gain
        return self._fill(room - used), []

    def _stand(self, number: int, taken: int) -> float:
        """Let a page stand at this point of its front; what that gains."""
        held = self._numbered[number]
        gained = held.weight * (held.front[taken][2] - held.front[held.taken][2])
        held.taken = taken
        return gained

    def _fill(self, left: int) -> float:
        """Use what is left by later steps that fit, where that pays by giving up an earlier one; the gap."""
        steps, cut, numbered = self._steps, self._cut, self._numbered
        if cut == len(steps):
            return 0.0
        bound = -steps[cut][0] * left
        whole = self._floor_gain + self._gain + bound
        ahead = steps[cut : cut + _AHEAD]
        best = 0.0
        filled: dict[int, int] = {}
        given_up: list[Step | None] = [None, *reversed(steps[max(0, cut - _BACK) : cut])]
        for step in given_up:
            room, gain = left, 0.0
            points: dict[int, int] = {}
            if step is not None:
                if numbered[step[1]].taken != step[2] + 1 or step[0] == -math.inf:
                    continue
                points[step[1]] = step[2]
                room += step[3]
                gain += step[0] * step[3]
            for slope, number, index, cost in ahead:
                if cost <= room and points.get(number, numbered[number].taken) == index:
                    points[number] = index + 1
                    room -= cost
                    gain -= slope * cost
            if gain > best:
                best, filled = gain, points
            if bound - best <= _ENOUGH * whole:
                break
        self._apart = {number: numbered[number].front[point] for number, point in filled.items()}
        return max(0.0, (bound - best) / whole) if whole > 0 else 0.0

    def _solve(self, reach: int) -> float:
        """Have the solver settle every page with a step this close to the cut, the others staying; the gap."""
        steps, cut = self._steps, self._cut
        core = [
            self._numbered[number] for number in sorted({step[1] for step in steps[max(0, cut - reach) : cut + reach]})
        ]
        room = self.budget - self._floors - self._used
        value = self._floor_gain + self._gain
        bound = value - steps[cut][0] * room
        groups: list[Group] = []
        offered: list[list[Offer]] = []
        for held in core:
            base, now = held.demanded or held.front[0], held.front[held.taken]
            room += now.cost - base.cost
            value -= held.weight * (now.value - base.value)
            offers = [one for one in held.active if one.cost >= base.cost and one.value > base.value]
            offered.append(offers)
            choices = (Choice(one.cost - base.cost, held.weight * (one.value - base.value)) for one in offers)
            groups.append(Group(tuple(choices)))
        picks = solve(groups, room, work=_WORK)
        self._apart = {}
        for held, offers, pick in zip(core, offered, picks.picks, strict=True):
            self._apart[held.number] = held.demanded or held.front[0] if pick is None else offers[pick]
        if reach >= len(steps):
            return picks.gap  # all there is: the relaxation, which knows no whole pages, need not be asked
        return max(0.0, 1 - (value + picks.value) / bound)

    def _ration(self, missing: int) -> list[Refusal]:
        """The floors and demands do not fit: those that matter more stand, and the others are named."""
        for _, number, _, _ in self._steps[: self._cut]:
            self._numbered[number].taken = 0
        self._cut, self._used, self._gain = 0, 0, 0.0
        left = self.budget
        ranked = sorted(self._held.values(), key=_by_rank)
        for held in ranked:
            floor = held.own_front[0]
            self._apart[held.number] = floor if floor.cost <= left else ABSENT
            left -= self._apart[held.number].cost
        refusals: list[Refusal] = []
        for held in ranked:
            stands, wanted = self._apart[held.number], held.demanded or held.own_front[0]
            if wanted.cost - stands.cost <= left:
                self._apart[held.number] = wanted
                left -= wanted.cost - stands.cost
            else:
                page, more = held.candidate.page, wanted.cost - stands.cost
                words = f"{page} needs {more} tokens more to stand at {wanted.level}; {missing} are missing in all"
                refusals.append(Refusal(page, wanted.level, Reason.PHYSICAL_INSUFFICIENCY, words))
        self._touched.update(self._apart)
        return refusals

    def _renew(self) -> None:
        """Count all values as of now, before their weights grow out of what a float can hold."""
        faded = 1 / self._weight
        self._weight = 1.0
        self._steps, self._cut, self._used = [], 0, 0
        self._floors, self._floor_gain, self._gain = 0, 0.0, 0.0
        for held in self._held.values():
            held.weight *= faded
            held.taken = 0
            self._queue(held)

    def _selected(self, gap: float, refusals: list[Refusal]) -> Selected:
        changed: dict[PageId, ResidencyLevel | None] = {}
        cost, gain = self._floors + self._used, self._floor_gain + self._gain
        for number, offer in self._apart.items():
            held = self._numbered[number]
            now = held.front[held.taken]
            cost += offer[1] - now[1]
            gain += held.weight * (offer[2] - now[2])
        self._touched.update(self._apart)
        for number in sorted(self._touched):
            held = self._numbered[number]
            offer = self._apart.get(number) or held.front[held.taken]
            level = None if offer is ABSENT else offer[0]
            if level is not held.shown:
                held.shown = changed[held.candidate.page] = level
        self._touched.clear()
        return Selected(changed, cost, gain / self._weight, gap, tuple(refusals), max(0, self._missing))


def _by_rank(held: HeldPage) -> tuple[float, int]:
    """Whose floor stands first: pinned kinds, then what is demanded, then the other kinds; the newest first."""
    place = _KINDS.index(held.candidate.kind)
    demanded = _KINDS.index(PageKind.CONSTRAINT) + 0.5
    return min(place, demanded) if held.demanded else place, -held.number
