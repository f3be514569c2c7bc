"""Reads and writes cursors: strings that say where the recall of a long page continues.

A cursor is base64url of JSON: version, page, position, budget, the ranges that were shown already, and a checksum over
all of them and the page's id. It holds everything a recall needs, so that any process with the page can answer it. The
checksum detects copying mistakes and edits; it is no secret and gives nobody a page they may not read.
"""

import base64
import binascii
import hashlib
import json
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from pagefold.errors import RecallError
from pagefold.pages.page import PageId, handle_of

VERSION = 1
_DIGITS = 8
_NOT_OURS = "the cursor is not one that was given here; copy it as it stands, or recall the page anew"
_CHANGED = "the cursor was changed since it was given; copy it as it stands, or recall the page anew"
_NUMBERS = 400


class ForgedCursorError(RecallError):
    """Not a cursor, or changed since it was given."""


class StaleCursorError(RecallError):
    """A cursor that no longer leads anywhere: of another version, or past the end of the page."""


class ForeignCursorError(RecallError):
    """A cursor of another page."""


@dataclass(frozen=True, slots=True)
class Cursor:
    """Continue at `position` of a page; `shown` are the ranges from there on that are not returned again."""

    page: PageId
    position: int
    budget: int
    shown: tuple[tuple[int, int], ...] = ()

    def __str__(self) -> str:
        runs = _deltas(self.position, self.shown)
        members = {"v": VERSION, "p": handle_of(self.page)[3:], "a": self.position, "b": self.budget}
        if runs:
            members["s"] = runs
        members["c"] = _check(self.page, self.position, self.budget, runs)
        return base64.urlsafe_b64encode(json.dumps(members, separators=(",", ":")).encode()).rstrip(b"=").decode()


def read_cursor(text: str, page: PageId, length: int) -> Cursor:
    """Parses a cursor for a page of this length. Raises one of the three errors above."""
    members = _members(text)
    version, name, handle = members.get("v"), members.get("p"), handle_of(page)
    if version != VERSION:
        raise StaleCursorError(f"this cursor is of version {version!r}, expected {VERSION}; recall the page anew")
    if name != handle[3:]:
        raise ForeignCursorError(f"this cursor belongs to pf-{name}, not to {handle}; use the cursor of {handle}")
    position: Any = members.get("a")
    budget: Any = members.get("b")
    runs = members.get("s", [])
    numbers = [position, budget, *runs] if isinstance(runs, list) else [None]
    if not all(type(number) is int and number >= 0 for number in numbers):
        raise ForgedCursorError(_NOT_OURS)
    if members.get("c") != _check(page, position, budget, runs) or len(runs) > _NUMBERS or len(runs) % 2:
        raise ForgedCursorError(_CHANGED)
    shown = _shown(position, runs)
    if shown and shown[-1][1] > length:
        raise ForgedCursorError(_NOT_OURS)  # the checksum is no secret
    if position >= length or (shown and shown[0][0] == position and _is_all(shown, length)):
        raise StaleCursorError(f"this cursor leads past the end of {handle}; everything has been seen")
    return Cursor(page, position, budget, shown)


def _members(text: str) -> dict[str, Any]:
    try:
        members = json.loads(base64.b64decode(text + "=" * (-len(text) % 4), altchars=b"-_", validate=True))
    except (binascii.Error, ValueError, RecursionError) as error:
        raise ForgedCursorError(
            f"{text[:20]!r}… is no cursor; copy it as it stands, or recall the page anew"
        ) from error
    if not isinstance(members, dict):
        raise ForgedCursorError(_NOT_OURS)
    return members


def _check(page: PageId, position: int, budget: int, runs: list[int]) -> str:
    content = f"{VERSION} {page} {position} {budget} {' '.join(map(str, runs))}"
    return hashlib.sha256(content.encode()).hexdigest()[:_DIGITS]


def _is_all(shown: tuple[tuple[int, int], ...], length: int) -> bool:
    """Whether ranges leave nothing of a page after the first of them."""
    return shown[-1][1] == length and all(end == start for (_, end), (start, _) in pairwise(shown))


def _deltas(position: int, shown: tuple[tuple[int, int], ...]) -> list[int]:
    """Writes ranges as distances, which are shorter than positions."""
    runs: list[int] = []
    at = position
    for start, end in shown:
        runs += [start - at, end - start]
        at = end
    return runs


def _shown(position: int, runs: list[int]) -> tuple[tuple[int, int], ...]:
    ranges: list[tuple[int, int]] = []
    at = position
    for skip, length in zip(runs[::2], runs[1::2], strict=True):
        ranges.append((at + skip, at + skip + length))
        at += skip + length
    return tuple(ranges)
