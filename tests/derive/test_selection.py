"""Residency selection: floors first, demands next, then value; whatever is asked, and as good as trying everything."""

import itertools

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from pagefold.derive.selection import Candidate, Demand, Offer, Reason, Refusal, Selected, Selection, refused
from pagefold.pages.kinds import PageKind, ResidencyLevel
from pagefold.pages.page import PageId

FULL, COMPRESSED, STRUCTURED, POINTER = ResidencyLevel
LEVELS = tuple(ResidencyLevel)
A, B, C = PageId("a"), PageId("b"), PageId("c")


def page(name: PageId, kind: PageKind, *costs: int, value: float = 1.0, required: bool = True) -> Candidate:
    """A page whose levels cost what is given, along its path, and are worth a third less each."""
    path = kind.degradation_path()
    offers = (
        Offer(level, cost, value * 0.66**place) for place, (level, cost) in enumerate(zip(path, costs, strict=True))
    )
    return Candidate(name, kind, tuple(offers), required)


@st.composite
def candidates(draw: st.DrawFn, name: str) -> Candidate:
    """Any page: levels its kind has and levels it has not, costs and values in any order."""
    levels = draw(st.lists(st.sampled_from(LEVELS), min_size=1, unique=True))
    offers = [Offer(level, draw(st.integers(0, 60)), draw(st.floats(0, 10))) for level in levels]
    return Candidate(PageId(name), draw(st.sampled_from(PageKind)), tuple(offers), draw(st.booleans()))


@st.composite
def turns(draw: st.DrawFn) -> list[tuple[list[Candidate], list[Demand], list[PageId]]]:
    names: list[str] = []
    found = []
    for _ in range(draw(st.integers(1, 5))):
        added = []
        for _ in range(draw(st.integers(0, 2))):
            names.append(f"p{len(names)}")
            added.append(draw(candidates(names[-1])))
        known = st.sampled_from([PageId(name) for name in names]) if names else st.nothing()
        demands = st.lists(st.builds(Demand, known, st.sampled_from(LEVELS)), max_size=2 if names else 0)
        found.append((added, draw(demands), draw(st.lists(known, max_size=1)) if names else []))
    return found


class Told:
    """What a selection was told, kept in the plainest way."""

    def __init__(self, decay: float) -> None:
        self.decay = decay
        self.pages: dict[PageId, Candidate] = {}
        self.weights: dict[PageId, float] = {}
        self.least: dict[PageId, int] = {}

    def turn(self, added: list[Candidate], demands: list[Demand], forgotten: list[PageId]) -> None:
        self.weights = {name: weight * self.decay for name, weight in self.weights.items()}
        self.least = {}
        for name in forgotten:
            self.pages.pop(name, None)
        for one in added:
            allowed = tuple(offer for offer in one.offers if one.kind.allows(offer.level))
            if allowed:
                self.pages[one.page] = Candidate(one.page, one.kind, allowed, one.required)
                self.weights[one.page] = 1.0
        for name, level in demands:
            if name in self.pages:
                self.weights[name] += 1.0
                least = min(LEVELS.index(level), self.least.get(name, 9))
                if any(LEVELS.index(offer.level) <= least for offer in self.pages[name].offers):
                    self.least[name] = least

    def ways(self, name: PageId) -> list[Offer | None]:
        one = self.pages[name]
        offers = [offer for offer in one.offers if LEVELS.index(offer.level) <= self.least.get(name, 9)]
        return [*offers] if one.required or name in self.least else [None, *offers]

    def best(self, budget: int) -> float | None:
        """By trying everything; None where floors and demands do not fit."""
        totals = []
        for chosen in itertools.product(*map(self.ways, self.pages)):
            if sum(offer.cost for offer in chosen if offer) <= budget:
                worth = zip(self.pages, chosen, strict=True)
                totals.append(sum(self.weights[name] * offer.value for name, offer in worth if offer))
        return max(totals, default=None)

    def total(self, levels: dict[PageId, ResidencyLevel | None]) -> tuple[int, float]:
        standing = [
            (name, next(offer for offer in self.pages[name].offers if offer.level is level))
            for name, level in levels.items()
            if level is not None
        ]
        cost = sum(offer.cost for _, offer in standing)
        return cost, sum(self.weights[name] * offer.value for name, offer in standing)


def assert_holds(selection: Selection, told: Told, result: Selected) -> None:
    levels = selection.levels()
    cost, value = told.total(levels)
    best = told.best(selection.budget)
    assert set(levels) == set(told.pages)
    assert cost == result.cost <= selection.budget
    assert all(told.pages[name].kind.allows(level) for name, level in levels.items() if level)
    assert (best is None) == (result.missing > 0)
    if best is not None:
        assert all(levels[name] is not None for name, one in told.pages.items() if one.required)
        assert all(LEVELS.index(level) <= told.least.get(name, 9) for name, level in levels.items() if level)
        assert value == pytest.approx(result.value, rel=1e-6, abs=1e-6)
        assert result.value >= best * (1 - result.gap) - 1e-6
        assert result.gap <= 0.001


@given(turns(), st.integers(0, 150), st.sampled_from([0.5, 0.88, 1.0]))
@example(
    [([Candidate(A, PageKind.PLAN, (Offer(FULL, 0, 1.0), Offer(STRUCTURED, 1, 1.0)), required=False)], [], [])], 0, 0.5
)
@settings(max_examples=300, deadline=None)
def test_a_turn_is_within_a_thousandth_of_trying_everything_and_no_floor_breaks(
    told_turns: list[tuple[list[Candidate], list[Demand], list[PageId]]], budget: int, decay: float
) -> None:
    selection, told = Selection(budget, decay=decay), Told(decay)
    for added, demands, forgotten in told_turns:
        result = selection.turn(added, demands, forgotten)
        told.turn(added, demands, forgotten)

        assert_holds(selection, told, result)
        assert_holds(selection, told, selection.fold())


@given(turns(), st.integers(0, 150))
@settings(max_examples=60, deadline=None)
def test_the_same_calls_give_the_same_levels_and_changes_tell_all_of_them(
    told_turns: list[tuple[list[Candidate], list[Demand], list[PageId]]], budget: int
) -> None:
    one, other = Selection(budget), Selection(budget)
    seen: dict[PageId, ResidencyLevel | None] = {}
    for turn in told_turns:
        result = one.turn(*turn)
        assert result == other.turn(*turn)
        seen = {name: level for name, level in (seen | dict(result.changed)).items() if name in one.levels()}

        assert {name: level for name, level in seen.items() if level} == {
            name: level for name, level in one.levels().items() if level
        }


@pytest.mark.parametrize("kind", PageKind)
@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.requirement("S-PG-15")
def test_a_level_below_the_floor_is_refused_with_a_code_and_never_taken(kind: PageKind, level: ResidencyLevel) -> None:
    offers = (Offer(FULL, 50, 1.0), Offer(level, 1, 100.0)) if level is not FULL else (Offer(FULL, 50, 1.0),)
    selection = Selection(60)
    result = selection.turn([Candidate(A, kind, offers)])
    below = {POINTER} if kind in (PageKind.BOOTSTRAP, PageKind.CONSTRAINT) else set()

    if kind.allows(level):
        assert result.refusals == ()
    else:
        reason = Reason.BELOW_FLOOR if level in below else Reason.OFF_PATH
        assert [(one.page, one.level, one.reason) for one in result.refusals] == [(A, level, reason)]
        assert selection.levels() == {A: FULL}
        assert selection.refused(A, level) == refused(A, kind, level) == result.refusals[0]


def test_floors_that_do_not_fit_are_named_with_the_tokens_missing_and_pinned_kinds_stand_first() -> None:
    selection = Selection(100)
    result = selection.turn(
        [
            page(A, PageKind.EVIDENCE, 90, 80, 70, 30, value=100.0),
            page(B, PageKind.BOOTSTRAP, 200, 60),
            page(C, PageKind.CONSTRAINT, 90, 35),
        ]
    )

    assert result.missing == 25
    assert selection.levels() == {A: None, B: STRUCTURED, C: STRUCTURED}
    assert result.refusals == (
        Refusal(
            A,
            POINTER,
            Reason.PHYSICAL_INSUFFICIENCY,
            "a needs 30 tokens more to stand at pointer; 25 are missing in all",
        ),
    )


def test_a_demand_stands_before_value_for_one_turn_and_then_counts_as_value() -> None:
    rich, poor = page(A, PageKind.EVIDENCE, 50, 40, 30, 5, value=10), page(B, PageKind.EVIDENCE, 50, 40, 30, 5, value=1)
    selection = Selection(60, decay=0.5)
    selection.turn([rich, poor])
    assert selection.levels() == {A: FULL, B: POINTER}

    assert selection.turn(demanded=[Demand(B)]).changed == {A: POINTER, B: FULL}
    assert selection.turn().changed == {A: FULL, B: POINTER}


def test_a_demand_that_does_not_fit_is_named_and_the_floors_still_stand() -> None:
    selection = Selection(60)
    selection.turn([page(A, PageKind.EVIDENCE, 90, 80, 70, 5), page(B, PageKind.CONSTRAINT, 50, 40)])
    result = selection.turn(demanded=[Demand(A)])

    assert result.missing == 70
    assert [(one.page, one.reason) for one in result.refusals] == [(A, Reason.PHYSICAL_INSUFFICIENCY)]
    assert selection.levels() == {A: POINTER, B: STRUCTURED}
    assert selection.turn().missing == 0


@pytest.mark.parametrize(
    ("demand", "reason"),
    [(Demand(PageId("nobody")), Reason.UNKNOWN_PAGE), (Demand(A, FULL), Reason.NOT_OFFERED)],
)
def test_a_demand_that_nothing_can_satisfy_is_refused_with_a_reason(demand: Demand, reason: Reason) -> None:
    selection = Selection(60)
    selection.turn([Candidate(A, PageKind.EVIDENCE, (Offer(POINTER, 5, 1.0),))])
    result = selection.turn(demanded=[demand])

    assert [one.reason for one in result.refusals] == [reason]
    assert selection.levels() == {A: POINTER}


def test_a_page_whose_levels_are_all_refused_does_not_stand() -> None:
    selection = Selection(60)
    result = selection.turn([Candidate(A, PageKind.CONSTRAINT, (Offer(POINTER, 5, 1.0),))])

    assert [one.reason for one in result.refusals] == [Reason.BELOW_FLOOR, Reason.NOT_OFFERED]
    assert selection.levels() == {}
    assert selection.refused(A, FULL) is not None


def test_fading_for_thousands_of_turns_keeps_the_order_and_overflows_nowhere() -> None:
    selection = Selection(60, decay=0.5)
    selection.turn([page(A, PageKind.EVIDENCE, 50, 40, 30, 5, value=10), page(B, PageKind.EVIDENCE, 50, 40, 30, 5)])
    for _ in range(3000):
        result = selection.turn()
    assert selection.levels() == {A: FULL, B: POINTER}
    assert result.value >= 0

    selection.turn(demanded=[Demand(B)])
    assert selection.turn().changed == {}


@pytest.mark.parametrize(("budget", "decay"), [(-1, 0.9), (10, 0.0), (10, 1.1)])
def test_a_budget_or_decay_that_is_none_is_refused_by_name(budget: int, decay: float) -> None:
    with pytest.raises(ValueError, match=r"budget|decay"):
        Selection(budget, decay=decay)


def test_steps_that_are_equally_steep_are_taken_in_their_order_however_the_division_rounds() -> None:
    for thirds in range(1, 400):
        value = thirds / 3
        offers = tuple(Offer(level, cost, value * cost) for level, cost in zip(LEVELS, (49, 42, 7, 3), strict=True))
        selection = Selection(45, decay=0.9)
        selection.turn([Candidate(A, PageKind.EVIDENCE, offers)])
        result = selection.turn([Candidate(B, PageKind.EVIDENCE, offers, required=False)])
        costs = {offer.level: offer.cost for offer in offers}

        assert result.cost == sum(costs[level] for level in selection.levels().values() if level) <= 45
