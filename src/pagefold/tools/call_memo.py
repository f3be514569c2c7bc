"""Answers a repeated pure call from memory, without running the tool; the reply says so.

Off by default and switched on tool by tool. Only answers of pure tools are given again, only within one write epoch,
only if the files that the call reads are unchanged, and never an error. An answer may be given any number of times. The
oldest answers are dropped when there are too many.
"""

from collections.abc import Mapping
from typing import Any, Generic, TypeVar

from pagefold.tools.model import SideEffectClass
from pagefold.tools.prefetch import Ticket, WriteEpochs, canonical
from pagefold.tools.registry import ToolRegistry

Body = TypeVar("Body")

NOTE = "> [answered from memory: {tool} was called with the same arguments, and nothing it reads was written since]"
"""Added to an answer for which no tool was run."""

_MAX_ANSWERS = 256


class CallMemo(Generic[Body]):
    """The answers of one conversation's pure calls.

    The time in seconds, and the `witness` (the state of the files that a call reads), are passed in.
    """

    def __init__(self, registry: ToolRegistry, epochs: WriteEpochs, *, every: bool = False) -> None:
        """With `every`, a tool need not be switched on: for replays, in which nothing is served."""
        self._registry = registry
        self._epochs = epochs
        self._every = every
        self._answers: dict[tuple[str, str], tuple[Ticket, Body]] = {}

    def allows(self, tool: str, annotations: Mapping[str, Any] | None = None) -> bool:
        """Tells whether repeats of this tool may be answered from memory: it is pure, and the user switched it on."""
        match = self._registry.find(tool)
        if match is None or match.for_every_tool or match.model.side_effect_class is not SideEffectClass.PURE:
            return False
        hints = annotations or {}
        agrees = hints.get("readOnlyHint", True) is True and hints.get("idempotentHint", True) is True
        return (self._every or match.model.memoise) and agrees

    def remember(
        self, tool: str, arguments: Mapping[str, Any], body: Body, now: float, *, failed: bool, witness: object = None
    ) -> None:
        if not self.allows(tool) or (text := canonical(arguments)) is None:
            return
        self._answers.pop((tool, text), None)
        if failed:
            return
        while len(self._answers) >= _MAX_ANSWERS:
            del self._answers[next(iter(self._answers))]
        self._answers[tool, text] = (Ticket(tool, text, self._epochs.of(tool), now, witness), body)

    def recall(self, tool: str, arguments: Mapping[str, Any], now: float, witness: object = None) -> Body | None:
        """Returns the answer to the identical earlier call, or None where it may have changed since."""
        text = canonical(arguments) if self._answers and self.allows(tool) else None
        if text is None or (tool, text) not in self._answers:
            return None
        ticket, body = self._answers[tool, text]
        return body if self._epochs.is_current(ticket, now) and ticket.witness == witness else None


def note(tool: str) -> str:
    return NOTE.format(tool=tool)
