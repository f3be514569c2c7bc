"""What a request costs when the provider caches prompts: in money, and in units of one fresh input token.

`Prices` is a value: surfaces look it up by the model and hand it down; nothing here knows a model. It holds what prices
depend on: how long the prompt is (tiers), how long the cache is asked to live (long writes), and how long a cached
prefix lives after its last use.
"""

from dataclasses import dataclass, replace
from typing import NamedTuple, Self

from pagefold.wire.message import Usage

_MILLION = 1_000_000


class Rates(NamedTuple):
    """USD per million tokens of a request whose prompt is longer than `over` tokens. `write_long` is for the cache of
    the longer life."""

    over: int
    fresh: float
    read: float
    write: float
    output: float
    write_long: float = 0.0


@dataclass(frozen=True, slots=True)
class Prices:
    """USD per million tokens. `ttl_seconds` is how long a cached prefix lives after it was last used, 0 for ever.

    Where the provider sells a longer life too, `write_long` and `ttl_long_seconds` are its price and length, and
    `long` says that the client asks for it. `tiers` are the rates of longer prompts, the shortest first: the one that
    a prompt exceeds counts for every token of its request. `assumed` says that nothing is known of the model. `unit` is
    what a token of `cost` costs where that is not a fresh token of this model: so costs of several models add up.
    """

    name: str
    fresh: float
    read: float
    write: float
    output: float
    ttl_seconds: float = 300.0
    source: str = "your configuration"
    write_long: float = 0.0
    ttl_long_seconds: float = 0.0
    long: bool = False
    tiers: tuple[Rates, ...] = ()
    assumed: bool = False
    unit: float = 0.0

    def __post_init__(self) -> None:
        # What is read back from a note has plain tuples.
        object.__setattr__(self, "tiers", tuple(Rates(int(over), *map(float, of)) for over, *of in self.tiers))

    @property
    def life(self) -> float:
        """How many seconds a prefix that this client writes is cached after it was last used, 0 for ever."""
        return self.ttl_long_seconds if self.long else self.ttl_seconds

    @property
    def read_ratio(self) -> float:
        return self.read / self.fresh if self.fresh else 0.0

    @property
    def write_ratio(self) -> float:
        """Of a token that this client writes to the cache."""
        return self._written(self.at(0)) / self.fresh if self.fresh else 0.0

    def lived(self, *, long: bool) -> Self:
        """These prices for a client that asks for the longer life of the cache, or not. The same where none is sold."""
        return self if self.long == long or (long and not self.write_long) else replace(self, long=long)

    def at(self, prompt: int) -> Rates:
        """What every token costs in a request with so long a prompt."""
        for tier in reversed(self.tiers):
            if prompt > tier.over:
                return tier
        return Rates(0, self.fresh, self.read, self.write, self.output, self.write_long)

    def cost(self, cached: int, written: int) -> float:
        """A request in fresh input tokens of a short prompt: what it reads from the cache, and what it writes to it."""
        unit = self.unit or self.fresh
        if not unit:
            return 0.0
        if not self.tiers:  # spelled out: every request that passes a proxy is reckoned twice
            return self.read / unit * cached + (self.write_long if self.long else self.write) / unit * written
        read, write = self.ratios(cached + written)
        return read * cached + write * written

    def ratios(self, prompt: int) -> tuple[float, float]:
        """What a token costs, as in `cost`, that so long a prompt reads from the cache, and one that it writes."""
        rates, unit = self.at(prompt), self.unit or self.fresh
        return (rates.read / unit, self._written(rates) / unit) if unit else (0.0, 0.0)

    def billed(self, usage: Usage) -> tuple[float, float]:
        """What the provider charges, in USD, for a prompt of which it reports this, and for the answer: that too is
        dearer after a long prompt."""
        rates = self.at(usage.prompt)
        short, long = usage.cache_write - usage.cache_write_long, usage.cache_write_long
        written = short * rates.write + long * (rates.write_long or rates.write)
        prompt = usage.fresh * rates.fresh + usage.cache_read * rates.read + written
        return prompt / _MILLION, usage.output * rates.output / _MILLION

    def bill(self, usage: Usage) -> float:
        """What the provider charges, in USD, for a request of which it reports this."""
        prompt, output = self.billed(usage)
        return prompt + output

    def usd(self, cost: float) -> float:
        """Money for what `cost` says."""
        return cost * (self.unit or self.fresh) / _MILLION

    def _written(self, rates: Rates) -> float:
        return (rates.write_long or rates.write) if self.long else rates.write


ASSUMED = Prices(
    "assumed",
    5.00,
    0.50,
    6.25,
    25.00,
    300.0,
    "assumed at the prices of Claude Opus 5 (2026-11), because the model is not known",
    write_long=10.00,
    ttl_long_seconds=3600.0,
    assumed=True,
)
"""What a model is taken to cost of which nothing is known."""
