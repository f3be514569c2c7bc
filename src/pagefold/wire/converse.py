"""Parses requests, responses and streams of Amazon Bedrock's Converse, and writes its messages.

The model and whether the answer is streamed are not in the body but in the path. A part of content is named by its only
key (`text`, `toolUse`, `toolResult`, `reasoningContent`); unknown parts are kept. A cache mark is a part of its own.
The provider wants the sides to alternate, so messages of one side that a fold has made neighbours are written as one.
Refuses, with WireError, what is not a Converse body at all.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import groupby
from typing import Any

from pagefold.errors import WireError
from pagefold.wire import json_text, sse
from pagefold.wire.api import CacheMarks, CallFormat
from pagefold.wire.json_text import as_count, as_list, as_object, as_string
from pagefold.wire.message import Block, BlockKind, Message, Request, RequestShape, Response, Role, Usage, parse_body
from pagefold.wire.shared_parsing import as_result, role_of

MARK = "cachePoint"
_CALL, _RESULT, _REASONING = "toolUse", "toolResult", "reasoningContent"
_MEDIA = ("image", "document", "video", "audio")
_GUARDED, _CITED = "guardContent", "citationsContent"
_PARTS = ("text", _CALL, _RESULT, _REASONING, MARK, _GUARDED, _CITED, *_MEDIA)
_LONG_LIFE = "1h"
_MARKED_LATELY = 8  # clients mark their last messages
_UNHEARD = Message(Role.ASSISTANT, (), '{"role":"assistant","content":[]}')


def parse_message(value: Any, raw: str, place: int = -1) -> Message:
    """Raises WireError."""
    return Message(role_of(value), _blocks_of(value.get("content"), ("content",)), raw, place)


def _system(value: Any, raw: str) -> Message:
    return Message(Role.SYSTEM, _blocks_of(value, ()), raw)


SHAPE = RequestShape("messages", parse_message, "system", _system, tools="toolConfig", tools_in="tools")
parse_request = partial(parse_body, shape=SHAPE)


# ---- parts


def _blocks_of(content: Any, path: json_text.Path) -> tuple[Block, ...]:
    found: list[Block] = []
    for index, part in enumerate(as_list(content)):
        found += _blocks(as_object(part), part, (*path, index))
    return tuple(found)


def _blocks(part: dict[str, Any], value: Any, path: json_text.Path) -> Sequence[Block]:
    """The blocks of one part, given as an object and as it came. A cache mark says nothing to the model."""
    if isinstance(part.get(_CALL), dict):
        call = part[_CALL]
        arguments = json_text.dumps(call.get("input"))
        return (Block(BlockKind.CALL, arguments, (), as_string(call.get("toolUseId")), as_string(call.get("name"))),)
    if isinstance(part.get(_RESULT), dict):
        result = part[_RESULT]
        spot = (*path, _RESULT, "content")
        inner = (_said(each, (*spot, index)) for index, each in enumerate(as_list(result.get("content"))))
        return as_result(inner, as_string(result.get("toolUseId")), failed=result.get("status") == "error")
    if list(part) == [MARK]:
        return ()
    reasoning = as_object(as_object(part.get(_REASONING)).get("reasoningText"))
    if isinstance(reasoning.get("text"), str):
        return (Block(BlockKind.THINKING, reasoning["text"], (*path, _REASONING, "reasoningText", "text")),)
    if guarded := as_object(part.get(_GUARDED)):
        words = as_object(guarded.get("text"))
        return (_said(words or guarded, (*path, _GUARDED, "text") if words else (*path, _GUARDED)),)
    if cited := as_list(as_object(part.get(_CITED)).get("content")):
        return [_said(each, (*path, _CITED, "content", index)) for index, each in enumerate(cited)]
    return (_said(value, path),)


def _said(part: Any, path: json_text.Path) -> Block:
    """A part that is a text, an image or JSON. JSON may be said as a text: the model reads it as one."""
    value = as_object(part)
    if isinstance(value.get("text"), str):
        return Block(BlockKind.TEXT, value["text"], (*path, "text"))
    if list(value) == ["json"]:
        return Block(BlockKind.TEXT, json_text.dumps(value["json"]), path, within=("text",))
    is_media = any(kind in value for kind in _MEDIA)
    return Block(BlockKind.MEDIA, "") if is_media else Block(BlockKind.OTHER, json_text.dumps(part))


# ---- messages as pagefold writes them


def message_of(role: str, content: Sequence[Any], place: int = -1) -> Message:
    value = {"role": role, "content": list(content)}
    return parse_message(value, json_text.dumps(value), place)


def _with_content(message: Message, content: Sequence[Any]) -> Message:
    value = {**as_object(json_text.parse(message.raw)), "content": list(content)}
    return parse_message(value, json_text.dumps(value), message.place)


def user_text(text: str) -> Message:
    return message_of("user", [{"text": text}])


def alternating(messages: Sequence[Message]) -> list[Message]:
    """The messages, neighbours of one side as one. What stands in them keeps its bytes."""
    return [one for _, same in groupby(messages, key=lambda message: message.role) for one in _as_one(list(same))]


def _as_one(messages: list[Message]) -> list[Message]:
    """Messages of one side as one; as they are where one has no list of parts, which the provider refuses."""
    if len(messages) == 1 or not all(map(_has_parts, messages)):
        return messages
    places = [json_text.find(message.raw, ("content",)) for message in messages]
    lists = [message.raw[start:end] for message, (start, end) in zip(messages, places, strict=True)]
    parts = ",".join(inner for one in lists if (inner := one[1:-1].strip()))
    raw = json_text.splice(messages[0].raw, [(*places[0], f"[{parts}]")])
    return [parse_message(json_text.parse(raw), raw, messages[0].place)]


def _speaks(value: Mapping[str, Any]) -> bool:
    parts = [as_object(part) for part in as_list(value.get("content"))]
    return any(key in part for part in parts for key in _PARTS) and not any("type" in part for part in parts)


def _call_id_paths(value: Mapping[str, Any]) -> Iterator[json_text.Path]:
    for index, part in enumerate(as_list(value.get("content"))):
        if as_string(as_object(as_object(part).get(_CALL)).get("toolUseId")):
            yield ("content", index, _CALL, "toolUseId")


def _failed_result(call_id: str, text: str, call: Message) -> Message:
    said = {"toolUseId": call_id, "content": [{"text": text}], "status": "error"}
    return message_of("user", [{_RESULT: said}])


def _with_results(message: Message, ids: Mapping[int, str]) -> Message | None:
    kept: list[Any] = []
    number = -1
    for part in _content(message):
        result = as_object(part).get(_RESULT)
        if not isinstance(result, dict):
            kept.append(part)
            continue
        number += 1
        if number in ids:
            kept.append({**part, _RESULT: {**result, "toolUseId": ids[number]}})
    return _with_content(message, kept) if says_something(kept) else None


def says_something(content: Sequence[Any]) -> bool:
    """Whether there is more in a content than cache marks, which the provider refuses alone."""
    return any(list(as_object(part)) != [MARK] for part in content)


def _parted(message: Message) -> tuple[Message, Message]:
    content = _content(message)
    results = [part for part in content if _RESULT in as_object(part)]
    words = [part for part in content if _RESULT not in as_object(part)]
    return _with_content(message, results), _with_content(message, words)


def _has_parts(message: Message) -> bool:
    return isinstance(as_object(json_text.parse(message.raw)).get("content"), list)


def _content(message: Message) -> list[Any]:
    return as_list(as_object(json_text.parse(message.raw)).get("content"))


CALLS = CallFormat(_speaks, _call_id_paths, _failed_result, _with_results, _parted)


# ---- cache marks


def mark_of(message: Message) -> str:
    if f'"{MARK}"' not in message.raw:
        return ""
    return next((json_text.dumps(mark) for part in _content(message) if (mark := as_object(part).get(MARK))), "")


def with_mark(message: Message, mark: str) -> Message | None:
    content = _content(message)
    return _with_content(message, [*content, {MARK: json_text.parse(mark)}]) if content else None


def without_marks(message: Message) -> Message:
    if f'"{MARK}"' not in message.raw:
        return message
    return _with_content(message, [part for part in _content(message) if MARK not in as_object(part)])


def asks_long(request: Request) -> bool:
    """Whether the conversation is to be cached for an hour, by the last mark in its messages, else by one before."""
    for message in reversed(request.messages.since(max(0, request.messages.length - _MARKED_LATELY))):
        if mark := mark_of(message):
            return _LONG_LIFE in mark
    return any(f'"{MARK}"' in message.raw and f'"{_LONG_LIFE}"' in message.raw for message in request.head)


MARKS = CacheMarks(mark_of, with_mark, asks_long)


# ---- answers


def parse_response(body: bytes) -> Response:
    """Parses an answer that is not streamed. Raises WireError, also for an error body."""
    text = json_text.text_of(body)
    value = json_text.parse(text)
    said = as_object(as_object(as_object(value).get("output")).get("message"))
    if not isinstance(said.get("content"), list):
        raise WireError("a Converse response has an output message with a list of content")
    raw = text[slice(*json_text.find(text, ("output", "message")))]
    message = parse_message({"role": "assistant"} | said, raw)
    return Response(message, as_string(value.get("stopReason")), parse_usage(value.get("usage")))


def parse_usage(value: Any) -> Usage | None:
    """What was read from the cache or written to it is counted beside the input tokens."""
    if not isinstance(value, dict):
        return None
    read, written = as_count(value.get("cacheReadInputTokens")), as_count(value.get("cacheWriteInputTokens"))
    lives = [as_object(each) for each in as_list(value.get("cacheDetails"))]
    long = sum(as_count(each.get("inputTokens")) for each in lives if each.get("ttl") == _LONG_LIFE)
    output = as_count(value.get("outputTokens"))
    return Usage(as_count(value.get("inputTokens")), read, written, output, cache_write_long=min(long, written))


@dataclass(slots=True)
class ConverseStream(sse.StreamedAnswer):
    """Reads a Converse stream, whose frames are given as events by their type; the one with the usage is the last."""

    telling = (b"event: messageStop", b"event: metadata", b'"signature"', b'"redactedContent"')

    _parts: dict[int, dict[str, Any]] = field(default_factory=dict)
    _arguments: dict[int, list[str]] = field(default_factory=dict)
    _stop: str = ""

    def response(self) -> Response:
        """Returns the answer as far as it has come."""
        message = _UNHEARD
        if self._parts and not self.gist:
            message = message_of("assistant", [self._part(index) for index in sorted(self._parts)])
        return Response(message, self._stop, parse_usage(self._usage))

    def _part(self, index: int) -> dict[str, Any]:
        part = self._parts[index]
        if index not in self._arguments:
            return part
        text = "".join(self._arguments[index])
        try:
            arguments: Any = json_text.parse(text) if text else {}
        except WireError:
            arguments = text
        return {_CALL: {**as_object(part.get(_CALL)), "input": arguments}}

    def _take(self, name: str, data: str) -> None:
        value = sse.object_of(name, data)
        index = as_count(value.get("contentBlockIndex"))
        match name:
            case "contentBlockStart":
                self._parts[index] = start = dict(as_object(value.get("start")))
                if _CALL in start:
                    self._arguments[index] = []
            case "contentBlockDelta":
                self._delta(index, as_object(value.get("delta")))
            case "messageStop":
                self._stop = as_string(value.get("stopReason"))
            case "metadata":
                self._usage = value.get("usage") or self._usage
                self.ended = bool(self._stop)
            case "error":
                self.error = data

    def _delta(self, index: int, delta: dict[str, Any]) -> None:
        part = self._parts.setdefault(index, {})
        if isinstance(delta.get(_CALL), dict):
            self._arguments.setdefault(index, []).append(as_string(delta[_CALL].get("input")))
        elif isinstance(delta.get("text"), str):
            part["text"] = as_string(part.get("text")) + delta["text"]
        elif isinstance(delta.get(_REASONING), dict):
            self._reason(part.setdefault(_REASONING, {}), delta[_REASONING])

    def _reason(self, said: dict[str, Any], delta: dict[str, Any]) -> None:
        for key in ("text", "signature"):
            if isinstance(delta.get(key), str):
                told = said.setdefault("reasoningText", {})
                told[key] = as_string(told.get(key)) + delta[key]
        if isinstance(delta.get("redactedContent"), str):
            said["redactedContent"] = as_string(said.get("redactedContent")) + delta["redactedContent"]
        self.reasoning_keys += [key for name in ("signature", "redactedContent") if (key := as_string(delta.get(name)))]
