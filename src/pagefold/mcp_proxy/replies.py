"""Builds the messages that the MCP proxy makes itself, and changes single values in others.

Ids are JSON text and are written as they came.
"""

import json
import re
from typing import Any

from pagefold.errors import WireError
from pagefold.mcp_proxy.lines import ID_IN_FRONT
from pagefold.wire import json_text

_SIGNS = re.compile(rb'(?:"|\\n)(?:> )?(?:\[|= lines? )|\\u00')
SERVER_LOST = -32000
"""The error code for a server that is gone; one of those that JSON-RPC leaves to implementations."""


def may_pose(data: bytes) -> bool:
    """Whether a line of a string in a message may look like one of pagefold's; most messages are known to hold none
    without being parsed."""
    return _SIGNS.search(data) is not None


def request(id: str, method: str, params: Any) -> bytes:
    head = f'{{"jsonrpc":"2.0","id":{id},"method":{json_text.dumps(method)}'
    return json_text.bytes_of(f'{head},"params":{json_text.dumps(params)}}}')


def failure(id: str, code: int, message: str) -> bytes:
    error = json_text.dumps({"code": code, "message": message})
    return json_text.bytes_of(f'{{"jsonrpc":"2.0","id":{id or "null"},"error":{error}}}')


def reply(id: str, result: Any) -> bytes:
    return json_text.bytes_of(f'{{"jsonrpc":"2.0","id":{id},"result":{json_text.dumps(result)}}}')


def text_reply(id: str, text: str, *, failed: bool = False, stateless: bool = False) -> bytes:
    """The answer of one of pagefold's own tools."""
    result: dict[str, Any] = {"content": [{"type": "text", "text": text}], "isError": failed}
    if stateless:
        result["resultType"] = "complete"
    return reply(id, result)


def respelled(raw: str, path: json_text.Path, text: str) -> bytes:
    """A message with the value at `path` replaced by this JSON text. Raises WireError where there is none."""
    start, end = json_text.find(raw, path)
    return json_text.bytes_of(json_text.splice(raw, [(start, end, text)]))


def with_id(data: bytes, id: str, new: str) -> bytes:
    """A message with another id. It is parsed only where the id does not come first."""
    front = ID_IN_FRONT.match(data)
    if front is None or front[1] != json_text.bytes_of(id):
        return respelled(json_text.text_of(data), ("id",), new)
    return data[: front.start(1)] + json_text.bytes_of(new) + data[front.end(1) :]


def plain_id(id: str) -> str:
    """An id as it is usually spelled: clients take 1.0 for 1, and an escaped letter for the letter."""
    try:
        value = json.loads(id)
    except ValueError:
        return id
    return json_text.dumps(int(value) if isinstance(value, float) and value.is_integer() else value)


def value_text(raw: str, path: json_text.Path) -> str:
    """The JSON text of the value at `path`, or "" where there is none."""
    try:
        start, end = json_text.find(raw, path)
    except WireError:
        return ""
    return raw[start:end]


def with_primer(raw: str, primer: str) -> str:
    """A greeting whose instructions end with the primer."""
    if not primer:
        return raw
    start, _ = json_text.find(raw, ("result",))
    members = json_text.members(raw, start)
    spot = json_text.member(members, "instructions")
    if spot is not None:
        text = f"{spot.value}\n\n{primer}" if isinstance(spot.value, str) and spot.value else primer
        return json_text.splice(raw, [(spot.start, spot.end, json_text.dumps(text))])
    comma = "," if members else ""
    return json_text.splice(raw, [(start + 1, start + 1, f'"instructions":{json_text.dumps(primer)}{comma}')])
