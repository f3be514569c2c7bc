"""Finds the lines of a text that the request shows already, or that stand above in the text itself.

Only runs of lines that are worth a reference are told, in whole blocks where there are any (see borders), and without
lines that tell an outcome. Refuses to refer to what another reference stands for.
"""

from collections import Counter
from collections.abc import Sequence, Set

from pagefold.encode.borders import end_of_whole, start_of_whole, tells_outcome
from pagefold.encode.shape import TextShape, shape_of_lines
from pagefold.frozen import frozen
from pagefold.pages.ledger import MOST_PLACES, Ledger, LedgerEntry

_FEWEST, _FEW_COST = 3, 1.5  # fewer lines have to be worth so many times the floor
_DATA_COST = 0.75  # lines of data have to be worth this part of it
_LEAST_SIGNS = 3  # a line with fewer visible characters begins no run
_PLACES = 60_000  # places that are compared for one text; beyond, only the newest of each line
_DOCUMENTS = (TextShape.SOURCE, TextShape.MARKDOWN, TextShape.DIFF, TextShape.HITS)  # their lines tell no outcomes
_LISTS = (TextShape.HITS, TextShape.LOG, TextShape.LISTING, TextShape.TESTS)  # nobody edits them as they stand
_END = 5  # lines at the end of a document that may be of another command


@frozen
class Reference:
    """Lines `start` to `end` of a part stand in another text, from its line `there` on."""

    start: int
    end: int
    base: LedgerEntry
    there: int


class ReferenceSearch:
    """Finds the lines of a part that are shown elsewhere, or above in it.

    `made` are the references in order, `literal` the lines, None for those that are referred to. `this` is what the
    part is called, `plain` says that its lines have no numbers.
    """

    def __init__(
        self, lines: Sequence[str], this: LedgerEntry, ledger: Ledger, floor: int, *, plain: bool, data: bool
    ) -> None:
        self.made: list[Reference] = []
        self.literal: list[str | None] = []
        self._lines, self._this, self._plain, self._data = lines, this, plain, data
        self._ledger, self._floor = ledger, floor
        self._least = floor * (_DATA_COST if data else 1)  # tokens that are worth a reference
        self._places_left = _PLACES
        self._shape: TextShape | None = None  # found when it is needed
        self._free = 0  # no line tells an outcome from the one that was last asked about up to this one
        self._held, self._repeated = ledger.held(lines), self._lines_again()
        self._first_of: dict[str, int] = {}  # where a repeated line first stands literally in this part
        # Headers of other codecs and empty lines at the top are no part of what was said.
        heads = (at for at, line in enumerate(lines) if line.strip() and (line[:1] != "[" or line[-1:] != "]"))
        self._top = next(heads, 0)
        self._find()

    def _lines_again(self) -> Set[str]:
        """Returns the lines that stand more than once, where they can be worth a reference; none that begins no run."""
        lines, different = self._lines, set(self._lines)
        again = len(lines) - len(different)
        characters = sum(map(len, lines)) - sum(map(len, different)) if again else 0
        if not again or _tokens(characters, again, numbered=not self._plain) < self._least:
            return frozenset()
        return {line for line, times in Counter(lines).items() if times > 1 and len(line.strip()) >= _LEAST_SIGNS}

    def _find(self) -> None:
        lines, known = self._lines, self._held | self._repeated if self._repeated else self._held
        bounded = len(lines) * MOST_PLACES > _PLACES  # then each line that is compared counts, worth it or not
        end = last = 0  # of the lines around this one that may all be shown elsewhere, and of those worth a reference
        for at in [at for at, line in enumerate(lines) if line in known] if known else ():
            if at < len(self.literal):
                continue  # a reference stands for it
            if at >= end and not bounded:
                last, end = self._worth_comparing(at, known)
            if at <= last or bounded:
                self._show(at)
                run = self._longest(at)
                reference = self._whole_blocks(run) if run else None
                if reference:
                    self._show(reference.start)
                    self.made.append(reference)
                    self.literal += [None] * (reference.end - reference.start)
        self._show(len(lines))

    def _show(self, end: int) -> None:
        """Leaves the lines up to this one as they are."""
        start = len(self.literal)
        self.literal += self._lines[start:end]
        if self._repeated:
            for at in range(start, end):
                if self._lines[at] in self._repeated:
                    self._first_of.setdefault(self._lines[at], at)

    def _worth_comparing(self, start: int, known: Set[str]) -> tuple[int, int]:
        """Returns the last line from which on what may be shown elsewhere is worth a reference, or -1, and where that
        ends: at a line that is nowhere else. Short lines may be anywhere, because the ledger does not list them."""
        lines, end = self._lines, start + 1
        while end < len(lines) and (lines[end] in known or len(lines[end].strip()) < _LEAST_SIGNS):
            end += 1
        characters = 0
        for at in range(end - 1, start - 1, -1):
            characters += len(lines[at])
            if _tokens(characters, end - at, numbered=not self._plain) >= self._least:
                return at, end
        return -1, end

    def _longest(self, at: int) -> Reference | None:
        """Returns the longest run from a line on that is shown, without lines that tell an outcome. None where it is
        worth no reference."""
        lines, last = self._lines, self.made[-1].base if self.made else None
        places = self._ledger.places(lines[at])
        self._places_left -= len(places)
        length, base, there = 0, self._this, 0
        for text, line in reversed(places if self._places_left > 0 else places[-1:]):
            entry = self._ledger[text]
            base_lines, behind = entry.lines, line + length
            if length and (behind > len(base_lines) or base_lines[behind - 1] != lines[at + length - 1]):
                continue  # a shorter run
            equal = _equal_lines(base_lines, line, lines, at)
            # Of equally long runs, the one in the text that was named last is the easiest to follow.
            if equal > length or (equal == length and entry is last):
                length, base, there = equal, entry, line
        above = self._first_of.get(lines[at])
        if above is not None and len(lines[at].strip()) >= _LEAST_SIGNS:
            equal = _equal_lines(self.literal, above, lines, at)
            if equal > length:
                length, base, there = equal, self._this, above
        if not self._is_worth(at, at + length):
            return None
        if self._plain and not self._data and not base.label.startswith("the "):
            length = self._before_outcome(at, at + length) - at
        return Reference(at, at + length, base, there) if length else None

    def _before_outcome(self, at: int, end: int) -> int:
        """Returns the first of these lines that tells an outcome, or their end. In a file that a command printed, words
        that say how something ended are only its text."""
        text_until = len(self._lines) - _END if self._kind() in _DOCUMENTS else 0
        free = max(at, self._free, text_until)
        while free < end and not tells_outcome(self._lines[free]):
            free += 1
        self._free = free
        return min(free, end)

    def _kind(self) -> TextShape:
        if self._shape is None:
            self._shape = shape_of_lines(self._lines)
        return self._shape

    def _whole_blocks(self, run: Reference) -> Reference | None:
        """Returns what a run holds of whole blocks, or None where that is not worth a reference."""
        lines, start, end = self._lines, run.start, run.end
        if not self._is_worth(start, end):
            return None
        if self._data or (self._plain and self._kind() in _LISTS):
            return run
        if start > self._top:
            start = start_of_whole(lines, start, end)
        if end < len(lines):
            end = end_of_whole(lines, start, end)
        return Reference(start, end, run.base, run.there + start - run.start) if self._is_worth(start, end) else None

    def _is_worth(self, start: int, end: int) -> bool:
        floor = self._floor * (_DATA_COST if self._data else 1 if end - start >= _FEWEST else _FEW_COST)
        return end > start and worth(self._lines[start:end], numbered=not self._plain) >= floor


def _equal_lines(base: Sequence[str | None], line: int, lines: Sequence[str], at: int) -> int:
    length = 0
    most = min(len(lines) - at, len(base) - line)
    while length < most and base[line + length] == lines[at + length]:
        length += 1
    return length


def worth(lines: Sequence[str], *, numbered: bool) -> float:
    """Estimates how many tokens these lines are."""
    return _tokens(sum(map(len, lines)), len(lines), numbered=numbered)


def _tokens(characters: int, lines: int, *, numbered: bool) -> float:
    return characters / 3.7 + lines * (0.8 if numbered else 0.5)
