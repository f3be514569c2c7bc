"""Writes answers of the Responses API, whole and streamed."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from pagefold.provider.answer import Answer
from pagefold.provider.billing import Charge
from pagefold.provider.offered_tools import OfferedTool
from pagefold.provider.signature import Sealed, seal
from pagefold.wire import json_text, sse

_PIECE = 200


def output_of(
    answer: Answer, number: int, tools: Mapping[str, OfferedTool], reasoning_tokens: int
) -> list[dict[str, Any]]:
    """The output items of an answer. `tools` are those that were offered. The ids of items that follow reasoning say
    so."""
    turn = f"r{number:06}" if reasoning_tokens else f"{number:06}"
    items: list[dict[str, Any]] = []
    if reasoning_tokens:
        sealed = seal(Sealed("reasoning", f"rs_{turn}", reasoning_tokens))
        items.append({"id": f"rs_{turn}", "type": "reasoning", "summary": [], "encrypted_content": sealed})
    if answer.text:
        content = [{"type": "output_text", "text": answer.text, "annotations": [], "logprobs": []}]
        message = {"id": f"msg_{turn}_0", "type": "message", "role": "assistant", "status": "completed"}
        items.append({**message, "content": content})
    for at, call in enumerate(answer.calls, 1):
        identity = call.id or f"call_r{number:06}c{at}"
        item: dict[str, Any] = {"id": f"fc_{turn}_{at}", "status": "completed", "call_id": identity, "name": call.name}
        tool = tools.get(call.name, OfferedTool())
        item |= {"namespace": tool.namespace} if tool.namespace else {}
        if tool.custom:
            text = call.arguments.get("input", "")
            item |= {"type": "custom_tool_call", "input": text if isinstance(text, str) else json_text.dumps(text)}
        else:
            item |= {"type": "function_call", "arguments": json_text.dumps(call.arguments)}
        items.append(item)
    return items


def response_of(
    model: str,
    number: int,
    output: Sequence[Mapping[str, Any]],
    usage: Mapping[str, Any],
    asked: Mapping[str, Any],
    now: float,
) -> dict[str, Any]:
    echoed = {key: asked.get(key) for key in ("instructions", "metadata", "previous_response_id", "prompt_cache_key")}
    return {
        "id": f"resp_r{number:06}",
        "object": "response",
        "created_at": int(now),
        "status": "completed",
        "model": model,
        "output": list(output),
        "usage": dict(usage),
        "error": None,
        "incomplete_details": None,
        "parallel_tool_calls": True,
        "store": asked.get("store", True),
        "tool_choice": asked.get("tool_choice", "auto"),
        "tools": [],
        **echoed,
    }


def usage_of(charge: Charge, reasoning_tokens: int) -> dict[str, Any]:
    written = sum(charge.written.values())
    return {
        "input_tokens": charge.prompt,
        "input_tokens_details": {"cached_tokens": charge.read, "cache_write_tokens": written},
        "output_tokens": charge.output,
        "output_tokens_details": {"reasoning_tokens": reasoning_tokens},
        "total_tokens": charge.prompt + charge.output,
    }


def events_of(response: Mapping[str, Any]) -> Iterator[bytes]:
    numbered = enumerate(_events(response))
    return (_event(event["type"], {**event, "sequence_number": number}) for number, event in numbered)


def _events(response: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    begun = {**response, "status": "in_progress", "output": [], "usage": None}
    yield {"type": "response.created", "response": begun}
    yield {"type": "response.in_progress", "response": begun}
    for index, item in enumerate(response["output"]):
        at = {"output_index": index}
        yield {"type": "response.output_item.added", **at, "item": _opened(item)}
        yield from ({**event, **at, "item_id": item["id"]} for event in _inside(item))
        yield {"type": "response.output_item.done", **at, "item": item}
    yield {"type": "response.completed", "response": response}


def _opened(item: Mapping[str, Any]) -> dict[str, Any]:
    empty: dict[str, dict[str, Any]] = {
        "message": {"content": []},
        "function_call": {"arguments": ""},
        "custom_tool_call": {"input": ""},
    }
    opened = {**item, **empty.get(item["type"], {})}
    return {**opened, "status": "in_progress"} if "status" in item else opened


def _inside(item: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """The events between the opening of an item and its end."""
    match item["type"]:
        case "message":
            for index, part in enumerate(item["content"]):
                at = {"content_index": index}
                yield {"type": "response.content_part.added", **at, "part": {**part, "text": ""}}
                for piece in _pieces(part["text"]):
                    yield {"type": "response.output_text.delta", **at, "delta": piece, "logprobs": []}
                yield {"type": "response.output_text.done", **at, "text": part["text"], "logprobs": []}
                yield {"type": "response.content_part.done", **at, "part": part}
        case "function_call":
            for piece in _pieces(item["arguments"]):
                yield {"type": "response.function_call_arguments.delta", "delta": piece}
            done = {"type": "response.function_call_arguments.done", "name": item["name"]}
            yield {**done, "arguments": item["arguments"]}
        case "custom_tool_call":
            for piece in _pieces(item["input"]):
                yield {"type": "response.custom_tool_call_input.delta", "delta": piece}
            yield {"type": "response.custom_tool_call_input.done", "input": item["input"]}


def _pieces(text: str) -> Iterator[str]:
    return (text[at : at + _PIECE] for at in range(0, len(text), _PIECE))


def _event(name: str, value: Mapping[str, Any]) -> bytes:
    return sse.render_event(name, json_text.dumps(value))
