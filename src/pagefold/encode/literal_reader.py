"""Reads a form as somebody does who knows nothing but the words in it: its titles, its numbers and what references say.

This is the second gate beside the decoder. It was written from docs/codecs.md and shares no code with the codecs: where
both give the same lines, a reader without a manual gets them too. It reads titles, numbered lines and references. What
other codecs wrote below a title is taken as it stands.

Raises ValueError where a form says something that is not so.
"""

import re
from collections.abc import Callable
from functools import lru_cache

Shown = Callable[[str], str | None]
"""Returns the text that the request shows under a name: a title, or an argument that the assistant wrote."""

_TITLE = re.compile(
    r"\[(?:(?P<title>R[\d.]+)(?: |(?=[\],])))?"
    r"(?:lines (?P<first>\d+)-(?P<last>\d+)(?P<mark>→|: |:|\|)?(?: set (?P<width>\d+) wide)?)?"
    r"(?:, changed since (?P<base>R[\d.]+): lines? (?P<changed>[\d, -]+))?\]"
)
_REFERENCE = re.compile(
    r"= lines? (?P<first>\d+)(?:-(?P<last>\d+))?(?: (?:is|are) lines? (?P<there>\d+)(?:-(?P<until>\d+))?)?"
    r" of (?P<name>R[\d.]+|the \w+ you wrote for R[\d.]+|file .+)"
)
_ARROW_WIDTH = 6
_DIGITS = frozenset("0123456789")
_SIGNS = frozenset("[=")  # what titles and references begin with


def read(form: str, shown: Shown) -> str:
    """Returns the text that a form stands for, every line with its number as the header says numbers are written."""
    if not (form.startswith(("[R", "[lines ")) or "\n[R" in form or "\n[lines " in form):
        return form
    reader = _Reader(shown)
    reader.take(form.split("\n"))
    return "\n".join(reader.text)


class _Reader:
    """Takes the lines of a form. `text` is what it stands for, `titles` are its titles."""

    def __init__(self, shown: Shown | None) -> None:
        self.text: list[str] = []
        self.titles: dict[str, dict[int, str]] = {}
        self._lines: dict[int, str] = {}
        self._unread: list[tuple[dict[int, str], int, list[str]]] = []  # lines that nobody has asked for by number
        self._shown = shown
        self._number, self._last = 1, 0
        self._mark, self._width = "", 0  # how a number is written before its line; no mark for plain lines
        self._unchanged: tuple[dict[int, str], set[int]] | None = None

    def take(self, lines: list[str]) -> None:
        start = 0  # of the lines since the last title or reference
        for at in [at for at, line in enumerate(lines) if line[:1] in _SIGNS]:
            line = lines[at]
            if line[:6] == "= line" and self.titles and (reference := _REFERENCE.fullmatch(line)):
                self._show(lines[start:at])
                self._follow(reference)
                start = at + 1
            elif line[:1] == "[" and len(line) > 2 and (not self._mark or self._number + at - start > self._last):
                title = _TITLE.fullmatch(line)
                if title is not None:
                    self._show(lines[start:at])
                    self._begin(title)
                    start = at + 1
        self._show(lines[start:])

    def _show(self, lines: list[str]) -> None:
        """Adds lines that the form shows; within a numbered run they may have their numbers before them."""
        if not lines:
            return
        numbered = max(0, self._last - self._number + 1) if self._mark else 0
        for at in [at for at, line in enumerate(lines[:numbered]) if line[:1] in _DIGITS]:
            said, tab, rest = lines[at].partition("\t")
            if tab and said.isascii() and said.isdigit():
                if int(said) != self._number + at:
                    raise ValueError(f"line {self._number + at} is shown as line {said}")
                lines[at] = rest
        self._unread.append((self._lines, self._number, lines))
        self._add(lines)

    def lines_of(self, title: str) -> dict[int, str]:
        """Returns the lines that the form shows below a title so far, by number."""
        for shown, number, lines in self._unread:
            shown.update(enumerate(lines, number))
        self._unread.clear()
        return self.titles.get(title, {})

    def _begin(self, title: re.Match[str]) -> None:
        self._lines = {}
        if title["title"]:
            self.titles[title["title"]] = self._lines
        self._number, self._mark, self._unchanged = 1, "", None
        if title["first"]:
            self._number, self._last = int(title["first"]), int(title["last"])
            self._mark = title["mark"] or "\t"
            self._width = int(title["width"] or (_ARROW_WIDTH if self._mark == "→" else 0))
        if title["base"] and self._shown:
            self._unchanged = self._named(title["base"]), _numbers_in(title["changed"])

    def _add(self, lines: list[str]) -> None:
        numbered = min(len(lines), max(0, self._last - self._number + 1)) if self._mark else 0
        if self._unchanged is not None:
            before, changed = set(self._unchanged[0].values()), self._unchanged[1]
            for number, line in enumerate(lines[:numbered], self._number):
                if number not in changed and line not in before:
                    raise ValueError(f"line {number} has changed, and the title does not say so")
        mark, width = self._mark, self._width
        if width:
            shown = [f"{number:>{width}}{mark}{line}" for number, line in enumerate(lines[:numbered], self._number)]
        else:
            shown = [f"{number}{mark}{line}" for number, line in enumerate(lines[:numbered], self._number)]
        self.text += shown
        self.text += lines[numbered:]
        self._number += len(lines)
        if self._number > self._last:
            self._mark = ""

    def _follow(self, reference: re.Match[str]) -> None:
        first, last = int(reference["first"]), int(reference["last"] or reference["first"])
        there = int(reference["there"] or first)
        until = int(reference["until"] or (reference["there"] and there) or last)
        if first != self._number or last - first != until - there:
            raise ValueError(f"a reference that does not say which lines it stands for: {reference[0]}")
        if self._shown is None:  # only the literal lines are wanted
            self._number = last + 1
            return
        base = self._named(reference["name"])
        lines = [base[number] for number in range(there, until + 1) if number in base]
        if len(lines) < until + 1 - there:
            raise ValueError(f"a reference to a line that is not shown: {reference[0]}")
        self._add(lines)

    def _named(self, name: str) -> dict[int, str]:
        if name in self.titles:
            return self.lines_of(name)
        text = self._shown(name) if self._shown else None
        if text is None:
            raise ValueError(f"nothing is shown as {name}")
        return literal_lines(text, name)


@lru_cache(maxsize=256)  # texts that are referred to: a crowd of sessions must not push out each other's
def literal_lines(text: str, name: str) -> dict[int, str]:
    """Returns the lines that a text shows literally under a name, by number."""
    if name.startswith("file "):
        return _view_lines(text)
    if not name.startswith("R"):
        return dict(enumerate(text.split("\n"), 1))
    reader = _Reader(None)
    reader.take(text.split("\n"))
    return reader.lines_of(name)


def _view_lines(text: str) -> dict[int, str]:
    """Returns the lines of a file that a digest shows, by number. A line without a number follows the one above it."""
    lines: dict[int, str] = {}
    at = 0
    for line in text.split("\n"):
        number, tab, rest = line.partition("\t")
        is_numbered = bool(tab) and number.isascii() and number.isdigit()
        at = int(number) if is_numbered else at + 1
        lines[at] = rest if is_numbered else line
    return lines


def _numbers_in(ranges: str) -> set[int]:
    numbers: set[int] = set()
    for part in ranges.split(", "):
        first, _, last = part.partition("-")
        numbers.update(range(int(first), int(last or first) + 1))
    return numbers
