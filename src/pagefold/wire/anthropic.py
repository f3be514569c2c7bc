"""Anthropic Messages: requests, whole responses and streams, as the values of `message`.

Keeps block types it does not know, `cache_control`, signatures, citations and server tools: they are read as blocks
without a text of their own and never written anew. Refuses, with WireError, what is not a Messages body at all.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from pagefold.errors import WireError
from pagefold.wire import json_text, sse
from pagefold.wire.message import Block, BlockKind, Message, Request, Response, Role, Usage

_WORDS = {"text": BlockKind.TEXT, "thinking": BlockKind.THINKING}  # a block type whose text lies under its own name


def parse_request(body: bytes) -> Request:
    """Raises WireError."""
    text = json_text.text_of(body)
    top = json_text.members(text)
    array = json_text.member(top, "messages")
    if array is None or not isinstance(array.value, list):
        raise WireError("a Messages request has a list of messages")
    spots = json_text.elements(text, array.start)
    system, tools = json_text.member(top, "system"), json_text.member(top, "tools")
    return Request(
        body=text,
        model=_string(json_text.member(top, "model")),
        stream=(spot := json_text.member(top, "stream")) is not None and spot.value is True,
        head=(_system(system.value, text[system.start : system.end]),) if system else (),
        tools=_elements_text(text, tools),
        messages=tuple(parse_message(spot.value, text[spot.start : spot.end]) for spot in spots),
        _array=(array.start, array.end),
        _spans=tuple((spot.start, spot.end) for spot in spots),
    )


def parse_message(value: Any, raw: str) -> Message:
    """Raises WireError."""
    if not isinstance(value, dict) or value.get("role") not in Role.__members__.values():
        role = value.get("role") if isinstance(value, dict) else value
        raise WireError(f"role {role!r}: expected one of {', '.join(Role)}")
    return Message(Role(value["role"]), tuple(blocks_of(value.get("content"), ("content",))), raw)


def parse_response(body: bytes) -> Response:
    """A whole answer. Raises WireError, also for an error body."""
    text = json_text.text_of(body)
    value = json_text.parse(text)
    if not isinstance(value, dict) or not isinstance(value.get("content"), list):
        raise WireError("a Messages response has a list of content blocks")
    message = Message(Role.ASSISTANT, tuple(blocks_of(value["content"], ("content",))), text)
    return Response(
        message, str(value.get("stop_reason") or ""), parse_usage(value.get("usage")), str(value.get("model"))
    )


def blocks_of(content: Any, path: json_text.Path) -> Iterator[Block]:
    if isinstance(content, str):
        yield Block(BlockKind.TEXT, content, path)
    elif isinstance(content, list):
        for index, block in enumerate(content):
            yield from _blocks(block, (*path, index))


def parse_usage(value: Any) -> Usage | None:
    if not isinstance(value, dict):
        return None
    return Usage(
        fresh=_number(value.get("input_tokens")),
        cache_read=_number(value.get("cache_read_input_tokens")),
        cache_write=_number(value.get("cache_creation_input_tokens")),
        output=_number(value.get("output_tokens")),
    )


@dataclass(slots=True)
class StreamReader:
    """Reads a Messages stream as it passes by. `response` is there once the stream has said `message_stop`."""

    _events: sse.Reader = field(default_factory=sse.Reader)
    _start: dict[str, Any] = field(default_factory=dict)
    _content: dict[int, dict[str, Any]] = field(default_factory=dict)
    _pieces: dict[tuple[int, str], list[str]] = field(default_factory=dict)
    _stop: str = ""
    _usage: dict[str, Any] = field(default_factory=dict)
    ended: bool = False
    error: str = ""

    def feed(self, data: bytes) -> list[sse.Event]:
        """The events that are whole now, untouched. Raises WireError where an event's data is not JSON."""
        events = self._events.feed(data)
        for event in events:
            self._take(event)
        return events

    def response(self) -> Response:
        """The answer as far as it has come."""
        for (index, name), pieces in self._pieces.items():
            block = self._content[index]
            if name == "input":
                block["input"] = _json_or_text("".join(pieces))
            else:
                block[name] = str(block.get(name) or "") + "".join(pieces)
        self._pieces.clear()
        content = [self._content[index] for index in sorted(self._content)]
        raw = json_text.dumps({"role": "assistant", "content": content})
        message = Message(Role.ASSISTANT, tuple(blocks_of(content, ("content",))), raw)
        return Response(message, self._stop, parse_usage(self._usage or None), str(self._start.get("model") or ""))

    def _take(self, event: sse.Event) -> None:
        if not event.data:
            return
        value = json_text.parse(event.data)
        if not isinstance(value, dict):
            raise WireError(f"stream event {event.name!r}: expected an object, found {event.data[:40]!r}")
        match value.get("type"):
            case "message_start":
                self._start = value.get("message") or {}
                self._usage |= self._start.get("usage") or {}
            case "content_block_start":
                self._content[_number(value.get("index"))] = dict(value.get("content_block") or {})
            case "content_block_delta":
                self._delta(_number(value.get("index")), value.get("delta") or {})
            case "message_delta":
                self._stop = str((value.get("delta") or {}).get("stop_reason") or self._stop)
                self._usage |= {k: v for k, v in (value.get("usage") or {}).items() if v is not None}
            case "message_stop":
                self.ended = True
            case "error":
                self.error = event.data

    def _delta(self, index: int, delta: dict[str, Any]) -> None:
        block = self._content.setdefault(index, {})
        match delta.get("type"):
            case "text_delta":
                self._pieces.setdefault((index, "text"), []).append(str(delta.get("text", "")))
            case "thinking_delta":
                self._pieces.setdefault((index, "thinking"), []).append(str(delta.get("thinking", "")))
            case "input_json_delta":
                self._pieces.setdefault((index, "input"), []).append(str(delta.get("partial_json", "")))
            case "signature_delta":
                block["signature"] = delta.get("signature")
            case "citations_delta":
                block.setdefault("citations", []).append(delta.get("citation"))


def _system(value: Any, raw: str) -> Message:
    return Message(Role.SYSTEM, tuple(blocks_of(value, ())), raw)


def _blocks(block: Any, path: json_text.Path) -> Iterator[Block]:
    if not isinstance(block, dict):
        yield Block(BlockKind.OTHER, json_text.dumps(block))
        return
    kind = block.get("type")
    if kind == "tool_use":
        arguments = json_text.dumps(block.get("input"))
        yield Block(BlockKind.CALL, arguments, (), str(block.get("id", "")), str(block.get("name", "")))
    elif kind == "tool_result":
        yield from _result(block, path)
    elif isinstance(kind, str) and kind in _WORDS and isinstance(block.get(kind), str):
        yield Block(_WORDS[kind], block[kind], (*path, kind))
    elif kind in ("image", "document"):
        yield Block(BlockKind.MEDIA, "")
    else:
        yield Block(BlockKind.OTHER, json_text.dumps(block))


def _result(block: dict[str, Any], path: json_text.Path) -> Iterator[Block]:
    """One block per text part, so that each has one string to replace; an empty result is still a result."""
    call_id, failed, content = str(block.get("tool_use_id", "")), block.get("is_error") is True, block.get("content")
    if isinstance(content, str):
        yield Block(BlockKind.RESULT, content, (*path, "content"), call_id, failed=failed)
        return
    parts = content if isinstance(content, list) else []
    if not any(isinstance(part, dict) and part.get("type") == "text" for part in parts):
        yield Block(BlockKind.RESULT, "", (), call_id, failed=failed)
    for index, part in enumerate(parts):
        if isinstance(part, dict) and part.get("type") == "text" and isinstance(part.get("text"), str):
            yield Block(BlockKind.RESULT, part["text"], (*path, "content", index, "text"), call_id, failed=failed)
        elif isinstance(part, dict) and part.get("type") in ("image", "document"):
            yield Block(BlockKind.MEDIA, "", (), call_id)
        else:
            yield Block(BlockKind.OTHER, json_text.dumps(part), (), call_id)


def _elements_text(text: str, spot: json_text.Spot | None) -> tuple[str, ...]:
    if spot is None or not isinstance(spot.value, list):
        return ()
    return tuple(text[element.start : element.end] for element in json_text.elements(text, spot.start))


def _string(spot: json_text.Spot | None) -> str:
    return spot.value if spot is not None and isinstance(spot.value, str) else ""


def _number(value: Any) -> int:
    return value if isinstance(value, int) else 0


def _json_or_text(text: str) -> Any:
    """Arguments streamed in pieces; what was cut off in mid-value stays text."""
    try:
        return json_text.parse(text) if text else {}
    except WireError:
        return text
