"""The bill: what each model's requests were charged for, in tokens and, given prices, in dollars."""

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, TypeAlias

from pagefold.frozen import frozen


@frozen
class Charge:
    """The tokens of one request as they are billed. `written` is what was written to the cache, by the life asked for.
    The size of the whole prompt decides the price tier."""

    fresh: int
    read: int
    written: Mapping[str, int]
    output: int

    @property
    def prompt(self) -> int:
        return self.fresh + self.read + sum(self.written.values())


Price: TypeAlias = Callable[[str, Charge], float]
"""What a request to a model costs, in dollars."""


@dataclass(slots=True)
class ModelBill:
    requests: int = 0
    fresh: int = 0
    read: int = 0
    written: dict[str, int] = field(default_factory=dict)
    output: int = 0
    usd: float = 0.0

    def add(self, charge: Charge, usd: float) -> None:
        self.requests += 1
        self.fresh += charge.fresh
        self.read += charge.read
        self.output += charge.output
        self.usd += usd
        for life, tokens in charge.written.items():
            self.written[life] = self.written.get(life, 0) + tokens

    def to_json(self) -> dict[str, Any]:
        return asdict(self)
