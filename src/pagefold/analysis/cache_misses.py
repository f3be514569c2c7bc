"""Adds up why a provider could not read its cache, by what it told the client: who changed what, and what that cost.

The provider compares a request with the one before and names the first difference (`diagnostics.cache_miss_reason`).
It costs what the tokens it could not read cost more in being written, as far as the reported usage shows that they
were: a difference is reported also where the cache was read all the same.
"""

from dataclasses import dataclass

from pagefold.derive.cost import Prices
from pagefold.wire.transcripts import Session

_WHAT_CHANGED = {
    "model_changed": "another model, or another speed",
    "system_changed": "the system prompt",
    "tools_changed": "the tools: added, removed or in another order",
    "messages_changed": "earlier messages: a compaction, a rewind, an edit or a fold",
    "previous_message_not_found": "nothing known: the provider no longer had the request before",
    "unavailable": "nothing known, or a setting such as thinking or tool choice",
}


@dataclass(slots=True)
class CacheMisses:
    """How often, in how many sessions, and what it cost in fresh input tokens."""

    times: int = 0
    sessions: int = 0
    tokens: int = 0
    cost: float = 0.0

    def add(self, other: "CacheMisses") -> None:
        self.times += other.times
        self.sessions += other.sessions
        self.tokens += other.tokens
        self.cost += other.cost


def cache_misses_of(session: Session, prices: Prices) -> dict[str, CacheMisses]:
    """Returns the cache misses that a session's provider reported, by their reason."""
    misses: dict[str, CacheMisses] = {}
    for place, miss in session.cache_misses.items():
        usage = session.usage.get(place)
        paid = miss.tokens if usage is None else min(miss.tokens, usage.fresh + usage.cache_write)
        prompt = paid if usage is None else usage.prompt
        cost = prices.cost(prompt - paid, paid) - prices.cost(prompt, 0)
        misses.setdefault(miss.reason, CacheMisses(sessions=1)).add(CacheMisses(1, 0, paid, cost))
    return misses


def what_changed(reason: str) -> str:
    """A provider's reason in words; one that is not known, as it is."""
    return _WHAT_CHANGED.get(reason, reason)
