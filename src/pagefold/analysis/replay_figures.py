"""The figures of a replay. They add up: over the turns of a session, over sessions, over processes."""

from dataclasses import asdict, dataclass, field, fields
from typing import Any

from pagefold.wire.message import Usage


@dataclass(slots=True)
class ToolFigures:
    """Results of one tool, each counted once, as it first entered the context."""

    results: int = 0
    tokens: int = 0
    repeated_results: int = 0
    repeated_tokens: int = 0

    def add(self, other: "ToolFigures") -> None:
        for item in fields(self):
            setattr(self, item.name, getattr(self, item.name) + getattr(other, item.name))


@dataclass(slots=True)
class ReplayFigures:
    """Tokens are prompt tokens unless the name says otherwise; `cost` is in fresh input tokens at the given prices.

    `new_tokens` counts every message once, the first time it is sent: `tokens / new_tokens` is how often the average
    token was read. `history_tokens` are those of the recorded messages, whatever the policy made of them. `penalty` is
    what the misses would cost: one more round trip for each turn with one, and what was missed once more. `logged` is
    what the providers themselves reported, where the recording holds it: with what that costs at list prices, and how
    much of a subscription's five-hour windows was used meanwhile.
    """

    sessions: int = 0
    requests: int = 0
    tokens: int = 0
    new_tokens: int = 0
    history_tokens: int = 0
    cached_tokens: int = 0
    written_tokens: int = 0
    cost: float = 0.0
    peak: int = 0
    over: int = 0
    moved: int = 0
    expired: int = 0
    head_tokens: int = 0
    result_tokens: int = 0
    result_chars: int = 0
    repeated_chars: int = 0
    demanded: int = 0
    missed: int = 0
    missed_turns: int = 0
    penalty: float = 0.0
    tools: dict[str, ToolFigures] = field(default_factory=dict)
    logged_requests: int = 0
    logged_prompt_usd: float = 0.0
    logged_output_usd: float = 0.0
    logged_windows: float = 0.0
    logged: Usage = field(default_factory=Usage)

    def add(self, other: "ReplayFigures") -> None:
        """Sums, but the largest peak."""
        for name in _SUMMED:
            setattr(self, name, getattr(self, name) + getattr(other, name))
        self.peak = max(self.peak, other.peak)
        for tool, figures in other.tools.items():
            self.tools.setdefault(tool, ToolFigures()).add(figures)
        self.logged = Usage(*(getattr(self.logged, f.name) + getattr(other.logged, f.name) for f in fields(Usage)))

    @property
    def reads(self) -> float:
        """How many times the average token was sent."""
        return self.tokens / self.new_tokens if self.new_tokens else 0.0

    @property
    def missed_share(self) -> float:
        """Of the facts that answers used, how many were missed."""
        return self.missed / self.demanded if self.demanded else 0.0

    @property
    def effective(self) -> float:
        """The cost with the misses priced in."""
        return self.cost + self.penalty

    def to_dict(self) -> dict[str, Any]:
        tools = sorted(self.tools.items(), key=lambda item: (-item[1].tokens, item[0]))
        return {
            **{name: getattr(self, name) for name in ("sessions", *_SUMMED[1:])},
            "cost": round(self.cost, 3),
            "penalty": round(self.penalty, 3),
            "peak": self.peak,
            "reads": round(self.reads, 3),
            "tools": {tool: asdict(figures) for tool, figures in tools},
            "logged": asdict(self.logged) if self.logged_requests else None,
        }


_SUMMED = tuple(f.name for f in fields(ReplayFigures) if f.name not in ("peak", "tools", "logged"))
