"""Messages that the MCP proxy makes itself, or adds a word to; ids and the rest are written as they came."""

from typing import Any

from pagefold.wire import json_text

SERVER_LOST = -32000
"""The code of an error that says that the server is gone; of those that JSON-RPC leaves to implementations."""


def failure(id: str, code: int, message: str) -> bytes:
    error = json_text.dumps({"code": code, "message": message})
    return json_text.bytes_of(f'{{"jsonrpc":"2.0","id":{id or "null"},"error":{error}}}')


def reply(id: str, result: Any) -> bytes:
    return json_text.bytes_of(f'{{"jsonrpc":"2.0","id":{id},"result":{json_text.dumps(result)}}}')


def text_reply(id: str, text: str, *, failed: bool = False, modern: bool = False) -> bytes:
    """The answer of a tool of ours."""
    result: dict[str, Any] = {"content": [{"type": "text", "text": text}], "isError": failed}
    if modern:
        result["resultType"] = "complete"
    return reply(id, result)


def respelled(raw: str, path: json_text.Path, text: str) -> bytes:
    """A message with the value at `path` replaced by this JSON text. Raises WireError where there is none."""
    start, end = json_text.find(raw, path)
    return json_text.bytes_of(json_text.splice(raw, [(start, end, text)]))


def with_primer(raw: str, primer: str) -> str:
    """A greeting whose instructions end in our line."""
    if not primer:
        return raw
    start, _ = json_text.find(raw, ("result",))
    spots = json_text.members(raw, start)
    said = json_text.member(spots, "instructions")
    if said is not None:
        told = f"{said.value}\n\n{primer}" if isinstance(said.value, str) and said.value else primer
        return json_text.splice(raw, [(said.start, said.end, json_text.dumps(told))])
    at = start + 1
    comma = "," if spots else ""
    return json_text.splice(raw, [(at, at, f'"instructions":{json_text.dumps(primer)}{comma}')])
