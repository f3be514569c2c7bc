"""A tool that keeps answering nothing is not asked the same thing again, and the agent is told why.

After n empty answers in a row a call that was among them is refused. Another query, a write, an answer that is not
empty, or a minute gives the tool another chance, so that no tool is ever shut out.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from pagefold.tools.prefetch import WriteEpochs, canonical
from pagefold.tools.registry import ToolRegistry

EMPTY_BYTES = 8
"""An answer of no more than this says nothing: `[]`, `{}`, `null`, `""`."""

AGAIN_SECONDS = 60.0


@dataclass(slots=True)
class _Streak:
    epoch: tuple[int, int]
    last: float
    asked: set[str] = field(default_factory=set)
    empty: int = 0


class FailFast:
    """The streaks of one conversation. Seconds come in as values."""

    def __init__(self, registry: ToolRegistry, epochs: WriteEpochs) -> None:
        self._registry = registry
        self._epochs = epochs
        self._streaks: dict[str, _Streak] = {}
        self.refused = 0

    def refusal(self, tool: str, arguments: Mapping[str, Any], now: float) -> str | None:
        """Why this call is not worth making, in words for the agent; None where it is to be made."""
        most = self._most(tool)
        streak = self._streaks.get(tool)
        if most is None or streak is None or streak.empty < most or canonical(arguments) not in streak.asked:
            return None
        waited = now - streak.last
        if streak.epoch != self._epochs.of(tool) or waited >= AGAIN_SECONDS:
            del self._streaks[tool]
            return None
        self.refused += 1
        return (
            f"> [not called: {tool} answered nothing {streak.empty} times in a row, this query among them. "
            f"Ask something else, or ask again after a change or in {AGAIN_SECONDS - waited:.0f} s.]"
        )

    def watches(self, tool: str) -> bool:
        """Whether it matters how long an answer of this tool is."""
        return self._most(tool) is not None

    def answered(self, tool: str, arguments: Mapping[str, Any], length_bytes: int, now: float) -> None:
        """A real call was answered with so many bytes."""
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

    def _most(self, tool: str) -> int | None:
        found = self._registry.find(tool)
        return found.model.fail_fast_after_n if found else None
