"""Selection: floors first, then the most value; as good as trying everything, and nothing silently dropped."""

import itertools

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from pagefold.derive.selection import Candidate, LevelRefusal, Offer, Reason, floor_at, refused, select
from pagefold.pages.kinds import PageKind, ResidencyLevel

FULL, COMPRESSED, STRUCTURED, POINTER = ResidencyLevel
LEVELS = tuple(ResidencyLevel)


def page(name: str, kind: PageKind, *costs: int, value: float = 1.0, floor: ResidencyLevel | None = None) -> Candidate:
    """A page whose levels cost what is given, along its path, and are worth a third less each."""
    path = kind.degradation_path()
    offers = tuple(
        Offer(level, cost, value * 0.66**place) for place, (level, cost) in enumerate(zip(path, costs, strict=True))
    )
    return Candidate(name, offers, None if floor is None else floor_at(offers, floor), kind)


@st.composite
def candidates(draw: st.DrawFn) -> list[Candidate]:
    """Any pages: levels their kinds have and levels they have not, costs and values in any order."""
    found = []
    for number in range(draw(st.integers(0, 5))):
        levels = draw(st.lists(st.sampled_from(LEVELS), max_size=4))
        offers = tuple([Offer(level, draw(st.integers(0, 60)), draw(st.floats(0, 10))) for level in levels])
        floor = draw(st.none() | st.integers(0, len(offers) - 1)) if offers else draw(st.sampled_from([None, 0]))
        found.append(Candidate(number, offers, floor, draw(st.sampled_from(PageKind))))
    return found


def ways(candidate: Candidate) -> list[Offer | None]:
    """Every way in which a candidate may stand: of one with a floor only what satisfies it, if anything does."""
    enough = None if candidate.floor is None else candidate.offers[: candidate.floor + 1]
    allowed = [offer for offer in candidate.offers if candidate.kind.allows(offer.level)]
    floored = [offer for offer in enough or () if candidate.kind.allows(offer.level)]
    return [*floored] if floored else [None, *allowed]


def best(found: list[Candidate], budget: int, share: int | None) -> float | None:
    """By trying everything; None where the floors do not fit."""
    values = []
    cheapest = sum(min(offer.cost for offer in ways(one) if offer) for one in found if None not in ways(one))
    room = budget if share is None else max(cheapest, min(budget, share))
    for chosen in itertools.product(*map(ways, found)):
        if cheapest <= budget and sum(offer.cost for offer in chosen if offer) <= room:
            values.append(sum(offer.value for offer in chosen if offer))
    return max(values, default=None)


@given(candidates(), st.integers(0, 150), st.none() | st.integers(0, 150))
@example([Candidate("a", (Offer(FULL, 0, 1.0), Offer(STRUCTURED, 1, 1.0)), None, PageKind.PLAN)], 0, None)
@settings(max_examples=300, deadline=None)
def test_it_is_as_good_as_trying_everything_and_no_floor_or_budget_breaks(
    found: list[Candidate], budget: int, share: int | None
) -> None:
    selected = select(found, budget, share)
    wanted = best(found, budget, share)

    assert len(selected.offers) == len(found)
    assert selected.cost == sum(offer.cost for offer in selected.offers if offer) <= budget
    assert all(one.kind.allows(offer.level) for one, offer in zip(found, selected.offers, strict=True) if offer)
    assert (wanted is None) is (selected.missing > 0)
    assert selected == select(found, budget, share)
    named = {refusal.page for refusal in selected.refusals if refusal.reason is Reason.PHYSICAL_INSUFFICIENCY}
    for one, offer in zip(found, selected.offers, strict=True):
        assert offer in ways(one) or one.page in named
    if wanted is not None:
        assert not named
        assert selected.value >= wanted * (1 - selected.gap) - 1e-6
        assert selected.gap <= 0.001


@pytest.mark.parametrize("kind", PageKind)
@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.requirement("S-PG-15")
def test_a_level_below_the_floor_is_refused_with_a_code_and_never_taken(kind: PageKind, level: ResidencyLevel) -> None:
    offers = (Offer(FULL, 50, 1.0), Offer(level, 1, 100.0)) if level is not FULL else (Offer(FULL, 50, 1.0),)
    selected = select([Candidate("a", offers, len(offers) - 1, kind)], 60)
    below = {POINTER} if kind in (PageKind.BOOTSTRAP, PageKind.CONSTRAINT) else set()

    if kind.allows(level):
        assert selected.refusals == ()
    else:
        reason = Reason.BELOW_FLOOR if level in below else Reason.OFF_PATH
        assert [(one.page, one.level, one.reason) for one in selected.refusals] == [("a", level, reason)]
        assert selected.offers == (offers[0],)
        assert refused("a", kind, level) == selected.refusals[0]


def test_floors_that_do_not_fit_are_named_with_the_tokens_missing_and_pinned_kinds_stand_first() -> None:
    selected = select(
        [
            page("a", PageKind.EVIDENCE, 90, 80, 70, 30, value=100.0, floor=POINTER),
            page("b", PageKind.BOOTSTRAP, 200, 60, floor=STRUCTURED),
            page("c", PageKind.CONSTRAINT, 90, 35, floor=STRUCTURED),
        ],
        100,
    )

    assert selected.missing == 25
    assert [offer and offer.level for offer in selected.offers] == [None, STRUCTURED, STRUCTURED]
    words = "a needs 30 tokens more to stand at pointer; 25 are missing in all"
    assert selected.refusals == (LevelRefusal("a", POINTER, Reason.PHYSICAL_INSUFFICIENCY, words),)


def test_where_not_every_floor_fits_the_others_still_stand_lower_and_the_later_comes_first() -> None:
    selected = select(
        [page(name, PageKind.EVIDENCE, 90, 80, 70, 5, floor=FULL) for name in ("old", "middle", "new")], 110
    )

    assert [offer and offer.level for offer in selected.offers] == [POINTER, POINTER, FULL]
    assert [refusal.page for refusal in selected.refusals] == ["middle", "old"]


@pytest.mark.parametrize(
    ("share", "levels"),
    [(None, [FULL, FULL, FULL]), (20, [FULL, FULL, None]), (0, [FULL, None, None]), (99, [FULL, FULL, FULL])],
)
def test_floors_may_take_all_and_what_stands_besides_only_its_share(
    share: int | None, levels: list[ResidencyLevel | None]
) -> None:
    offers = [(Offer(FULL, 10, value),) for value in (1.0, 3.0, 2.0)]
    found = [Candidate("floor", offers[0], 0), Candidate("dear", offers[1]), Candidate("cheap", offers[2])]

    assert [offer and offer.level for offer in select(found, 30, share).offers] == levels


def test_a_page_whose_levels_are_all_refused_does_not_stand() -> None:
    selected = select([Candidate("a", (Offer(POINTER, 5, 1.0),), 0, PageKind.CONSTRAINT)], 60)

    assert [one.reason for one in selected.refusals] == [Reason.BELOW_FLOOR, Reason.NOT_OFFERED]
    assert selected.offers == (None,)


@pytest.mark.parametrize(("level", "floor"), [(FULL, None), (COMPRESSED, 0), (STRUCTURED, 2), (POINTER, 2)])
def test_a_floor_is_the_last_offer_that_is_enough(level: ResidencyLevel, floor: int | None) -> None:
    offers = [Offer(COMPRESSED, 9, 1.0), Offer(STRUCTURED, 5, 1.0), Offer(STRUCTURED, 4, 0.5)]
    assert floor_at(offers, level) == floor


def test_a_budget_below_zero_is_refused_by_name() -> None:
    with pytest.raises(ValueError, match="budget = -1"):
        select([], -1)
