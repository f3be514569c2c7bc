"""pieces: what is left of a page after its first chunk, in order, each piece within its budget.

A piece is made of ranges of the page as it came, not a character changed. Ranges are cut at line breaks where there are
any, and what was shown already is passed over: what was shown and all pieces together are the page, every character
once. Each piece is a pure function of the page and the cursor that asked for it.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from pagefold.encode.cursor import Cursor
from pagefold.errors import RecallError
from pagefold.pages.page import handle_of

LEAST = 100
"""Tokens below which a piece would hold nothing but its own frame."""
_DENSE = 2.6  # characters in a token, at the start of a search for how many fit
_BREAKS = ("\n", "\\n", "},", ". ", ", ", " ")
_STEPS, _CLOSE = 10, 0.96
_BACK = 0.6  # of a piece that may be given up for a better place to cut


class BudgetError(RecallError):
    """A budget in which nothing can be said."""


@dataclass(frozen=True, slots=True)
class Piece:
    """`text` is what the agent is told, `parts` the ranges of the page in it, `cursor` the way on, if there is one."""

    text: str
    parts: tuple[tuple[int, int], ...]
    cursor: Cursor | None


def usable(budget: int) -> int:
    """The budget, if anything can be said in it. Raises BudgetError."""
    if budget < LEAST:
        raise BudgetError(f"budget = {budget}: expected at least {LEAST} tokens")
    return budget


def gaps(start: int, end: int, shown: Sequence[tuple[int, int]]) -> Iterator[tuple[int, int]]:
    """The ranges between two places that were not shown."""
    at = start
    for first, last in shown:
        if first > at:
            yield at, min(first, end)
        at = max(at, last)
    if at < end:
        yield at, end


def piece(text: str, cursor: Cursor, count: Callable[[str], int]) -> Piece:
    """The piece that a cursor asks for. Raises BudgetError where its budget holds nothing."""
    missing = list(gaps(cursor.position, len(text), cursor.shown))
    room = usable(cursor.budget) - count(_frame(text, cursor, [(cursor.position, len(text))], cursor))
    while True:
        parts = _fill(text, missing, max(1, room), count)
        found = _piece(text, cursor, parts, missing)
        over = count(found.text) - cursor.budget
        if over <= 0:
            return found
        if room <= 1:
            break
        room = max(1, room - over - 2)
    raise BudgetError(f"budget = {cursor.budget}: too small for a piece of {handle_of(cursor.page)}; ask for more")


def pieces(text: str, cursor: Cursor | None, count: Callable[[str], int]) -> Iterator[Piece]:
    """All pieces from a cursor on."""
    while cursor is not None:
        found = piece(text, cursor, count)
        yield found
        cursor = found.cursor


def lines_said(text: str, start: int, end: int) -> str:
    """A range of a text as its lines, or as its characters where it begins within a line."""
    if "\n" not in text.rstrip("\n") or (start and text[start - 1] != "\n"):
        return f"characters {start + 1:,}-{end:,}"
    first = text.count("\n", 0, start) + 1
    last = first + text.count("\n", start, max(start, end - 1))
    return f"line {first}" if first == last else f"lines {first}-{last}"


def cut(text: str, start: int, end: int, tokens: int, count: Callable[[str], int]) -> int:
    """Where a range has to end to cost at most so many tokens: at a line break, or another mark, where there is one."""
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
        # The same share further, or less far, as it cost too little, or too much; never outside of what is known.
        at = start + int((at - start) * tokens / max(1, cost) * (1 if cost <= tokens else _CLOSE))
        at = min(max(at, low + 1), high)
        if at <= low:
            break
    return low if low == end else _break(text, start, low)


def _break(text: str, start: int, at: int) -> int:
    """The last good place to cut, up to a place and not far before it."""
    least = start + int((at - start) * _BACK)
    for mark in _BREAKS:
        found = text.rfind(mark, least, at)
        if found > start:
            return found + len(mark)
    return at


def _fill(
    text: str, missing: Sequence[tuple[int, int]], room: int, count: Callable[[str], int]
) -> list[tuple[int, int]]:
    parts: list[tuple[int, int]] = []
    for start, end in missing:
        mark = count(f"\n[{lines_said(text, start, end)}]\n") if parts else 0
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
        shown = tuple(run for run in cursor.shown if run[0] >= place)
        following = Cursor(cursor.page, place, cursor.budget, shown)
    said = [_frame(text, cursor, parts, following)]
    for index, (start, end) in enumerate(parts):
        if index:
            said.append(f"{'' if said[-1].endswith(chr(10)) else chr(10)}[{lines_said(text, start, end)}]\n")
        said.append(text[start:end])
    return Piece("".join(said), tuple(parts), following)


def _frame(text: str, cursor: Cursor, parts: Sequence[tuple[int, int]], following: Cursor | None) -> str:
    where = lines_said(text, *parts[0])
    on = f'next: cursor="{following}"' if following is not None else "nothing follows"
    return f"[{handle_of(cursor.page)}, {where}; {on}]\n"
