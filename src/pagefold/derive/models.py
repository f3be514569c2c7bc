"""What is known of a model: by which vocabulary it counts, what it costs, and how much fits. Surfaces look it up."""

from dataclasses import dataclass

from pagefold.derive.cost import Prices


@dataclass(frozen=True, slots=True)
class Known:
    """`tokens` names the counter nearest to the model's own vocabulary; `window` is 0 where nobody says what fits."""

    tokens: str
    prices: Prices
    window: int
