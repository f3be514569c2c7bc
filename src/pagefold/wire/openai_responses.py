"""Parses requests, responses and streams of OpenAI's Responses API, and writes its results.

Every input item is one message, whatever its type; `instructions` are the head. Encrypted reasoning, compactions,
server tools and unknown items are kept. Refuses, with WireError, what is not a Responses body at all. A string as
`input` stays a string until its message changes; then it is sent as a list of one item.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from pagefold.errors import WireError
from pagefold.log import Log
from pagefold.wire import json_text, sse
from pagefold.wire.api import CallFormat
from pagefold.wire.json_text import as_count, as_list, as_object, as_string
from pagefold.wire.message import Block, BlockKind, Message, Request, RequestShape, Response, Role, Usage, read_request
from pagefold.wire.quota import limits_of_codex
from pagefold.wire.shared_parsing import as_result, role_of, text_parts, typed_part, usage_of, with_result_id

_TEXTS = dict.fromkeys(("input_text", "output_text", "summary_text", "reasoning_text", "text"), "text")
_TEXTS["refusal"] = "refusal"
_MEDIA = ("input_image", "input_file", "input_audio", "computer_screenshot", "image_generation_call")
_ARGUMENTS = ("arguments", "input", "action", "actions", "operation")  # where a call says what it asks for
_ROLES = (Role.SYSTEM, Role.DEVELOPER, Role.USER)
_FROM_USER = ("mcp_approval_response", "compaction_trigger")

LAST = ("response.completed", "response.incomplete", "response.failed")
_STRINGS = {  # deltas of a string of an item: its name
    "response.function_call_arguments.delta": "arguments",
    "response.custom_tool_call_input.delta": "input",
    "response.mcp_call_arguments.delta": "arguments",
    "response.code_interpreter_call_code.delta": "code",
}
_PARTS = {  # deltas of a text in a list of an item: the list, the type of the part, the name of its text
    "response.output_text.delta": ("content", "output_text", "text"),
    "response.refusal.delta": ("content", "refusal", "refusal"),
    "response.reasoning_text.delta": ("content", "reasoning_text", "text"),
    "response.reasoning_summary_text.delta": ("summary", "summary_text", "text"),
}


def parse_request(body: bytes) -> Request:
    """Raises WireError."""
    text = json_text.text_of(body)
    top = json_text.top(text, listed=SHAPE.messages)
    given = json_text.member(top, "input")
    if given is not None and isinstance(given.value, str):
        item = f'[{{"role":"user","content":{text[given.start : given.end]}}}]'
        listed = json_text.splice(text, [(given.start, given.end, item)])
        start, end = json_text.places_in_bytes(text, (given.start, given.end))
        return replace(parse_request(json_text.bytes_of(listed)), body=body, _array=(start, end), _ends=Log())
    return read_request(body, text, top, SHAPE)


def parse_item(value: Any, raw: str, place: int = -1) -> Message:
    """Raises WireError."""
    blocks = tuple(_item(value, ()))
    if not isinstance(value, dict) or _is_message(value):
        return Message(role_of(value), blocks, raw, place)
    if any(block.kind is BlockKind.RESULT for block in blocks):
        return Message(Role.TOOL, blocks, raw, place)
    if value.get("role") in _ROLES:  # tools that Codex adds are the developer's, and a fold must not take them away
        return Message(Role(value["role"]), blocks, raw, place)
    return Message(Role.USER if value.get("type") in _FROM_USER else Role.ASSISTANT, blocks, raw, place)


def _instructions(value: Any, raw: str) -> Message | None:
    return None if value is None else Message(Role.SYSTEM, tuple(_content(value, ())), raw)


SHAPE = RequestShape("input", parse_item, "instructions", _instructions)


def _speaks(value: Mapping[str, Any]) -> bool:
    kind = as_string(value.get("type"))
    return "role" not in value or kind == "message" or kind.endswith(("_call", "_output"))


def result(call_id: str, text: str, kind: str = "function_call") -> str:
    return json_text.dumps({"type": f"{kind}_output", "call_id": call_id, "output": text})


def _result(call_id: str, text: str, call: Message) -> Message:
    kind = as_string(as_object(json_text.parse(call.raw)).get("type")) or "function_call"
    raw = result(call_id, text, kind)
    return parse_item(json_text.parse(raw), raw)


def _with_results(message: Message, ids: Mapping[int, str]) -> Message | None:
    return with_result_id(message, "call_id", parse_item, ids)


CALLS = CallFormat(_speaks, lambda value: iter((("call_id",),)), _result, _with_results, answers_in_items=True)


def continues(request: Request) -> str:
    """Returns the id of the provider's response or conversation that a request continues, or ""."""
    response = json_text.parse(request.member("previous_response_id") or "null")
    conversation = json_text.parse(request.member("conversation") or "null")
    return as_string(response) or as_string(as_object(conversation).get("id", conversation))


def parse_response(body: bytes) -> Response:
    """Parses an answer that is not streamed: all its items are one assistant message, whose raw text is their list.

    Raises WireError, also for an error body.
    """
    text = json_text.text_of(body)
    return _response(json_text.parse(text), text, ("output",))


def parse_usage(value: Any) -> Usage | None:
    if not isinstance(value, dict):
        return None
    return usage_of(value.get("input_tokens"), value.get("input_tokens_details"), value.get("output_tokens"))


@dataclass(slots=True)
class ResponsesStream(sse.StreamedAnswer):
    """Reads a stream; the event that carries the whole response ends it."""

    telling = (b'"response.completed"', b'"response.incomplete"', b'"response.failed"', b'"codex.rate_limits"')

    _items: dict[int, dict[str, Any]] = field(default_factory=dict)
    _strings: dict[tuple[int, str], list[str]] = field(default_factory=dict)
    _parts: dict[tuple[int, str, int], tuple[str, str, list[str]]] = field(default_factory=dict)
    _whole: dict[str, Any] = field(default_factory=dict)
    _data: str = ""

    def response(self) -> Response:
        """Returns the answer as far as it has come."""
        # Some servers leave the output of the last event empty.
        if self.ended and as_list(self._whole.get("output")):
            return _response(self._whole, self._data, ("response", "output"))
        output = [self._item(index) for index in sorted(self._items)]
        return _response(self._whole | {"output": output}, json_text.dumps(output), ())

    def _take(self, name: str, data: str) -> None:
        value = sse.object_of(name, data)
        kind, index = as_string(value.get("type")) or name, as_count(value.get("output_index"))
        self.ended = self.ended or kind in LAST
        if kind in ("error", "response.failed"):
            self.error = data
        if isinstance(value.get("response"), dict):
            self._whole, self._data = value["response"], data
            self._usage = self._whole.get("usage")
        elif kind == "codex.rate_limits":
            self.limits = limits_of_codex(value.get("rate_limits"))
        elif kind in ("response.output_item.added", "response.output_item.done"):
            self._items[index] = as_object(value.get("item"))
            # The item now holds what came in pieces before.
            self._strings = {key: pieces for key, pieces in self._strings.items() if key[0] != index}
            self._parts = {key: part for key, part in self._parts.items() if key[0] != index}
        elif kind in _STRINGS:
            self._items.setdefault(index, {})
            self._strings.setdefault((index, _STRINGS[kind]), []).append(as_string(value.get("delta")))
        elif kind in _PARTS:
            self._items.setdefault(index, {})
            listed, part, name = _PARTS[kind]
            position = as_count(value.get("summary_index" if listed == "summary" else "content_index"))
            pieces = self._parts.setdefault((index, listed, position), (part, name, []))[2]
            pieces.append(as_string(value.get("delta")))

    def _item(self, index: int) -> dict[str, Any]:
        item = dict(self._items[index])
        for (_, name), pieces in (each for each in self._strings.items() if each[0][0] == index):
            item[name] = as_string(item.get(name)) + "".join(pieces)
        for (of, listed, position), (part, name, pieces) in self._parts.items():
            if of == index:
                parts = dict(enumerate(as_list(item.get(listed)))) | {position: {"type": part, name: "".join(pieces)}}
                item[listed] = [parts[place] for place in sorted(parts)]
        return item


def _response(value: Any, text: str, path: json_text.Path) -> Response:
    """Makes the response; `path` leads to the list of items in `text`."""
    output = as_object(value).get("output")
    if not isinstance(output, list):
        raise WireError("a Responses answer has a list of output items")
    start, end = json_text.find(text, path)
    blocks = tuple(block for index, item in enumerate(output) for block in _item(item, (index,)))
    reason = as_object(value.get("incomplete_details")).get("reason")
    stop, model = as_string(reason or value.get("status")), as_string(value.get("model"))
    return Response(Message(Role.ASSISTANT, blocks, text[start:end]), stop, parse_usage(value.get("usage")), model)


def _is_message(item: dict[str, Any]) -> bool:
    """Returns whether an item is a message, which may leave out its type."""
    return item.get("type") == "message" or (item.get("type") is None and "role" in item)


def _item(item: Any, path: json_text.Path) -> Iterator[Block]:
    fields = as_object(item)
    kind, call_id = as_string(fields.get("type")), as_string(fields.get("call_id"))
    if _is_message(fields):
        yield from _content(fields.get("content"), (*path, "content"))
    elif kind == "reasoning":
        texts = [block for key in ("summary", "content") for block in _content(fields.get(key), (*path, key))]
        yield from [replace(block, kind=BlockKind.THINKING) for block in texts] or [Block(BlockKind.THINKING, "")]
    elif kind.endswith("_call") and call_id:
        yield _call(fields, kind, path)
    elif kind.endswith("_call_output") or (kind.endswith("_output") and call_id):
        content = _content(fields["output"], (*path, "output")) if "output" in fields else [_part(item, path)]
        yield from as_result(content, call_id or as_string(fields.get("id")), failed=fields.get("status") == "failed")
    else:
        yield _part(item, path)


def _call(item: dict[str, Any], kind: str, path: json_text.Path) -> Block:
    name = as_string(item.get("name")) or kind.removesuffix("_call")
    if space := as_string(item.get("namespace")):
        name = f"{space}__{name}"
    key = next((key for key in _ARGUMENTS if key in item), "")
    spot = (*path, key) if isinstance(item.get(key), str) else ()
    return Block(BlockKind.CALL, as_string(item.get(key)), spot, as_string(item.get("call_id")), name)


def _content(content: Any, path: json_text.Path) -> Iterator[Block]:
    yield from text_parts(content, path, _part)
    if content is not None and not isinstance(content, str | list):
        yield _part(content, path)


def _part(part: Any, path: json_text.Path) -> Block:
    return typed_part(part, path, _TEXTS, _MEDIA)
