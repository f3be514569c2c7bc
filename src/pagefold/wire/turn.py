"""Turns several answers of a provider into the one answer that a client sees.

Calls of some tools are hidden from the client and answered by pagefold; the turn then goes on with another request.
The model's text is passed on as it comes. The end of an answer is held back until it is known to be the end of the
turn. Usage is summed. Where nothing was hidden the client gets the provider's own bytes. A subclass knows one format;
nothing here answers a call or sends anything.
"""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

from pagefold.errors import WireError
from pagefold.wire import json_text, sse
from pagefold.wire.json_text import as_object, as_string
from pagefold.wire.message import Message, Request

_CUT_SHORT = frozenset(("max_tokens", "model_context_window_exceeded", "refusal"))
_CUT_SHORT |= frozenset(("length", "content_filter", "max_output_tokens", "incomplete"))


@dataclass(frozen=True, slots=True)
class HiddenCall:
    id: str
    name: str
    arguments: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class TurnAnswer:
    """One answer of the provider. `said` are its messages as JSON, `shown` the same as the client sees them, `calls`
    those that are hidden. `mixed`: the client has calls of its own to answer. `stop` is why the model stopped."""

    said: tuple[str, ...]
    shown: tuple[str, ...]
    calls: tuple[HiddenCall, ...]
    mixed: bool
    stop: str = ""

    @property
    def short(self) -> bool:
        """Returns whether the answer was cut short, so that a call in it may be incomplete."""
        return self.stop in _CUT_SHORT


@dataclass(slots=True)
class TurnView(ABC):
    """Makes what a client gets from what a provider sends. `hidden` are the names of the tools to hide."""

    hidden: frozenset[str]
    stream: bool
    usage: dict[str, Any] = field(default_factory=dict)
    _later: bool = False  # than the first answer of the turn
    _altered: bool = False  # whether the client gets anything else than what came
    _held: list[bytes] = field(default_factory=list)
    _whole: bytearray = field(default_factory=bytearray)
    _events: sse.EventSplitter = field(default_factory=sse.EventSplitter)
    _reader: sse.StreamedAnswer = field(init=False)
    _places: dict[int, int] = field(default_factory=dict)  # of the parts of an answer: where the client sees them
    _left_out: set[int] = field(default_factory=set)
    _value: dict[str, Any] = field(default_factory=dict)

    reads: ClassVar[type[sse.StreamedAnswer]]
    """Reads the streams of this format."""

    def __post_init__(self) -> None:
        self._reader = self.reads()

    @classmethod
    def of(cls, request: Request, hidden: frozenset[str]) -> "TurnView | None":
        """Returns the view for a request, or None where calls cannot be hidden in its answer."""
        return cls(hidden, request.stream)

    def feed(self, data: bytes) -> bytes:
        """Returns what the client gets for these bytes of the provider."""
        if self.stream:
            return b"".join([self._taken(event) for event in self._events.feed(data)])
        self._whole += data
        return b""

    def answered(self) -> TurnAnswer | None:
        """Returns the provider's answer after its last byte, or None where it is incomplete or cannot be parsed."""
        if self.stream:
            for event in self._events.finish():  # nobody terminated it
                self._held.append(self._taken(event))
            return self._streamed()
        try:
            return self._read(as_object(json_text.parse(json_text.text_of(bytes(self._whole)))))
        except WireError:
            return None

    @property
    def unseen(self) -> bytes:
        """Returns the bytes of the answer that the client has not got yet."""
        return b"".join(self._held) + self._events.rest if self.stream else bytes(self._whole)

    def broken_off(self) -> bytes:
        """Returns the rest of a turn whose last answer is incomplete, so that the client sees that it is."""
        return self.unseen

    def end(self, *, cut: bool = False) -> bytes:
        """Returns the rest of the turn. With `cut` it ends although the model waits for a hidden call."""
        if not self._altered and not cut:
            return self.unseen
        return self._end_of_stream(cut=cut) if self.stream else json_text.bytes_of(self._whole_answer(cut=cut))

    def goes_on(self) -> None:
        """Prepares for another answer in this turn."""
        self._later = self._altered = True
        self._held, self._whole, self._events = [], bytearray(), sse.EventSplitter()
        self._reader, self._places, self._left_out = self.reads(), {}, set()
        self._begin()

    def _taken(self, event: sse.StreamEvent) -> bytes:
        """Returns what the client gets for an event. An event that is empty or cannot be parsed is passed on as it
        came, after those that are held back; so is any other event of a turn in which nothing was changed."""
        if event.data:
            held = bool(self._held)
            try:
                told = self._event(event)
            except WireError:
                pass
            else:
                if not held or self._altered:
                    return told
                if told:
                    self._held.append(told)
                return b""
        if not self._held:
            return event.raw
        self._held.append(event.raw)
        return b""

    telling_error: ClassVar[str] = "error"
    """The name of error events in a stream; empty where events have no names."""

    def broken(self, told: bytes) -> bytes:
        """Returns what the client gets when the provider refused to go on: an error event if a stream has begun."""
        line = " ".join(json_text.text_of(told).split())
        return sse.render_event(self.telling_error, line) if self.stream else told

    @staticmethod
    @abstractmethod
    def tool(name: str, description: str, arguments: Mapping[str, Any]) -> str:
        """Returns a tool as JSON, as a request offers it."""

    @staticmethod
    @abstractmethod
    def results(answered: Sequence[tuple[HiddenCall, str]]) -> list[str]:
        """Returns the messages, as JSON, that answer hidden calls."""

    @staticmethod
    def joined(results: Sequence[Message], message: Message) -> list[Message]:
        """Returns a client's message of results together with the hidden results of the same answer."""
        return [*results, message]

    @staticmethod
    def standing(answer: Sequence[Message]) -> Sequence[Message]:
        """Returns what can be sent of an answer that a client sends back, when its hidden calls are not known."""
        return answer

    @abstractmethod
    def _begin(self) -> None:
        """Forgets what else a format keeps of one answer."""

    def _parted(self, parts: Sequence[Any], usage: Any) -> tuple[list[dict[str, Any]], list[Any]]:
        """The hidden calls among the parts of an answer, and the others. Adds up the usage."""
        self.usage = added(self.usage, as_object(usage))
        hidden = [part for part in parts if self._is_hidden(part)]
        self._altered = self._altered or bool(hidden)
        return hidden, [part for part in parts if not self._is_hidden(part)]

    @abstractmethod
    def _is_hidden(self, part: Any) -> bool: ...

    @abstractmethod
    def _event(self, event: sse.StreamEvent) -> bytes:
        """Returns what the client gets for an event with data. Raises WireError where it cannot be parsed."""

    @abstractmethod
    def _streamed(self) -> TurnAnswer | None: ...

    @abstractmethod
    def _read(self, value: dict[str, Any]) -> TurnAnswer | None: ...

    @abstractmethod
    def _end_of_stream(self, *, cut: bool) -> bytes: ...

    @abstractmethod
    def _whole_answer(self, *, cut: bool) -> str: ...


@dataclass(slots=True)
class ListTurnView(TurnView):
    """A view of a format whose answer is a list of numbered parts: hidden ones are left out, and later ones get lower
    numbers."""

    parts_key: ClassVar[str]
    stop_key: ClassVar[str]

    _next: int = 0
    _shown: list[Any] = field(default_factory=list)

    def _place(self, index: int, part: Any) -> None:
        """Gives a part that begins its place, or leaves it out."""
        if self._is_hidden(part):
            self._left_out.add(index)
            self._altered = True
        else:
            self._places[index] = self._next
            self._next += 1

    def _read(self, value: dict[str, Any]) -> TurnAnswer | None:
        self._value = value
        parts, stop = value.get(self.parts_key), as_string(value.get(self.stop_key))
        return self._answer(parts, value.get("usage"), stop) if isinstance(parts, list) else None

    @abstractmethod
    def _answer(self, parts: list[Any], usage: Any, stop: str) -> TurnAnswer: ...


def hidden_call(call_id: Any, call: Mapping[str, Any]) -> HiddenCall:
    """A call whose arguments are JSON in a string; a model may write what is no JSON."""
    try:
        arguments = as_object(json_text.parse(as_string(call.get("arguments")) or "{}"))
    except WireError:
        arguments = {}
    return HiddenCall(as_string(call_id), as_string(call.get("name")), arguments)


def added(one: Mapping[str, Any], other: Mapping[str, Any]) -> dict[str, Any]:
    """Adds up two usages, nested counts included. Of a value that is no count, the newer one is kept."""
    summed = dict(one)
    for name, value in other.items():
        before = summed.get(name)
        if isinstance(value, dict):
            summed[name] = added(as_object(before), value)
        elif _is_count(value) and _is_count(before):
            summed[name] = before + value
        elif value is not None or name not in summed:
            summed[name] = value
    return summed


def _is_count(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)
