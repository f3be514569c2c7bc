"""Bedrock's Converse in terms of Anthropic's Messages, so that the referee can judge its requests and answer them."""

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from tests.wire.aws_framing import frame

MUST_ALTERNATE = "A conversation must alternate between user and assistant roles."


def problem_with(request: Mapping[str, Any]) -> str:
    """What Converse itself refuses, whatever the model."""
    roles = [message["role"] for message in request["messages"]]
    if roles != [("user", "assistant")[at % 2] for at in range(len(roles))]:
        return MUST_ALTERNATE
    blank = [part for message in request["messages"] for part in message["content"] if part.get("text") == ""]
    return "The text field in the ContentBlock object is blank." if blank else ""


def as_messages(request: Mapping[str, Any], model: str, *, stream: bool) -> dict[str, Any]:
    tools = [each["toolSpec"] for each in request.get("toolConfig", {}).get("tools", ()) if "toolSpec" in each]
    return {
        "model": model,
        "stream": stream,
        "max_tokens": request["inferenceConfig"]["maxTokens"],
        "system": _content(request.get("system", ())),
        "tools": [
            {"name": each["name"], "description": each["description"], "input_schema": each["inputSchema"]["json"]}
            for each in tools
        ],
        "messages": [{"role": one["role"], "content": _content(one["content"])} for one in request["messages"]],
        **request.get("additionalModelRequestFields", {}),
    }


def _content(parts: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    blocks: list[dict[str, Any]] = []
    for part in parts:
        if "cachePoint" in part:
            blocks[-1]["cache_control"] = {
                "type": "ephemeral",
                **({"ttl": "1h"} if part["cachePoint"].get("ttl") else {}),
            }
        else:
            blocks.append(_block(part))
    return blocks


def _block(part: Mapping[str, Any]) -> dict[str, Any]:
    ((kind, said),) = part.items()
    match kind:
        case "text":
            return {"type": "text", "text": said}
        case "guardContent":
            return {"type": "text", "text": said["text"]["text"]}
        case "json":
            assert isinstance(said, dict), "Provide a json object for the field and try again."
            return {"type": "text", "text": json.dumps(said)}
        case "image":
            source = {"type": "base64", "media_type": f"image/{said['format']}", "data": said["source"]["bytes"]}
            return {"type": "image", "source": source}
        case "toolUse":
            return {"type": "tool_use", "id": said["toolUseId"], "name": said["name"], "input": said["input"]}
        case "toolResult":
            failed = {"is_error": True} if said.get("status") == "error" else {}
            return {
                "type": "tool_result",
                "tool_use_id": said["toolUseId"],
                "content": _content(said["content"]),
                **failed,
            }
        case "reasoningContent" if "redactedContent" in said:
            return {"type": "redacted_thinking", "data": said["redactedContent"]}
        case "reasoningContent":
            told = said["reasoningText"]
            return {"type": "thinking", "thinking": told["text"], "signature": told["signature"]}
    raise AssertionError(f"a part of a kind that is not known here: {kind}")


def as_converse(message: Mapping[str, Any]) -> dict[str, Any]:
    """The answer to a request that is not streamed."""
    return {
        "output": {"message": {"role": "assistant", "content": [_part(block) for block in message["content"]]}},
        "stopReason": message["stop_reason"],
        "usage": _usage(message["usage"]),
        "metrics": {"latencyMs": 7},
    }


def frames(message: Mapping[str, Any]) -> Iterator[bytes]:
    """The same answer as a stream, every text and argument in two pieces."""
    yield _frame("messageStart", {"role": "assistant"})
    for index, block in enumerate(message["content"]):
        ((kind, said),) = _part(block).items()
        if kind == "toolUse":
            start = {"toolUse": {"toolUseId": said["toolUseId"], "name": said["name"]}}
            yield _frame("contentBlockStart", {"start": start, "contentBlockIndex": index})
            pieces: list[dict[str, Any]] = [
                {"toolUse": {"input": piece}} for piece in _halves(json.dumps(said["input"]))
            ]
        elif kind == "text":
            pieces = [{"text": piece} for piece in _halves(said)]
        else:
            told = said["reasoningText"]
            pieces = [{kind: {"text": told["text"]}}, {kind: {"signature": told["signature"]}}]
        for piece in pieces:
            yield _frame("contentBlockDelta", {"delta": piece, "contentBlockIndex": index})
        yield _frame("contentBlockStop", {"contentBlockIndex": index})
    yield _frame("messageStop", {"stopReason": message["stop_reason"]})
    yield _frame("metadata", {"usage": _usage(message["usage"]), "metrics": {"latencyMs": 7}})


def _halves(text: str) -> tuple[str, str]:
    return text[: len(text) // 2], text[len(text) // 2 :]


def _frame(kind: str, event: dict[str, Any]) -> bytes:
    return frame(json.dumps({**event, "p": "abcd"}).encode(), kind)


def _part(block: Mapping[str, Any]) -> dict[str, Any]:
    match block["type"]:
        case "text":
            return {"text": block["text"]}
        case "thinking":
            return {"reasoningContent": {"reasoningText": {"text": block["thinking"], "signature": block["signature"]}}}
    return {"toolUse": {"toolUseId": block["id"], "name": block["name"], "input": block["input"]}}


def _usage(said: Mapping[str, Any]) -> dict[str, int]:
    counts = {
        "inputTokens": said["input_tokens"],
        "outputTokens": said["output_tokens"],
        "cacheReadInputTokens": said["cache_read_input_tokens"],
        "cacheWriteInputTokens": said["cache_creation_input_tokens"],
    }
    return {**counts, "totalTokens": sum(counts.values())}
