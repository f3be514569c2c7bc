"""units: the smallest pieces a text is cut into, and they never lose a character.

A unit is a line; a line too long to be one is cut at its marks and spaces. Units stand one after another, so a range of
them is a range of the text.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass

_WIDE = 400
_CUT = re.compile(r"[,;>}\])\s](?=[^,;>}\])\s])")
_NEAR = 240


@dataclass(frozen=True, slots=True)
class Unit:
    """From `start` up to `end`, the line break included. `line` is the line it is in, from 0; `first` begins one."""

    start: int
    end: int
    line: int
    first: bool
    text: str  # without the line break


def units_of(text: str) -> list[Unit]:
    return list(_units(text))


def whole_lines(text: str) -> list[Unit]:
    """The lines of a text, none of them cut."""
    found: list[Unit] = []
    start = 0
    for number, line in enumerate(text.split("\n")):
        end = min(start + len(line) + 1, len(text))
        found.append(Unit(start, end, number, True, line))
        start = end
    return found


def _units(text: str) -> Iterator[Unit]:
    start = 0
    for number, line in enumerate(text.split("\n")):
        end = min(start + len(line) + 1, len(text))
        if len(line) <= _WIDE:
            if end > start or not text:
                yield Unit(start, end, number, True, line)
        else:
            yield from _pieces(line, start, end, number)
        start = end


def _pieces(line: str, start: int, end: int, number: int) -> Iterator[Unit]:
    at = 0
    while at < len(line):
        cut = len(line)
        if len(line) - at > _WIDE:
            near = _CUT.search(line, at + _NEAR, at + _WIDE)
            cut = near.start() + 1 if near is not None else at + _WIDE
        last = cut == len(line)
        yield Unit(start + at, end if last else start + cut, number, at == 0, line[at:cut])
        at = cut
