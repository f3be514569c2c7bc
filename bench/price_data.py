"""Writes src/pagefold/adapters/price_data.json from the installed release of genai-prices.

    python -m bench.price_data

Kept are the providers that are found by a model's name, and those they fall back to; of a model its names, its window
and what tokens cost. One line is one model, so that a difference reads as what changed.
"""

import dataclasses
import json
from collections.abc import Mapping
from importlib.metadata import version
from pathlib import Path
from typing import Any

from genai_prices import types
from genai_prices.data_snapshot import get_snapshot

TARGET = Path("src/pagefold/adapters/price_data.json")
SORTS = {
    "fresh": "input_mtok",
    "read": "cache_read_mtok",
    "write": "cache_write_mtok",
    "write_long": "cache_write_1h_mtok",
    "output": "output_mtok",
}


def made() -> str:
    """The content of the file."""
    providers = [provider for provider in get_snapshot().providers if provider.model_match is not None]
    names = {name for provider in providers for name in provider.fallback_model_providers or ()}
    assert names <= {provider.id for provider in providers}, names
    return (
        f'{{"from": {json.dumps("genai-prices " + version("genai-prices"))}, "providers": [\n'
        + ",\n".join(map(_provider, providers))
        + "\n]}\n"
    )


def _provider(provider: types.Provider) -> str:
    head = {
        "id": provider.id,
        "match": _clause(provider.model_match),
        "fallback": list(provider.fallback_model_providers or ()),
    }
    models = ",\n".join(json.dumps(_model(model)) for model in provider.models)
    return json.dumps(head)[:-1] + ', "models": [\n' + models + "\n]}"


def _model(model: types.ModelInfo) -> dict[str, Any]:
    prices = [model.prices] if isinstance(model.prices, types.ModelPrice) else model.prices
    return {
        "id": model.id,
        "name": model.name or model.id,
        "match": _clause(model.match),
        "window": model.context_window or 0,
        "prices": [
            [None, _rates(price)]
            if isinstance(price, types.ModelPrice)
            else [_when(price.constraint), _rates(price.prices)]
            for price in prices
        ],
    }


def _clause(clause: Any) -> dict[str, Any]:
    (field,) = dataclasses.fields(clause)
    value, rule = getattr(clause, field.name), field.name.rstrip("_")
    if isinstance(value, list):
        return {rule: [_clause(each) for each in value]}
    return {rule: value if rule == "regex" else value.lower()}


def _when(constraint: Any) -> str | list[str] | None:
    match constraint:
        case types.StartDateConstraint():
            return str(constraint.start_date)
        case types.TimeOfDateConstraint():
            times = constraint.start_time, constraint.end_time
            assert not any(time.utcoffset() for time in times), times
            return [str(time.replace(tzinfo=None)) for time in times]
        case _:
            assert constraint is None, constraint
            return None


def _rates(price: types.ModelPrice) -> Mapping[str, Any]:
    found: dict[str, Any] = {}
    for sort, key in SORTS.items():
        rate: Any = getattr(price, key, None)
        if isinstance(rate, types.TieredPrices):
            found[sort] = [[0, float(rate.base)], *([tier.start, float(tier.price)] for tier in rate.tiers)]
        elif rate is not None:
            found[sort] = float(rate)
    return found


if __name__ == "__main__":
    TARGET.write_text(made(), encoding="utf-8")
    print(f"{TARGET}: {TARGET.stat().st_size:,} bytes")
