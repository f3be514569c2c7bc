"""Recall inside the turn, over Anthropic Messages: context tools are offered to the model, and what it asks of them is
answered without the client noticing.

`Turn` stands between the provider's answers and the one answer that the client gets. Text, thinking and the client's
own calls flow on as they come; a call to a context tool is held back, and where the model waits for nothing else, the
turn goes on with another request. Usage is summed. What was really said is a note (`Said`), under the history and the
gist of what the client saw: when the client sends that back, the provider's own messages are put in its place, so that
the next request extends the last one. Nothing here answers a call or sends anything.
"""

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from pagefold.errors import WireError
from pagefold.pages.context_tools import RECALL, SEARCH
from pagefold.wire import anthropic, json_text, sse
from pagefold.wire.json_text import as_count, as_list, as_object, as_string
from pagefold.wire.message import Message

OFFERED = (RECALL, SEARCH)
NAMES = frozenset(tool.name for tool in OFFERED)
TOOLS = tuple(
    json_text.dumps({"name": tool.name, "description": tool.description, "input_schema": tool.arguments})
    for tool in OFFERED
)
ENOUGH = "Nothing more can be recalled in this turn. Go on with what you have."
_USAGE = ("input_tokens", "cache_creation_input_tokens", "cache_read_input_tokens", "output_tokens")


@dataclass(frozen=True, slots=True)
class Call:
    id: str
    name: str
    arguments: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Said:
    """What was said upstream in a turn that the client saw as one message: whole messages, and the results of ours
    that belong into the message with the client's own results."""

    messages: tuple[str, ...]
    results: tuple[str, ...] = ()

    def to_json(self) -> str:
        return json_text.dumps({"messages": self.messages, "results": self.results})

    @classmethod
    def parse(cls, text: str) -> "Said":
        """Raises WireError."""
        value = as_object(json_text.parse(text))
        return cls(tuple(map(str, as_list(value.get("messages")))), tuple(map(str, as_list(value.get("results")))))


@dataclass(slots=True)
class Turn:
    """One turn of the model as the client sees it, over as many answers of the provider as it takes."""

    stream: bool
    rounds: int
    said: list[str] = field(default_factory=list)
    calls: list[Call] = field(default_factory=list)
    mixed: bool = False
    done: int = 0
    _results: list[str] = field(default_factory=list)
    _visible: list[Any] = field(default_factory=list)
    _reader: anthropic.StreamReader = field(default_factory=anthropic.StreamReader)
    _events: sse.Reader = field(default_factory=sse.Reader)
    _places: dict[int, int] = field(default_factory=dict)
    _hidden: set[int] = field(default_factory=set)
    _next: int = 0
    _usage: dict[str, int] = field(default_factory=dict)
    _ending: list[bytes] = field(default_factory=list)
    _delta: dict[str, Any] = field(default_factory=dict)
    _whole: bytearray = field(default_factory=bytearray)
    _stop: dict[str, str] = field(default_factory=dict)

    def feed(self, data: bytes) -> bytes:
        """What the client gets for these bytes of the provider. Raises WireError where they are not what they claim."""
        if not self.stream:
            self._whole += data
            return b""
        return b"".join(self._event(event) for event in self._events.feed(data))

    def answered(self) -> bytes:
        """The provider's answer is whole: what the client still gets. `calls` are then to be answered, unless `mixed`
        ones let the client's own go first."""
        if not self.stream:
            return self._whole_answer()
        if not self._reader.ended:
            return b"".join(self._ending)  # broken off: the client sees that it was
        content = as_object(json_text.parse(self._reader.response().message.raw)).get("content")
        self._conclude(as_list(content), self._reader.usage)
        return b"" if self.calls and not self.mixed else self._end()

    def results(self, texts: Sequence[str]) -> tuple[str, str]:
        """The calls are answered by `texts`: the messages that the next request has more. In a mixed turn, none are."""
        blocks = [
            json_text.dumps({"type": "tool_result", "tool_use_id": call.id, "content": text})
            for call, text in zip(self.calls, texts, strict=True)
        ]
        self.calls = []
        self.done += 1
        if self.mixed:
            self._results = blocks
            return "", ""
        user = f'{{"role":"user","content":[{",".join(blocks)}]}}'
        assistant = self.said[-1]
        self.said.append(user)
        self._reader, self._events, self._places = anthropic.StreamReader(), sse.Reader(), {}
        self._hidden, self._ending, self._whole = set(), [], bytearray()
        return assistant, user

    def note(self) -> tuple[str, Said] | None:
        """The gist of what the client saw, and what was really said; None where that is the same."""
        if not self.done or not self.said:
            return None
        return gist(self._visible), Said(tuple(self.said), tuple(self._results))

    # ---- streams

    def _event(self, event: sse.Event) -> bytes:
        if not event.data:
            return event.raw
        self._reader.take(event)
        value = sse.object_of(event)
        kind, index = value.get("type"), as_count(value.get("index"))
        if kind == "message_start":
            return event.raw if not self.said else b""
        if kind == "content_block_start":
            block = as_object(value.get("content_block"))
            if block.get("type") == "tool_use" and block.get("name") in NAMES:
                self._hidden.add(index)
            else:
                self._places[index] = self._next
                self._next += 1
        if kind in ("content_block_start", "content_block_delta", "content_block_stop"):
            if index in self._hidden:
                return b""
            place = self._places.get(index, index)
            if place == index:
                return event.raw
            return sse.render_event(event.name, json_text.dumps({**value, "index": place}))
        if kind in ("message_delta", "message_stop"):
            self._ending.append(event.raw)
            if kind == "message_delta":
                self._delta = value
            return b""
        return event.raw

    def _end(self) -> bytes:
        """The end of the message as the client gets it."""
        if not self.said[:-1] and not self._hidden:
            return b"".join(self._ending)
        delta = {**as_object(self._delta.get("delta")), **self._stop}
        value = {
            **self._delta,
            "type": "message_delta",
            "delta": delta,
            "usage": self._summed(self._delta.get("usage")),
        }
        return sse.render_event("message_delta", json_text.dumps(value)) + sse.render_event(
            "message_stop", '{"type":"message_stop"}'
        )

    # ---- both

    def _conclude(self, blocks: list[Any], usage: Mapping[str, Any]) -> None:
        ours = [as_object(block) for block in blocks if _is_ours(block)]
        theirs = [block for block in blocks if not _is_ours(block)]
        self.said.append(json_text.dumps({"role": "assistant", "content": blocks}))
        self._visible += theirs
        self.calls = [
            Call(as_string(block.get("id")), as_string(block.get("name")), as_object(block.get("input")))
            for block in ours
        ]
        self.mixed = any(as_object(block).get("type") == "tool_use" for block in theirs)
        for name in _USAGE:
            self._usage[name] = self._usage.get(name, 0) + as_count(usage.get(name))
        if self.calls and not self.mixed and self.done >= self.rounds:
            # It would go on for ever: the turn ends here, and what was asked last is as if it had not been.
            self.calls = []
            self.said[-1] = json_text.dumps({"role": "assistant", "content": theirs})
            self._stop = {"stop_reason": "end_turn"}

    def _whole_answer(self) -> bytes:
        value = as_object(json_text.parse(json_text.text_of(bytes(self._whole))))
        if not isinstance(value.get("content"), list):
            return bytes(self._whole)
        self._conclude(value["content"], as_object(value.get("usage")))
        if self.calls and not self.mixed:
            return b""
        if not self.done and not self.calls:
            return bytes(self._whole)
        told = {**value, "content": self._visible, **self._stop, "usage": self._summed(value.get("usage"))}
        return json_text.bytes_of(json_text.dumps(told))

    def _summed(self, usage: Any) -> dict[str, Any]:
        return {**as_object(usage), **self._usage}


def _is_ours(block: Any) -> bool:
    return isinstance(block, dict) and block.get("type") == "tool_use" and block.get("name") in NAMES


def gist(blocks: Sequence[Any]) -> str:
    """By what a message is known again when a client sends it back, whatever it does to spaces and marks."""
    parts: list[str] = []
    for block in map(as_object, blocks):
        match block.get("type"):
            case "text":
                text = as_string(block.get("text")).strip()
                if text:
                    parts.append(f"text {text}")
            case "thinking":
                parts.append(f"thinking {as_string(block.get('signature'))}")
            case kind:
                parts.append(f"{kind} {as_string(block.get('id'))}")
    return hashlib.sha256("\0".join(parts).encode("utf-8", "surrogatepass")).hexdigest()


def gist_of(message: Message) -> str:
    content = as_object(json_text.parse(message.raw)).get("content")
    return gist([{"type": "text", "text": content}] if isinstance(content, str) else as_list(content))


def with_results(message: Message, results: Sequence[str]) -> Message:
    """The client's message with results of ours before its own. Raises WireError where it has no content."""
    start, end = json_text.find(message.raw, ("content",))
    content = message.raw[start:end]
    if content.startswith('"'):
        content = f'[{{"type":"text","text":{content}}}]'
    inner = content[1:].lstrip()
    joined = ",".join(results) + ("" if inner.startswith("]") else ",")
    raw = json_text.splice(message.raw, [(start, end, f"[{joined}{inner}")])
    return anthropic.parse_message(json_text.parse(raw), raw)


def parsed(raw: str) -> Message:
    """Raises WireError."""
    value = json_text.parse(raw)
    if not isinstance(value, dict):
        raise WireError("a note holds whole messages")
    return anthropic.parse_message(value, raw)
