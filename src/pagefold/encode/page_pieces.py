"""Returns a long page piece by piece, each piece within a budget.

A piece consists of unchanged ranges of the page, cut at line breaks where possible. Ranges that were shown before are
skipped: what was shown and all pieces together are the page, every character once. A piece depends only on the page and
the cursor that asks for it.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from pagefold.encode.cursor import Cursor
from pagefold.errors import RecallError
from pagefold.pages.page import handle_of

LEAST = 100
"""Tokens below which a piece would hold nothing but its first line."""
_DENSE = 2.6  # characters per token that the search for a cut begins with
_BREAKS = ("\n", "\\n", "},", ". ", ", ", " ")
_STEPS, _CLOSE = 10, 0.96
_BACK = 0.6  # of a piece that may be given up for a better place to cut


class BudgetError(RecallError):
    """A budget that is too small for anything."""


@dataclass(frozen=True, slots=True)
class Piece:
    """`text` is what the agent gets, `parts` the ranges of the page in it, `cursor` asks for the next piece, if any."""

    text: str
    parts: tuple[tuple[int, int], ...]
    cursor: Cursor | None


def usable(budget: int) -> int:
    """Returns the budget, or raises BudgetError where it is too small for anything."""
    if budget < LEAST:
        raise BudgetError(f"budget = {budget}: expected at least {LEAST} tokens")
    return budget


def gaps(start: int, end: int, shown: Sequence[tuple[int, int]]) -> Iterator[tuple[int, int]]:
    """Yields the ranges between two places that were not shown."""
    at = start
    for first, last in shown:
        if first > at:
            yield at, min(first, end)
        at = max(at, last)
    if at < end:
        yield at, end


def piece(text: str, cursor: Cursor, count: Callable[[str], int]) -> Piece:
    """Returns the piece that a cursor asks for. Raises BudgetError where its budget is too small."""
    missing = list(gaps(cursor.position, len(text), cursor.shown))
    room = usable(cursor.budget) - count(_first_line(text, cursor, [(cursor.position, len(text))], cursor))
    while True:
        parts = _fill(text, missing, max(1, room), count)
        made = _piece(text, cursor, parts, missing)
        over = count(made.text) - cursor.budget
        if over <= 0:
            return made
        if room <= 1:
            break
        room = max(1, room - over - 2)
    raise BudgetError(f"budget = {cursor.budget}: too small for a piece of {handle_of(cursor.page)}; ask for more")


def line_span(first: int, last: int) -> str:
    return f"line {first}" if first == last else f"lines {first}-{last}"


def range_name(text: str, start: int, end: int) -> str:
    """Names a range of a text by its lines, or by its characters where it begins within a line."""
    if "\n" not in text.rstrip("\n") or (start and text[start - 1] != "\n"):
        return f"characters {start + 1:,}-{end:,}"
    first = text.count("\n", 0, start) + 1
    return line_span(first, first + text.count("\n", start, max(start, end - 1)))


def cut(text: str, start: int, end: int, tokens: int, count: Callable[[str], int]) -> int:
    """Returns where a range has to end to cost at most so many tokens, preferably at a line break or another mark."""
    low, high = start, end  # up to low it fits; beyond high it does not, or the range ends
    at = min(end, start + int(tokens * _DENSE) + 1)
    for _ in range(_STEPS):
        cost = count(text[start:at])
        if cost <= tokens:
            low = at
            if at == high or cost >= _CLOSE * tokens:
                break
        else:
            high = at - 1
        # Scale the length by how much the cost was off, but stay between the known bounds.
        at = start + int((at - start) * tokens / max(1, cost) * (1 if cost <= tokens else _CLOSE))
        at = min(max(at, low + 1), high)
        if at <= low:
            break
    return low if low == end else _break(text, start, low)


def _break(text: str, start: int, at: int) -> int:
    """Returns the last good place to cut, at most a certain share before `at`."""
    least = start + int((at - start) * _BACK)
    for mark in _BREAKS:
        place = text.rfind(mark, least, at)
        if place > start:
            return place + len(mark)
    return at


def _fill(
    text: str, missing: Sequence[tuple[int, int]], room: int, count: Callable[[str], int]
) -> list[tuple[int, int]]:
    parts: list[tuple[int, int]] = []
    for start, end in missing:
        mark = count(f"\n[{range_name(text, start, end)}]\n") if parts else 0
        if room - mark < 1:
            break
        at = cut(text, start, end, room - mark, count)
        if at > start:
            parts.append((start, at))
            room -= mark + count(text[start:at])
        if at < end:
            break
    return parts or [(missing[0][0], missing[0][0] + 1)]


def _piece(text: str, cursor: Cursor, parts: Sequence[tuple[int, int]], missing: Sequence[tuple[int, int]]) -> Piece:
    at = parts[-1][1]
    left = [(start, end) for start, end in missing if end > at]
    following = None
    if left:
        place = max(at, left[0][0])
        before = tuple(run for run in cursor.shown if run[0] >= place)
        following = Cursor(cursor.page, place, cursor.budget, before)
    shown = [_first_line(text, cursor, parts, following)]
    for index, (start, end) in enumerate(parts):
        if index:
            shown.append(f"{'' if shown[-1].endswith(chr(10)) else chr(10)}[{range_name(text, start, end)}]\n")
        shown.append(text[start:end])
    return Piece("".join(shown), tuple(parts), following)


def _first_line(text: str, cursor: Cursor, parts: Sequence[tuple[int, int]], following: Cursor | None) -> str:
    onward = f'next: cursor="{following}"' if following is not None else "nothing follows"
    # All ranges are named here, so that a line of the page cannot pass for the name of a range.
    ranges = " and ".join(range_name(text, start, end) for start, end in parts)
    return f"[{handle_of(cursor.page)}, {ranges}; {onward}]\n"
