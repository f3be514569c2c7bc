"""Marks what a server says in pagefold's manner where its texts are not encoded.

A tool's result that is to stay as it is keeps every byte but for the mark before a text that could be taken for one of
pagefold's. In an error, or an answer within a batch, the lines that could be taken for pagefold's are quoted.
"""

from typing import Any

from pagefold.encode import choose
from pagefold.encode.own_lines import QUOTE, quoted
from pagefold.errors import WireError
from pagefold.mcp_proxy.tool_result import SpanChange, ToolResult
from pagefold.wire import json_text


def marks(result: ToolResult, *, every: bool = False) -> list[SpanChange]:
    """The changes that mark texts beside those that are encoded: for the user alone, as many clients show them to the
    model all the same, and of resources; or `every` text."""
    spots = [*result.other_texts(), *(result.texts() if every else ())]
    marked = ((spot, choose.plain(spot.value)) for spot in spots)
    return [(spot.start, spot.end, json_text.dumps(text)) for spot, text in marked if text != spot.value]


def with_quoted_lines(data: bytes) -> bytes:
    """A message in whose strings no line could be taken for one of pagefold's; the same bytes where none can."""
    try:
        value = json_text.parse(json_text.text_of(data))
    except WireError:
        return data
    changed = _quoted(value)
    return data if changed == value else json_text.bytes_of(json_text.dumps(changed))


def _quoted(value: Any) -> Any:
    if isinstance(value, str):
        if choose.plain(value) == value:
            return value
        lines = [quoted(line) for line in value.split("\n")]
        posing = lines[0] == value.partition("\n")[0]  # then it is the first line, as the header of a form
        return "\n".join([QUOTE + lines[0], *lines[1:]] if posing else lines)
    if isinstance(value, dict):
        return {key: _quoted(inner) for key, inner in value.items()}
    return [_quoted(inner) for inner in value] if isinstance(value, list) else value
