"""Hides calls in answers of OpenAI's Chat Completions API: the client sees one message with the texts of all answers,
divided by empty lines."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from pagefold.wire import json_text, openai_chat, sse
from pagefold.wire.json_text import as_count, as_list, as_object, as_string
from pagefold.wire.message import Request
from pagefold.wire.turn import HiddenCall, TurnAnswer, TurnView, hidden_call

_BETWEEN = "\n\n"
_OF_THE_TURN = ("id", "created", "system_fingerprint")  # the client knows them from the first answer


@dataclass(slots=True)
class ChatTurn(TurnView):
    telling_error, reads = "", openai_chat.ChatStream

    _first: dict[str, Any] = field(default_factory=dict)
    _spoken: set[str] = field(default_factory=set)
    _begun: set[str] = field(default_factory=set)
    _ending: list[dict[str, Any]] = field(default_factory=list)
    _words: dict[str, list[str]] = field(default_factory=dict)
    _calls: list[Any] = field(default_factory=list)

    @classmethod
    def of(cls, request: Request, hidden: frozenset[str]) -> "ChatTurn | None":
        """Returns None for a request for several choices: each would go on in its own way."""
        return cls(hidden, request.stream) if request.member("n") in ("", "null", "1") else None

    @staticmethod
    def tool(name: str, description: str, arguments: Mapping[str, Any]) -> str:
        said = {"name": name, "description": description, "parameters": arguments}
        return json_text.dumps({"type": "function", "function": said})

    @staticmethod
    def results(answered: Sequence[tuple[HiddenCall, str]]) -> list[str]:
        return [openai_chat.result(call.id, text) for call, text in answered]

    def _begin(self) -> None:
        self._ending, self._begun = [], set()

    # ---- streams

    def _event(self, event: sse.StreamEvent) -> bytes:
        self._reader.take(event)
        if event.data.strip() == "[DONE]":
            self._held.append(event.raw)
            return b""
        value = sse.object_of(event.name, event.data)
        if value.get("error"):
            return event.raw
        if not self._first:
            self._first = {name: value[name] for name in _OF_THE_TURN if name in value}
        choices = as_list(value.get("choices"))
        choice = as_object(choices[0]) if choices else {}
        delta = as_object(choice.get("delta"))
        shown = self._delta(delta)
        if choices and (shown != delta or self._later):
            value = {**value, **self._first, "choices": [{**choice, "delta": shown}]}
            self._altered = True
        if not choices and not value.get("usage"):  # some servers begin by saying what they filter
            return b"" if self._later else event.raw
        if not choices or choice.get("finish_reason"):
            self._held.append(event.raw)
            self._ending.append(value)
            return b""
        if not self._altered:
            return event.raw
        return sse.render_event(event.name, json_text.dumps(value)) if shown or not delta else b""

    def _delta(self, delta: dict[str, Any]) -> dict[str, Any]:
        """Returns the part of a delta that the client gets."""
        shown: dict[str, Any] = {}
        for name, value in delta.items():
            if name == "tool_calls":
                said = as_list(value)
                calls = [shown_call for call in said for shown_call in self._call(call)]
                if calls or not (said or self._later):
                    shown[name] = calls or value
            elif isinstance(value, str) and value and name != "role":
                shown[name] = self._words_between(name) + value
            elif not self._later:  # a role is said once
                shown[name] = value
        return shown

    def _words_between(self, name: str) -> str:
        """Returns what divides the next piece of a text from the text of an earlier answer."""
        first = name not in self._begun
        self._begun.add(name)
        spoken = name in self._spoken
        self._spoken.add(name)
        return _BETWEEN if self._later and first and spoken else ""

    def _call(self, call: Any) -> list[Any]:
        """Returns the piece of a call as the client gets it; nothing where it is of a hidden one."""
        said = as_object(call)
        index = as_count(said.get("index"))
        if as_string(as_object(said.get("function")).get("name")) in self.hidden:
            self._left_out.add(index)
        if index in self._left_out:
            return []
        if "index" not in said or not self._left_out:
            return [call]
        below = sum(hidden < index for hidden in self._left_out)
        return [{**said, "index": self._places.setdefault(index, index - below)}]

    def _streamed(self) -> TurnAnswer | None:
        response = self._reader.response()
        # Not every server that speaks like this ends by saying so.
        if not self._reader.ended and not response.stop:
            return None
        return self._answer(as_object(json_text.parse(response.message.raw)), self._reader.usage, response.stop)

    def _end_of_stream(self, *, cut: bool) -> bytes:
        ending: list[bytes] = []
        for value in self._ending:
            said = {**value, **self._first}
            if value.get("usage"):
                said["usage"] = self.usage
            if cut and (choices := as_list(value.get("choices"))):
                said["choices"] = [{**as_object(choices[0]), "finish_reason": "stop"}]
            ending.append(sse.render_event("", json_text.dumps(said)))
        return b"".join(ending) + sse.render_event("", "[DONE]")

    # ---- both

    def _read(self, value: dict[str, Any]) -> TurnAnswer | None:
        choices = as_list(value.get("choices"))
        message = as_object(choices[0]).get("message") if choices else None
        if not isinstance(message, dict):
            return None
        self._value = value
        if not self._first:
            self._first = {name: value[name] for name in _OF_THE_TURN if name in value}
        return self._answer(message, value.get("usage"), as_string(as_object(choices[0]).get("finish_reason")))

    def _answer(self, message: dict[str, Any], usage: Any, stop: str) -> TurnAnswer:
        ours, theirs = self._parted(as_list(message.get("tool_calls")), usage)
        self._calls = theirs
        for name, text in message.items():
            if isinstance(text, str) and text and name != "role":
                self._words.setdefault(name, []).append(text)
        shown = {name: value for name, value in message.items() if name != "tool_calls"}
        shown |= {"tool_calls": theirs} if theirs else {}
        says = bool(theirs) or bool(message.get("content")) or bool(message.get("refusal"))
        hidden = tuple(hidden_call(call.get("id"), as_object(call.get("function"))) for call in ours)
        return TurnAnswer((_said(message),), (_said(shown),) if says else (), hidden, bool(theirs), stop)

    def _whole_answer(self, *, cut: bool) -> str:
        choice = as_object(as_list(self._value.get("choices"))[0])
        message = {name: value for name, value in as_object(choice["message"]).items() if name != "tool_calls"}
        message |= {name: _BETWEEN.join(pieces) for name, pieces in self._words.items()}
        message |= {"tool_calls": self._calls} if self._calls else {}
        choice = {**choice, "message": message} | ({"finish_reason": "stop"} if cut else {})
        told = {**self._value, **self._first, "choices": [choice]}
        return json_text.dumps(told | ({"usage": self.usage} if self.usage else {}))

    def _is_hidden(self, part: Any) -> bool:
        return as_string(as_object(as_object(part).get("function")).get("name")) in self.hidden


def _said(message: dict[str, Any]) -> str:
    return json_text.dumps({"role": "assistant"} | message)
