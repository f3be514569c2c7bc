"""How much memory the runs of histories may take: beyond that, those used least recently are forgotten whole.

Sizes are estimates in bytes: what a run takes was measured as a multiple of its request's characters. What the process
really takes is looked at every few seconds, and histories give way where that is more than it may be: caches of folds,
requests under way and what the allocator keeps are part of that. What is forgotten is a cache of work: when its history
comes back, it is derived again and comes out the same.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from pagefold.lock import Lock

DEFAULT_BYTES = 512 << 20
PROGRAM_BYTES = 100 << 20  # of a process that serves nobody
_KEPT = 4  # the part of all that fits which is kept whatever the process takes: without any, nobody would be served
TIDY_SECONDS, _HOUR = 4, 3_600
_WORTH_GIVING_BACK = 16 << 20
_MARGIN = 16  # the part of what the process may take at which histories begin to give way
_STEP_BYTES = 2_000  # of a request of a history that shares all but its own state with the newest


@dataclass(slots=True, eq=False)
class RememberedHistory:
    """One history: the keys under which `runs` holds its states, the newest last, and what they take together."""

    runs: dict[bytes, Any] = field(repr=False)
    keys: list[bytes] = field(default_factory=list)
    size: int = 0
    age: int = 0


class HistoryMemory:
    """All histories that are remembered, by last use. `used` never exceeds `most` by more than the newest history."""

    def __init__(self, most: int = DEFAULT_BYTES) -> None:
        self.most, self.used, self.forgotten = most, 0, 0
        self._histories: dict[RememberedHistory, None] = {}
        self._age = 0
        self._lock = Lock()

    def __len__(self) -> int:
        return len(self._histories)

    def use(self, history: RememberedHistory, key: bytes, size: int | None = None) -> None:
        """Notes that a history was used and is held under this key too; `size` is what its newest run takes."""
        with self._lock:
            self._histories.pop(history, None)
            self._histories[history] = None
            history.age = self._age
            if key not in history.keys[-1:]:
                history.keys.append(key)
            if size is None:
                self._resize(history, history.size + _STEP_BYTES)
            else:
                self._resize(history, size + _STEP_BYTES * len(history.keys))
            while self.used > self.most and len(self._histories) > 1:
                self._forget(next(iter(self._histories)))

    def grow_older(self, most: int) -> int:
        """Lets time pass, and forgets histories that were not used for `most` such steps. Returns the bytes of what was
        forgotten since the last step, for whatever reason."""
        with self._lock:
            self._age += 1
            while self._histories and (oldest := next(iter(self._histories))).age <= self._age - most:
                self._forget(oldest)
            forgotten, self.forgotten = self.forgotten, 0
            return forgotten

    def shed(self, size: int) -> None:
        """Forgets the histories used least recently that take about so many bytes, but never most of what fits."""
        with self._lock:
            least = max(self.used - size, self.most // _KEPT)
            while self.used > least and len(self._histories) > 1:
                self._forget(next(iter(self._histories)))

    def _resize(self, history: RememberedHistory, size: int) -> None:
        self.used += size - history.size
        history.size = size

    def _forget(self, history: RememberedHistory) -> None:
        del self._histories[history]
        for key in history.keys:
            run = history.runs.get(key)
            if run is not None and run.history is history:
                del history.runs[key]
        self.forgotten += history.size
        history.keys = []
        self._resize(history, 0)


def tidy(memory: HistoryMemory, most: int, resident: Callable[[], int], give_back: Callable[[], None]) -> None:
    """Forgets histories that nobody has used for an hour, and those used least recently where the process takes nearly
    `most` bytes; to be called every few seconds."""
    forgotten = memory.grow_older(_HOUR // TIDY_SECONDS)
    if (over := resident() - most + most // _MARGIN) > 0:
        memory.shed(over)
    if over > 0 or forgotten > _WORTH_GIVING_BACK:
        give_back()
