"""Finds a model by its name in price_data.json, and what it costs at a moment.

The file holds what `genai-prices` says of models that are found by their names; `make prices` makes it anew from the
release in requirements/dev.txt. That package finds the same, with pydantic and an HTTP client that nothing here needs:
18 MB to install, and up to a second to import. Tests compare both over every model.
"""

import json
import re
from collections.abc import Mapping, Sequence
from datetime import UTC, date, datetime, time
from functools import cache
from typing import Any, NamedTuple, TypeAlias

from pagefold.package_data import package_text

_COMPACT_DATE = re.compile(r"-(20\d{2})(0[1-9]|1[0-2])(0[1-9]|[12]\d|3[01])(?=-|:|$)")


TokenPrices: TypeAlias = Mapping[str, float | Sequence[tuple[int, float]]]
"""USD per million tokens of each sort: a number, or one for each length of the prompt from which it counts."""


class PricedModel(NamedTuple):
    """A model in the price data. `window` is 0 where none is known; of its prices the last that are active count."""

    id: str
    name: str
    window: int
    prices: Sequence[Sequence[Any]]

    def at(self, moment: datetime) -> TokenPrices:
        return next((rates for when, rates in reversed(self.prices) if _active(when, moment)), self.prices[0][1])


def find_model(name: str) -> PricedModel | None:
    """The model of that name, with whichever provider is the first to have names like it."""
    name = name.lower()
    for provider in _providers():
        if _matches(provider["match"], name):
            dashed = _COMPACT_DATE.sub(_dashed, name)
            return _model(provider, name) or (_model(provider, dashed) if dashed != name else None)
    return None


def origin() -> str:
    """The package and the release that the data is from."""
    return str(_data()["from"])


def _model(provider: Mapping[str, Any], name: str) -> PricedModel | None:
    others = [other for other in _providers() if other["id"] in provider["fallback"]]
    for offering in (provider, *sorted(others, key=lambda other: provider["fallback"].index(other["id"]))):
        for model in offering["models"]:
            if _matches(model["match"], name):
                return PricedModel(model["id"], model["name"], model["window"], model["prices"])
    return None


def _matches(clause: Mapping[str, Any], name: str) -> bool:
    (rule, value), *_ = clause.items()
    match rule:
        case "equals":
            return bool(name == value)
        case "starts_with":
            return name.startswith(value)
        case "ends_with":
            return name.endswith(value)
        case "contains":
            return value in name
        case "regex":
            return re.search(value, name) is not None
        case "or":
            return any(_matches(each, name) for each in value)
        case _:
            assert rule == "and", rule
            return all(_matches(each, name) for each in value)


def _active(when: str | Sequence[str] | None, moment: datetime) -> bool:
    """Whether prices count: always, from a day on, or between two times of each day."""
    moment = moment.astimezone(UTC)
    if when is None:
        return True
    if isinstance(when, str):
        return moment.date() >= date.fromisoformat(when)
    start, end = map(time.fromisoformat, when)
    now = moment.time()
    return start <= now < end if start <= end else now >= start or now < end


def _dashed(found: re.Match[str]) -> str:
    try:
        return f"-{date(*map(int, found.groups()))}"
    except ValueError:
        return found[0]


def _providers() -> Sequence[Mapping[str, Any]]:
    found: Sequence[Mapping[str, Any]] = _data()["providers"]
    return found


@cache
def _data() -> Mapping[str, Any]:
    found: Mapping[str, Any] = json.loads(package_text("pagefold.adapters", "price_data.json"))
    return found
