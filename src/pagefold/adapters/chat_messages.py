"""A request of the Messages API as one of Chat Completions, and the answer to it back again: texts and tools.

It is for clients of our own that speak one of them. Cache marks are left out: those endpoints take none.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any


def chat_request(body: Mapping[str, Any]) -> dict[str, Any]:
    """The same request for Chat Completions."""
    system = "\n\n".join(block["text"] for block in body.get("system", ()))
    messages = [{"role": "system", "content": system}] if system else []
    for message in body["messages"]:
        messages += _turn(message) if message["role"] == "assistant" else _results(message)
    tools = [
        {
            "type": "function",
            "function": {
                "name": tool["name"],
                "description": tool["description"],
                "parameters": tool["input_schema"],
            },
        }
        for tool in body.get("tools", ())
    ]
    return {"max_tokens": body["max_tokens"], "messages": messages, **({"tools": tools} if tools else {})}


def messages_answer(told: Mapping[str, Any]) -> dict[str, Any]:
    """An answer of Chat Completions as the Messages API gives it. Raises ValueError where a call cannot be read."""
    message = told["choices"][0]["message"]
    content: list[dict[str, Any]] = []
    if message.get("content"):
        content.append({"type": "text", "text": message["content"]})
    for call in message.get("tool_calls") or ():
        function = call["function"]
        content.append(
            {"type": "tool_use", "id": call["id"], "name": function["name"], "input": _arguments(function["arguments"])}
        )
    usage = told.get("usage") or {}
    read = (usage.get("prompt_tokens_details") or {}).get("cached_tokens") or 0
    counted = {
        "input_tokens": (usage.get("prompt_tokens") or 0) - read,
        "cache_read_input_tokens": read,
        "output_tokens": usage.get("completion_tokens") or 0,
    }
    return {"role": "assistant", "content": content or [{"type": "text", "text": ""}], "usage": counted}


def _arguments(text: str | None) -> dict[str, Any]:
    """What a call is given; what is no object of JSON is handed on as it stands, so that the tool can say so."""
    try:
        value = json.loads(text or "{}")
    except ValueError:
        return {"arguments": text}
    return value if isinstance(value, dict) else {"arguments": value}


def _turn(message: Mapping[str, Any]) -> list[dict[str, Any]]:
    blocks: Sequence[Mapping[str, Any]] = message["content"]
    calls = [
        {
            "id": block["id"],
            "type": "function",
            "function": {"name": block["name"], "arguments": json.dumps(block["input"])},
        }
        for block in blocks
        if block["type"] == "tool_use"
    ]
    text = "".join(block["text"] for block in blocks if block["type"] == "text")
    return (
        [{"role": "assistant", "content": text or None, "tool_calls": calls}] if calls else [_said("assistant", text)]
    )


def _results(message: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    for block in message["content"]:
        if block["type"] == "tool_result":
            yield {"role": "tool", "tool_call_id": block["tool_use_id"], "content": block["content"]}
        else:
            yield _said("user", block["text"])


def _said(role: str, text: str) -> dict[str, Any]:
    return {"role": role, "content": text}
