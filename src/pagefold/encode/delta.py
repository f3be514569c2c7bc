"""delta: replaces lines that were shown earlier in the same request with references.

    [R12 lines 1-104]
    = 1-56 as in R9                 lines 1 to 56 are lines 1 to 56 of R9
    57	a new line
    = 58-104 from 57                and these are those of R9 from its line 57 on
    = R9 end                        what followed the numbered lines of R9, all of it
    = 3 lines as above from 4       the same lines are above in this text

The first line of a text that may be referred to has its label, R12. Only lines that are shown literally are referred
to, above in this text or in one that the ledger knows, and only where the lines cost more than the reference. Decoding
needs the ledger that the text was encoded with.
"""

import re
from collections.abc import Sequence
from itertools import groupby

from pagefold.encode.codecs.numbered import NumberedRun, RunHeader, header_of, keeps_number, split
from pagefold.frozen import frozen
from pagefold.pages.ledger import Ledger, LedgerEntry

_TITLE = re.compile(r"\[(R\d+)(?: (lines .*))?\]")
_REFERENCE = re.compile(r"= (?:(\d+)-(\d+)|(\d+) lines?)(?: as (?:in (.+?)|(above)))?(?: from (\d+))?")
_ABOVE = "above"
_WHOLE = re.compile(r"= (R\d+(?: start| end)?)")
FLOOR = 9
"""Tokens that lines have to be worth: a little more than a reference costs, because references are harder to read, and
lines that are only referred to cannot be referred to again."""

_NAMING = 5
_SHIFTING = 4
_PLACES = 60_000  # places that are compared for one text; beyond, only the newest of each line
_TITLED = 8  # lines from which on a text without numbers gets a title


@frozen
class ReferencedText:
    """A text with references, and what the request then shows of it literally."""

    text: str
    ledger_entries: tuple[LedgerEntry, ...]
    references: int


def encode(text: str, ledger: Ledger, name: str, *, numbered: bool = True, floor: int = FLOOR) -> ReferencedText | None:
    """Replaces lines that the request has already shown with references. None where a line looks like a reference.

    With `numbered`, lines of numbered runs are compared without their numbers. Lines worth less than `floor` tokens are
    written again.
    """
    parts = _parts(text, numbered)
    for part in parts:
        if _hold_signs(part.lines):
            return None
    label = f"R{len(ledger) + 1}"
    runs = [index for index, part in enumerate(parts) if part.run]
    shown, ledger_entries = list[str](), list[LedgerEntry]()
    references = 0
    for index, part in enumerate(parts):
        writer = _ReferenceWriter(ledger, part.run, floor)
        writer.write(part.lines)
        if part.run:
            shown.append(part.run.header if shown else f"[{label} {part.run.header[1:]}")
        elif index == 0 and (len(parts) > 1 or writer.references or len(part.lines) >= _TITLED):
            shown.append(f"[{label}]")
        shown += writer.shown
        references += writer.references
        part_label = f"{label}{_part_suffix(index, runs, len(parts))}"
        ledger_entries.append(LedgerEntry(part_label, tuple(writer.literal), writer.first))
    if not _TITLE.fullmatch(shown[0]):
        ledger_entries = [LedgerEntry(ledger.label_for(name), ledger_entries[0].lines, 1)]
    return ReferencedText("\n".join(shown), tuple(ledger_entries), references)


@frozen
class _LineGroup:
    """Lines of a text that stand together: a numbered run without its numbers, or plain lines."""

    lines: Sequence[str]
    run: NumberedRun | None = None


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


def _part_suffix(index: int, runs: Sequence[int], parts: int) -> str:
    """Tells the parts of a text apart: its title names the first numbered run, or all of it where there is none."""
    if not runs or index == runs[0]:
        return ""
    if index < runs[0]:
        return " start"
    return " end" if index == parts - 1 and index > runs[-1] else f" part {index}"


def decode(form: str, ledger: Ledger) -> str:
    """Restores a text, numbered runs in their sparse form. Raises ValueError where a reference leads nowhere."""
    first, _, rest = form.partition("\n")
    title = _TITLE.fullmatch(first)
    if title is None:  # only a text with a title holds references
        return form
    if "\n= " not in form:
        return f"[{title[2]}]\n{rest}" if title[2] else rest
    reader = _ReferenceReader(ledger)
    if title[2]:
        reader.begin(f"[{title[2]}]")
    for line in rest.split("\n"):
        reader.take(line)
    return "\n".join(reader.lines)


class _ReferenceWriter:
    """Writes lines, or references to them. `literal` are the lines that are written, None for those referred to."""

    def __init__(self, ledger: Ledger, run: NumberedRun | None, floor: int) -> None:
        self.ledger, self.first, self.floor = ledger, run.first if run else 1, floor
        self.shown: list[str] = []
        self.literal: list[str | None] = []
        self.references = 0
        self._run, self._numbered = run, run is not None
        self._own: dict[str, int] = {}  # where a line stands in this text
        self._last = ""  # the label that the last reference named
        self._shift = 0
        self._places = _PLACES

    def write(self, lines: Sequence[str]) -> None:
        at = start = 0  # lines from `start` on are not shown yet
        held, own = self.ledger.held(lines), self._own
        while at < len(lines):
            text = lines[at]
            if text in held or text in own:
                length, base, line = self._longest(lines, at, self.ledger.places(text))
                if length and _worth(lines[at : at + length], self._numbered) >= self._price(at, base, line):
                    self._show(lines, start, at)
                    self._refer(at, length, base, line)
                    self.literal += [None] * length
                    at = start = at + length
                    continue
            own.setdefault(text, at)
            self.literal.append(text)
            at += 1
        self._show(lines, start, at)

    def _show(self, lines: Sequence[str], start: int, end: int) -> None:
        if start < end:
            self.shown += self._run.sparse(start, end) if self._run else lines[start:end]

    def _longest(
        self, lines: Sequence[str], at: int, places: Sequence[tuple[int, int]]
    ) -> tuple[int, LedgerEntry | None, int]:
        """Finds the longest run from here on that was shown: its length, the text (None: this one), its line there."""
        best: tuple[int, LedgerEntry | None, int] = (0, None, -1)
        self._places -= len(places)
        for text, line in reversed(places if self._places > 0 else places[-1:]):
            base = self.ledger[text]
            length = _equal_lines(base.lines, line, lines, at)
            # Of equally long runs, the one in the text that was named last has the shortest reference.
            if length > best[0] or (length == best[0] and base.label == self._last):
                best = (length, base, line)
        own = self._own.get(lines[at])
        if own is not None and len(lines[at].strip()) >= 3:
            length = _equal_lines(self.literal, own, lines, at)
            if length > best[0]:
                best = (length, None, own)
        return best

    def _price(self, at: int, base: LedgerEntry | None, line: int) -> int:
        label, first = (base.label, base.first) if base else (_ABOVE, self.first)
        shift = first + line - self.first - at
        if label != self._last:
            return self.floor + _NAMING + (_SHIFTING if shift else 0)
        return self.floor + (_SHIFTING if shift != self._shift else 0)

    def _refer(self, at: int, length: int, base: LedgerEntry | None, line: int) -> None:
        self.references += 1
        label, first = (base.label, base.first) if base else (_ABOVE, self.first)
        if base is not None and line == 0 and length == len(base.lines) and _WHOLE.fullmatch(f"= {label}"):
            self.shown.append(f"= {label}")
            self._last, self._shift = "", 0
            return
        here, there = self.first + at, first + line
        words = f"= {here}-{here + length - 1}" if self._numbered else f"= {length} line{'s' if length > 1 else ''}"
        if label != self._last:
            words += f" as in {label}" if base else " as above"
            self._last, self._shift = label, 0
        if there - here != self._shift:
            words += f" from {there}"
            self._shift = there - here
        self.shown.append(words)


def _equal_lines(base: Sequence[str | None], line: int, lines: Sequence[str], at: int) -> int:
    length = 0
    most = min(len(lines) - at, len(base) - line)
    while length < most and base[line + length] == lines[at + length]:
        length += 1
    return length


class _ReferenceReader:
    """Takes a text with references line by line; `lines` is the text without them."""

    def __init__(self, ledger: Ledger) -> None:
        self.ledger = ledger
        self.lines: list[str] = []
        self._run: RunHeader | None = None
        self._own: list[str] = []  # the lines of this part so far
        self._number = 1
        self._fresh = True
        self._base: Sequence[str | None] = ()
        self._from = 1  # the number of the base's first line
        self._shift = 0

    def take(self, line: str) -> None:
        if line.startswith("= ") and _is_sign(line):
            for text in self._referred(line):
                self._add(text)
            self._fresh = True
        elif self._run is not None:
            kept = keeps_number(self._number, fresh=self._fresh)
            self._fresh = False
            self._add(line.partition("\t")[2] if kept else line)
        elif header_of(line):
            self.begin(line)
        else:
            self._add(line)

    def begin(self, line: str) -> None:
        """Takes a header, after which lines are numbered."""
        self._run = header_of(line)
        if self._run is None:
            raise ValueError(f"not a header: {line}")
        self.lines.append(line)
        self._part(self._run.first)

    def _part(self, number: int) -> None:
        self._number, self._fresh, self._own, self._base, self._shift = number, True, [], (), 0

    def _add(self, text: str) -> None:
        run, number = self._run, self._number
        self._own.append(text)
        self._number += 1
        if run is None:
            self.lines.append(text)
            return
        named = keeps_number(number, fresh=number == run.first)
        self.lines.append(f"{number}\t{text}" if named else text)
        if number >= run.last:
            self._run = None
            self._part(1)

    def _referred(self, line: str) -> list[str]:
        whole = _WHOLE.fullmatch(line)
        if whole is not None:
            base = self._entry(whole[1]).lines
            self._base, self._shift = (), 0
            return _literal(base, line)
        reference = _REFERENCE.fullmatch(line)
        assert reference is not None
        from_number, to_number, length_said, label, above, shifted = reference.groups()
        if label or above:
            entry = self._entry(label) if label else None
            first = self._run.first if self._run else 1
            self._base, self._from = (entry.lines, entry.first) if entry else (self._own, first)
            self._shift = 0
        here = int(from_number) if from_number else self._number
        length = int(length_said) if length_said else int(to_number) - here + 1
        if shifted:
            self._shift = int(shifted) - here
        start = here + self._shift - self._from
        lines = _literal(self._base[start : start + length] if start >= 0 else (), line)
        if len(lines) != length:
            raise ValueError(f"a reference to lines that are not there: {line}")
        return lines

    def _entry(self, label: str) -> LedgerEntry:
        entry = self.ledger.labelled(label)
        if entry is None:
            raise ValueError(f"a reference to what is not there: {label}")
        return entry


def _literal(lines: Sequence[str | None], reference: str) -> list[str]:
    literal = [line for line in lines if line is not None]
    if len(literal) != len(lines):
        raise ValueError(f"a reference to lines that are not literally there: {reference}")
    return literal


def is_title(line: str) -> bool:
    return line.startswith("[R") and _TITLE.fullmatch(line) is not None


def _hold_signs(lines: Sequence[str]) -> bool:
    # Few texts do, and searching the whole text is faster than looking at each line.
    text = "\n".join(("", *lines))
    return ("\n= " in text or "\n[R" in text or "\n[lines " in text) and any(map(_is_sign, lines))


def _is_sign(line: str) -> bool:
    if line.startswith("= "):
        return (_REFERENCE.fullmatch(line) or _WHOLE.fullmatch(line)) is not None
    return is_title(line) or header_of(line) is not None


def _worth(lines: Sequence[str], numbered: bool) -> float:
    """Estimates how many tokens these lines are."""
    return sum(map(len, lines)) / 3.7 + len(lines) * (0.8 if numbered else 0.5)
