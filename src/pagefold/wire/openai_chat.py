"""Parses requests, responses and streams of OpenAI's Chat Completions API, and writes its messages.

System and developer messages are in the list like any other, so a request has no head. Unknown parts and fields are
kept. Refuses, with WireError, what is not a Chat Completions body at all. `render_message` writes blocks of any format
as a chat message, without thinking and images, for which there is no place.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from pagefold.errors import WireError
from pagefold.wire import json_text, sse
from pagefold.wire.api import CallFormat
from pagefold.wire.json_text import as_count, as_list, as_object, as_string
from pagefold.wire.message import Block, BlockKind, Message, RequestShape, Response, Role, Usage, parse_body
from pagefold.wire.shared_parsing import as_result, role_of, text_parts, typed_part, usage_of, with_result_id

_ARGUMENTS = {"function": "arguments", "custom": "input"}  # by the type of the tool: where a call keeps its text
_TEXTS = {"text": "text", "refusal": "refusal"}
_MEDIA = ("image_url", "input_audio", "file")
_LEGACY = -1  # where a stream keeps the one call of a `function_call`, before all that have an index


def parse_message(value: Any, raw: str, place: int = -1) -> Message:
    """Raises WireError."""
    # `function` was the role of results before calls had ids.
    role = Role.TOOL if isinstance(value, dict) and value.get("role") == "function" else role_of(value)
    content = text_parts(value.get("content"), ("content",), _part)
    if role is Role.TOOL:
        call_id, name = as_string(value.get("tool_call_id")), as_string(value.get("name"))
        return Message(role, tuple(as_result(content, call_id, name)), raw, place)
    return Message(role, (*content, *_refusal(value), *_calls(value)), raw, place)


SHAPE = RequestShape("messages", parse_message)
parse_request = partial(parse_body, shape=SHAPE)


def _speaks(value: Mapping[str, Any]) -> bool:
    return bool(value.get("tool_calls") or value.get("function_call") or value.get("role") in ("tool", "function"))


def _call_id_paths(value: Mapping[str, Any]) -> Iterator[json_text.Path]:
    for index, call in enumerate(as_list(value.get("tool_calls"))):
        if as_string(as_object(call).get("id")):
            yield ("tool_calls", index, "id")


def result(call_id: str, text: str) -> str:
    return json_text.dumps({"role": "tool", "tool_call_id": call_id, "content": text})


def _result(call_id: str, text: str, call: Message) -> Message:
    raw = result(call_id, text)
    return parse_message(json_text.parse(raw), raw)


def _with_results(message: Message, ids: Mapping[int, str]) -> Message | None:
    return with_result_id(message, "tool_call_id", parse_message, ids)


CALLS = CallFormat(_speaks, _call_id_paths, _result, _with_results)


def parse_response(body: bytes) -> Response:
    """Parses the first choice of an answer that is not streamed. Raises WireError, also for an error body."""
    text = json_text.text_of(body)
    value = json_text.parse(text)
    choices = as_list(as_object(value).get("choices"))
    choice = as_object(choices[0]) if choices else {}
    if not isinstance(choice.get("message"), dict):
        raise WireError("a Chat Completions response has a list of choices, each with a message")
    start, end = json_text.find(text, ("choices", 0, "message"))
    message = parse_message({"role": "assistant"} | choice["message"], text[start:end])
    stop, model = as_string(choice.get("finish_reason")), as_string(value.get("model"))
    return Response(message, stop, parse_usage(value.get("usage")), model)


def parse_usage(value: Any) -> Usage | None:
    if not isinstance(value, dict):
        return None
    return usage_of(value.get("prompt_tokens"), value.get("prompt_tokens_details"), value.get("completion_tokens"))


def render_message(role: Role, blocks: Sequence[Block]) -> Message:
    """Writes blocks as one chat message: a message of a role, or one result with its parts."""
    said = [block for block in blocks if block.kind in (BlockKind.TEXT, BlockKind.RESULT, BlockKind.OTHER)]
    calls = [block for block in blocks if block.kind is BlockKind.CALL]
    results = [block for block in blocks if block.kind is BlockKind.RESULT]
    value: dict[str, Any] = {"role": role}
    if results:
        assert len({block.call_id for block in results}) == 1, "one chat message answers one call"
        value = {"role": Role.TOOL, "tool_call_id": results[0].call_id}
        if results[0].name:
            value["name"] = results[0].name
    if len(said) > 1:
        value["content"] = [{"type": "text", "text": block.text} for block in said]
    else:
        value["content"] = said[0].text if said else None if calls else ""
    if calls:
        value["tool_calls"] = [
            {"id": call.call_id, "type": "function", "function": {"name": call.name, "arguments": _arguments(call)}}
            for call in calls
        ]
    return parse_message(value, json_text.dumps(value))


@dataclass(slots=True)
class ChatStream(sse.StreamedAnswer):
    """Reads the first choice of a stream; `[DONE]` ends it."""

    telling = (b'"usage":{', b'"usage": {', b'"finish_reason":"', b'"finish_reason": "', b"[DONE]")

    _words: dict[str, list[str]] = field(default_factory=dict)
    _calls: dict[int, dict[str, Any]] = field(default_factory=dict)
    _pieces: dict[int, list[str]] = field(default_factory=dict)
    _stop: str = ""
    _model: str = ""

    def response(self) -> Response:
        """Returns the answer as far as it has come."""
        value: dict[str, Any] = {"role": "assistant", "content": None}
        value |= {name: text for name, pieces in self._words.items() if (text := "".join(pieces))}
        calls = []
        for index in sorted(self._calls):
            call = self._calls[index]
            kind = call["type"]
            calls.append(call | {kind: call[kind] | {_ARGUMENTS[kind]: "".join(self._pieces[index])}})
        if _LEGACY in self._calls:
            value["function_call"] = calls.pop(0)["function"]
        if calls:
            value["tool_calls"] = calls
        message = parse_message(value, json_text.dumps(value))
        return Response(message, self._stop, parse_usage(self._usage), self._model)

    def _take(self, name: str, data: str) -> None:
        if data.strip() == "[DONE]":
            self.ended = True
            return
        value = sse.object_of(name, data)
        if value.get("error"):
            self.error = data
        self._model = as_string(value.get("model")) or self._model
        self._usage = value.get("usage") or self._usage
        for choice in as_list(value.get("choices")):
            if isinstance(choice, dict) and as_count(choice.get("index")) == 0:
                self._stop = as_string(choice.get("finish_reason")) or self._stop
                self._delta(as_object(choice.get("delta")))

    def _delta(self, delta: dict[str, Any]) -> None:
        for name, piece in delta.items():
            if isinstance(piece, str) and name != "role":
                self._words.setdefault(name, []).append(piece)
        if isinstance(delta.get("function_call"), dict):
            self._call(_LEGACY, {"function": delta["function_call"]})
        for position, call in enumerate(as_list(delta.get("tool_calls"))):
            if isinstance(call, dict):
                self._call(as_count(call.get("index", position)), call)

    def _call(self, index: int, delta: dict[str, Any]) -> None:
        begun = "custom" if "custom" in (*delta, delta.get("type")) else "function"
        call = self._calls.setdefault(index, {"id": "", "type": begun, begun: {"name": ""}})
        kind = call["type"]
        tool = as_object(delta.get(kind))
        call["id"] = as_string(delta.get("id")) or call["id"]
        call[kind]["name"] = as_string(tool.get("name")) or call[kind]["name"]
        self._pieces.setdefault(index, []).append(as_string(tool.get(_ARGUMENTS[kind])))


def _part(part: Any, path: json_text.Path) -> Block:
    if isinstance(part, str):
        return Block(BlockKind.TEXT, part, path)
    return typed_part(part, path, _TEXTS, _MEDIA)


def _refusal(value: dict[str, Any]) -> Iterator[Block]:
    if isinstance(value.get("refusal"), str):
        yield Block(BlockKind.TEXT, value["refusal"], ("refusal",))


def _calls(value: dict[str, Any]) -> Iterator[Block]:
    if isinstance(value.get("function_call"), dict):
        yield _call_of(value["function_call"], "arguments", ("function_call",), "")
    for index, call in enumerate(as_list(value.get("tool_calls"))):
        kind = next((kind for kind in _ARGUMENTS if isinstance(as_object(call).get(kind), dict)), None)
        if kind is None:
            yield Block(BlockKind.OTHER, json_text.dumps(call))
        else:
            yield _call_of(call[kind], _ARGUMENTS[kind], ("tool_calls", index, kind), as_string(call.get("id")))


def _call_of(tool: dict[str, Any], key: str, path: json_text.Path, call_id: str) -> Block:
    text = tool.get(key)
    spot = (*path, key) if isinstance(text, str) else ()
    return Block(BlockKind.CALL, as_string(text), spot, call_id, as_string(tool.get("name")))


def _arguments(call: Block) -> str:
    """Returns a call's arguments as a JSON object; plain text becomes its member `input`."""
    try:
        if isinstance(json_text.parse(call.text or "{}"), dict):
            return call.text or "{}"
    except WireError:
        pass
    return json_text.dumps({"input": call.text})
