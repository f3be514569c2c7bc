"""The ledger: which lines the model can still see, literally, in the request that is being built, and where.

A ledger only grows, and growing gives a new one: the old one still knows exactly what it knew. Two histories that share
their beginning share memory, never knowledge. A line that was itself shown as a reference is not literally there and is
not in the ledger.
"""

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field

from pagefold.frozen import frozen

_LEAST = 3  # a line with fewer visible characters begins no run
_PLACES = 24


@frozen
class LedgerEntry:
    """One text, or part of one, that stands in the request. `label` is how the model knows it.

    None in `lines` is not literally there. `first` is the number that its first line carries. `whole` is the text it
    says, where all of it stands there by itself; `like` is what texts of the same kind have in common.
    """

    label: str
    lines: tuple[str | None, ...]
    first: int = 1
    whole: str | None = None
    like: Hashable = None


@dataclass(slots=True)
class _Log:
    """What several ledgers share. Each knows how much of it is its own."""

    standing: list[LedgerEntry] = field(default_factory=list)
    # Hardly a line stands twice, and bare tuples are nothing to the collector of garbage, where lists would be.
    first: dict[str, tuple[int, int]] = field(default_factory=dict)
    again: dict[str, list[tuple[int, int]]] = field(default_factory=dict)
    labels: dict[str, int] = field(default_factory=dict)
    wholes: dict[str, int] = field(default_factory=dict)
    likes: dict[Hashable, list[int]] = field(default_factory=dict)


@frozen
class Ledger:
    _log: _Log = field(default_factory=_Log)
    _length: int = 0

    def __len__(self) -> int:
        return self._length

    def __getitem__(self, index: int) -> LedgerEntry:
        if not 0 <= index < self._length:
            raise IndexError(index)
        return self._log.standing[index]

    def places(self, line: str) -> Sequence[tuple[int, int]]:
        """Where a line stands, as (text, line), the newest last; only some of very many places."""
        first = self._log.first.get(line)
        if first is None or first[0] >= self._length:
            return ()
        again = self._log.again.get(line)
        if again is None:
            return (first,)
        if again[-1][0] >= self._length:
            again = [place for place in again if place[0] < self._length]
        return again[-_PLACES:] if len(again) >= _PLACES else [first, *again]

    def labelled(self, label: str) -> LedgerEntry | None:
        index = self._log.labels.get(label)
        return None if index is None or index >= self._length else self._log.standing[index]

    def same(self, text: str) -> LedgerEntry | None:
        """Where the very same text stands whole."""
        index = self._log.wholes.get(text)
        return None if index is None or index >= self._length else self._log.standing[index]

    def like(self, key: Hashable) -> LedgerEntry | None:
        """The newest text of this kind that stands whole."""
        for index in reversed(self._log.likes.get(key, ())):
            if index < self._length:
                return self._log.standing[index]
        return None

    def label_for(self, name: str) -> str:
        """A label for one more text of this name: a number tells it from those before."""
        if self.labelled(name) is None:
            return name
        # The numbers that are taken have no gaps, so the first free one is found by doubling and halving.
        free = 2
        while self.labelled(f"{name} #{free}") is not None:
            free *= 2
        taken = free // 2
        while free - taken > 1:
            middle = (free + taken) // 2
            free, taken = (free, middle) if self.labelled(f"{name} #{middle}") is not None else (middle, taken)
        return f"{name} #{free}"

    def with_text(self, standing: LedgerEntry) -> "Ledger":
        log = self._log
        if len(log.standing) != self._length:
            # Another history has gone on from here: what follows is ours alone.
            log = _Log()
            for known in self._log.standing[: self._length]:
                _append(log, known)
        _append(log, standing)
        return Ledger(log, self._length + 1)


def _append(log: _Log, standing: LedgerEntry) -> None:
    index = len(log.standing)
    log.standing.append(standing)
    log.labels.setdefault(standing.label, index)
    if standing.whole is not None:
        log.wholes.setdefault(standing.whole, index)
        if standing.like is not None:
            log.likes.setdefault(standing.like, []).append(index)
    for at, line in enumerate(standing.lines):
        if line is not None and len(line.strip()) >= _LEAST:
            if line in log.first:
                log.again.setdefault(line, []).append((index, at))
            else:
                log.first[line] = (index, at)
