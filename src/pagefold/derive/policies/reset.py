"""reset: above a threshold everything becomes the task, a summary, and the active tail.

The tail begins at the latest user turn that says what to do, so that "continue" never orphans the task. Where one
prompt led to a tail that is itself too long, only its last exchanges stay and the task turn stands before the summary.
"""

from dataclasses import dataclass
from typing import ClassVar

from pagefold.derive.fold import Folded, Rule, tail_of
from pagefold.derive.policies.folding import Folding, State, boundary
from pagefold.derive.policy import Notes
from pagefold.derive.task import active_task

_THRESHOLD = 0.95  # of what is usable
_KEEP_LAST = 8
_TAIL = 0.5
_LAST_EXCHANGES = 0.25
_SUMMARY = 0.08
_LEAST_SUMMARY = 512


@dataclass(frozen=True, slots=True)
class Reset(Folding):
    """Without a threshold it follows the window. `summary_tokens` is about the length of the summary."""

    threshold_tokens: int | None = None
    summary_tokens: int | None = None

    lossless: ClassVar[bool] = True

    @property
    def name(self) -> str:
        return "reset"

    def due(self, state: State, notes: Notes, usable: int) -> tuple[str, Folded | None]:
        threshold = int(usable * _THRESHOLD) if self.threshold_tokens is None else min(self.threshold_tokens, usable)
        if state.tokens <= threshold:
            return "", None
        if state.last is not None and len(state.log) - state.folded < _KEEP_LAST and state.tokens <= usable:
            return "", None  # what has to stay is above the threshold: resetting at every turn would not help
        return "above the threshold", self._made(state, usable, self._tail(state, usable))

    def _tail(self, state: State, usable: int) -> int:
        log, room = state.log, usable - state.head
        anchor = max(active_task(log[:]), default=len(log))
        cut = boundary(log, min(anchor, max(0, len(log) - _KEEP_LAST)))
        if sum(entry.tokens for entry in log[cut:]) <= room * _TAIL and cut > 0:
            return cut
        return tail_of(log, state.turn, int(room * _LAST_EXCHANGES))

    def _made(self, state: State, usable: int, cut: int) -> Folded:
        summary = self.summary_tokens or max(_LEAST_SUMMARY, int(usable * _SUMMARY))
        return self.folded_by(state, usable, Rule(cut, budget=summary), state.last)
