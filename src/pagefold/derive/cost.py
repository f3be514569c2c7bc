"""What a request costs when the provider caches prompts, in money and in units of one fresh input token.

The tables are dated and small on purpose: list prices of one typical model per provider, USD per million tokens. A
user's own numbers override them. A cached prefix is read cheaply as long as the cache has not expired.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from pagefold.errors import ConfigError
from pagefold.settings.sections import PriceTable

_NUMBERS = ("fresh", "read", "write", "output", "ttl_seconds")


@dataclass(frozen=True, slots=True)
class Prices:
    """USD per million tokens; `ttl_seconds` is how long a cached prefix lives after it was last used, 0 for ever."""

    name: str
    fresh: float
    read: float
    write: float
    output: float
    ttl_seconds: float = 300.0
    source: str = "your configuration"

    @property
    def read_ratio(self) -> float:
        return self.read / self.fresh if self.fresh else 0.0

    @property
    def write_ratio(self) -> float:
        return self.write / self.fresh if self.fresh else 0.0

    def cost(self, cached: int, written: int) -> float:
        """In fresh input tokens: what was read from the cache, and what was written to it."""
        fresh = self.fresh  # the ratios, spelled out: every request that passes a proxy is reckoned twice
        return self.read / fresh * cached + self.write / fresh * written if fresh else 0.0

    def usd(self, cost: float) -> float:
        return cost * self.fresh / 1_000_000


TABLES: Mapping[str, Prices] = {
    table.name: table
    for table in (
        Prices("anthropic", 5.00, 0.50, 6.25, 25.00, 300, "Claude Opus 5, five-minute cache, list price 2026-11"),
        Prices("anthropic-1h", 5.00, 0.50, 10.00, 25.00, 3600, "Claude Opus 5, one-hour cache, list price 2026-11"),
        Prices("anthropic-opus-5.5", 4.00, 0.20, 5.00, 20.00, 300, "Claude Opus 5.5, list price 2026-11"),
        Prices("anthropic-sonnet-5", 2.00, 0.20, 2.50, 10.00, 300, "Claude Sonnet 5, list price 2026-11"),
        Prices("openai", 2.00, 0.20, 2.50, 10.00, 300, "GPT-6 Sol, short context, list price 2026-11"),
        Prices("openai-gpt-5", 1.25, 0.125, 1.25, 10.00, 300, "GPT-5, list price 2026"),
    )
}


def prices_named(name: str, own: Iterable[PriceTable] = ()) -> Prices:
    """A shipped table, with a user's own numbers over it, or a table of the user's own. Raises ConfigError."""
    tables = {table.name: table for table in own}
    shipped, mine = TABLES.get(name), tables.get(name)
    if mine is None:
        if shipped is None:
            raise ConfigError(f"prices = {name!r}: expected one of {', '.join(sorted({*TABLES, *tables}))}")
        return shipped
    numbers = {part: getattr(mine, part) for part in _NUMBERS if getattr(mine, part) is not None}
    if shipped is not None:
        return replace(shipped, **numbers, source=f"{shipped.source}, with your own numbers over it")
    if missing := [part for part in _NUMBERS[:4] if part not in numbers]:
        raise ConfigError(f"prices_usd.{name}: a table of your own also needs {', '.join(missing)}")
    return Prices(name, **numbers)
