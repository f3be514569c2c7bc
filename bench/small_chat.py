"""Requests of Chat Completions with tools as the text that Qwen2.5 was taught, and what it says as an answer again.

A model this small often leaves out the tags around a call, or sets it as a block of code. Any JSON object that names
an offered tool and has arguments counts as a call of it, so that a model is not failed for its spelling.
"""

import json
import re
from collections.abc import Mapping, Sequence
from itertools import groupby
from typing import Any

Part = tuple[str, bool]
"""A piece of a prompt, and whether it is framing, in which the names of special tokens are meant."""

_TOOLS = (
    "\n\n# Tools\n\nYou may call one or more functions to assist with the user query.\n\n"
    "You are provided with function signatures within <tools></tools> XML tags:\n<tools>\n{}\n</tools>\n\n"
    "For each function call, return a json object with function name and arguments within <tool_call></tool_call> "
    'XML tags:\n<tool_call>\n{{"name": <function-name>, "arguments": <args-json-object>}}\n</tool_call>'
)
_TAGS = ("<tool_call>", "</tool_call>", "```json", "```")


def prompt_of(body: Mapping[str, Any]) -> list[Part]:
    """Returns the prompt of a request, which ends where the assistant is to speak."""
    messages = list(body["messages"])
    system = str(messages.pop(0)["content"]) if messages and messages[0]["role"] == "system" else "You are helpful."
    if tools := body.get("tools"):
        system += _TOOLS.format("\n".join(map(json.dumps, tools)))
    said = [("system", system)]
    for role, group in groupby(messages, key=lambda message: str(message["role"])):
        if role == "tool":
            results = (f"<tool_response>\n{message['content']}\n</tool_response>" for message in group)
            said.append(("user", "\n".join(results)))
        else:
            said += [(role, _words(message)) for message in group]
    parts = [part for role, text in said for part in _spoken(role, text)]
    return [*parts, ("<|im_start|>assistant\n", True)]


def _spoken(role: str, text: str) -> list[Part]:
    return [(f"<|im_start|>{role}\n", True), (text, False), ("<|im_end|>\n", True)]


def _words(message: Mapping[str, Any]) -> str:
    calls = [call["function"] for call in message.get("tool_calls") or ()]
    shown = [f'{{"name": {json.dumps(call["name"])}, "arguments": {call["arguments"]}}}' for call in calls]
    texts = [str(message.get("content") or ""), *(f"<tool_call>\n{call}\n</tool_call>" for call in shown)]
    return "\n".join(text for text in texts if text)


def message_of(text: str, tools: Sequence[Mapping[str, Any]], number: int) -> dict[str, Any]:
    """Returns the assistant's message: its words, and its calls with ids that begin with `number`."""
    names = {tool["function"]["name"] for tool in tools}
    calls: list[dict[str, Any]] = []
    words, at = "", 0
    while (begin := text.find("{", at)) >= 0:
        try:
            value, end = json.JSONDecoder().raw_decode(text, begin)
        except ValueError:
            value, end = None, begin + 1
        if isinstance(value, dict) and value.get("name") in names and isinstance(value.get("arguments"), dict):
            function = {"name": value["name"], "arguments": json.dumps(value["arguments"])}
            calls.append({"id": f"call_{number}_{len(calls)}", "type": "function", "function": function})
            words += text[at:begin]
        else:
            words += text[at:end]
        at = end
    words += text[at:]
    if calls:
        for tag in _TAGS:
            words = words.replace(tag, "")
        words = re.sub(r"(?m)^[{}]+$", "", words)  # a pair of braces too many, which it would say again
    return {"role": "assistant", "content": words.strip(), **({"tool_calls": calls} if calls else {})}
