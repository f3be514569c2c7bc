"""Writes answers of the Chat Completions API, whole and streamed."""

from collections.abc import Iterator, Mapping
from typing import Any

from pagefold.provider.answer import Answer
from pagefold.provider.billing import Charge
from pagefold.wire import json_text

_PIECE = 200


def completion_of(model: str, number: int, answer: Answer, charge: Charge, now: float) -> dict[str, Any]:
    message: dict[str, Any] = {"role": "assistant", "content": answer.text or None}
    if answer.calls:
        message["tool_calls"] = [
            {
                "id": call.id or f"call_r{number:06}c{at}",
                "type": "function",
                "function": {"name": call.name, "arguments": json_text.dumps(call.arguments)},
            }
            for at, call in enumerate(answer.calls)
        ]
    stop = "tool_calls" if answer.calls else "stop"
    return {
        "id": f"chatcmpl-r{number:06}",
        "object": "chat.completion",
        "created": int(now),
        "model": model,
        "choices": [{"index": 0, "message": message, "logprobs": None, "finish_reason": stop}],
        "usage": _usage(charge),
    }


def chunks_of(completion: Mapping[str, Any], *, with_usage: bool) -> Iterator[bytes]:
    choice = completion["choices"][0]
    message = choice["message"]
    common = {key: completion[key] for key in ("id", "created", "model")} | {"object": "chat.completion.chunk"}
    text = message["content"] or ""
    deltas: list[dict[str, Any]] = [{"role": "assistant", "content": ""}]
    deltas += [{"content": text[at : at + _PIECE]} for at in range(0, len(text), _PIECE)]
    for index, call in enumerate(message.get("tool_calls", ())):
        function = call["function"]
        opened = {**call, "index": index, "function": {"name": function["name"], "arguments": ""}}
        deltas.append({"tool_calls": [opened]})
        deltas.append({"tool_calls": [{"index": index, "function": {"arguments": function["arguments"]}}]})
    for delta in deltas:
        yield _data({**common, "choices": [{"index": 0, "delta": delta, "finish_reason": None}]})
    yield _data({**common, "choices": [{"index": 0, "delta": {}, "finish_reason": choice["finish_reason"]}]})
    if with_usage:
        yield _data({**common, "choices": [], "usage": completion["usage"]})
    yield b"data: [DONE]\n\n"


def _usage(charge: Charge) -> dict[str, Any]:
    return {
        "prompt_tokens": charge.prompt,
        "completion_tokens": charge.output,
        "total_tokens": charge.prompt + charge.output,
        "prompt_tokens_details": {
            "cached_tokens": charge.read,
            "cache_write_tokens": sum(charge.written.values()),
        },
        "completion_tokens_details": {"reasoning_tokens": 0},
    }


def _data(value: Mapping[str, Any]) -> bytes:
    return b"data: " + json_text.bytes_of(json_text.dumps(value)) + b"\n\n"
