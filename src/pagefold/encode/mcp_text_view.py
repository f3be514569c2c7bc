"""Unescapes the text inside an MCP text block, and maps positions between the two texts.

The view of `{"type":"text","text":"…"}`, whole or cut off, is the string in it; the view of any other text is the text.
Whoever cuts the view can map its ranges back to ranges of the original.
"""

import json
import re
from bisect import bisect_right
from dataclasses import dataclass, field
from functools import lru_cache

_OPENING = re.compile(r'\s*\[?\s*\{\s*"type"\s*:\s*"text"\s*,\s*"text"\s*:\s*"')
_PLAIN = re.compile(r'[^"\\\x00-\x09\x0b-\x1f]+')
_ESCAPE = re.compile(
    r'\\(?:u[0-9a-fA-F]{4}(?:(?<=u[dD][89abAB][0-9a-fA-F]{2})\\u[dD][c-fC-F][0-9a-fA-F]{2})?|["\\/bfnrt])'
)


@dataclass(frozen=True, slots=True)
class TextView:
    """The text inside; `opened`: there was a block around it."""

    text: str
    opened: bool = False
    _inside: tuple[int, ...] = field(default=(0,), repr=False)
    _outside: tuple[int, ...] = field(default=(0,), repr=False)

    def outer(self, place: int) -> int:
        """Maps a position of the view to the original."""
        if not self.opened:
            return place
        at = bisect_right(self._inside, place) - 1
        return self._outside[at] + place - self._inside[at]

    def inner(self, place: int) -> int:
        """Maps a position of the original to the view: within it, or at the nearer end of it."""
        if not self.opened:
            return place
        at = bisect_right(self._outside, place) - 1
        if at < 0:
            return 0
        most = self._inside[at + 1] if at + 1 < len(self._inside) else len(self.text)
        return min(self._inside[at] + place - self._outside[at], most)


def view_of(text: str) -> TextView:
    opening = _OPENING.match(text)
    if opening is None:
        return TextView(text)
    at, length = opening.end(), 0
    parts: list[str] = []
    inside, outside = [0], [at]
    while at < len(text):
        plain = _PLAIN.match(text, at)
        if plain is not None:
            parts.append(plain[0])
            at, length = plain.end(), length + len(plain[0])
        escape = _ESCAPE.match(text, at)
        if escape is None:
            break
        char = _unescaped(escape[0])
        parts.append(char)
        at, length = escape.end(), length + len(char)
        inside.append(length)
        outside.append(at)
    if length == 0:
        return TextView(text)
    return TextView("".join(parts), True, tuple(inside), tuple(outside))


@lru_cache(maxsize=256)
def _unescaped(escape: str) -> str:
    return str(json.loads(f'"{escape}"'))
