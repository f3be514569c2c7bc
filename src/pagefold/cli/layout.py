"""Lays out what a terminal shows: paragraphs and tables as lines that fit its width, whose parts may have a style.

Pure: nothing is asked of the terminal. A character counts as many cells as a terminal gives it, so that columns of
Chinese text stay straight.
"""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from typing import NamedTuple, TypeAlias
from unicodedata import combining, east_asian_width

_WORD = re.compile(r"\s*\S+|\s+$")
_GAP = 2  # cells between columns


class Span(NamedTuple):
    """A piece of a line, and the codes of its style as a terminal takes them (1 is bold, 2 is dim)."""

    text: str
    style: str = ""


Line: TypeAlias = tuple[Span, ...]
"""A line that is never wrapped: whoever makes it sees to its length."""
BOLD, DIM = "1", "2"


@dataclass(frozen=True, slots=True)
class Table:
    """Rows under a title. The first column is aligned left and the others right, or all of them left. A cell is text,
    which is folded where the table is wider than the terminal, or one line."""

    title: str
    columns: Sequence[str]
    rows: Sequence[Sequence[str | Line]]
    total: Sequence[str | Line] = ()
    left: bool = False

    def lines(self, room: int) -> list[Line]:
        head, total = [self.columns] if any(self.columns) else [], [self.total] if self.total else []
        rows = [*head, *self.rows, *total]
        natural = [max(map(_widest, cells)) for cells in zip(*rows, strict=True)]
        widths = shrunk(natural, room - _GAP * (len(natural) - 1))
        made: list[Line] = [(Span(line, BOLD),) for line in folded(self.title, room)] if self.title else []
        for row in rows:
            style = DIM if row is self.columns else BOLD if row is self.total else ""
            made += self._row(row, widths, style)
        return made

    def _row(self, row: Sequence[str | Line], widths: Sequence[int], style: str) -> list[Line]:
        cells = [
            [(Span(line, style),) for line in folded(cell, width)] if isinstance(cell, str) else [cell]
            for cell, width in zip(row, widths, strict=True)
        ]
        return [self._line(parts, widths) for parts in zip_longest(*cells, fillvalue=())]

    def _line(self, parts: Iterable[Line], widths: Sequence[int]) -> Line:
        made: list[Span] = []
        for at, (part, width) in enumerate(zip(parts, widths, strict=True)):
            blank = Span(" " * (width - sum(cells_of(span.text) for span in part)))
            made += [*part, blank] if self.left or at == 0 else [blank, *part]
            made.append(Span(" " * _GAP))
        while made and not made[-1].text.strip(" "):
            made.pop()
        return tuple(span for span in made if span.text)


def cells_of(text: str) -> int:
    """How many cells of a terminal a text takes."""
    if text.isascii():
        return len(text)
    return sum(0 if combining(each) else 2 if east_asian_width(each) in "WF" else 1 for each in text)


def folded(text: str, room: int) -> list[str]:
    """The lines of a text, none wider than the room: broken between words, and within one only where it has to be."""
    return [piece for line in text.expandtabs().split("\n") for piece in _folded(line, max(1, room))]


def shrunk(widths: Sequence[int], room: int) -> list[int]:
    """The widths, with the widest made narrower until all fit into the room; none becomes narrower than one cell."""
    made = list(widths)
    while (over := sum(made) - room) > 0 and (widest := max(made)) > 1:
        wide = [at for at, width in enumerate(made) if width == widest]
        next_widest = max((width for width in made if width < widest), default=1)
        cut = max(1, min(widest - next_widest, over // len(wide)))
        for at in wide[:over]:
            made[at] -= cut
    return made


def _folded(line: str, room: int) -> list[str]:
    if cells_of(line) <= room:
        return [line]
    made, now = [], ""
    for word in _WORD.findall(line):
        if now and cells_of(now + word) > room:
            made.append(now)
            now = word.lstrip()
        else:
            now += word
        while cells_of(now) > room:
            head = fitting(now, room)
            made.append(head)
            now = now[len(head) :]
    return [*made, now] if now else made


def fitting(line: str, room: int) -> str:
    """As much of the beginning of a line as fits, and one character at least."""
    taken = 0
    for at, each in enumerate(line):
        taken += cells_of(each)
        if taken > room and at:
            return line[:at]
    return line


def _widest(cell: str | Line) -> int:
    if isinstance(cell, str):
        return max(map(cells_of, cell.expandtabs().split("\n")))
    return sum(cells_of(span.text) for span in cell)
