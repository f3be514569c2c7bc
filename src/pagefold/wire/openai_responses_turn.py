"""Hides calls in answers of OpenAI's Responses API: their items are left out, and later items get lower numbers.

A reasoning item that the provider neither stores nor sends encrypted cannot be sent back, and is left out as well.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from pagefold.wire import json_text, openai_responses, sse
from pagefold.wire.json_text import as_count, as_list, as_object, as_string
from pagefold.wire.message import BlockKind, Message, Request
from pagefold.wire.turn import HiddenCall, ListTurnView, TurnAnswer, hidden_call

_FIRST = ("response.created", "response.in_progress", "response.queued")
_ADDED = "response.output_item.added"


@dataclass(slots=True)
class ResponsesTurn(ListTurnView):
    reads, parts_key, stop_key = openai_responses.ResponsesStream, "output", "status"

    kept: bool = True
    _number: int = -1
    _last: dict[str, Any] = field(default_factory=dict)

    @classmethod
    def of(cls, request: Request, hidden: frozenset[str]) -> "ResponsesTurn | None":
        """Returns None for an answer in the background: it is fetched by its id, where nothing can be hidden."""
        if request.member("background") == "true":
            return None
        return cls(hidden, request.stream, kept=request.member("store") != "false")

    @staticmethod
    def tool(name: str, description: str, arguments: Mapping[str, Any]) -> str:
        said = {"type": "function", "name": name, "description": description, "parameters": arguments}
        return json_text.dumps(said | {"strict": False})

    @staticmethod
    def results(answered: Sequence[tuple[HiddenCall, str]]) -> list[str]:
        return [openai_responses.result(call.id, text) for call, text in answered]

    @staticmethod
    def standing(answer: Sequence[Message]) -> Sequence[Message]:
        """Leaves out reasoning at the end: it led to a hidden call, and the provider refuses it without that call."""
        end = len(answer)
        while end and all(block.kind is BlockKind.THINKING for block in answer[end - 1].blocks):
            end -= 1
        return answer[:end]

    def _begin(self) -> None:
        self._last = {}

    # ---- streams

    def _event(self, event: sse.StreamEvent) -> bytes:
        self._reader.take(event)
        value = sse.object_of(event.name, event.data)
        kind, index = as_string(value.get("type")) or event.name, value.get("output_index")
        if kind in _FIRST and self._later:
            return b""
        if kind in openai_responses.LAST:
            self._held.append(event.raw)
            self._last = value
            return b""
        if isinstance(index, int):
            if kind == _ADDED:
                self._place(index, value.get("item"))
            if index in self._left_out:
                return b""
            value["output_index"] = self._places.get(index, index)
        return self._numbered(event, value)

    def _numbered(self, event: sse.StreamEvent, value: dict[str, Any]) -> bytes:
        """Returns an event with its number in the client's stream; unchanged until something was left out."""
        self._number = as_count(value.get("sequence_number")) if self._number < 0 else self._number + 1
        if not self._altered:
            return event.raw
        if "sequence_number" in value:
            value["sequence_number"] = self._number
        return sse.render_event(event.name, json_text.dumps(value))

    def _streamed(self) -> TurnAnswer | None:
        if not self._reader.ended or self._last.get("type") == "response.failed":
            return None
        response = self._reader.response()
        return self._answer(as_list(json_text.parse(response.message.raw)), self._reader.usage, response.stop)

    def _end_of_stream(self, *, cut: bool) -> bytes:
        response = {**as_object(self._last.get("response")), "output": self._shown, "usage": self.usage or None}
        value = {**self._last, "response": response}
        event = sse.StreamEvent(as_string(self._last.get("type")), "", b"")
        return self._numbered(event, value)

    def broken_off(self) -> bytes:
        """Returns the end of a stream that says itself that it failed, or else what the client has not got yet."""
        return self._end_of_stream(cut=False) if self._altered and self._last else self.unseen

    # ---- both

    def _answer(self, parts: list[Any], usage: Any, stop: str) -> TurnAnswer:
        ours, theirs = self._parted(parts, usage)
        self._shown += theirs
        calls = tuple(hidden_call(item.get("call_id"), item) for item in ours)
        mixed = any(as_string(as_object(item).get("type")).endswith("_call") and "call_id" in item for item in theirs)
        while ours and theirs and as_object(theirs[-1]).get("type") == "reasoning":
            theirs.pop()  # it led to a hidden call, and the provider refuses it without that call
        said, shown = (tuple(map(json_text.dumps, filter(self._stands, some))) for some in (parts, theirs))
        return TurnAnswer(said, shown, calls, mixed, stop)

    def _stands(self, item: Any) -> bool:
        """Returns whether an item can be sent back."""
        said = as_object(item)
        return self.kept or said.get("type") != "reasoning" or bool(said.get("encrypted_content"))

    def _whole_answer(self, *, cut: bool) -> str:
        return json_text.dumps({**self._value, "output": self._shown, "usage": self.usage or None})

    def _is_hidden(self, part: Any) -> bool:
        return (
            isinstance(part, dict)
            and part.get("type") == "function_call"
            and as_string(part.get("name")) in self.hidden
        )
