"""fifo: when the window is full, the oldest exchanges are dropped in bulk until half of it is free.

What was dropped is announced with a handle; the task and what the system said stay. Never over the window, unless what
has to stay is more than that.
"""

from dataclasses import dataclass

from pagefold.derive.fold import Folded, Rule
from pagefold.derive.policies.folding import Folding, State, boundary
from pagefold.derive.policy import Notes

_LEFT = 0.5


@dataclass(frozen=True, slots=True)
class Fifo(Folding):
    @property
    def name(self) -> str:
        return "fifo"

    def due(self, state: State, notes: Notes, usable: int) -> tuple[str, Folded | None]:
        if state.tokens <= usable:
            return "", None
        room, cut = int((usable - state.head) * _LEFT), len(state.log)
        while cut > 0 and room >= state.log[cut - 1].tokens:
            cut -= 1
            room -= state.log[cut].tokens
        # At least the last exchange stays; where it is too long by itself, its results are trimmed.
        cut = boundary(state.log, min(cut + 1, len(state.log) - 1))
        return "the window is full", self.folded_by(state, usable, Rule(cut, budget=0))
