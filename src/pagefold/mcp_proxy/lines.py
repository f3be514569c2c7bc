"""Lines out of a stream that may hold anything: whole lines, lines that are too long, a half line at the end.

A line that is too long is never held: what stands in its first and last few kilobytes is kept, which is where a
JSON-RPC message says whose it is, and the lines after it are read as ever.
"""

import re
from dataclasses import dataclass, field

LONGEST_BYTES = 64 << 20
_KEPT_BYTES = 4096
_ID = rb'"id"\s*:\s*(-?\d+|"(?:[^"\\]|\\.){0,512}")'
# Members come in any order, but the id stands in front of the result or behind it: there is no third large one.
_ID_IN_FRONT = re.compile(rb'\s*\{\s*(?:"jsonrpc"\s*:\s*"2\.0"\s*,\s*)?' + _ID + rb"\s*,")
_ID_BEHIND = re.compile(rb"[}\]\"\w]\s*,\s*" + _ID + rb'\s*(?:,\s*"jsonrpc"\s*:\s*"2\.0"\s*)?\}\s*$')


@dataclass(frozen=True, slots=True)
class Overlong:
    """A line of `length` bytes that was let go."""

    length: int
    head: bytes = field(repr=False)
    tail: bytes = field(repr=False)

    @property
    def id(self) -> str:
        """The JSON text of the id that the message has, or "" where it cannot be told."""
        return id_of(self.head, self.tail)


@dataclass(slots=True)
class LineSplitter:
    """Feed it what arrives. Lines come without their line feed, blank ones never."""

    limit_bytes: int = LONGEST_BYTES
    _rest: bytearray = field(default_factory=bytearray)
    _over: Overlong | None = None

    def feed(self, data: bytes) -> list[bytes | Overlong]:
        *ends, rest = data.split(b"\n")
        found: list[bytes | Overlong] = []
        for end in ends:
            self._take(end)
            found += self.finish()
        self._take(rest)
        return found

    def finish(self) -> list[bytes | Overlong]:
        """What is there when a line ends, or the stream: where it is the stream, half a line at most."""
        if self._over is not None:
            over, self._over = self._over, None
            return [over]
        line = bytes(self._rest)
        self._rest = bytearray()
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
    """The id of a message by how it begins and ends, as JSON text, or "" where that does not tell."""
    found = _ID_IN_FRONT.match(head) or _ID_BEHIND.search(tail)
    return found[1].decode("utf-8", "surrogateescape") if found else ""
