"""Marks what a server says in pagefold's manner where its texts are not encoded.

A tool's result that is to stay as it is keeps every byte but for the mark before a text that could be taken for one of
pagefold's. In an error, or an answer within a batch, the lines that could be taken for pagefold's are quoted.
"""

from collections.abc import Iterator
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
    """A message in whose strings no line could be taken for one of pagefold's. Every other byte is as it came."""
    try:
        text = json_text.text_of(data)
        changes = list(_quoted(json_text.parse(text), ()))
        return json_text.bytes_of(json_text.replaced_each(text, changes)) if changes else data
    except WireError:
        return data


def _quoted(value: Any, path: json_text.Path) -> Iterator[tuple[json_text.Path, str]]:
    """Where strings that pose are in a value, and what they say once they are quoted."""
    if isinstance(value, str) and choose.plain(value) != value:
        lines = [quoted(line) for line in value.split("\n")]
        posing = lines[0] == value.partition("\n")[0]  # then it is the first line, as the header of a form
        yield path, "\n".join([QUOTE + lines[0], *lines[1:]] if posing else lines)
    elif isinstance(value, dict):
        for key, inner in value.items():
            yield from _quoted(inner, (*path, key))
    elif isinstance(value, list):
        for index, inner in enumerate(value):
            yield from _quoted(inner, (*path, index))
