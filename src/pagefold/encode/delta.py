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

from pagefold.encode.codecs.numbered import NumberedRun, RunHeader, header_of, remove_numbers, sparsely_numbered, split
from pagefold.encode.own_lines import holds_own
from pagefold.encode.reference_search import Reference, ReferenceSearch, worth
from pagefold.frozen import frozen
from pagefold.pages.ledger import FLOOR, Ledger, LedgerEntry

_TITLE = re.compile(r"\[(R\d+(?:\.\d+)?)(?: (lines [^,\]]*))?(?:, changed since R[\d.]+: line[^\]]*)?\]")
_REFERENCE = re.compile(r"= lines? (\d+)(?:-(\d+))?(?: (?:is|are) lines? (\d+)(?:-(\d+))?)? of (.+)")
_LIKE_TITLE = re.compile(r"\[(?:R[\d.]+|lines \d+-\d+)[^\]]*\]")  # what a reader could take for one
_SIGN_BEGINNINGS = ("= line", "[R", "[lines ")
_SIGNS = frozenset("=[")  # what references and titles begin with
_TITLED = 8  # lines from which on a text without numbers gets a title
_TITLED_CHARACTERS = 800  # or characters
_MOST_CHANGES = 6  # places that a title names as changed


@frozen
class ReferencedText:
    """A text with references, and what the request then shows of it literally."""

    text: str
    ledger_entries: tuple[LedgerEntry, ...]
    references: int


def encode(
    text: str,
    ledger: Ledger,
    source: str = "",
    *,
    numbered: bool = True,
    floor: int = FLOOR,
    title: str = "",
    data: bool = False,
) -> ReferencedText:
    """Replaces lines that the request has already shown with references, in a text that holds no signs.

    With `numbered`, lines of numbered runs are compared without their numbers. Lines worth less than `floor` tokens are
    written again. Only a text of the same `source` (the file that was read) has "changed since". A text
    that is given a `title` has it even if it is short. Of `data`, such as JSON, any lines may be referred to: nobody
    edits it, and its lines are no outcomes.
    """
    parts = _parts(text, numbered)
    label = title or ledger.next_title
    shown, entries = list[str](), list[LedgerEntry]()
    references, runs = 0, 0
    for part in parts:
        if part.run is None and len(parts) > 1 and (not runs or worth(part.lines, numbered=False) < floor):
            shown += part.lines  # a few lines around numbered ones have no title
            continue
        runs += 1
        part_title = label if runs == 1 else f"{label}.{runs}"
        this = LedgerEntry(part_title, (), part.first)
        found = ReferenceSearch(part.lines, this, ledger, floor, plain=part.run is None, data=data)
        made = found.made
        references += len(made)
        if title or len(parts) > 1 or part.run or made or len(part.lines) >= _TITLED or len(text) >= _TITLED_CHARACTERS:
            shown.append(_title(part_title, part, made, source))
        else:
            part_title = ""
        shown += _written(part, made)
        entries.append(LedgerEntry(part_title, tuple(found.literal), part.first, source=source))
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


def _title(label: str, part: _LineGroup, references: Sequence[Reference], source: str) -> str:
    """Returns the first line of a part; of a file that was read before it says which lines have changed."""
    words = f"{label} {part.run.header[1:-1]}" if part.run else label
    base = references[0].base if references else None
    if base is not None and part.run and source and base.source == source and all(it.base is base for it in references):
        changed = list(_changed(part, references, base))
        if 0 < len(changed) <= _MOST_CHANGES:
            one = len(changed) == 1 and "-" not in changed[0]
            words += f", changed since {base.label}: line{'' if one else 's'} {', '.join(changed)}"
    return f"[{words}]"


def _changed(part: _LineGroup, references: Sequence[Reference], base: LedgerEntry) -> Iterator[str]:
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


def _written(part: _LineGroup, references: Sequence[Reference]) -> list[str]:
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


def _words(reference: Reference, first: int) -> str:
    here, there = first + reference.start, reference.base.first + reference.there
    length = reference.end - reference.start
    if length == 1:
        lines = f"= line {here}" if here == there else f"= line {here} is line {there}"
    else:
        lines = f"= lines {here}-{here + length - 1}"
        lines += "" if here == there else f" are lines {there}-{there + length - 1}"
    return f"{lines} of {reference.base.label}"


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
        start = 0  # of the lines since the last title or reference
        for at in [at for at, line in enumerate(lines) if line[:1] in _SIGNS]:
            line, run = lines[at], self._run
            inside = run is not None and self._number + at - start <= run.last
            if line[:2] == "= " and self._title and (inside or run is None) and _REFERENCE.fullmatch(line):
                self._show(lines[start:at])
                referred = self._referred(line)
                self._add(referred)
                self._literal += [None] * len(referred)
                start = at + 1
            elif line[:2] == "[R" and not inside and (title := _TITLE.fullmatch(line)):
                self._show(lines[start:at])
                self._begin(title)
                start = at + 1
        self._show(lines[start:])

    def _show(self, lines: list[str]) -> None:
        if lines:
            if self._run is not None:
                remove_numbers(lines, self._number, self._run.last)
            self._literal += lines
            self._add(lines)

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
    if text[:1] not in _SIGNS and "\n[" not in text and "\n= line" not in text:
        return False
    begins = any(text.startswith(sign) or f"\n{sign}" in text for sign in _SIGN_BEGINNINGS)
    return (begins and any(map(_is_sign, text.split("\n")))) or holds_own(text)


def _is_sign(line: str) -> bool:
    if line.startswith("= "):
        return _REFERENCE.fullmatch(line) is not None
    return _LIKE_TITLE.fullmatch(line) is not None
