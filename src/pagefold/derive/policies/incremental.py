"""incremental: what bears on the active task stays whole, the recent window stays, and digests fill the gaps.

Exchanges are scored against the task: the files and tools they share with it, the errors they share with the last
exchanges, and how long ago they were. A call stands or falls with its results. Everything is charged to the budget: the
task first, then pins and the recent window, then the best exchanges and the digests between them.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

from pagefold.derive.entry import Entry, counted
from pagefold.derive.fold import Folded, Rule, whole
from pagefold.derive.policies.folding import Folding, State, boundary
from pagefold.derive.policy import Notes
from pagefold.derive.relevance import NO_BEARING, bearing_of, relevance
from pagefold.derive.task import active_task
from pagefold.log import Log

_KEEP_LAST = 8
_KEEP_SHARE = 0.3
_LEFT = 0.6  # of the budget, what a selection leaves: the next one should not come at once
_WHOLE = 0.5  # of that, what whole exchanges may take; the rest is for the digests between them
_GAP = 110  # tokens of a digest besides its lines


@dataclass(frozen=True, slots=True)
class Incremental(Folding):
    """Without a budget it follows the window."""

    budget_tokens: int | None = None

    lossless: ClassVar[bool] = True

    @property
    def name(self) -> str:
        return "incremental"

    def due(self, state: State, notes: Notes, usable: int) -> tuple[str, Folded | None]:
        budget = usable if self.budget_tokens is None else min(self.budget_tokens, usable)
        if state.tokens <= budget:
            return "", None
        if state.last is not None and len(state.log) - state.folded < _KEEP_LAST and state.tokens <= usable:
            return "", None  # what has to stay is above the budget: selecting at every turn would not help
        room = int((budget - state.head) * _LEFT)
        cut = _recent(state.log, int(room * _KEEP_SHARE))
        stays, spent = self._chosen(state, cut, room)
        left = max(0, room - spent - sum(entry.tokens for entry in state.log[cut:]))
        return "above the budget", self.folded_by(state, usable, Rule(cut, stays, left), state.last)

    def _chosen(self, state: State, cut: int, room: int) -> tuple[frozenset[int], int]:
        """The exchanges before the cut that stay whole, best first as far as they fit, and what they cost."""
        log = state.log
        task = [place for place in active_task(log[:]) if place < cut]
        spent = sum(counted(log[place].message, self.tokens) for place in task)
        wanted = NO_BEARING
        for entry in [*(log[place] for place in sorted(task)), *log[cut:]]:
            wanted = wanted.joined(bearing_of(entry.message))
        scored: list[tuple[float, int, int]] = []
        for first, end in _exchanges(log, cut):
            bearing = NO_BEARING
            for entry in log[first:end]:
                bearing = bearing.joined(bearing_of(entry.message))
            score = relevance(bearing, wanted, distance=cut - end)
            if score > 0 and not any(log[place].fixed or place in task for place in range(first, end)):
                scored.append((-score, first, end))
        stays: set[int] = set()
        limit = spent + int(room * _WHOLE)
        for _, first, end in sorted(scored):
            cost = sum(counted(entry.message, self.tokens) for entry in log[first:end]) + _GAP
            if spent + cost <= limit:
                stays.update(range(first, end))
                spent += cost
        return whole(log, stays), spent


def _recent(log: Log[Entry], room: int) -> int:
    """Where the recent window begins: the last messages, fewer where they are too long."""
    cut, tokens = len(log), 0
    for place in range(len(log) - 1, -1, -1):
        tokens += log[place].tokens
        if cut < len(log) and (len(log) - place > _KEEP_LAST or tokens > room):
            break
        if boundary(log, place) == place:
            cut = place
    return cut


def _exchanges(log: Log[Entry], cut: int) -> Iterator[tuple[int, int]]:
    """The log before the cut, in pieces that stand or fall together: a call and its results, or one message."""
    first = 0
    for place in range(1, cut + 1):
        if place == cut or boundary(log, place) == place:
            yield first, place
            first = place
