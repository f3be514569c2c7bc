"""At which level things stand under a budget: floors first, then the most value. The one place where that is chosen.

A fold chooses with it what its digest holds, part by part; the fault matrix chooses with it at which level each page
stands. Candidates come with what each of their offers costs and is worth; how worth is estimated is not decided here.

Promised: no candidate stands below its floor, and none at a level that its kind does not have; what would break that is
refused with a reason. Where the floors do not fit, that is said with the tokens missing, and those that matter more
still stand. What is chosen is the best there is, to the solver's proven gap. The same candidates give the same choice.
"""

from collections.abc import Hashable, Sequence
from enum import StrEnum
from typing import NamedTuple

from pagefold.frozen import frozen
from pagefold.knapsack import Group, GroupChoice, solve
from pagefold.pages.kinds import PageKind, ResidencyLevel, refusal

_LEVELS = tuple(ResidencyLevel)
_PINNED = (PageKind.BOOTSTRAP, PageKind.CONSTRAINT)
_WORK = 20_000  # states of the solver, a few milliseconds: what may be missed then is less than a line


class Offer(NamedTuple):
    """One way in which a candidate may stand: its level, its cost in tokens, and its value."""

    level: ResidencyLevel
    cost: int
    value: float


@frozen
class Candidate:
    """Something that may stand in one of several ways, the best offer first.

    `floor` is the index of the last offer that is enough; without one it may be left out.
    """

    page: Hashable
    offers: tuple[Offer, ...]
    floor: int | None = None
    kind: PageKind = PageKind.EVIDENCE


class Reason(StrEnum):
    BELOW_FLOOR = "below_floor"
    OFF_PATH = "off_path"
    NOT_OFFERED = "not_offered"
    PHYSICAL_INSUFFICIENCY = "physical_insufficiency"


class LevelRefusal(NamedTuple):
    """Why a candidate does not stand at a level, for a program and for a person."""

    page: Hashable
    level: ResidencyLevel | None
    reason: Reason
    words: str


class Selected(NamedTuple):
    """The offer at which each candidate stands, in their order; None where it does not.

    `gap` is how far below the best the value may lie, as a share of it. `missing` is how many tokens the floors are
    over the budget.
    """

    offers: tuple[Offer | None, ...]
    cost: int
    value: float
    gap: float = 0.0
    refusals: tuple[LevelRefusal, ...] = ()
    missing: int = 0


def floor_at(offers: Sequence[Offer], level: ResidencyLevel) -> int | None:
    """The index of the last offer that is at this level or above it; None where there is none."""
    enough = [index for index, offer in enumerate(offers) if _LEVELS.index(offer.level) <= _LEVELS.index(level)]
    return enough[-1] if enough else None


def select(candidates: Sequence[Candidate], budget: int, share: int | None = None) -> Selected:
    """The best offers that fit. Floors may take all of the budget; what stands besides may make the whole no more than
    `share`. Raises ValueError for a budget below zero."""
    if budget < 0:
        raise ValueError(f"budget = {budget}: expected 0 or more tokens")
    refusals: list[LevelRefusal] = []
    candidates = [_allowed(candidate, refusals) for candidate in candidates]
    bases = [None if one.floor is None else _cheapest(one.offers[: one.floor + 1]) for one in candidates]
    floors = sum([base.cost for base in bases if base is not None])
    if floors > budget:
        return _rationed(candidates, budget, floors - budget, refusals)
    room = (budget if share is None else min(budget, share)) - floors
    offered = [_better(candidate, base) for candidate, base in zip(candidates, bases, strict=True)]
    groups = [_group(offers, base) for offers, base in zip(offered, bases, strict=True)]
    solution = solve(groups, max(0, room), work=_WORK)
    chosen = tuple(
        base if pick is None else offers[pick]
        for pick, offers, base in zip(solution.picks, offered, bases, strict=True)
    )
    return _selected(chosen, solution.gap, refusals)


def refused(page: Hashable, kind: PageKind, level: ResidencyLevel) -> LevelRefusal | None:
    """Why a page of this kind may not stand at this level, or None where it may."""
    words = refusal(kind, level)
    if words is None:
        return None
    below = _LEVELS.index(level) > _LEVELS.index(kind.min_fidelity())
    return LevelRefusal(page, level, Reason.BELOW_FLOOR if below else Reason.OFF_PATH, words)


def _allowed(candidate: Candidate, refusals: list[LevelRefusal]) -> Candidate:
    """The candidate without offers at levels that its kind does not have, each of which is refused."""
    path = candidate.kind.degradation_path()
    if all(offer[0] in path for offer in candidate.offers) and (candidate.offers or candidate.floor is None):
        return candidate
    against = [refused(candidate.page, candidate.kind, offer.level) for offer in candidate.offers]
    refusals += [one for one in against if one is not None]
    kept = [(index, offer) for index, offer in enumerate(candidate.offers) if offer[0] in path]
    floor = None
    if candidate.floor is not None:
        enough = sum(index <= candidate.floor for index, _ in kept)
        floor = enough - 1 if enough else None
        if not enough:
            words = f"{candidate.page} has no offer that is enough, at a level of its kind"
            refusals.append(LevelRefusal(candidate.page, None, Reason.NOT_OFFERED, words))
    return Candidate(candidate.page, tuple([offer for _, offer in kept]), floor, candidate.kind)


def _cheapest(offers: Sequence[Offer]) -> Offer:
    """Of equally cheap ones the one worth most, of these the first."""
    return min(offers, key=lambda offer: (offer[1], -offer[2]))


def _better(candidate: Candidate, base: Offer | None) -> list[Offer]:
    """What may stand instead of the base: of a candidate with a floor what satisfies it and is worth more."""
    if base is None or candidate.floor is None:
        return list(candidate.offers)
    return [offer for offer in candidate.offers[: candidate.floor + 1] if offer[2] > base[2]]


def _group(offers: Sequence[Offer], base: Offer | None) -> Group:
    cost, value = (0, 0.0) if base is None else (base[1], base[2])
    return Group(tuple([GroupChoice(offer[1] - cost, offer[2] - value) for offer in offers]))


def _rationed(candidates: Sequence[Candidate], budget: int, missing: int, refusals: list[LevelRefusal]) -> Selected:
    """The floors do not fit: the cheapest offer of all with a floor first, then the floors of those that matter more,
    of equals the later. The others are named."""
    ranked = sorted(range(len(candidates)), key=lambda index: (_rank(candidates[index]), -index))
    chosen: list[Offer | None] = [None] * len(candidates)
    left = budget
    for index in ranked:
        candidate = candidates[index]
        if candidate.floor is not None and (least := _cheapest(candidate.offers)).cost <= left:
            chosen[index] = least
            left -= least.cost
    for index in ranked:
        candidate, stands = candidates[index], chosen[index]
        if candidate.floor is None:
            continue
        wanted, cost = _cheapest(candidate.offers[: candidate.floor + 1]), stands.cost if stands else 0
        if wanted.cost - cost <= left:
            chosen[index] = wanted
            left -= wanted.cost - cost
        else:
            words = f"{candidate.page} needs {wanted.cost - cost} tokens more to stand at {wanted.level}"
            words = f"{words}; {missing} are missing in all"
            refusals.append(LevelRefusal(candidate.page, wanted.level, Reason.PHYSICAL_INSUFFICIENCY, words))
    return _selected(tuple(chosen), 0.0, refusals, missing)


def _rank(candidate: Candidate) -> int:
    """Whose floor stands first: pinned kinds, in their order, then all others."""
    return _PINNED.index(candidate.kind) if candidate.kind in _PINNED else len(_PINNED)


def _selected(
    chosen: tuple[Offer | None, ...], gap: float, refusals: Sequence[LevelRefusal], missing: int = 0
) -> Selected:
    cost = sum([offer.cost for offer in chosen if offer is not None])
    value = sum([offer.value for offer in chosen if offer is not None])
    return Selected(chosen, cost, value, gap, tuple(refusals), missing)
