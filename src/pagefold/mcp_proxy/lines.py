"""Splits a stream of bytes into lines, and lets go of lines that are too long to be held.

Of a line that is too long only the first and last few kilobytes are kept, which is where a JSON-RPC message has its id.
The lines after it are read as usual.
"""

import re
from dataclasses import dataclass, field

LONGEST_BYTES = 64 << 20
_KEPT_BYTES = 4096
_ID = rb'"id"\s*:\s*(-?\d+|"(?:[^"\\]|\\.){0,512}")'
# Members come in any order, but the id stands before the result or after it: there is no third large member.
ID_IN_FRONT = re.compile(rb'\s*\{\s*(?:"jsonrpc"\s*:\s*"2\.0"\s*,\s*)?' + _ID + rb"\s*,")
_ID_BEHIND = re.compile(rb"[}\]\"\w]\s*,\s*" + _ID + rb'\s*(?:,\s*"jsonrpc"\s*:\s*"2\.0"\s*)?\}\s*$')


@dataclass(frozen=True, slots=True)
class Overlong:
    """A line of `length` bytes that was let go."""

    length: int
    head: bytes = field(repr=False)
    tail: bytes = field(repr=False)

    @property
    def id(self) -> str:
        """The JSON text of the message's id, or "" where it cannot be told."""
        return id_of(self.head, self.tail)


@dataclass(slots=True)
class LineSplitter:
    """Takes bytes as they arrive. Lines are returned without their line feed; blank lines are left out."""

    limit_bytes: int = LONGEST_BYTES
    _rest: bytearray = field(default_factory=bytearray)
    _over: Overlong | None = None

    def feed(self, data: bytes) -> list[bytes | Overlong]:
        *ends, rest = data.split(b"\n")
        lines: list[bytes | Overlong] = []
        for end in ends:
            self._take(end)
            lines += self.finish()
        self._take(rest)
        return lines

    def finish(self) -> list[bytes | Overlong]:
        """What is held when a line ends, or the stream: at the end of a stream that may be half a line."""
        if self._over is not None:
            over, self._over = self._over, None
            return [over]
        line, self._rest = bytes(self._rest), bytearray()
        return [line] if line.strip(b" \t\r") else []

    def _take(self, piece: bytes) -> None:
        if self._over is None:
            self._rest += piece
            if len(self._rest) <= self.limit_bytes:
                return
            rest, self._rest = self._rest, bytearray()
            self._over = Overlong(len(rest), bytes(rest[:_KEPT_BYTES]), bytes(rest[-_KEPT_BYTES:]))
        elif piece:
            over = self._over
            head = over.head if len(over.head) == _KEPT_BYTES else (over.head + piece)[:_KEPT_BYTES]
            self._over = Overlong(over.length + len(piece), head, (over.tail + piece)[-_KEPT_BYTES:])


def id_of(head: bytes, tail: bytes) -> str:
    """The id of a message, as JSON text, by how the message begins and ends; "" where that does not tell."""
    match = ID_IN_FRONT.match(head) or _ID_BEHIND.search(tail)
    return match[1].decode("utf-8", "surrogateescape") if match else ""
