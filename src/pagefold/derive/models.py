"""What is known of models by their names: how many tokens fit, by which vocabulary they count, and what they cost.

The table is dated (2026-11) and small on purpose: families, not releases. A name that it does not know has no entry,
and whoever asks goes by what the user said or by a default on the safe side. `window` is what is worth filling: where a
provider takes longer prompts at a higher price, it ends where the price changes.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

from pagefold import tokens
from pagefold.derive.cost import TABLES, Prices


@dataclass(frozen=True, slots=True)
class Known:
    """`tokens` names the counter nearest to the model's own vocabulary."""

    window: int
    prices: Prices
    tokens: str


_FAMILIES: Sequence[tuple[str, int, str]] = (
    (r"claude-.*\[1m\]", 1_000_000, "anthropic"),
    (r"claude-opus-5[-.]5", 1_000_000, "anthropic-opus-5.5"),
    (r"claude-sonnet-5", 1_000_000, "anthropic-sonnet-5"),
    (r"claude-(?:opus|fable|haiku|mythos)-5", 1_000_000, "anthropic"),
    (r"claude-", 200_000, "anthropic"),
    (r"gpt-4\.1", 1_000_000, "openai"),
    (r"gpt-4o|gpt-4-turbo|gpt-5(?:\.\d+)?-chat", 128_000, "openai"),
    (r"gpt-5(?:\.[12])?(?:-|$)|codex-mini", 272_000, "openai-gpt-5"),
    (r"gpt-[5-9]", 272_000, "openai"),  # a million fit, at twice the price beyond this
    (r"(?:^|/)o[134](?:-|$)", 200_000, "openai"),
)


@lru_cache(maxsize=500)
def known(model: str) -> Known | None:
    """What the table says of a model of this name, or None."""
    for pattern, window, prices in _FAMILIES:
        if re.search(pattern, model):
            return Known(window, TABLES[prices], tokens.counter_for(model).name)
    return None
