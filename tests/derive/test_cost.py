"""Prices: dated tables, a user's own numbers over them, and what a request costs."""

import pytest

from pagefold.derive.cost import TABLES, Prices, prices_named
from pagefold.errors import ConfigError
from pagefold.settings.sections import PriceTable


def test_a_cached_prompt_costs_a_tenth_and_a_written_one_a_quarter_more() -> None:
    prices = prices_named("anthropic")

    assert prices.cost(1000, 100) == pytest.approx(225)
    assert prices.usd(1_000_000) == prices.fresh


@pytest.mark.parametrize("name", TABLES)
def test_every_shipped_table_says_where_it_is_from_and_when(name: str) -> None:
    prices = prices_named(name)

    assert "2026" in prices.source
    assert 0 < prices.read < prices.fresh <= prices.write < prices.output


def test_your_own_numbers_lie_over_a_shipped_table() -> None:
    prices = prices_named("anthropic", [PriceTable(name="anthropic", read=0.1)])

    assert (prices.read, prices.write) == (0.1, TABLES["anthropic"].write)
    assert "your own numbers" in prices.source


def test_a_table_of_your_own_is_used_by_its_name() -> None:
    own = PriceTable(name="mine", fresh=1, read=0.2, write=1.5, output=4, ttl_seconds=60)

    assert prices_named("mine", [own]) == Prices("mine", 1, 0.2, 1.5, 4, 60)


def test_a_table_of_your_own_that_lacks_a_number_is_refused_with_its_name() -> None:
    with pytest.raises(ConfigError, match=r"prices_usd\.mine: a table of your own also needs fresh, write, output"):
        prices_named("mine", [PriceTable(name="mine", read=0.2)])


def test_an_unknown_table_is_refused_with_the_names_there_are() -> None:
    with pytest.raises(ConfigError, match=r"prices = 'x': expected one of anthropic, anthropic-1h, .*, mine, openai"):
        prices_named("x", [PriceTable(name="mine", fresh=1)])


def test_a_free_provider_costs_nothing_and_divides_nothing_by_zero() -> None:
    assert Prices("local", 0, 0, 0, 0).cost(10, 10) == 0
