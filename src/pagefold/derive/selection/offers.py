"""What a selection is offered and what it answers: pages at levels with costs and values, demands, and refusals."""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple, TypeAlias

from pagefold.knapsack.relaxation import front
from pagefold.pages.kinds import PageKind, ResidencyLevel, refusal
from pagefold.pages.page import PageId

LEVELS = tuple(ResidencyLevel)


class Offer(NamedTuple):
    """A page at one level: its cost in tokens, and its value now."""

    level: ResidencyLevel
    cost: int
    value: float


@dataclass(frozen=True, slots=True)
class Candidate:
    """A page that may stand. One that is not `required` may be left out whole, as a page of a past session may."""

    page: PageId
    kind: PageKind
    offers: tuple[Offer, ...]
    required: bool = True


ABSENT = Offer(ResidencyLevel.POINTER, 0, 0.0)  # where a page that is not required stands below all its offers


class Demand(NamedTuple):
    """A page that is needed now, at least at this level."""

    page: PageId
    level: ResidencyLevel = ResidencyLevel.FULL


class Reason(StrEnum):
    BELOW_FLOOR = "below_floor"
    OFF_PATH = "off_path"
    NOT_OFFERED = "not_offered"
    UNKNOWN_PAGE = "unknown_page"
    PHYSICAL_INSUFFICIENCY = "physical_insufficiency"


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why a page does not stand at a level, for a program and for a person."""

    page: PageId
    level: ResidencyLevel | None
    reason: Reason
    words: str


class Selected(NamedTuple):
    """What a turn or a fold came to.

    `changed` has the pages that now stand at another level than before, None for not at all. `gap` is how far below the
    best the value may lie, as a share of it. `missing` is how many tokens the floors and demands are over the budget.
    """

    changed: Mapping[PageId, ResidencyLevel | None]
    cost: int
    value: float
    gap: float
    refusals: tuple[Refusal, ...] = ()
    missing: int = 0


def refused(page: PageId, kind: PageKind, level: ResidencyLevel) -> Refusal | None:
    """Why a page of this kind may not stand at this level, or None where it may."""
    words = refusal(kind, level)
    if words is None:
        return None
    below = LEVELS.index(level) > LEVELS.index(kind.min_fidelity())
    return Refusal(page, level, Reason.BELOW_FLOOR if below else Reason.OFF_PATH, words)


def front_of(start: Offer, offers: Sequence[Offer]) -> tuple[Offer, ...]:
    """The offers worth a step, each better and less worth its tokens than the one before, from `start` on."""
    found = [start]
    _, at_cost, at_value = start
    last, before = math.inf, at_cost
    for offer in reversed(offers):
        _, cost, value = offer
        if cost < before:
            return _mended_front(start, offers)
        before = cost
        if value > at_value:
            if cost == at_cost or (value - at_value) > last * (cost - at_cost):
                return _mended_front(start, offers)
            last = (value - at_value) / (cost - at_cost)
            found.append(offer)
            at_cost, at_value = cost, value
    return tuple(found)


def _mended_front(start: Offer, offers: Iterable[Offer]) -> tuple[Offer, ...]:
    """The same where the levels are not what they mostly are, each dearer and better than the one below."""
    by_point = {(offer.cost, offer.value): offer for offer in offers if offer.cost >= start.cost}
    by_point[start.cost, start.value] = start
    return tuple([by_point[point] for point in front(list(by_point), (start.cost, start.value))])


def cheapest(offers: Sequence[Offer]) -> Offer:
    """Of equally cheap ones the one worth most, of these the last, which is the lowest level."""
    found = offers[-1]
    for offer in offers:
        if offer[1] < found[1] or (offer[1] == found[1] and offer[2] > found[2]):
            found = offer
    return found


Step: TypeAlias = tuple[float, int, int, int]
"""One step up a front: the value of a token, negative so that the best sorts first; the page's number; which step it
is; its cost."""


class HeldPage:
    """A page of a selection. It stands at `front[taken]`; `keys` are the steps of that front, as they are queued.

    While it is demanded, `active` are the offers that satisfy the demand, `demanded` is the cheapest of them, and
    `front` goes from the floor to these.
    """

    __slots__ = ("active", "candidate", "demanded", "front", "keys", "number", "own_front", "shown", "taken", "weight")

    def __init__(self, candidate: Candidate, number: int, weight: float) -> None:
        self.candidate = candidate
        self.active: Sequence[Offer] = candidate.offers
        self.number = number
        self.weight = weight
        floor = cheapest(candidate.offers) if candidate.required else ABSENT
        self.own_front = self.front = front_of(floor, candidate.offers)
        self.keys: tuple[Step, ...] = ()
        self.taken = 0
        self.demanded: Offer | None = None
        self.shown: ResidencyLevel | None = None
