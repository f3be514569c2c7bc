"""Writes the units of a text that are kept, with a mark for each gap between them.

A mark says which lines are left out, or is only `…` where the lines carry numbers of their own or the gap lies within
one line. A gap that would cost as much as what it leaves out is filled instead. A line of the text that could be taken
for such a mark, or for another line of pagefold's, is shown behind a bar.
"""

from collections.abc import Collection, Sequence

from pagefold.encode.own_lines import quoted
from pagefold.encode.shape import NUMBERED, TextShape
from pagefold.encode.trim.landmarks import bare
from pagefold.encode.trim.units import Unit

_FREE = 12  # characters that cost no more than the mark that would stand for them


def with_gaps(units: Sequence[Unit], kept: Collection[int], shape: TextShape = TextShape.TEXT) -> str:
    """Returns the kept units in order, with a mark for each run of others."""
    shown: list[str] = []
    at = 0
    for index in [*sorted(kept), len(units)]:
        if index > at:
            mark = _mark(units, at, index, shape)
            shown += [mark] if mark == " … " or not shown or shown[-1].endswith("\n") else ["\n", mark]
            if mark != " … " and index < len(units):
                shown.append("\n")
        if index < len(units):
            shown.append(quoted(units[index].text) if units[index].first else units[index].text)
            if index + 1 == len(units) or units[index + 1].first:
                shown.append("\n")
        at = index + 1
    return "".join(shown).removesuffix("\n")


def filled(units: Sequence[Unit], kept: Collection[int], shape: TextShape = TextShape.TEXT) -> set[int]:
    """Adds units between two kept ones that are not worth a mark, and drops empty ones next to a gap."""
    chosen = {index for index in kept if 0 <= index < len(units)}
    empty = {index for index in chosen if not bare(units[index].text, shape).strip()}
    chosen -= {index for index in empty if index - 1 not in chosen or index + 1 not in chosen}
    for index in sorted(chosen):
        if index + 2 in chosen and index + 1 not in chosen and len(units[index + 1].text) <= _FREE:
            chosen.add(index + 1)
    return chosen


def _mark(units: Sequence[Unit], start: int, end: int, shape: TextShape) -> str:
    first, last = units[start], units[end - 1]
    within = not first.first and (end < len(units) and not units[end].first)
    if within and first.line == last.line:
        return " … "
    if shape is TextShape.NUMBERED and NUMBERED.match(first.text):
        return "…"
    if first.line == last.line:
        return f"… line {first.line + 1}" if first.first else f"… rest of line {first.line + 1}"
    return f"… lines {first.line + 1}-{last.line + 1}"
