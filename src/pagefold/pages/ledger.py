"""The ledger: which lines the request being built holds literally, and where. References may point only at these.

A ledger is immutable: adding a text returns a new one. Two histories with the same beginning share its memory, but
neither sees what the other added. A line that was itself shown as a reference is not in the ledger.
"""

from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass, field

from pagefold.frozen import frozen

_LEAST = 3  # a line with fewer visible characters begins no run
_PLACES = 24


@frozen
class LedgerEntry:
    """One text, or part of one, in the request. `label` is the name that the model sees.

    A text without a label cannot be referred to. A line that is not literally there is None. `first` is the number of
    its first line. `whole` is the original text, where all of it is there; `like` is a key that texts of the same kind
    share; `source` says where a text comes from; `text` is the form in which the request shows it, title and all, or
    "" where that is its lines.
    """

    label: str
    lines: tuple[str | None, ...]
    first: int = 1
    whole: str | None = None
    like: Hashable = None
    source: str = ""
    text: str = ""


@dataclass(slots=True)
class _Log:
    """The entries that several ledgers share; each ledger knows how many of them are its own."""

    entries: list[LedgerEntry] = field(default_factory=list)
    # Few lines are there twice, and the garbage collector does not track bare tuples as it does lists.
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
        return self._log.entries[index]

    def places(self, line: str) -> Sequence[tuple[int, int]]:
        """Returns where a line is, as (text, line), the newest last; of very many places only some."""
        first = self._log.first.get(line)
        if first is None or first[0] >= self._length:
            return ()
        again = self._log.again.get(line)
        if again is None:
            return (first,)
        if again[-1][0] >= self._length:
            again = [place for place in again if place[0] < self._length]
        return again[-_PLACES:] if len(again) >= _PLACES else [first, *again]

    def held(self, lines: Iterable[str]) -> set[str]:
        """Returns those of the lines that are in some text."""
        first, length = self._log.first, self._length
        return {line for line in lines if line in first and first[line][0] < length}

    def labelled(self, label: str) -> LedgerEntry | None:
        index = self._log.labels.get(label)
        return None if index is None or index >= self._length else self._log.entries[index]

    def shown(self, label: str) -> str | None:
        """Returns the text that the request shows under a label."""
        entry = self.labelled(label)
        return None if entry is None else entry.text or "\n".join(line or "" for line in entry.lines)

    def same(self, text: str) -> LedgerEntry | None:
        """Returns the entry that holds the very same text whole."""
        index = self._log.wholes.get(text)
        return None if index is None or index >= self._length else self._log.entries[index]

    def like(self, key: Hashable) -> LedgerEntry | None:
        """Returns the newest whole text with this key."""
        for index in reversed(self._log.likes.get(key, ())):
            if index < self._length:
                return self._log.entries[index]
        return None

    @property
    def next_title(self) -> str:
        """Returns the title of the next text, which no other text of this request has."""
        return f"R{self._length + 1}"

    def with_text(self, entry: LedgerEntry) -> "Ledger":
        log = self._log
        if len(log.entries) != self._length:
            # Another history has gone on from here, so this one needs entries of its own.
            log = _Log()
            for earlier in self._log.entries[: self._length]:
                _append(log, earlier)
        _append(log, entry)
        return Ledger(log, self._length + 1)


def _append(log: _Log, entry: LedgerEntry) -> None:
    index = len(log.entries)
    log.entries.append(entry)
    if not entry.label:
        return
    log.labels.setdefault(entry.label, index)
    if entry.whole is not None:
        log.wholes.setdefault(entry.whole, index)
        if entry.like is not None:
            log.likes.setdefault(entry.like, []).append(index)
    for number, line in enumerate(entry.lines):
        if line is not None and len(line.strip()) >= _LEAST:
            if line in log.first:
                log.again.setdefault(line, []).append((index, number))
            else:
                log.first[line] = (index, number)
