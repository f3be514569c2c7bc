"""Server-sent events: bytes in, whole events out; the reader owns no socket and does not care where the network cuts.

An event keeps the exact bytes it arrived as, so that a proxy can forward it untouched. Lines end in LF, CR LF or CR;
comments and unknown fields stay in the bytes and are otherwise passed over.
"""

import re
from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from typing import Any

from pagefold.errors import WireError
from pagefold.wire import json_text

_END = re.compile(rb"\r\n\r\n|\r\n\n|\r\n\r(?!\n)|\n\r\n|\n\n|\n\r(?!\n)|\r\r(?!\n)|\r\r\n")
_LINE = re.compile(r"\r\n|\n|\r")


@dataclass(frozen=True, slots=True)
class Event:
    name: str
    data: str
    raw: bytes


@dataclass(slots=True)
class Reader:
    """Feed it what arrives; it keeps what is not a whole event yet."""

    _rest: bytearray = field(default_factory=bytearray)
    _searched: int = 0

    def feed(self, data: bytes) -> list[Event]:
        """The events that are whole now."""
        self._rest += data
        found: list[Event] = []
        start = 0
        # A separator may have begun in the bytes searched before: up to three of them.
        at = max(0, self._searched - 3)
        while separator := _END.search(self._rest, at):
            end = separator.end()
            if end == len(self._rest) and self._rest[end - 1 : end] == b"\r":
                break  # a line feed may follow and belong to this line's end
            found.append(parse_event(bytes(self._rest[start:end])))
            start = at = end
        del self._rest[:start]
        self._searched = len(self._rest)
        return found

    def finish(self) -> list[Event]:
        """What is left when the stream ends: a last event that nobody terminated, if it says anything."""
        rest, self._rest, self._searched = bytes(self._rest), bytearray(), 0
        return [parse_event(rest)] if rest else []


@dataclass(slots=True)
class Follower(ABC):
    """Reads an answer out of a stream as it passes by: a provider's format says what each event means.

    `ended` once the stream has said that the answer is whole; `error` is the data of the event that said it failed.
    """

    ended: bool = False
    error: str = ""
    _events: Reader = field(default_factory=Reader)

    def feed(self, data: bytes) -> list[Event]:
        """The events that are whole now, untouched. Raises WireError where an event's data is not what it claims."""
        return self._taken(self._events.feed(data))

    def finish(self) -> list[Event]:
        """The event that the stream ended in, if it was not terminated. Raises WireError where it was cut off."""
        return self._taken(self._events.finish())

    def _taken(self, events: list[Event]) -> list[Event]:
        for event in events:
            if event.data:
                self._take(event)
        return events

    @abstractmethod
    def _take(self, event: Event) -> None: ...


def object_of(event: Event) -> dict[str, Any]:
    """The JSON object that an event carries. Raises WireError."""
    value = json_text.parse(event.data)
    if not isinstance(value, dict):
        raise WireError(f"stream event {event.name!r}: expected an object, found {event.data[:40]!r}")
    return value


def parse_event(raw: bytes) -> Event:
    name, data = "", []
    text = raw.decode("utf-8", "surrogateescape")
    for line in _LINE.split(text.removeprefix("\ufeff")):
        key, _, value = line.partition(":")
        value = value.removeprefix(" ")
        if key == "event":
            name = value
        elif key == "data":
            data.append(value)
    return Event(name, "\n".join(data), raw)


def render_event(name: str, data: str) -> bytes:
    head = f"event: {name}\n" if name else ""
    body = "".join(f"data: {line}\n" for line in _LINE.split(data))
    return f"{head}{body}\n".encode("utf-8", "surrogateescape")
