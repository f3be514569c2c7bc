"""delta: lines that stand earlier in the same request are said by where they stand.

    [R12 lines 1-104]
    = 1-56 as in R9                 lines 1 to 56 are lines 1 to 56 of R9
    57	a new line
    = 58-104 from 57                and these are those of R9 from its line 57 on
    = R9 end                        what stood after the lines of R9, whole
    = 3 lines as above from 4       the same lines stand above in this text

Texts that may be referred to carry a handle of their history, R12, in their first line: it recalls the text whole.
Only lines that are literally there are referred to, above in this text or in one that the ledger knows, and only in
runs that cost more than saying so. Undone with the ledger the text was shown under; without it, not at all.
"""

import re
from collections.abc import Callable, Iterator, Sequence

from pagefold.encode.codecs.numbered import NumberedRun, RunHeader, header_of, keeps_number, split
from pagefold.frozen import frozen
from pagefold.pages.ledger import Ledger, LedgerEntry

_TITLE = re.compile(r"\[(R\d+)(?: (lines .*))?\]")
_REFERENCE = re.compile(r"= (?:(\d+)-(\d+)|(\d+) lines?)(?: as (?:in (.+?)|(above)))?(?: from (\d+))?")
_ABOVE = "above"
_WHOLE = re.compile(r"= (R\d+(?: start| end)?)")
FLOOR = 9
"""About what a reference costs in tokens, and a little more: it has to be worth the reader's trouble, and lines that
are only referred to cannot be referred to themselves."""

_NAMING = 5
_SHIFTING = 4
_PLACES = 60_000  # that are compared for one text; beyond, of each line only the newest
_TITLED = 8  # lines from which on a text without numbers gets a title


@frozen
class ReferencedText:
    """What a text becomes, and what of it then stands literally in the request."""

    text: str
    standing: tuple[LedgerEntry, ...]
    references: int


def encode(text: str, ledger: Ledger, name: str, *, numbered: bool = True, floor: int = FLOOR) -> ReferencedText | None:
    """The text with what stands above said by reference; None where it holds what looks like our own signs.

    Numbered lines are known by their number and their text; unless `numbered`, they are lines like any other. Lines
    worth less than `floor` are said again.
    """
    split_text = split(text) if numbered else None
    parts = [text.split("\n")] if split_text is None else list(_grouped(split_text))
    if any(_hold_signs(part.lines if isinstance(part, NumberedRun) else part) for part in parts):
        return None
    label = f"R{len(ledger) + 1}"
    named = _part_labels(label, parts)
    shown, standing = list[str](), list[LedgerEntry]()
    references = 0
    for index, part in enumerate(parts):
        run = part if isinstance(part, NumberedRun) else None
        writer = _ReferenceWriter(ledger, run, floor)
        writer.write(run.lines if run else part)  # type: ignore[arg-type]
        if run:
            shown.append(run.header if shown else f"[{label} {run.header[1:]}")
        elif index == 0 and (len(parts) > 1 or writer.references or len(part) >= _TITLED):  # type: ignore[arg-type]
            shown.append(f"[{label}]")
        shown += writer.shown
        references += writer.references
        standing.append(LedgerEntry(named(index), tuple(writer.literal), writer.first))
    if not _TITLE.fullmatch(shown[0]):
        standing = [LedgerEntry(ledger.label_for(name), standing[0].lines, 1)]
    return ReferencedText("\n".join(shown), tuple(standing), references)


def _part_labels(label: str, parts: Sequence[list[str] | NumberedRun]) -> Callable[[int], str]:
    """A text is known by its title; what stands before and after numbered lines has a name of its own."""
    runs = [at for at, part in enumerate(parts) if isinstance(part, NumberedRun)]

    def named(index: int) -> str:
        if not runs or index == runs[0]:
            return label
        if index < runs[0]:
            return f"{label} start"
        return f"{label} end" if index == len(parts) - 1 and index > runs[-1] else f"{label} part {index}"

    return named


def _grouped(parts: Sequence[str | NumberedRun]) -> Iterator[list[str] | NumberedRun]:
    """Plain lines that stand together, and runs."""
    plain: list[str] = []
    for part in parts:
        if isinstance(part, NumberedRun):
            if plain:
                yield plain
                plain = []
            yield part
        else:
            plain.append(part)
    if plain:
        yield plain


def decode(shown: str, ledger: Ledger) -> str:
    """The text again, numbered runs in their sparse form. Raises ValueError where it refers to what is not there."""
    title, _, rest = shown.partition("\n")
    found = _TITLE.fullmatch(title)
    if found is None:  # only a text with a title holds references
        return shown
    if "\n= " not in shown:
        return f"[{found[2]}]\n{rest}" if found[2] else rest
    reader = _ReferenceReader(ledger)
    if found[2]:
        reader.begin(f"[{found[2]}]")
    for line in rest.split("\n"):
        reader.take(line)
    return "\n".join(reader.lines)


class _ReferenceWriter:
    """Writes lines, those that stand above by reference. `literal` is what is left standing here."""

    def __init__(self, ledger: Ledger, run: NumberedRun | None, floor: int) -> None:
        self.ledger, self.first, self.floor = ledger, run.first if run else 1, floor
        self.shown: list[str] = []
        self.literal: list[str | None] = []
        self.references = 0
        self._numbered = run is not None
        self._own: dict[str, int] = {}  # where a line stands in this text
        self._last = ""
        self._shift = 0
        self._places = _PLACES

    def write(self, lines: Sequence[str]) -> None:
        at, fresh = 0, True
        places, own = self.ledger.places, self._own
        while at < len(lines):
            said = lines[at]
            there = places(said)
            if there or said in own:
                length, base, line = self._longest(lines, at, there)
                if length and _worth(lines[at : at + length], self._numbered) >= self._price(at, base, line):
                    self._refer(at, length, base, line)
                    self.literal += [None] * length
                    at, fresh = at + length, True
                    continue
            own.setdefault(said, at)
            number = self.first + at
            named = self._numbered and keeps_number(number, fresh=fresh)
            self.shown.append(f"{number}\t{said}" if named else said)
            self.literal.append(said)
            at, fresh = at + 1, False

    def _longest(
        self, lines: Sequence[str], at: int, places: Sequence[tuple[int, int]]
    ) -> tuple[int, LedgerEntry | None, int]:
        """How many lines from here on stand somewhere in a row, and where: in a text, or above in this one (None)."""
        best: tuple[int, LedgerEntry | None, int] = (0, None, -1)
        self._places -= len(places)
        for text, line in reversed(places if self._places > 0 else places[-1:]):
            base = self.ledger[text]
            length = _common(base.lines, line, lines, at)
            # Of equally long runs the one in the text named last is the cheapest to say.
            if length > best[0] or (length == best[0] and base.label == self._last):
                best = (length, base, line)
        own = self._own.get(lines[at])
        if own is not None and len(lines[at].strip()) >= 3:
            length = _common(self.literal, own, lines, at)
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
        said = f"= {here}-{here + length - 1}" if self._numbered else f"= {length} line{'s' if length > 1 else ''}"
        if label != self._last:
            said += f" as in {label}" if base else " as above"
            self._last, self._shift = label, 0
        if there - here != self._shift:
            said += f" from {there}"
            self._shift = there - here
        self.shown.append(said)


def _common(base: Sequence[str | None], line: int, lines: Sequence[str], at: int) -> int:
    length = 0
    most = min(len(lines) - at, len(base) - line)
    while length < most and base[line + length] == lines[at + length]:
        length += 1
    return length


class _ReferenceReader:
    """Takes a shown text line by line; `lines` is what it says."""

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
        """A header, after which lines are numbered."""
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
            base = self._standing(whole[1]).lines
            self._base, self._shift = (), 0
            return _literal(base, line)
        found = _REFERENCE.fullmatch(line)
        assert found is not None
        if found[4] or found[5]:
            known = self._standing(found[4]) if found[4] else None
            first = self._run.first if self._run else 1
            self._base, self._from = (known.lines, known.first) if known else (self._own, first)
            self._shift = 0
        here = int(found[1]) if found[1] else self._number
        length = int(found[3]) if found[3] else int(found[2]) - here + 1
        if found[6]:
            self._shift = int(found[6]) - here
        start = here + self._shift - self._from
        lines = _literal(self._base[start : start + length] if start >= 0 else (), line)
        if len(lines) != length:
            raise ValueError(f"a reference to lines that are not there: {line}")
        return lines

    def _standing(self, label: str) -> LedgerEntry:
        standing = self.ledger.labelled(label)
        if standing is None:
            raise ValueError(f"a reference to what is not there: {label}")
        return standing


def _literal(lines: Sequence[str | None], reference: str) -> list[str]:
    said = [line for line in lines if line is not None]
    if len(said) != len(lines):
        raise ValueError(f"a reference to lines that are not literally there: {reference}")
    return said


def is_title(line: str) -> bool:
    return line.startswith("[R") and _TITLE.fullmatch(line) is not None


def _hold_signs(lines: Sequence[str]) -> bool:
    # Hardly a text does, and that is seen faster in the whole of it than line by line.
    text = "\n".join(("", *lines))
    return any(sign in text for sign in ("\n= ", "\n[R", "\n[lines ")) and any(map(_is_sign, lines))


def _is_sign(line: str) -> bool:
    if line.startswith("= "):
        return (_REFERENCE.fullmatch(line) or _WHOLE.fullmatch(line)) is not None
    return is_title(line) or header_of(line) is not None


def _worth(lines: Sequence[str], numbered: bool) -> float:
    """About how many tokens these lines are."""
    return sum(map(len, lines)) / 3.7 + len(lines) * (0.8 if numbered else 0.5)
