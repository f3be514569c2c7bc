"""delta: replaces lines that were shown earlier in the same request with references.

    [R12 lines 1-104, changed since R9: lines 55-60]
    = lines 1-50 of R9              lines 1 to 50 are lines 1 to 50 of R9
    51	a line that is shown
    …
    = lines 66-104 are lines 64-102 of R9

R12 and R9 are titles: the first line of a text has one, and lines are counted below it or have their own numbers. Only
lines that a titled text shows literally are referred to. A reference stands for whole blocks where there are any (see
borders), never for a line that tells an outcome, and only where the lines are worth the reader's effort. Decoding needs
the ledger that the text was encoded with.
"""

import re
from collections.abc import Iterator, Sequence
from itertools import groupby, pairwise

from pagefold.encode.borders import end_of_whole, start_of_whole, tells_outcome
from pagefold.encode.codecs.numbered import NumberedRun, RunHeader, header_of, sparsely_numbered, split
from pagefold.encode.own_lines import holds_own
from pagefold.encode.shape import TextShape, shape_of_lines
from pagefold.frozen import frozen
from pagefold.pages.ledger import FLOOR, Ledger, LedgerEntry

_TITLE = re.compile(r"\[(R\d+(?:\.\d+)?)(?: (lines [^,\]]*))?(?:, changed since R[\d.]+: line[^\]]*)?\]")
_REFERENCE = re.compile(r"= lines? (\d+)(?:-(\d+))?(?: (?:is|are) lines? (\d+)(?:-(\d+))?)? of (.+)")
_FEWEST, _FEW_COST = 3, 1.5  # fewer lines have to be worth so many times the floor
_DATA_COST = 0.75  # lines of data have to be worth this part of it
_LIKE_TITLE = re.compile(r"\[(?:R[\d.]+|lines \d+-\d+)[^\]]*\]")  # what a reader could take for one
_SIGN_BEGINNINGS = ("= line", "[R", "[lines ")
_LEAST_SIGNS = 3  # a line with fewer visible characters begins no run
_PLACES = 60_000  # places that are compared for one text; beyond, only the newest of each line
_TITLED = 8  # lines from which on a text without numbers gets a title
_TITLED_CHARACTERS = 800  # or characters
_MOST_CHANGES = 6  # places that a title names as changed
_DOCUMENTS = (TextShape.SOURCE, TextShape.MARKDOWN, TextShape.DIFF, TextShape.HITS)  # their lines tell no outcomes
_LISTS = (TextShape.HITS, TextShape.LOG, TextShape.LISTING, TextShape.TESTS)  # nobody edits them as they stand
_END = 5  # lines at the end of a document that may be of another command


@frozen
class ReferencedText:
    """A text with references, and what the request then shows of it literally."""

    text: str
    ledger_entries: tuple[LedgerEntry, ...]
    references: int


@frozen
class _Reference:
    """Lines `start` to `end` of a part stand in another text, from its line `there` on."""

    start: int
    end: int
    base: LedgerEntry
    there: int


def encode(
    text: str,
    ledger: Ledger,
    source: str = "",
    *,
    numbered: bool = True,
    floor: int = FLOOR,
    title: str = "",
    data: bool = False,
) -> ReferencedText | None:
    """Replaces lines that the request has already shown with references. None where a line looks like a reference.

    With `numbered`, lines of numbered runs are compared without their numbers. Lines worth less than `floor` tokens are
    written again. Only a text of the same `source` (the file that was read) has "changed since". A text
    that is given a `title` has it even if it is short. Of `data`, such as JSON, any lines may be referred to: nobody
    edits it, and its lines are no outcomes.
    """
    parts = _parts(text, numbered)
    if any(part.run is None and holds_signs("\n".join(part.lines)) for part in parts):
        return None
    label = title or ledger.next_title
    shown, entries = list[str](), list[LedgerEntry]()
    references, runs = 0, 0
    for part in parts:
        if part.run is None and len(parts) > 1 and (not runs or _worth(part.lines, numbered=False) < floor):
            shown += part.lines  # a few lines around numbered ones have no title
            continue
        runs += 1
        part_title = label if runs == 1 else f"{label}.{runs}"
        finder = _ReferenceFinder(part, ledger, floor, part_title, data=data)
        made = finder.made
        references += len(made)
        if title or len(parts) > 1 or part.run or made or len(part.lines) >= _TITLED or len(text) >= _TITLED_CHARACTERS:
            shown.append(_title(part_title, part, made, source))
        else:
            part_title = ""
        shown += _written(part, made)
        entries.append(LedgerEntry(part_title, tuple(finder.literal), part.first, source=source))
    return ReferencedText("\n".join(shown), tuple(entries), references)


@frozen
class _LineGroup:
    """Lines of a text that stand together: a numbered run without its numbers, or plain lines."""

    lines: Sequence[str]
    run: NumberedRun | None = None

    @property
    def first(self) -> int:
        return self.run.first if self.run else 1


def _parts(text: str, numbered: bool) -> list[_LineGroup]:
    pieces = split(text) if numbered else None
    if pieces is None:
        return [_LineGroup(text.split("\n"))]
    parts: list[_LineGroup] = []
    for _, group in groupby(pieces, key=lambda piece: isinstance(piece, NumberedRun)):
        together = list(group)
        parts += [_LineGroup(run.lines, run) for run in together if isinstance(run, NumberedRun)]
        if isinstance(together[0], str):
            parts.append(_LineGroup([line for line in together if isinstance(line, str)]))
    return parts


def _title(label: str, part: _LineGroup, references: Sequence[_Reference], source: str) -> str:
    """Returns the first line of a part; of a file that was read before it says which lines have changed."""
    words = f"{label} {part.run.header[1:-1]}" if part.run else label
    base = references[0].base if references else None
    if base is not None and part.run and source and base.source == source and all(it.base is base for it in references):
        changed = list(_changed(part, references, base))
        if 0 < len(changed) <= _MOST_CHANGES:
            one = len(changed) == 1 and "-" not in changed[0]
            words += f", changed since {base.label}: line{'' if one else 's'} {', '.join(changed)}"
    return f"[{words}]"


def _changed(part: _LineGroup, references: Sequence[_Reference], base: LedgerEntry) -> Iterator[str]:
    """Yields the ranges of lines, as they are numbered, that the other text does not show at their place."""
    lines, first = part.lines, part.first
    around = [None, *references, None]
    for left, right in pairwise(around):
        start, end = left.end if left else 0, right.start if right else len(lines)
        there = left.there + left.end - left.start if left else len(base.lines)
        while start < end and there < len(base.lines) and base.lines[there] == lines[start]:
            start, there = start + 1, there + 1
        there = right.there - 1 if right else -1
        while start < end and there >= 0 and base.lines[there] == lines[end - 1]:
            end, there = end - 1, there - 1
        if start < end:
            yield f"{first + start}" if end - start == 1 else f"{first + start}-{first + end - 1}"


def _written(part: _LineGroup, references: Sequence[_Reference]) -> list[str]:
    shown, at = list[str](), 0
    for reference in references:
        shown += _shown(part, at, reference.start)
        shown.append(_words(reference, part.first))
        at = reference.end
    shown += _shown(part, at, len(part.lines))
    return shown


def _shown(part: _LineGroup, start: int, end: int) -> Sequence[str]:
    if start >= end:
        return ()
    return part.run.sparse(start, end) if part.run else part.lines[start:end]


def _words(reference: _Reference, first: int) -> str:
    here, there = first + reference.start, reference.base.first + reference.there
    length = reference.end - reference.start
    if length == 1:
        lines = f"= line {here}" if here == there else f"= line {here} is line {there}"
    else:
        lines = f"= lines {here}-{here + length - 1}"
        lines += "" if here == there else f" are lines {there}-{there + length - 1}"
    return f"{lines} of {reference.base.label}"


class _ReferenceFinder:
    """Finds the lines of a part that are shown elsewhere, or above in it.

    `made` are the references in order, `literal` the lines, None for those that are referred to.
    """

    def __init__(self, part: _LineGroup, ledger: Ledger, floor: int, title: str, *, data: bool) -> None:
        self.made: list[_Reference] = []
        self.literal: list[str | None] = []
        self._lines, self._plain, self._data = part.lines, part.run is None, data
        self._ledger, self._floor = ledger, floor
        self._places_left = _PLACES
        self._shape: TextShape | None = None  # found when it is needed
        self._free = 0  # no line tells an outcome from the one that was last asked about up to this one
        self._first_of: dict[str, int] = {}  # where a line stands in this part
        self._this = LedgerEntry(title, (), part.first)
        # Headers of other codecs and empty lines at the top are no part of what was said.
        heads = (at for at, line in enumerate(part.lines) if line.strip() and (line[:1] != "[" or line[-1:] != "]"))
        self._top = next(heads, 0)
        self._find()

    def _find(self) -> None:
        lines, held = self._lines, self._ledger.held(self._lines)
        at = 0
        while at < len(lines):
            line = lines[at]
            run = self._longest(at) if line in held or line in self._first_of else None
            reference = self._whole_blocks(run) if run else None
            start = reference.start if reference else at + 1
            for index in range(at, start):
                self._first_of.setdefault(lines[index], index)
            self.literal += lines[at:start]
            at = start
            if reference:
                self.made.append(reference)
                self.literal += [None] * (reference.end - start)
                at = reference.end

    def _longest(self, at: int) -> _Reference | None:
        """Returns the longest run from a line on that is shown, without lines that tell an outcome."""
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
        if self._plain and not self._data and not base.label.startswith("the "):
            length = self._before_outcome(at, at + length) - at
        return _Reference(at, at + length, base, there) if length else None

    def _before_outcome(self, at: int, end: int) -> int:
        """Returns the first of these lines that tells an outcome, or their end."""
        free = max(at, self._free)
        while free < end and not self._is_outcome(free):
            free += 1
        self._free = free
        return min(free, end)

    def _is_outcome(self, at: int) -> bool:
        """Whether a line says how something ended. In a file that a command printed, such words are only its text."""
        if not tells_outcome(self._lines[at]):
            return False
        return self._kind() not in _DOCUMENTS or at >= len(self._lines) - _END

    def _kind(self) -> TextShape:
        if self._shape is None:
            self._shape = shape_of_lines(self._lines)
        return self._shape

    def _whole_blocks(self, run: _Reference) -> _Reference | None:
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
        return _Reference(start, end, run.base, run.there + start - run.start) if self._is_worth(start, end) else None

    def _is_worth(self, start: int, end: int) -> bool:
        floor = self._floor * (_DATA_COST if self._data else 1 if end - start >= _FEWEST else _FEW_COST)
        return end > start and _worth(self._lines[start:end], numbered=not self._plain) >= floor


def _equal_lines(base: Sequence[str | None], line: int, lines: Sequence[str], at: int) -> int:
    length = 0
    most = min(len(lines) - at, len(base) - line)
    while length < most and base[line + length] == lines[at + length]:
        length += 1
    return length


def decode(form: str, ledger: Ledger) -> str:
    """Restores a text, numbered runs in their sparse form. Raises ValueError where a reference leads nowhere."""
    if not form.startswith("[R") and "\n[R" not in form:
        return form
    reader = _ReferenceReader(ledger)
    reader.take(form.split("\n"))
    return "\n".join(reader.lines)


class _ReferenceReader:
    """Takes the lines of a text with references; `lines` is the text without them."""

    def __init__(self, ledger: Ledger) -> None:
        self.ledger = ledger
        self.lines: list[str] = []
        self._title = ""
        self._literal: list[str | None] = []  # the lines below that title, None for those that were referred to
        self._run: RunHeader | None = None
        self._number = 1  # of the next line below the title

    def take(self, lines: list[str]) -> None:
        literal: list[str] = []  # lines since the last title or reference
        for line in lines:
            number, run = self._number + len(literal), self._run
            inside = run is not None and number <= run.last
            if line[:2] == "= " and self._title and (inside or run is None) and _REFERENCE.fullmatch(line):
                self._show(literal)
                literal = []
                referred = self._referred(line)
                self._add(referred)
                self._literal += [None] * len(referred)
            elif line[:2] == "[R" and not inside and (title := _TITLE.fullmatch(line)):
                self._show(literal)
                literal = []
                self._begin(title)
            elif inside and line.startswith(f"{number}\t"):
                literal.append(line.partition("\t")[2])
            else:
                literal.append(line)
        self._show(literal)

    def _show(self, literal: list[str]) -> None:
        if literal:
            self._literal += literal
            self._add(literal)

    def _begin(self, title: re.Match[str]) -> None:
        self._title, self._literal, self._number = title[1], [], 1
        if title[2]:
            header = f"[{title[2]}]"
            self._run = header_of(header)
            if self._run is None:
                raise ValueError(f"not a header: {header}")
            self.lines.append(header)
            self._number = self._run.first

    def _add(self, texts: Sequence[str]) -> None:
        run, number = self._run, self._number
        self._number += len(texts)
        if run is None:
            self.lines += texts
            return
        inside = max(0, run.last - number + 1)
        self.lines += sparsely_numbered(texts[:inside], number, fresh=number == run.first)
        self.lines += texts[inside:]
        if self._number > run.last:
            self._run, self._title = None, ""

    def _referred(self, line: str) -> list[str]:
        reference = _REFERENCE.fullmatch(line)
        assert reference is not None
        here, last = int(reference[1]), int(reference[2] or reference[1])
        first, base = self._lines_of(reference[5])
        start, length = int(reference[3] or here) - first, last - here + 1
        literal = [text for text in (base[start : start + length] if start >= 0 else ()) if text is not None]
        if not 0 < length == len(literal) or here != self._number:
            raise ValueError(f"a reference to lines that are not literally there: {line}")
        return literal

    def _lines_of(self, title: str) -> tuple[int, Sequence[str | None]]:
        """Returns the lines below a title and the number of the first."""
        if title == self._title:
            return self._number - len(self._literal), self._literal
        entry = self.ledger.labelled(title)
        if entry is None:
            raise ValueError(f"a reference to what is not there: {title}")
        return entry.first, entry.lines


def is_title(line: str) -> bool:
    return line.startswith("[R") and _TITLE.fullmatch(line) is not None


def holds_signs(text: str) -> bool:
    """Whether a line of a text looks like a title, a header of numbered lines, a reference or a notice."""
    # Few texts do, and searching the whole text is faster than looking at each line.
    begins = any(text.startswith(sign) or f"\n{sign}" in text for sign in _SIGN_BEGINNINGS)
    return (begins and any(map(_is_sign, text.split("\n")))) or holds_own(text)


def _is_sign(line: str) -> bool:
    if line.startswith("= "):
        return _REFERENCE.fullmatch(line) is not None
    return _LIKE_TITLE.fullmatch(line) is not None


def _worth(lines: Sequence[str], *, numbered: bool) -> float:
    """Estimates how many tokens these lines are."""
    return sum(map(len, lines)) / 3.7 + len(lines) * (0.8 if numbered else 0.5)
