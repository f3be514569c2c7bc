"""One turn of a model as its client sees it, over as many answers of the provider as the turn takes.

Calls to some tools are hidden from the client and answered by somebody else, and the turn goes on with another request.
What the model says flows on as it comes; the end of an answer is held back until it is known to be the end of the turn.
Usage is summed. Where nothing was hidden the client gets the provider's bytes. A format says what its events mean;
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
    """One answer of the provider: the messages that it adds to a history, the same as the client sees them, the calls
    that are hidden, whether the client has calls of its own to answer, and why the model stopped. All messages are
    JSON."""

    said: tuple[str, ...]
    shown: tuple[str, ...]
    calls: tuple[HiddenCall, ...]
    mixed: bool
    stop: str = ""

    @property
    def short(self) -> bool:
        """Whether it was cut short: a call in it may not be whole."""
        return self.stop in _CUT_SHORT


@dataclass(slots=True)
class TurnView(ABC):
    """What a client gets for what a provider sends."""

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
        """The view of the turn that a request asks for, or None where it cannot be given."""
        return cls(hidden, request.stream)

    def feed(self, data: bytes) -> bytes:
        """What the client gets for these bytes of the provider."""
        if self.stream:
            return b"".join([self._taken(event) for event in self._events.feed(data)])
        self._whole += data
        return b""

    def answered(self) -> TurnAnswer | None:
        """The provider has said all it says: its answer, or None where that is none or was broken off."""
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
        """What has come of the answer and the client has not got, as it came."""
        return b"".join(self._held) + self._events.rest if self.stream else bytes(self._whole)

    def broken_off(self) -> bytes:
        """The rest of a turn whose last answer is none, or was broken off: the client sees that it was."""
        return self.unseen

    def end(self, *, cut: bool = False) -> bytes:
        """The rest of the turn. `cut` where it ends although the model would go on with a hidden call."""
        if not self._altered and not cut:
            return self.unseen
        return self._end_of_stream(cut=cut) if self.stream else json_text.bytes_of(self._whole_answer(cut=cut))

    def goes_on(self) -> None:
        """Another answer follows, to a request that goes on with this turn."""
        self._later = self._altered = True
        self._held, self._whole, self._events = [], bytearray(), sse.EventSplitter()
        self._reader, self._places, self._left_out = self.reads(), {}, set()
        self._begin()

    def _taken(self, event: sse.StreamEvent) -> bytes:
        """What the client gets for an event. One that says nothing, or is not what it claims, goes on as it came, in
        its place."""
        if event.data:
            try:
                return self._event(event)
            except WireError:
                pass
        if not self._held:
            return event.raw
        self._held.append(event.raw)
        return b""

    telling_error: ClassVar[str] = "error"
    """The name of the event by which a stream says that it failed; empty where events have no names."""

    def broken(self, told: bytes) -> bytes:
        """How the client is told that the provider refused to go on: by an event, in a stream that has begun."""
        line = " ".join(json_text.text_of(told).split())
        return sse.render_event(self.telling_error, line) if self.stream else told

    @staticmethod
    @abstractmethod
    def tool(name: str, description: str, arguments: Mapping[str, Any]) -> str:
        """A tool as a request offers it."""

    @staticmethod
    @abstractmethod
    def results(answered: Sequence[tuple[HiddenCall, str]]) -> list[str]:
        """The messages by which hidden calls are answered."""

    @staticmethod
    def joined(results: Sequence[Message], message: Message) -> list[Message]:
        """The client's own results with those of hidden calls of the same answer before them."""
        return [*results, message]

    @staticmethod
    def standing(answer: Sequence[Message]) -> Sequence[Message]:
        """What can be sent of an answer that a client sends back, where nobody knows any more what was hidden in it."""
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
        """What the client gets for an event with data. Raises WireError where it is not what it claims."""

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
    """The view where an answer is a list of parts that a stream sends by their numbers, over all answers of a turn:
    parts are left out, and those behind them move up."""

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
    """Counts added up, those inside as well; of what is no count the newer one."""
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
