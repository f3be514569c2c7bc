"""JSON as lines that can be quoted one by one: every line says where it stands and what stands there.

    total: 3
    items[0]: {"id":7,"name":"harbour"}
    items[1]: {"id":9,"name":"mill"}

A row that is quoted without its neighbours still says all it said. Text in JSON strings, and the envelopes that tools
put around their text, are opened. What is no JSON gives nothing.
"""

import json
from collections.abc import Iterator
from typing import Any

_LINE = 300
_DEPTH = 12


def json_lines(text: str) -> list[str] | None:
    """The lines of a JSON text, or None where it is none."""
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return None
    if not isinstance(value, dict | list):
        return None
    return list(_lines("", value, 0))


def _lines(path: str, value: Any, depth: int) -> Iterator[str]:
    if isinstance(value, str):
        yield from _text(path, value, depth)
        return
    said = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    if not isinstance(value, dict | list) or (len(said) <= _LINE and "\\n" not in said) or depth >= _DEPTH:
        yield f"{path}: {said}" if path else said
        return
    if (
        isinstance(value, dict)
        and value.keys() <= {"type", "text", "annotations"}
        and isinstance(value.get("text"), str)
    ):
        yield from _text(path, value["text"], depth)
        return
    if isinstance(value, dict):
        for key, part in value.items():
            yield from _lines(f"{path}.{key}" if path else str(key), part, depth + 1)
    else:
        for index, part in enumerate(value):
            yield from _lines(f"{path}[{index}]", part, depth + 1)


def _text(path: str, text: str, depth: int) -> Iterator[str]:
    inner = json_lines(text) if depth < _DEPTH and text.lstrip()[:1] in ("{", "[") else None
    if inner is not None:
        yield from (f"{path} > {line}" if path else line for line in inner)
    elif "\n" in text:
        if path:
            yield f"{path}:"
        yield from text.split("\n")
    else:
        yield f"{path}: {text}" if path else text
