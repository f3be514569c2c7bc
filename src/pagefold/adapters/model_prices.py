"""Looks up what a model costs and how much fits into it, by its name, in the price data.

What that does not hold, how long caches live, is in cache_lives.toml. A user's own numbers go over both.
"""

import re
from collections.abc import Callable, Iterable
from dataclasses import replace
from datetime import UTC, datetime
from functools import cache, lru_cache
from typing import TYPE_CHECKING, NamedTuple

from pagefold import tokens
from pagefold.adapters import price_data
from pagefold.adapters.price_data import PricedModel, TokenPrices
from pagefold.derive.cost import ASSUMED, Prices, Rates
from pagefold.derive.models import Known
from pagefold.errors import ConfigError
from pagefold.package_data import package_toml

if TYPE_CHECKING:
    from pagefold.settings.sections import PriceTable

_WIDE = re.compile(r"\[1m\]$")  # how Claude Code writes that it asks for the long window
_WIDE_WINDOW = 1_000_000
_RELEASE = re.compile(r"(?:-v\d+(?::\w+)*|@[\w.-]+)$")  # what Bedrock and Vertex write behind a model's own name
_NUMBERS = ("fresh", "read", "write", "output", "ttl_seconds", "write_long", "ttl_long_seconds")
_NEEDED = ("fresh", "read", "write", "output")
_MODELS = 500
_TOLD, _SPELLED = 20, 80
_ASSUMPTION = (
    f"assumed are ${ASSUMED.fresh:g} a million fresh tokens, {ASSUMED.read_ratio:g} of that for those read from the "
    f"cache, {ASSUMED.write_ratio:g} for those written, and a cache of {ASSUMED.life:g} s; prices_usd sets them"
)
_RATES = ("fresh", "read", "write", "output", "write_long")


class _Life(NamedTuple):
    pattern: re.Pattern[str]
    life: float = 300.0
    long_life: float = 0.0
    answer: int = 0


class ModelPrices:
    """What is known of models, with a user's own numbers over it. `chosen` names the model, or the table of the user's
    own, whose prices count for all of them. `tell` gets one sentence about each model that is not known, once. Raises
    ConfigError where what is chosen is neither, or a table is incomplete."""

    def __init__(
        self, own: Iterable["PriceTable"] = (), chosen: str = "", tell: Callable[[str], None] = lambda line: None
    ) -> None:
        self._own = {table.name: table for table in own}
        self._known: dict[str, Known | None] = {}
        self._tell, self._told = tell, set[str]()
        self._chosen = self._named(chosen) if chosen else None
        for table in self._own.values():  # what is wrong with a table is said at the start, not at the first request
            if any(getattr(table, name) is None for name in _NEEDED):
                self._named(table.name)

    def __call__(self, model: str) -> Known | None:
        """What is known of a model of this name; None where nothing is, and no prices were chosen."""
        if model not in self._known:
            if len(self._known) >= _MODELS:
                self._known.clear()
            self._known[model] = known = self._looked_up(model)
            if known is None and model and len(self._told) < _TOLD and model not in self._told:
                self._told.add(model)
                self._tell(f"no prices are known of the model {model[:_SPELLED]!r}: {_ASSUMPTION}")
        return self._known[model]

    def prices(self, model: str) -> Prices:
        """What a model costs. Of one that is not known it is assumed, and the prices say so."""
        known = self(model)
        if known is not None:
            return known.prices
        return replace(ASSUMED, source=ASSUMED.source.replace("the model", model or "the model"))

    def _looked_up(self, model: str) -> Known | None:
        known, table = model_facts(model), self._own.get(model)
        if table is not None:
            known = self._over(table, known)
        if self._chosen is None:
            return known
        if known is None:
            return replace(self._chosen, tokens=tokens.counter_for(model).name)
        return replace(known, prices=self._chosen.prices)

    def _named(self, name: str) -> Known:
        table, shipped = self._own.get(name), model_facts(name)
        if table is not None:
            return self._over(table, shipped)
        if shipped is None:
            mine = f", or one of your own tables: {', '.join(sorted(self._own))}" if self._own else ""
            raise ConfigError(f"prices = {name!r}: expected the name of a model, such as claude-opus-5{mine}")
        return shipped

    def _over(self, table: "PriceTable", known: Known | None) -> Known:
        """A user's own numbers over what is known. Raises ConfigError where nothing is and a number is missing."""
        numbers = {name: getattr(table, name) for name in _NUMBERS if getattr(table, name) is not None}
        if known is not None:
            source = f"{known.prices.source}, with your own numbers over it"
            prices = replace(known.prices, **numbers, source=source)
            if set(numbers) & set(_RATES):  # dearer rates were those of other numbers
                prices = replace(prices, tiers=_scaled(prices.tiers, known.prices, prices))
        else:
            if missing := [name for name in _NEEDED if name not in numbers]:
                raise ConfigError(f"prices_usd.{table.name}: a table of your own also needs {', '.join(missing)}")
            prices = Prices(table.name, **numbers)
            known = Known(tokens.counter_for(table.name).name, prices, 0)
        if table.tier_tokens and table.tier_times:
            prices = replace(prices, tiers=(_times(prices, table.tier_tokens, table.tier_times),))
        return replace(known, prices=prices, window=table.window or known.window)


@lru_cache(maxsize=_MODELS)
def model_facts(model: str) -> Known | None:
    """What the price data says of a model of this name, or None."""
    name = _WIDE.sub("", model.strip().lower())
    found = _priced_model(name)
    if found is None:
        return None
    priced = found.at(datetime.now(tz=UTC))
    rates = _rates(priced, 0)
    if not rates.fresh:
        return None
    life = next((life for life in _lives() if life.pattern.search(name)), _Life(re.compile("")))
    prices = Prices(
        found.id,
        *rates[1:5],
        ttl_seconds=life.life,
        source=f"{found.name}, list price in {price_data.origin()}",
        write_long=rates.write_long if life.long_life else 0.0,
        ttl_long_seconds=life.long_life if rates.write_long else 0.0,
        tiers=tuple(_rates(priced, start) for start in _starts(priced)),
    )
    window = _WIDE_WINDOW if _WIDE.search(model) else found.window
    window -= life.answer if window > 2 * life.answer else 0
    return Known(tokens.counter_for(model).name, prices, window)


def _priced_model(name: str) -> PricedModel | None:
    """The model in the price data. A gateway's or a cloud's prefix (`anthropic/`, `us.anthropic.`) may stand before it,
    and a cloud's name of the release (`-v1:0`, `@20261001`) behind it."""
    refs = (name, name.rpartition("/")[2], re.sub(r"^.*\banthropic\.", "", name))
    spelled = dict.fromkeys((*refs, *(_RELEASE.sub("", ref) for ref in refs)))
    return next(filter(None, map(price_data.find_model, spelled)), None)


def _rates(priced: TokenPrices, over: int) -> Rates:
    """The rates of a prompt longer than so many tokens. What a provider does not price costs like a fresh token."""
    found: dict[str, float] = {}
    for name in _RATES:
        price = priced.get(name)
        if price is None:
            found[name] = 0.0 if name in ("output", "write_long") else found.get("fresh", 0.0)
        elif isinstance(price, float):
            found[name] = price
        else:
            found[name] = next(rate for start, rate in reversed(price) if start <= over)
    return Rates(over, **found)


def _starts(priced: TokenPrices) -> list[int]:
    tiered = [price for price in priced.values() if not isinstance(price, float)]
    return sorted({int(start) for price in tiered for start, _ in price if start})


def _scaled(tiers: tuple[Rates, ...], before: Prices, now: Prices) -> tuple[Rates, ...]:
    """The rates of longer prompts, as many times a user's own as they were times the listed ones."""
    old, new = before.at(0), now.at(0)
    times = [mine / listed if listed else 1.0 for mine, listed in zip(new[1:], old[1:], strict=True)]
    return tuple(Rates(tier.over, *(a * b for a, b in zip(tier[1:], times, strict=True))) for tier in tiers)


def _times(prices: Prices, over: int, times: float) -> Rates:
    return Rates(over, *(rate * times for rate in replace(prices, tiers=()).at(0)[1:]))


@cache
def _lives() -> tuple[_Life, ...]:
    rows = package_toml("pagefold.adapters", "cache_lives.toml")["models"]
    return tuple(_Life(**{**row, "pattern": re.compile(row["pattern"])}) for row in rows)
