"""Silences: a cache is kept alive where that is cheaper in expectation, and never for ever."""

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pagefold.derive.cost import ASSUMED, Prices
from pagefold.derive.idle import (
    AFTER_ANSWER,
    AFTER_CALL,
    Idle,
    Resume,
    Silences,
    chosen,
    keep_alive_after,
    resume_of,
)

SURE = Silences((100.0, 400.0, 500.0), (1.0, 1.0, 0.0))
"""Everybody goes on between 400 and 500 seconds."""
GONE = Silences((100.0,), (1.0,))
LIFE = 300.0


def sends(silences: Silences, prices: Prices, tokens: int, *, most: int = 1_000) -> int:
    """How many keep-alives are sent to somebody who never comes back."""
    resume, step = resume_of(prices, tokens), keep_alive_after(prices.life)
    for number in range(most):
        if chosen(resume, resume.warm, prices.life, (number + 1) * step, silences) is not Idle.KEEP:
            return number
    return most


def test_a_cache_is_kept_for_somebody_who_is_sure_to_come_back_in_time() -> None:
    assert sends(SURE, ASSUMED, 100_000) == 1


def test_nothing_is_sent_to_somebody_who_is_gone() -> None:
    assert sends(GONE, ASSUMED, 100_000) == 0


@pytest.mark.parametrize("silences", [AFTER_ANSWER, AFTER_CALL])
@pytest.mark.parametrize("long", [False, True])
def test_whoever_never_comes_back_costs_a_few_keep_alives(silences: Silences, *, long: bool) -> None:
    prices = ASSUMED.lived(long=long)
    resume = resume_of(prices, 100_000)

    assert sends(silences, prices, 100_000) * resume.warm <= resume.late


@pytest.mark.parametrize("silences", [AFTER_ANSWER, AFTER_CALL])
def test_shipped_silences_only_get_rarer(silences: Silences) -> None:
    shares = [silences.longer_than(seconds) for seconds in range(0, 200_000, 50)]

    assert shares[0] == 1.0
    assert all(0 <= after <= before for before, after in itertools.pairwise(shares))


def test_a_cheap_fold_makes_keeping_alive_not_worth_it() -> None:
    whole, folded = resume_of(ASSUMED, 100_000), resume_of(ASSUMED, 100_000, 9_000)

    assert chosen(whole, whole.warm, LIFE, 270.0, SURE) is Idle.KEEP
    assert chosen(folded, folded.warm, LIFE, 270.0, SURE) is Idle.FOLD


@pytest.mark.parametrize(("late", "found"), [(12.0, Idle.FOLD), (14.0, Idle.FOLD), (16.0, Idle.KEEP)])
def test_beside_a_fold_a_keep_alive_has_to_save_half_as_much_again_as_it_costs(late: float, found: Idle) -> None:
    assert chosen(Resume(10.0, 10.0 + late), 10.0, LIFE, 270.0, SURE) is Idle.KEEP
    assert chosen(Resume(10.0, 100.0, 10.0 + late), 10.0, LIFE, 270.0, SURE) is found


@given(
    st.floats(0, 1e6),
    st.floats(0, 1e6),
    st.one_of(st.none(), st.floats(0, 1e6)),
    st.floats(0, 1e6),
    st.floats(0, 1e5),
    st.floats(-1e6, 1e6),
)
def test_no_keep_alive_that_costs_as_much_as_it_can_save(
    warm: float, cold: float, folded: float | None, price: float, life: float, silent: float
) -> None:
    resume = Resume(warm, cold, folded)

    found = chosen(resume, price, life, silent, AFTER_ANSWER)

    if found is Idle.KEEP:
        assert price < resume.late
        assert life > 0


def test_a_cache_that_lives_for_ever_is_not_kept_alive() -> None:
    assert chosen(Resume(1, 100), 0.0, 0.0, 1e6, SURE) is Idle.NOTHING
