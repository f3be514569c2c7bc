"""Hides calls in answers of Gemini's generateContent: the client sees one answer with the parts of all of them.

Texts of two answers are divided by a part that is an empty line, so that no signed part is written anew.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from pagefold.wire import gemini, json_text, sse
from pagefold.wire.json_text import as_list, as_object, as_string
from pagefold.wire.message import Message, Request
from pagefold.wire.turn import HiddenCall, TurnAnswer, TurnView

_BETWEEN = {"text": "\n\n"}
_OF_THE_TURN = ("responseId",)  # the client knows it from the first answer
_PLAIN_SCHEMA = ("type", "properties", "required", "items", "enum", "description", "minimum", "maximum")


@dataclass(slots=True)
class GeminiTurn(TurnView):
    telling_error, reads = "", gemini.GeminiStream

    _first: dict[str, Any] = field(default_factory=dict)
    _ending: list[dict[str, Any]] = field(default_factory=list)
    _shown: list[Any] = field(default_factory=list)
    _spoken: bool = False
    _begun: bool = False

    @classmethod
    def of(cls, request: Request, hidden: frozenset[str]) -> "GeminiTurn | None":
        """Returns None where the request declares no functions, asks for several candidates, or has the arguments of
        calls streamed in pieces."""
        tools, asked = request.member("tools"), _settings(request, "generationConfig", "generation_config")
        calling = _settings(request, "toolConfig", "tool_config")
        several = asked.get("candidateCount", asked.get("candidate_count", 1)) not in (None, 1)
        in_pieces = "streamFunctionCallArguments" in json_text.dumps(calling)
        return None if several or in_pieces or not gemini.SHAPE.tools_end(tools) else cls(hidden, request.stream)

    @staticmethod
    def tool(name: str, description: str, arguments: Mapping[str, Any]) -> str:
        return json_text.dumps({"name": name, "description": description, "parameters": _plain_schema(arguments)})

    @staticmethod
    def results(answered: Sequence[tuple[HiddenCall, str]]) -> list[str]:
        return [gemini.content("user", [gemini.response_part(call.id, call.name, text) for call, text in answered])]

    @staticmethod
    def joined(results: Sequence[Message], message: Message) -> list[Message]:
        """Returns one message: all responses to the calls of one content have to be in one content."""
        ours = [result.raw[slice(*json_text.find(result.raw, ("parts",)))][1:-1] for result in results]
        start, end = json_text.find(message.raw, ("parts",))
        inner = message.raw[start + 1 : end].lstrip()
        parts = f"[{','.join(ours)}{'' if inner.startswith(']') else ','}{inner}"
        raw = json_text.splice(message.raw, [(start, end, parts)])
        return [gemini.parse_content(json_text.parse(raw), raw, message.place)]

    def _begin(self) -> None:
        self._ending, self._begun = [], False

    # ---- streams

    def _event(self, event: sse.StreamEvent) -> bytes:
        self._reader.take(event)
        chunk = sse.object_of(event.name, event.data)
        if chunk.get("error"):
            return event.raw
        self._first = self._first or {name: chunk[name] for name in _OF_THE_TURN if name in chunk}
        parts = _parts(chunk)
        shown = self._seen(parts)
        if shown != parts or self._later:
            chunk = _with_parts({**chunk, **self._first}, shown)
            self._altered = True
        if gemini.stop_of(chunk):
            self._held.append(event.raw)
            self._ending.append(chunk)
            return b""
        if not self._altered:
            return event.raw
        return _rendered(chunk) if shown or not parts else b""

    def _seen(self, parts: list[Any]) -> list[Any]:
        """Returns those parts that the client gets, with what divides them from the text of an earlier answer."""
        shown = [part for part in parts if not self._is_hidden(part)]
        speaks = any(as_object(part).get("text") and not as_object(part).get("thought") for part in shown)
        if speaks and self._later and self._spoken and not self._begun:
            shown = [_BETWEEN, *shown]
        self._begun, self._spoken = self._begun or speaks, self._spoken or speaks
        return shown

    def _streamed(self) -> TurnAnswer | None:
        if not self._reader.ended:
            return None
        response = self._reader.response()
        parts = as_list(as_object(json_text.parse(response.message.raw)).get("parts"))
        return self._answer(parts, self._reader.usage, response.stop)

    def _end_of_stream(self, *, cut: bool) -> bytes:
        *before, last = self._ending or [{}]
        ended = {**last, **self._first, "usageMetadata": self.usage}
        return b"".join([_rendered(chunk) for chunk in (*before, ended)])

    # ---- both

    def _read(self, value: dict[str, Any]) -> TurnAnswer | None:
        if not as_list(value.get("candidates")):
            return None
        self._value = value
        self._first = self._first or {name: value[name] for name in _OF_THE_TURN if name in value}
        parts = _parts(value)
        self._shown += self._seen(parts)
        return self._answer(parts, value.get("usageMetadata"), gemini.stop_of(value))

    def _answer(self, parts: list[Any], usage: Any, stop: str) -> TurnAnswer:
        ours, theirs = self._parted(parts, usage)
        calls = [as_object(gemini.member_of(part, gemini.CALL)[1]) for part in ours]
        hidden = [
            HiddenCall(as_string(call.get("id")), as_string(call.get("name")), as_object(call.get("args")))
            for call in calls
        ]
        mixed = any(gemini.member_of(part, gemini.CALL)[0] for part in theirs)
        says = any(not as_object(part).get("thought") for part in theirs)
        said = (gemini.content("model", parts),)
        return TurnAnswer(said, (gemini.content("model", theirs),) if says else (), tuple(hidden), mixed, stop)

    def _whole_answer(self, *, cut: bool) -> str:
        told = {**_with_parts(self._value, self._shown), **self._first}
        return json_text.dumps(told | ({"usageMetadata": self.usage} if self.usage else {}))

    def _is_hidden(self, part: Any) -> bool:
        return as_string(as_object(gemini.member_of(part, gemini.CALL)[1]).get("name")) in self.hidden


def _settings(request: Request, *spellings: str) -> dict[str, Any]:
    raw = next((raw for name in spellings if (raw := request.member(name))), "null")
    return as_object(json_text.parse(raw))


def _plain_schema(schema: Any) -> Any:
    """A JSON schema without what declarations of functions cannot say."""
    if not isinstance(schema, Mapping):
        return schema
    kept = {key: value for key, value in schema.items() if key in _PLAIN_SCHEMA}
    if "properties" in kept:
        kept["properties"] = {name: _plain_schema(value) for name, value in kept["properties"].items()}
    return kept


def _parts(chunk: Mapping[str, Any]) -> list[Any]:
    candidates = as_list(chunk.get("candidates"))
    return as_list(as_object(as_object(candidates[0]).get("content")).get("parts")) if candidates else []


def _with_parts(chunk: Mapping[str, Any], parts: list[Any]) -> dict[str, Any]:
    candidates = as_list(chunk.get("candidates"))
    if not candidates:
        return dict(chunk)
    candidate = as_object(candidates[0])
    content = {**as_object(candidate.get("content")), "parts": parts}
    return {**chunk, "candidates": [{**candidate, "content": content}, *candidates[1:]]}


def _rendered(chunk: Mapping[str, Any]) -> bytes:
    return sse.render_event("", json_text.dumps(chunk))
