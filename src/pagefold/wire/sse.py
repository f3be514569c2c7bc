"""Splits a byte stream into server-sent events, and reads a model's streamed answer from them.

Works on any cut of the bytes. An event keeps the exact bytes it arrived as, so that a proxy can forward it untouched.
Lines end in LF, CR LF or CR. Comments and unknown fields are kept in the bytes and otherwise ignored.
"""

import re
from abc import ABC, abstractmethod
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, ClassVar, NamedTuple

from pagefold.errors import WireError
from pagefold.wire import json_text
from pagefold.wire.message import Response
from pagefold.wire.quota import NO_LIMITS, Limits

_END = re.compile(rb"\r\n\r\n|\r\n\n|\r\n\r(?!\n)|\n\r\n|\n\n|\n\r(?!\n)|\r\r(?!\n)|\r\r\n")
_FAILING = (b'"error"',)
_LINE = re.compile(r"\r\n|\n|\r")
_PLAIN = re.compile(r"event: (.*)\ndata: (.*)\n\n\Z")  # as nearly every event is spelled


class StreamEvent(NamedTuple):
    name: str
    data: str
    raw: bytes


@dataclass(slots=True)
class EventSplitter:
    """Splits bytes into events as they arrive, and keeps what is not a whole event yet."""

    _rest: bytearray = field(default_factory=bytearray)
    _searched: int = 0
    _returns: bool = False

    @property
    def between(self) -> bool:
        """Returns whether all bytes so far belong to whole events."""
        return not self._rest

    @property
    def rest(self) -> bytes:
        """Returns the bytes that are not a whole event yet."""
        return bytes(self._rest)

    def feed(self, data: bytes) -> list[StreamEvent]:
        """Adds bytes and returns the events that are whole now."""
        return [parse_event(raw) for raw in self.split(data)]

    def split(self, data: bytes) -> list[bytes]:
        """Adds bytes and returns the bytes of each event that is whole now."""
        self._rest += data
        self._returns = self._returns or b"\r" in data
        found: list[bytes] = []
        start = 0
        # A separator may have begun in the bytes searched before: up to three of them.
        at = max(0, self._searched - 3)
        while (end := self._end(at)) > 0:
            found.append(bytes(self._rest[start:end]))
            start = at = end
        del self._rest[:start]
        self._searched = len(self._rest)
        return found

    def finish(self) -> list[StreamEvent]:
        """Returns the last event of a stream that ended without an empty line, if there is one."""
        rest, self._rest, self._searched = bytes(self._rest), bytearray(), 0
        return [parse_event(rest)] if rest else []

    def _end(self, at: int) -> int:
        """Returns where the next event ends, searched from `at`, or 0."""
        if not self._returns:  # every provider's stream; twenty times as fast as looking for all line ends
            found = self._rest.find(b"\n\n", at)
            return 0 if found < 0 else found + 2
        separator = _END.search(self._rest, at)
        if separator is None or (separator.end() == len(self._rest) and self._rest.endswith(b"\r")):
            return 0  # a line feed may follow and belong to this line's end
        return separator.end()


@dataclass(slots=True)
class StreamedAnswer(ABC):
    """Reads a model's answer from a stream while it passes. A format's subclass knows what its events mean.

    `ended` is True once the stream has said that the answer is complete; `error` is the data of an event that says it
    failed. `limits` is what it says of a subscription's windows, where it does. `reasoning_keys` tell the pieces of
    reasoning that came from all others, where they are bound to what stands before them. With `gist`, events with the
    model's text, which are most of a stream, are skipped: only the end, the model, the usage, the limits and those keys
    are read.
    """

    telling: ClassVar[tuple[bytes, ...]]
    """Bytes that occur in every event that matters for the gist; error events are found without them."""

    ended: bool = False
    error: str = ""
    gist: bool = False
    reasoning_keys: list[str] = field(default_factory=list)
    limits: Limits = NO_LIMITS
    _events: EventSplitter = field(default_factory=EventSplitter)
    _usage: Any = None

    @property
    def usage(self) -> dict[str, Any]:
        """Returns the usage that the provider has reported so far, in its own names."""
        return json_text.as_object(self._usage)

    def feed(self, data: bytes) -> list[StreamEvent]:
        """Reads bytes and returns the events that are whole now; none for the gist. Raises WireError for an event that
        cannot be parsed."""
        if self.gist:
            self._skim(data)
            return []
        events = self._events.feed(data)
        for event in events:
            self.take(event)
        return events

    def finish(self) -> list[StreamEvent]:
        """Reads the last event of a stream that ended without an empty line. Raises WireError where it was cut off."""
        events = self._events.finish()
        for event in events:
            self.take(event)
        return events

    def take(self, event: StreamEvent) -> None:
        """Reads one event. Raises WireError where it cannot be parsed."""
        if event.data:
            self._take(event.name, event.data)

    def _skim(self, data: bytes) -> None:
        if self._events.between and data.endswith(b"\n\n") and b"\r" not in data:
            self._read(_holding(data, self.telling))
            if not self.ended:
                self._read(_holding(data, _FAILING))
        else:
            self._read([raw for raw in self._events.split(data) if self._matters(raw)])

    def _read(self, raws: Iterable[bytes]) -> None:
        for raw in raws:
            name, data = _said(raw)
            if data:
                self._take(name, data)

    @abstractmethod
    def response(self) -> Response:
        """Returns the answer as far as it has come."""

    def _matters(self, raw: bytes) -> bool:
        """Returns whether an event may matter for the gist."""
        for mark in (*_FAILING, *self.telling):  # noqa: SIM110 - half the time of any(), and this is asked for every event
            if mark in raw:
                return True
        return False

    @abstractmethod
    def _take(self, name: str, data: str) -> None: ...


def _holding(data: bytes, marks: tuple[bytes, ...]) -> list[bytes]:
    """Returns those of several whole events that contain a mark, without splitting the others."""
    found: dict[int, bytes] = {}
    for mark in marks:
        at = data.find(mark)
        while at >= 0:
            start = data.rfind(b"\n\n", 0, at)
            start = start + 2 if start >= 0 else 0
            end = data.find(b"\n\n", at) + 2
            found[start] = data[start:end]
            at = data.find(mark, end)
    return [found[start] for start in sorted(found)]


def object_of(name: str, data: str) -> dict[str, Any]:
    """Returns the JSON object in an event's data. Raises WireError."""
    value = json_text.parse(data)
    if not isinstance(value, dict):
        raise WireError(f"stream event {name!r}: expected an object, found {data[:40]!r}")
    return value


def parse_event(raw: bytes) -> StreamEvent:
    return StreamEvent(*_said(raw), raw)


def _said(raw: bytes) -> tuple[str, str]:
    """Returns the name and the data of an event."""
    text = raw.decode("utf-8", "surrogateescape")
    if "\r" not in text and (plain := _PLAIN.match(text)):
        return plain[1], plain[2]
    name, data, lines = "", list[str](), _LINE.split(text)
    lines[0] = lines[0].removeprefix("\ufeff")
    for line in lines:
        key, _, value = line.partition(":")
        value = value.removeprefix(" ")
        if key == "event":
            name = value
        elif key == "data":
            data.append(value)
    return name, "\n".join(data)


def render_event(name: str, data: str) -> bytes:
    head = f"event: {name}\n" if name else ""
    body = "".join(f"data: {line}\n" for line in _LINE.split(data))
    return f"{head}{body}\n".encode("utf-8", "surrogateescape")
