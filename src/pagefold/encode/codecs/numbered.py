"""numbered: drops most numbers of a file that was read with a number before every line.

    [lines 1-104]
    1	import os
    import sys
    …
    10	def main():

The first and every tenth line keep theirs, and from line 1000 on every line does. So does a line that would otherwise
be misread: one that begins with a number and a tab itself, or looks like a line of pagefold's. Lines stay verbatim,
so that an edit tool still matches them. Runs of consecutive numbers are found anywhere in a text; what is around them
stays. The header of a run has its first and last number, and the sign after a number where that was no tab.
"""

import re
from collections.abc import Sequence
from functools import lru_cache

from pagefold.encode.codec import Codec, Inner
from pagefold.encode.own_lines import looks_own
from pagefold.frozen import frozen

_LEAST = 4  # lines of a run
_LEAST_WITH_COLON = 10  # where the numbers may be those of search hits, which are quoted one by one
_OURS = "[lines "
_BEGINS = frozenset("0123456789 ")
_DIGITS = frozenset("0123456789")
_LINE = re.compile(r"( *)(\d{1,9})(→|\t|: |:|\|)")
_NEXT = re.compile(rf"\n{_LINE.pattern}")  # a break is found far sooner than the start of a line
_HEADER = re.compile(r"\[lines (\d{1,9})-(\d{1,9})(→|: |:|\||)(?: set (\d{1,3}) wide)?\]")
_DOUBTFUL = re.compile(r"\d+\t|= lines? \d|\[(?:R\d|lines \d)")  # what a line without its number may be taken for
_DOUBTED = frozenset("0123456789=[")
_USUAL = 6  # the width that agents set numbers in before an arrow
_FAR = 1000  # numbers from here on are quoted, not counted to: every missed one was of four digits


@frozen
class NumberedRun:
    """Holds consecutive numbered lines without their numbers, the first number, and how numbers are written."""

    first: int
    width: int
    mark: str
    lines: tuple[str, ...]

    @property
    def header(self) -> str:
        mark = "" if self.mark == "\t" else self.mark
        width = "" if self.width == _usual_width(self.mark) else f" set {self.width} wide"
        return f"[lines {self.first}-{self.first + len(self.lines) - 1}{mark}{width}]"

    def whole(self) -> list[str]:
        width, mark = self.width, self.mark
        if not width:
            return [f"{number}{mark}{line}" for number, line in enumerate(self.lines, self.first)]
        return [f"{number:>{width}}{mark}{line}" for number, line in enumerate(self.lines, self.first)]

    def sparse(self, start: int = 0, end: int | None = None) -> list[str]:
        """Returns the lines from `start` to `end` as they are shown: the first, and few others, with their numbers."""
        return sparsely_numbered(self.lines[start:end], self.first + start, fresh=True)


@frozen
class RunHeader:
    first: int
    last: int
    width: int
    mark: str


@lru_cache(maxsize=2)
def split(text: str) -> list[str | NumberedRun] | None:
    """Splits a text into plain lines and numbered runs. None where there is no run, or a line looks like a header.

    The last two results are cached: `delta` splits the text that the codec has just split.
    """
    if not (_LINE.match(text) or _NEXT.search(text)):
        return None
    lines = text.split("\n")
    may_hold_header = _OURS in text
    parts: list[str | NumberedRun] = []
    at, runs = 0, 0
    while at < len(lines):
        line = lines[at]
        run = _run(lines, at) if line[:1] in _BEGINS else None
        if run is None:
            if may_hold_header and header_of(line):
                return None
            parts.append(line)
            at += 1
        else:
            parts.append(run)
            at += len(run.lines)
            runs += 1
    return parts if runs else None


def header_of(line: str) -> RunHeader | None:
    if not line.startswith(_OURS):
        return None
    header = _HEADER.fullmatch(line)
    if header is None:
        return None
    mark = header[3] or "\t"
    return RunHeader(int(header[1]), int(header[2]), int(header[4]) if header[4] else _usual_width(mark), mark)


def sparsely_numbered(lines: Sequence[str], first: int, *, fresh: bool) -> list[str]:
    """Returns lines that stand in a row from number `first` on, with the numbers that are kept: that of the first of a
    run (`fresh`), every tenth, all far into a file, and those of lines that could be misread without them."""
    shown, end = list(lines), first + len(lines)
    tens = range(first + -first % 10, min(end, _FAR), 10)
    numbers = {*tens, *range(max(first, _FAR), end), *_doubtful(lines, first)}
    if fresh:
        numbers.add(first)
    for number in numbers:
        shown[number - first] = f"{number}\t{shown[number - first]}"
    return shown


def remove_numbers(lines: list[str], first: int, last: int) -> None:
    """Removes the numbers that some lines of a run have, of which the first is number `first` and none is beyond
    `last`."""
    for at in [at for at, line in enumerate(lines[: max(0, last - first + 1)]) if line[:1] in _DIGITS]:
        lines[at] = lines[at].removeprefix(f"{first + at}\t")


def _doubtful(lines: Sequence[str], first: int) -> list[int]:
    """Returns the numbers of the lines that would be misread without them."""
    return [number for number, line in enumerate(lines, first) if line[:1] in _DOUBTED and _is_doubtful(line)]


def _is_doubtful(line: str) -> bool:
    return _DOUBTFUL.match(line) is not None or looks_own(line)


def _usual_width(mark: str) -> int:
    return _USUAL if mark == "→" else 0


class NumberedCodec(Codec):
    name = "numbered"
    header = _HEADER

    def holds(self, text: str) -> bool:
        """Whether any line of a text is a header of this codec."""
        return _OURS in text and any(map(header_of, text.split("\n")))

    def encode(self, text: str, inner: Inner) -> str | None:
        parts = split(text)
        if parts is None:
            return None
        shown: list[str] = []
        for part in parts:
            shown += [part] if isinstance(part, str) else [part.header, *part.sparse()]
        return "\n".join(shown)

    def decode(self, form: str, inner: Inner) -> str:
        if _OURS not in form:
            return form
        lines = form.split("\n")
        text: list[str] = []
        at = 0
        while at < len(lines):
            line = lines[at]
            header = header_of(line) if line[:1] == "[" else None
            at += 1
            if header is None:
                text.append(line)
                continue
            bare = lines[at : at + max(0, header.last - header.first + 1)]
            remove_numbers(bare, header.first, header.last)
            text += NumberedRun(header.first, header.width, header.mark, tuple(bare)).whole()
            at += len(bare)
        return "\n".join(text)


def _run(lines: list[str], at: int) -> NumberedRun | None:
    line = lines[at]
    if line[0] == " " and line.lstrip(" ")[:1] not in _BEGINS:
        return None
    numbered = _LINE.match(line)
    if numbered is None:
        return None
    first, mark = int(numbered[2]), numbered[3]
    width = len(numbered[1]) + len(numbered[2]) if numbered[1] else 0
    bare: list[str] = []
    for index in range(at, len(lines)):
        number = first + index - at
        rest = lines[index].removeprefix(f"{number:>{width}}{mark}" if width else f"{number}{mark}")
        if len(rest) == len(lines[index]):
            break
        bare.append(rest)
    least = _LEAST if mark in "→\t" else _LEAST_WITH_COLON
    return NumberedRun(first, width, mark, tuple(bare)) if len(bare) >= least else None
