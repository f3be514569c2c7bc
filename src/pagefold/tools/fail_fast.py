"""Refuses a call that was already answered with nothing, after a tool has given several empty answers in a row.

After n empty answers in a row, a call that was among them is refused, and the agent is told why. A write, an answer
that is not empty, or a minute ends the streak, and another query is always allowed, so no tool is ever shut out.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from pagefold.tools.prefetch import WriteEpochs, canonical
from pagefold.tools.registry import ToolRegistry

EMPTY_BYTES = 8
"""An answer of at most this length counts as empty: `[]`, `{}`, `null`, `""`."""

AGAIN_SECONDS = 60.0


@dataclass(slots=True)
class _Streak:
    """Empty answers of one tool in a row, with the arguments that led to them."""

    epoch: tuple[int, int]
    last: float
    asked: set[str] = field(default_factory=set)
    empty: int = 0


class FailFast:
    """The empty answers of one conversation. The time is passed in, in seconds."""

    def __init__(self, registry: ToolRegistry, epochs: WriteEpochs) -> None:
        self._registry = registry
        self._epochs = epochs
        self._streaks: dict[str, _Streak] = {}

    def refusal(self, tool: str, arguments: Mapping[str, Any], now: float) -> str | None:
        """Returns why this call is not worth making, in words for the agent, or None where it is to be made."""
        max_empty = self._max_empty(tool)
        streak = self._streaks.get(tool)
        if max_empty is None or streak is None or streak.empty < max_empty or canonical(arguments) not in streak.asked:
            return None
        waited = now - streak.last
        if streak.epoch != self._epochs.of(tool) or waited >= AGAIN_SECONDS:
            del self._streaks[tool]
            return None
        return (
            f"> [not called: {tool} answered nothing {streak.empty} times in a row, this query among them. "
            f"Ask something else, or ask again after a change or in {AGAIN_SECONDS - waited:.0f} s.]"
        )

    def watches(self, tool: str) -> bool:
        """Tells whether empty answers of this tool are counted."""
        return self._max_empty(tool) is not None

    def answered(self, tool: str, arguments: Mapping[str, Any], length_bytes: int, now: float) -> None:
        """Records the length of the answer to a real call."""
        if not self.watches(tool):
            return
        if length_bytes > EMPTY_BYTES:
            self._streaks.pop(tool, None)
            return
        epoch = self._epochs.of(tool)
        streak = self._streaks.get(tool)
        if streak is None or streak.epoch != epoch:
            streak = self._streaks[tool] = _Streak(epoch, now)
        streak.empty += 1
        streak.last = now
        if (text := canonical(arguments)) is not None:
            streak.asked.add(text)

    def _max_empty(self, tool: str) -> int | None:
        match = self._registry.find(tool)
        return match.model.fail_fast_after_n if match else None
