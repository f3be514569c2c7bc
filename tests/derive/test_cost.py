"""Prices: what a request costs, by how long its prompt is and how long the cache is asked to live."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pagefold.derive.cost import ASSUMED, Prices, Rates
from pagefold.wire.message import Usage

TIERED = Prices(
    "tiered",
    1.0,
    0.1,
    1.25,
    5.0,
    write_long=2.0,
    ttl_long_seconds=3600.0,
    tiers=(Rates(100, 5.0, 0.5, 6.25, 25.0, 10.0), Rates(1_000, 10.0, 1.0, 12.5, 25.0, 20.0)),
)
COUNTS = st.integers(0, 5_000)


def test_a_cached_prompt_costs_a_tenth_and_a_written_one_a_quarter_more() -> None:
    assert ASSUMED.cost(1000, 100) == pytest.approx(225)
    assert ASSUMED.usd(1_000_000) == ASSUMED.fresh


def test_what_is_assumed_says_so_and_when() -> None:
    assert ASSUMED.assumed
    assert "assumed" in ASSUMED.source
    assert "2026" in ASSUMED.source


@pytest.mark.parametrize(("prompt", "times"), [(0, 1), (100, 1), (101, 5), (1_000, 5), (1_001, 10)])
def test_every_token_of_a_longer_prompt_costs_more(prompt: int, times: int) -> None:
    assert TIERED.cost(prompt, 0) == pytest.approx(times * 0.1 * prompt)
    assert TIERED.cost(0, prompt) == pytest.approx(times * 1.25 * prompt)


def test_the_answer_to_a_longer_prompt_costs_more_too() -> None:
    short, long = (TIERED.billed(Usage(fresh=prompt, output=1_000_000))[1] for prompt in (100, 101))

    assert (short, long) == (5.0, 25.0)


def test_writes_for_the_longer_life_cost_more_and_live_longer() -> None:
    asked = TIERED.lived(long=True)

    assert (TIERED.life, asked.life) == (300, 3600)
    assert (TIERED.write_ratio, asked.write_ratio) == (1.25, 2.0)
    assert asked.cost(0, 10) == 20
    assert asked.lived(long=False) == TIERED


def test_a_provider_that_sells_no_longer_life_gives_none() -> None:
    plain = Prices("plain", 1, 0.1, 1.25, 5)

    assert plain.lived(long=True) is plain


@given(COUNTS, COUNTS, st.booleans())
def test_the_bill_of_a_cached_prompt_is_its_cost_in_money(read: int, written: int, long: bool) -> None:
    prices = TIERED.lived(long=long)
    usage = Usage(cache_read=read, cache_write=written, cache_write_long=written if long else 0)

    assert prices.bill(usage) == pytest.approx(prices.usd(prices.cost(read, written)))


@given(COUNTS, COUNTS, COUNTS, COUNTS)
def test_no_token_is_free(fresh: int, read: int, written: int, output: int) -> None:
    less = TIERED.bill(Usage(fresh, read, written, output))

    for more in (
        Usage(fresh + 1, read, written, output),
        Usage(fresh, read + 1, written, output),
        Usage(fresh, read, written + 1, output),
        Usage(fresh, read, written, output + 1),
    ):
        assert TIERED.bill(more) > less


def test_a_free_provider_costs_nothing_and_divides_nothing_by_zero() -> None:
    assert Prices("local", 0, 0, 0, 0).cost(10, 10) == 0
