"""Hides calls in answers of Anthropic's Messages API: their blocks are left out, and later blocks get lower numbers."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from pagefold.wire import anthropic, json_text, sse
from pagefold.wire.json_text import as_count, as_list, as_object, as_string
from pagefold.wire.message import Message
from pagefold.wire.turn import HiddenCall, ListTurnView, TurnAnswer

_THOUGHTS = ("thinking", "redacted_thinking")  # no message consists of them alone
_OF_A_BLOCK = ("content_block_start", "content_block_delta", "content_block_stop")


@dataclass(slots=True)
class MessagesTurn(ListTurnView):
    reads, parts_key, stop_key = anthropic.MessagesStream, "content", "stop_reason"

    _delta: dict[str, Any] = field(default_factory=dict)

    @staticmethod
    def tool(name: str, description: str, arguments: Mapping[str, Any]) -> str:
        return json_text.dumps({"name": name, "description": description, "input_schema": arguments})

    @staticmethod
    def results(answered: Sequence[tuple[HiddenCall, str]]) -> list[str]:
        blocks = [anthropic.result_block(call.id, text) for call, text in answered]
        return [json_text.dumps({"role": "user", "content": blocks})]

    @staticmethod
    def joined(results: Sequence[Message], message: Message) -> list[Message]:
        """Returns one message, as all results of an answer have to be in one. Raises WireError without content."""
        start, end = json_text.find(message.raw, ("content",))
        content = message.raw[start:end]
        if content.startswith('"'):
            content = f'[{{"type":"text","text":{content}}}]'
        inner = content[1:].lstrip()
        ours = [result.raw[slice(*json_text.find(result.raw, ("content",)))][1:-1] for result in results]
        raw = json_text.splice(
            message.raw, [(start, end, f"[{','.join(ours)}{'' if inner.startswith(']') else ','}{inner}")]
        )
        return [anthropic.parse_message(json_text.parse(raw), raw)]

    def _begin(self) -> None:
        self._delta = {}

    def _event(self, event: sse.StreamEvent) -> bytes:
        self._reader.take(event)
        value = sse.object_of(event.name, event.data)
        kind, index = value.get("type"), as_count(value.get("index"))
        if kind == "message_start":
            return b"" if self._later else event.raw
        if kind == "content_block_start":
            self._place(index, value.get("content_block"))
        if kind in _OF_A_BLOCK:
            place = self._places.get(index, index)
            if index in self._left_out:
                return b""
            return event.raw if place == index or not self._altered else _rendered({**value, "index": place})
        if kind in ("message_delta", "message_stop"):
            self._held.append(event.raw)
            self._delta = value if kind == "message_delta" else self._delta
            return b""
        return event.raw

    def _streamed(self) -> TurnAnswer | None:
        if not self._reader.ended:
            return None
        response = self._reader.response()
        content = as_object(json_text.parse(response.message.raw)).get("content")
        return self._answer(as_list(content), self._reader.usage, response.stop)

    def _answer(self, parts: list[Any], usage: Any, stop: str) -> TurnAnswer:
        ours, theirs = self._parted(parts, usage)
        self._shown += theirs
        calls = (
            HiddenCall(as_string(block.get("id")), as_string(block.get("name")), as_object(block.get("input")))
            for block in ours
        )
        mixed = any(as_object(block).get("type") == "tool_use" for block in theirs)
        says = any(as_object(block).get("type") not in _THOUGHTS for block in theirs)
        return TurnAnswer(_said(parts), _said(theirs) if says else (), tuple(calls), mixed, stop)

    def _end_of_stream(self, *, cut: bool) -> bytes:
        delta = as_object(self._delta.get("delta")) | ({"stop_reason": "end_turn"} if cut else {})
        usage = as_object(self._delta.get("usage")) | self.usage
        end = {**self._delta, "type": "message_delta", "delta": delta, "usage": usage}
        return _rendered(end) + _rendered({"type": "message_stop"})

    def _whole_answer(self, *, cut: bool) -> str:
        stop = {"stop_reason": "end_turn"} if cut else {}
        return json_text.dumps({**self._value, "content": self._shown, **stop, "usage": self.usage})

    def _is_hidden(self, part: Any) -> bool:
        return isinstance(part, dict) and part.get("type") == "tool_use" and as_string(part.get("name")) in self.hidden


def _said(blocks: list[Any]) -> tuple[str, ...]:
    return (json_text.dumps({"role": "assistant", "content": blocks}),)


def _rendered(value: dict[str, Any]) -> bytes:
    return sse.render_event(as_string(value.get("type")), json_text.dumps(value))
