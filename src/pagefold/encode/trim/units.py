"""Splits a text into units, the smallest pieces that trimming shows or leaves out.

A unit is a line, or a part of a line that is too long, cut at its marks and spaces. Units follow each other without
losing a character, so a range of units is a range of the text.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass

_WIDE = 400
_CUT = re.compile(r"[,;>}\])\s](?=[^,;>}\])\s])")
_NEAR = 240


@dataclass(frozen=True, slots=True)
class Unit:
    """From `start` up to `end`, the line break included. `line` counts from 0; `first`: the unit begins its line."""

    start: int
    end: int
    line: int
    first: bool
    text: str  # without the line break


def units_of(text: str) -> list[Unit]:
    """Returns lines, long ones cut; the empty line behind a last line break is no unit."""
    units: list[Unit] = []
    for line in whole_lines(text):
        if len(line.text) > _WIDE:
            units += _parts(line.text, line.start, line.end, line.line)
        elif line.end > line.start or not text:
            units.append(line)
    return units


def whole_lines(text: str) -> list[Unit]:
    """Returns the lines of a text, none of them cut."""
    lines: list[Unit] = []
    start = 0
    for number, line in enumerate(text.split("\n")):
        end = min(start + len(line) + 1, len(text))
        lines.append(Unit(start, end, number, True, line))
        start = end
    return lines


def _parts(line: str, start: int, end: int, number: int) -> Iterator[Unit]:
    at = 0
    while at < len(line):
        cut = len(line)
        if len(line) - at > _WIDE:
            near = _CUT.search(line, at + _NEAR, at + _WIDE)
            cut = near.start() + 1 if near is not None else at + _WIDE
        last = cut == len(line)
        yield Unit(start + at, end if last else start + cut, number, at == 0, line[at:cut])
        at = cut
