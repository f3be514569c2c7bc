"""What models cost: from the price data, with a user's own numbers over it."""

import pytest

from pagefold.adapters.model_prices import ModelPrices
from pagefold.derive.cost import ASSUMED
from pagefold.errors import ConfigError
from pagefold.settings.sections import PriceTable

KNOWN = ModelPrices()


@pytest.mark.parametrize(
    ("model", "read", "write", "write_long", "life", "window"),
    [
        ("claude-opus-5", 0.10, 1.25, 2.0, 300, 1_000_000),
        ("claude-opus-5-20260401", 0.10, 1.25, 2.0, 300, 1_000_000),
        ("claude-opus-5-5", 0.05, 1.25, 2.0, 300, 1_000_000),
        ("claude-sonnet-5-5", 0.05, 1.25, 2.0, 300, 1_000_000),
        ("claude-fable-5-2", 0.025, 1.25, 2.0, 300, 1_000_000),
        ("claude-haiku-5-5", 0.10, 1.25, 2.0, 300, 1_000_000),
        ("claude-haiku-4-5", 0.10, 1.25, 2.0, 300, 200_000),
        ("claude-sonnet-4-5[1m]", 0.10, 1.25, 2.0, 300, 1_000_000),
        ("gpt-5.6-sol", 0.10, 1.25, 0.0, 1800, 922_000),
        ("gpt-6.1-sol", 0.05, 1.25, 0.0, 1800, 922_000),
        ("gpt-5-codex", 0.10, 1.0, 0.0, 300, 272_000),
        ("o3-mini", 0.50, 1.0, 0.0, 300, 200_000),
        ("anthropic/claude-opus-5.5", 0.05, 1.25, 2.0, 300, 1_000_000),
        ("openai/gpt-5.6-sol", 0.10, 1.25, 0.0, 1800, 922_000),
        ("eu.anthropic.claude-opus-5-5-v1:0", 0.05, 1.25, 2.0, 300, 1_000_000),
        ("global.anthropic.claude-opus-5-20260401-v1", 0.10, 1.25, 2.0, 300, 1_000_000),
        ("anthropic.claude-haiku-4-5-20251001-v1:0:200k", 0.10, 1.25, 2.0, 300, 200_000),
        ("claude-opus-5-5@20261001", 0.05, 1.25, 2.0, 300, 1_000_000),
        ("claude-fable-5-2@default", 0.025, 1.25, 2.0, 300, 1_000_000),
    ],
)
def test_ratios_lives_and_windows_are_those_of_the_model(
    model: str, read: float, write: float, write_long: float, life: float, window: int
) -> None:
    known = KNOWN(model)

    assert known is not None
    prices = known.prices
    assert (prices.read_ratio, prices.write_ratio) == pytest.approx((read, write))
    assert prices.write_long / prices.fresh == pytest.approx(write_long)
    assert (prices.life, known.window) == (life, window)
    assert "genai-prices" in prices.source


@pytest.mark.parametrize(
    ("model", "over", "prompt_times", "output_times"),
    [("claude-haiku-5-5", 100_000, 5, 5), ("gpt-5.6-sol", 272_000, 2, 1.5), ("gpt-6-sol", 272_000, 2, 1.5)],
)
def test_longer_prompts_cost_a_multiple(model: str, over: int, prompt_times: float, output_times: float) -> None:
    prices = KNOWN.prices(model)
    below, above = prices.at(over), prices.at(over + 1)

    assert above.fresh / below.fresh == pytest.approx(prompt_times)
    assert above.read / below.read == pytest.approx(prompt_times)
    assert above.write / below.write == pytest.approx(prompt_times)
    assert above.output / below.output == pytest.approx(output_times)


@pytest.mark.parametrize("model", ["", "llama-of-my-own", "claude", "\u0000", "x" * 10_000, "../../etc", "gpt-5\n"])
def test_of_a_model_that_is_not_known_the_prices_are_assumed_and_say_so(model: str) -> None:
    prices = KNOWN.prices(model)

    if KNOWN(model) is None:
        assert (prices.fresh, prices.assumed) == (ASSUMED.fresh, True)
        assert "not known" in prices.source


def test_of_each_unknown_model_it_is_told_once_what_is_assumed() -> None:
    told: list[str] = []
    known = ModelPrices(tell=told.append)
    for model in ("llama-of-my-own", "claude-opus-5", "llama-of-my-own", "another", ""):
        known.prices(model)

    assert [line.partition(":")[0] for line in told] == [
        "no prices are known of the model 'llama-of-my-own'",
        "no prices are known of the model 'another'",
    ]
    assert f"${ASSUMED.fresh:g} a million fresh tokens" in told[0]


def test_what_a_provider_has_no_price_for_costs_like_a_fresh_token() -> None:
    prices = KNOWN.prices("gpt-4-turbo")  # never cached

    assert not prices.assumed
    assert prices.read == prices.write == prices.fresh > 0
    assert prices.write_long == 0


def test_your_own_numbers_lie_over_those_of_a_model() -> None:
    prices = ModelPrices([PriceTable(name="claude-haiku-5-5", read=0.02)]).prices("claude-haiku-5-5")

    assert prices.read == 0.02
    assert prices.at(100_001).read == pytest.approx(0.1)  # five times what you said
    assert prices.fresh == KNOWN.prices("claude-haiku-5-5").fresh
    assert "your own numbers" in prices.source


def test_a_tier_and_a_window_of_your_own() -> None:
    own = PriceTable(name="mine", fresh=1, read=0.2, write=1.5, output=4, tier_tokens=1_000, tier_times=3, window=9_000)
    known = ModelPrices([own])("mine")

    assert known is not None
    assert known.window == 9_000
    assert (known.prices.at(1_000).read, known.prices.at(1_001).read) == pytest.approx((0.2, 0.6))


def test_prices_that_were_chosen_count_for_every_model() -> None:
    own = PriceTable(name="mine", fresh=1, read=0.2, write=1.5, output=4, ttl_seconds=60)
    chosen = ModelPrices([own], "mine")

    assert {chosen.prices(model).name for model in ("claude-opus-5", "gpt-6-sol", "llama", "")} == {"mine"}
    known = chosen("claude-haiku-4-5")
    assert known is not None
    assert known.window == 200_000  # prices say nothing about the window


def test_a_table_of_your_own_that_lacks_a_number_is_refused_with_its_name() -> None:
    with pytest.raises(ConfigError, match=r"prices_usd\.mine: a table of your own also needs fresh, write, output"):
        ModelPrices([PriceTable(name="mine", read=0.2)])


def test_a_name_that_is_neither_a_model_nor_a_table_is_refused() -> None:
    own = PriceTable(name="mine", fresh=1, read=0.2, write=1.5, output=4)

    with pytest.raises(ConfigError, match=r"prices = 'x': expected the name of a model, .*, or .*: mine"):
        ModelPrices([own], "x")
