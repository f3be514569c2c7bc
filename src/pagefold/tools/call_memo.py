"""The same pure call again: its answer out of memory, without running the tool, and the reply says so.

Off by default and switched on tool by tool. Only for pure tools, only within one write epoch, only if what the call
reads looks as it did, and never for an error. An answer may be given any number of times; what nobody asked for is kept
for a while and then forgotten.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from pagefold.tools.model import SideEffectClass
from pagefold.tools.prefetch import FRESH_SECONDS, WriteEpochs, canonical
from pagefold.tools.registry import ToolRegistry

Body = TypeVar("Body")

NOTE = "> [answered from memory: {tool} was called with the same arguments, and nothing it reads was written since]"
"""What stands with an answer that no tool was run for."""

_KEPT = 256


@dataclass(frozen=True, slots=True)
class _Kept(Generic[Body]):
    body: Body
    epoch: tuple[int, int]
    at: float
    witness: object


class CallMemo(Generic[Body]):
    """Answers of one conversation's pure calls. Seconds and witnesses come in as values."""

    def __init__(self, registry: ToolRegistry, epochs: WriteEpochs, *, every: bool = False) -> None:
        """`every` asks no tool's leave: for rehearsals, in which nothing is served."""
        self._registry = registry
        self._epochs = epochs
        self._every = every
        self._kept: dict[tuple[str, str], _Kept[Body]] = {}
        self.served = 0

    def allows(self, tool: str, annotations: Mapping[str, Any] | None = None) -> bool:
        """Whether repeats of this tool may be answered from memory: it is pure, and the user said so."""
        found = self._registry.find(tool)
        if found is None or found.for_every_tool or found.model.side_effect_class is not SideEffectClass.PURE:
            return False
        told = annotations or {}
        told_otherwise = told.get("readOnlyHint", True) is not True or told.get("idempotentHint", True) is not True
        return (self._every or found.model.memoise) and not told_otherwise

    def remember(
        self, tool: str, arguments: Mapping[str, Any], body: Body, now: float, *, failed: bool, witness: object = None
    ) -> None:
        if not self.allows(tool) or (text := canonical(arguments)) is None:
            return
        self._kept.pop((tool, text), None)
        if failed:
            return
        while len(self._kept) >= _KEPT:
            del self._kept[next(iter(self._kept))]
        self._kept[tool, text] = _Kept(body, self._epochs.of(tool), now, witness)

    def recall(self, tool: str, arguments: Mapping[str, Any], now: float, witness: object = None) -> Body | None:
        """The answer to the identical earlier call, where it must still be the answer."""
        text = canonical(arguments) if self._kept and self.allows(tool) else None
        kept = self._kept.get((tool, text)) if text is not None else None
        if kept is None or kept.epoch != self._epochs.of(tool) or kept.witness != witness:
            return None
        found = self._registry.find(tool)
        assert found is not None
        ttl = found.model.cost_model.freshness_ttl_s
        if ttl is None and not found.model.is_local():
            ttl = FRESH_SECONDS
        if ttl is not None and now - kept.at > ttl:
            return None
        self.served += 1
        return kept.body


def note(tool: str) -> str:
    return NOTE.format(tool=tool)
