"""clear: above a trigger all tool results but the newest few are cleared, at once.

The rule that providers offer as context editing: at 100,000 tokens all but the newest three. Each mark recalls what it
stands for. Promises nothing about the window.
"""

from dataclasses import dataclass
from typing import ClassVar

from pagefold.derive.fold import Folded
from pagefold.derive.policies.folding import Folding, State
from pagefold.derive.policies.masking import masked
from pagefold.derive.policy import Notes
from pagefold.pages.journal import Boundary

TRIGGER = 100_000
KEEP = 3


@dataclass(frozen=True, slots=True)
class Clear(Folding):
    trigger: int = TRIGGER
    keep: int = KEEP

    destroys: ClassVar[Boundary] = Boundary.PRUNE

    @property
    def name(self) -> str:
        return "clear"

    def due(self, state: State, notes: Notes, usable: int) -> tuple[str, Folded | None]:
        if state.tokens <= min(self.trigger, usable):
            return "", None
        return "results are cleared above the trigger", masked(state, self.keep, self.tokens)
