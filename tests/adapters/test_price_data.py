"""The price data: what genai-prices says, model by model, name by name and moment by moment."""

from datetime import UTC, datetime, timedelta, timezone
from functools import cache
from typing import Any

import pytest
from genai_prices import types
from genai_prices.data_snapshot import get_snapshot
from hypothesis import given
from hypothesis import strategies as st

from bench.price_data import SORTS, TARGET, made
from pagefold.adapters import price_data
from pagefold.adapters.price_data import PricedModel, find_model

MOMENTS = [
    datetime(2024, 1, 1, 12, tzinfo=UTC),
    *(datetime(2026, 9, 9, hour, 59, 59, tzinfo=timezone(timedelta(hours=3))) for hour in range(24)),
    *(datetime(2026, 9, 10, hour, tzinfo=UTC) for hour in range(24)),
    datetime(2030, 6, 1, 16, 30, tzinfo=UTC),
]


def theirs(name: str) -> types.ModelInfo | None:
    try:
        return get_snapshot().find_provider_model(name, None, None, None)[1]
    except LookupError:
        return None


@cache
def names() -> list[str]:
    """The id of every model that they know, and of each what its clauses ask for."""
    found: dict[str, None] = {}

    def words(clause: Any) -> None:
        for value in vars(clause).values():
            if isinstance(value, list):
                for each in value:
                    words(each)
            else:
                found[value.strip("^$").replace("\\", "")] = None

    for provider in get_snapshot().providers:
        for model in provider.models:
            found[model.id] = None
            words(model.match)
    return list(found)


def same(name: str) -> tuple[PricedModel, types.ModelInfo] | None:
    """What is found by a name, by us and by them, after a look whether it is the same."""
    ours, expected = find_model(name), theirs(name)
    if expected is None:
        assert ours is None
        return None
    assert ours is not None
    assert (ours.id, ours.name) == (expected.id, expected.name or expected.id)
    assert ours.window == (expected.context_window or 0)
    return ours, expected


def listed(price: Any) -> Any:
    if isinstance(price, types.TieredPrices):
        return [[0, float(price.base)], *([tier.start, float(tier.price)] for tier in price.tiers)]
    return None if price is None else float(price)


def test_the_file_is_what_the_pinned_release_gives() -> None:
    assert TARGET.read_text(encoding="utf-8") == made(), "run `make prices`"
    assert price_data.origin().startswith("genai-prices ")


def test_every_name_finds_the_same_model_and_every_moment_the_same_prices() -> None:
    found = {id(pair[1]): pair for name in names() if (pair := same(name)) is not None}
    assert len(found) > 400
    for ours, expected in found.values():
        for moment in MOMENTS if len(ours.prices) > 1 else MOMENTS[:1]:
            rates, prices = ours.at(moment), expected.get_prices(moment)
            assert {sort: rates.get(sort) for sort in SORTS} == {
                sort: listed(getattr(prices, key, None)) for sort, key in SORTS.items()
            }


@given(
    st.sampled_from(names()),
    st.sampled_from(["", "anthropic/", "us.anthropic.", "openai/", "models/", "x"]),
    st.sampled_from(["", "-20260401", "-20269999", "-20251211", "-2026-04-01", "-latest", "@20260401", "-20260401:0"]),
    st.booleans(),
)
def test_names_with_prefixes_dates_and_capitals_find_the_same_model(
    name: str, before: str, after: str, capitals: bool
) -> None:
    spelled = before + name + after
    same(spelled.upper() if capitals else spelled)


@pytest.mark.parametrize("name", ["", "no-such-model", "\ud800", "claude" * 1000])
def test_a_name_that_nobody_has_finds_nothing_where_they_find_nothing(name: str) -> None:
    same(name)
