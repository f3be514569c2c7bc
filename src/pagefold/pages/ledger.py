"""The ledger: which lines the request being built holds literally, and where. References may point only at these.

A ledger is immutable: adding a text returns a new one. Two histories with the same beginning share its memory, but
neither sees what the other added. A line that was itself shown as a reference is not in the ledger.
"""

from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass, field

from pagefold.frozen import frozen
from pagefold.lock import APPENDING

FLOOR = 32
"""Tokens that lines have to be worth to be referred to: more than a reference costs, because references are harder to
read, and lines that are only referred to cannot be referred to again."""
_LEAST = 3  # a line with fewer visible characters begins no run
MOST_PLACES = 24
"""How many places of a line are told at most."""
_ALIKE = 3  # texts that are compared with a new one
_LINE_BITS = 24  # of a place: the rest is which text
_LINE_MASK = (1 << _LINE_BITS) - 1


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
    # Where lines are, as one number each: text and line. There is one for every line, and tuples take thrice that.
    first: dict[str, int] = field(default_factory=dict)
    again: dict[str, list[int]] = field(default_factory=dict)
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
        first, end = self._log.first.get(line), self._length << _LINE_BITS
        if first is None or first >= end:
            return ()
        again = self._log.again.get(line)
        if again is None:
            return ((first >> _LINE_BITS, first & _LINE_MASK),)
        if again[-1] >= end:
            again = [place for place in again if place < end]
        places = again[-MOST_PLACES:] if len(again) >= MOST_PLACES else [first, *again]
        return [(place >> _LINE_BITS, place & _LINE_MASK) for place in places]

    def held(self, lines: Iterable[str]) -> set[str]:
        """Returns those of the lines that are in some text."""
        first, end = self._log.first, self._length << _LINE_BITS
        held = first.keys() & lines
        return held if self._length == len(self._log.entries) else {line for line in held if first[line] < end}

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

    def like(self, key: Hashable) -> list[LedgerEntry]:
        """Returns the last few whole texts with this key, the newest first: pages of one list have the same."""
        held = [index for index in self._log.likes.get(key, ()) if index < self._length]
        return [self._log.entries[index] for index in held[: -_ALIKE - 1 : -1]]

    @property
    def next_title(self) -> str:
        """Returns the title of the next text, which no other text of this request has."""
        return f"R{self._length + 1}"

    def with_text(self, entry: LedgerEntry) -> "Ledger":
        log = self._log
        with APPENDING:
            is_newest = len(log.entries) == self._length
            if is_newest:
                log.entries.append(entry)
        if not is_newest:
            # Another history has gone on from here, so this one needs entries of its own.
            log = _copied(log, self._length)
            log.entries.append(entry)
        _index(log, entry, self._length)
        return Ledger(log, self._length + 1)


def _copied(log: _Log, length: int) -> _Log:
    """Returns the first entries of a log, and where their lines are, in a log of its own."""
    end = length << _LINE_BITS
    # Another history may add to these dicts meanwhile; copying one is a single step, going through it is not.
    return _Log(
        log.entries[:length],
        {line: place for line, place in log.first.copy().items() if place < end},
        {
            line: before
            for line, places in log.again.copy().items()
            if (before := [place for place in places.copy() if place < end])
        },
        {label: index for label, index in log.labels.copy().items() if index < length},
        {whole: index for whole, index in log.wholes.copy().items() if index < length},
        {
            like: before
            for like, texts in log.likes.copy().items()
            if (before := [index for index in texts.copy() if index < length])
        },
    )


def _index(log: _Log, entry: LedgerEntry, index: int) -> None:
    """Makes the lines of an entry findable."""
    if not entry.label:
        return
    log.labels.setdefault(entry.label, index)
    if entry.whole is not None:
        log.wholes.setdefault(entry.whole, index)
        if entry.like is not None:
            log.likes.setdefault(entry.like, []).append(index)
    first, again = log.first, log.again
    for place, line in enumerate(entry.lines, index << _LINE_BITS):
        if line is None:
            continue
        if line in again:
            again[line].append(place)
        elif line in first:
            again[line] = [place]
        elif len(line.strip()) >= _LEAST:
            first[line] = place
