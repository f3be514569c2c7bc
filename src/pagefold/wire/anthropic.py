"""Parses requests, responses and streams of Anthropic's Messages API, and writes its tool results and cache marks.

Unknown block types, signatures, citations and server tools are kept: they are parsed as blocks without a text of their
own and never written anew. Refuses, with WireError, what is not a Messages body at all.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

from pagefold.errors import WireError
from pagefold.wire import json_text, sse
from pagefold.wire.api import CacheMarks, CallFormat, ResultClearing
from pagefold.wire.json_text import as_count, as_list, as_object, as_string
from pagefold.wire.message import Block, BlockKind, Message, Request, RequestShape, Response, Role, Usage, parse_body
from pagefold.wire.shared_parsing import MARK, as_result, role_of, text_parts, typed_part, unmarked

_EDITING = "context_management"
_CLEARS = "clear_tool_uses"
_CONTENT = ("content",)
_COUNTS = ("input_tokens", "cache_read_input_tokens", "cache_creation_input_tokens", "output_tokens")
_OWN_BLOCKS = ("tool_use", "tool_result", "thinking", "redacted_thinking", "server_tool_use", "image", "document")
_UNMARKED = ("thinking", "redacted_thinking")
_TEXTS = {"text": "text", "thinking": "thinking"}
_MEDIA = ("image", "document")
_LONG_LIFE = '"1h"'
_MARKED = f'"{MARK}"'
_MARKED_LATELY = 8  # clients mark their last messages
_DELTAS = {  # deltas that come in pieces: the key of a block, and the key of the piece
    "text_delta": ("text", "text"),
    "thinking_delta": ("thinking", "thinking"),
    "input_json_delta": ("input", "partial_json"),
}


def parse_message(value: Any, raw: str, place: int = -1) -> Message:
    """Raises WireError."""
    return Message(role_of(value), blocks_of(value.get("content"), _CONTENT), raw, place)


def _system(value: Any, raw: str) -> Message:
    return Message(Role.SYSTEM, blocks_of(value, ()), raw)


SHAPE = RequestShape("messages", parse_message, "system", _system)
parse_request = partial(parse_body, shape=SHAPE)


def continues(request: Request) -> str:
    """Returns the id of the provider's message whose thread a request continues, or "". Such a request has only what is
    new in its messages (beta `message-threads-2026-08-12`)."""
    thread = as_object(json_text.parse(request.member("thread") or "null"))
    return as_string(thread.get("previous_message_id")) if thread.get("type") == "continue" else ""


def parse_response(body: bytes) -> Response:
    """Parses an answer that is not streamed. Raises WireError, also for an error body."""
    text = json_text.text_of(body)
    value = json_text.parse(text)
    if not isinstance(value, dict) or not isinstance(value.get("content"), list):
        raise WireError("a Messages response has a list of content blocks")
    message = Message(Role.ASSISTANT, blocks_of(value["content"], _CONTENT), text)
    stop, model = as_string(value.get("stop_reason")), as_string(value.get("model"))
    return Response(message, stop, parse_usage(value.get("usage"), value.get(_EDITING)), model)


def blocks_of(content: Any, path: json_text.Path) -> tuple[Block, ...]:
    if isinstance(content, str):
        return (Block(BlockKind.TEXT, content, path),)
    found: list[Block] = []
    for index, block in enumerate(as_list(content)):
        found += _blocks(block, (*path, index))
    return tuple(found)


def parse_usage(value: Any, editing: Any = None) -> Usage | None:
    """Parses usage. `editing` is the provider's report of what it cleared from the request."""
    if not isinstance(value, dict):
        return None
    fresh, read, written, output = [count if type(count) is int else 0 for count in map(value.get, _COUNTS)]
    edits = as_list(as_object(editing).get("applied_edits")) if editing else ()
    cleared = sum(as_count(as_object(edit).get("cleared_input_tokens")) for edit in edits) if edits else 0
    made = as_object(value.get("cache_creation")).get("ephemeral_1h_input_tokens")
    return Usage(fresh, read, written, output, cleared, min(as_count(made), written) if made else 0)


def clears_results(editing: str) -> bool:
    """Returns whether the member `context_management` asks for clearing of tool results. Raises WireError."""
    return bool(editing) and editing != without_clearing(editing)


def without_clearing(editing: str) -> str:
    """Returns the member without edits that clear tool results; others are kept. Raises WireError."""
    value = as_object(json_text.parse(editing))
    edits = as_list(value.get("edits"))
    left = [edit for edit in edits if not str(as_object(edit).get("type")).startswith(_CLEARS)]
    return editing if len(left) == len(edits) else json_text.dumps({**value, "edits": left})


def mark_of(message: Message) -> str:
    """Returns the first cache mark in a message, as JSON, or "" where there is none."""
    if _MARKED not in message.raw:
        return ""
    content = as_list(as_object(json_text.parse(message.raw)).get("content"))
    inner = [part for block in content for part in as_list(as_object(block).get("content"))]
    marks = (as_object(block).get(MARK) for block in (*content, *inner))
    return next((json_text.dumps(mark) for mark in marks if mark), "")


def cache_filling(request: Request) -> bytes | None:
    """Returns a request that reads what this one has cached and gets no answer: the API documents `max_tokens` 0 for
    that. None where it would be refused: a thinking budget has to be smaller, and without `max_tokens` the cache would
    not be found."""
    if "budget_tokens" in request.member("thinking") or not request.member("max_tokens"):
        return None
    return request.render(list(request.messages), members={"max_tokens": "0", "stream": "false"})


def asks_long(request: Request) -> bool:
    """Returns whether the conversation is to be cached for an hour: the last mark in its messages says so, else the
    request's own, else one before the messages. A request may mix lives, and the messages are what grows."""
    for message in reversed(request.messages.since(max(0, request.messages.length - _MARKED_LATELY))):
        if _MARKED in message.raw and (mark := mark_of(message)):
            return _LONG_LIFE in mark
    if own := request.member(MARK):
        return _LONG_LIFE in own
    return any(_MARKED in message.raw and _LONG_LIFE in message.raw for message in request.head)


def with_mark(message: Message, mark: str) -> Message | None:
    """Returns the message with a cache mark on its last block, or None where that block cannot carry one."""
    value = as_object(json_text.parse(message.raw))
    content = value.get("content")
    blocks = [{"type": "text", "text": content}] if isinstance(content, str) else list(as_list(content))
    last = as_object(blocks[-1]) if blocks else {}
    if not last or last.get("type") in _UNMARKED or last.get("text") == "":
        return None
    blocks[-1] = {**last, MARK: json_text.parse(mark)}
    return _with_content(value, blocks)


def without_marks(message: Message) -> Message:
    """Returns a message in one fixed spelling: without cache marks, and a string as one text block."""
    value = json_text.parse(message.raw)
    kept = {key: part for key, part in value.items() if key != MARK}
    content = kept.get("content")
    if "content" in kept:
        kept["content"] = unmarked(content)
    raw = json_text.dumps(kept)
    if raw == message.raw:
        return message
    if kept.get("content") == content:  # what it holds is the same, and only its spelling is not
        return Message(message.role, message.blocks, raw, message.place)
    return parse_message(kept, raw, message.place)


def result_block(call_id: str, text: str) -> dict[str, Any]:
    return {"type": "tool_result", "tool_use_id": call_id, "content": text}


def _speaks(value: Mapping[str, Any]) -> bool:
    return any(as_object(part).get("type") in _OWN_BLOCKS for part in as_list(value.get("content")))


def _call_id_paths(value: Mapping[str, Any]) -> Iterator[json_text.Path]:
    for index, block in enumerate(as_list(value.get("content"))):
        if as_object(block).get("type") == "tool_use" and as_string(block.get("id")):
            yield ("content", index, "id")


def _failed_result(call_id: str, text: str, call: Message) -> Message:
    return _with_content({"role": "user"}, [result_block(call_id, text) | {"is_error": True}])


def _with_results(message: Message, ids: Mapping[int, str]) -> Message | None:
    value = as_object(json_text.parse(message.raw))
    content: list[Any] = []
    number = -1
    for block in as_list(value.get("content")):
        if as_object(block).get("type") != "tool_result" or not as_string(as_object(block).get("tool_use_id")):
            content.append(block)
            continue
        number += 1
        if number in ids:
            content.append({**block, "tool_use_id": ids[number]})
    return _with_content(value, content) if content else None


def _parted(message: Message) -> tuple[Message, Message]:
    value = as_object(json_text.parse(message.raw))
    parts = as_list(value.get("content"))
    results = [part for part in parts if as_object(part).get("type") == "tool_result"]
    words = [part for part in parts if as_object(part).get("type") != "tool_result"]
    return _with_content(value, results), _with_content(value, words)


def _with_content(value: Mapping[str, Any], content: list[Any]) -> Message:
    made = {**value, "content": content}
    return parse_message(made, json_text.dumps(made))


CALLS = CallFormat(_speaks, _call_id_paths, _failed_result, _with_results, _parted)
CLEARING = ResultClearing(_EDITING, clears_results, without_clearing)
MARKS = CacheMarks(mark_of, with_mark, asks_long, cache_filling)

_STOPS = frozenset(('{"type":"message_stop"}', '{"type": "message_stop"}'))
_UNHEARD = Message(Role.ASSISTANT, (), '{"role":"assistant","content":[]}')


@dataclass(slots=True)
class MessagesStream(sse.StreamedAnswer):
    """Reads a Messages stream; `message_stop` ends it."""

    telling = (b'"message_', b'"signature_delta"', b'"redacted_thinking"')

    _model: str = ""
    _content: dict[int, dict[str, Any]] = field(default_factory=dict)
    _pieces: dict[tuple[int, str], list[str]] = field(default_factory=dict)
    _stop: str = ""
    _editing: Any = None

    def response(self) -> Response:
        """Returns the answer as far as it has come."""
        if self.gist:
            return Response(_UNHEARD, self._stop, parse_usage(self._usage or None, self._editing), self._model)
        blocks = {index: dict(block) for index, block in self._content.items()}
        for (index, name), pieces in self._pieces.items():
            text = "".join(pieces)
            blocks[index][name] = _json_or_text(text) if name == "input" else as_string(blocks[index].get(name)) + text
        content = [blocks[index] for index in sorted(blocks)]
        raw = json_text.dumps({"role": "assistant", "content": content})
        message = Message(Role.ASSISTANT, blocks_of(content, _CONTENT), raw)
        return Response(message, self._stop, parse_usage(self._usage or None, self._editing), self._model)

    def _take(self, name: str, data: str) -> None:
        if data in _STOPS:
            self.ended = True
            return
        value = sse.object_of(name, data)
        match value.get("type"):
            case "message_start":
                start = as_object(value.get("message"))
                self._model = as_string(start.get("model"))
                self._usage = {**self.usage, **as_object(start.get("usage"))}
                self._editing = start.get(_EDITING)
            case "content_block_start":
                block = self._content[as_count(value.get("index"))] = dict(as_object(value.get("content_block")))
                if block.get("type") == "redacted_thinking":
                    self.reasoning_keys.append(as_string(block.get("data")))
            case "content_block_delta":
                self._delta(as_count(value.get("index")), as_object(value.get("delta")))
            case "message_delta":
                self._stop = as_string(as_object(value.get("delta")).get("stop_reason")) or self._stop
                counts = as_object(value.get("usage")).items()
                self._usage = self.usage | {part: count for part, count in counts if count is not None}
                self._editing = value.get(_EDITING) or self._editing
            case "message_stop":
                self.ended = True
            case "error":
                self.error = data

    def _delta(self, index: int, delta: dict[str, Any]) -> None:
        block = self._content.setdefault(index, {})
        kind = as_string(delta.get("type"))
        if kind in _DELTAS:
            key, piece = _DELTAS[kind]
            self._pieces.setdefault((index, key), []).append(as_string(delta.get(piece)))
        elif kind == "signature_delta":
            block["signature"] = delta.get("signature")
            self.reasoning_keys.append(as_string(block["signature"]))
        elif kind == "citations_delta":
            block["citations"] = [*as_list(block.get("citations")), delta.get("citation")]


def _blocks(block: Any, path: json_text.Path) -> Sequence[Block]:
    kind = block.get("type") if isinstance(block, dict) else None
    if kind == "tool_use":
        arguments = json_text.dumps(block.get("input"))
        return (Block(BlockKind.CALL, arguments, (), as_string(block.get("id")), as_string(block.get("name"))),)
    if kind == "tool_result":
        parts = text_parts(block.get("content"), (*path, "content"), _part)
        return as_result(parts, as_string(block.get("tool_use_id")), failed=block.get("is_error") is True)
    return (_part(block, path),)


def _part(block: Any, path: json_text.Path) -> Block:
    part = typed_part(block, path, _TEXTS, _MEDIA)
    is_thinking = part.kind is BlockKind.TEXT and part.path[-1] == "thinking"
    return replace(part, kind=BlockKind.THINKING) if is_thinking else part


def _json_or_text(text: str) -> Any:
    """Returns streamed arguments as a value, or as text where they were cut off."""
    try:
        return json_text.parse(text) if text else {}
    except WireError:
        return text
