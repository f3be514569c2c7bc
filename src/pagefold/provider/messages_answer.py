"""Writes answers of the Messages API, whole and streamed."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from pagefold.provider.answer import Answer
from pagefold.wire import json_text, sse

_PIECE = 200


def content_of(answer: Answer, number: int) -> list[dict[str, Any]]:
    """The content blocks of an answer, thinking left out. `number` makes the ids of its calls unique."""
    content: list[dict[str, Any]] = [{"type": "text", "text": answer.text}] if answer.text else []
    for at, call in enumerate(answer.calls):
        identity = call.id or f"toolu_r{number:06}c{at}"
        content.append({"type": "tool_use", "id": identity, "name": call.name, "input": dict(call.arguments)})
    return content


def message_of(
    model: str, number: int, content: Sequence[Mapping[str, Any]], usage: Mapping[str, Any], stop: str
) -> dict[str, Any]:
    return {
        "id": f"msg_r{number:06}",
        "type": "message",
        "role": "assistant",
        "model": model,
        "content": list(content),
        "stop_reason": stop,
        "stop_sequence": None,
        "usage": dict(usage),
    }


def events_of(message: Mapping[str, Any]) -> Iterator[bytes]:
    """The events of a streamed answer. What the answer says of the request stands in the first."""
    usage = message["usage"]
    begun = {**usage, "output_tokens": min(1, usage["output_tokens"])}
    opening: dict[str, Any] = {"content": [], "stop_reason": None, "usage": begun}
    yield _event("message_start", message={**message, **opening})
    for index, block in enumerate(message["content"]):
        empty, deltas = _opened(block)
        yield _event("content_block_start", index=index, content_block=empty)
        for delta in deltas:
            yield _event("content_block_delta", index=index, delta=delta)
        yield _event("content_block_stop", index=index)
    ending = {"stop_reason": message["stop_reason"], "stop_sequence": None}
    yield _event("message_delta", delta=ending, usage=usage)
    yield _event("message_stop")


def _opened(block: Mapping[str, Any]) -> tuple[dict[str, Any], list[dict[str, str]]]:
    """A block as it is opened, and the deltas that fill it."""
    match block["type"]:
        case "thinking":
            deltas = [{"type": "thinking_delta", "thinking": piece} for piece in _pieces(block["thinking"])]
            deltas.append({"type": "signature_delta", "signature": block["signature"]})
            return {**block, "thinking": "", "signature": ""}, deltas
        case "text":
            return {**block, "text": ""}, [{"type": "text_delta", "text": piece} for piece in _pieces(block["text"])]
        case "tool_use":
            pieces = _pieces(json_text.dumps(block["input"]))
            return {**block, "input": {}}, [{"type": "input_json_delta", "partial_json": piece} for piece in pieces]
    return dict(block), []


def _pieces(text: str) -> Iterator[str]:
    return (text[at : at + _PIECE] for at in range(0, len(text), _PIECE))


def _event(name: str, **members: Any) -> bytes:
    return sse.render_event(name, json_text.dumps({"type": name, **members}))
