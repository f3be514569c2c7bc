"""JSON as lines that can be quoted one by one: every line says where it stands and what stands there.

    total: 3
    items[].id: [0] 7 | 9 | 4
    items[].name: [0] harbour [2] quay

What the elements of a list have in common is a column. Its values can be quoted one by one too: each says its place,
unless it follows the one before it. Text in JSON strings, and the envelopes that tools put around their text, are
opened. What is no JSON gives nothing.
"""

import json
from collections.abc import Iterator
from typing import Any, NamedTuple, TypeAlias

_DEPTH = 12
_VALUE = 300  # characters: what is longer has a line of its own

_Place: TypeAlias = tuple[int, ...]
_SaidPart: TypeAlias = tuple[str, _Place, str]
"""The path of something that is said, without numbers; the numbers in the lists on the way; and its words."""


class Said(NamedTuple):
    """A line, or the next value of a column with its place; `follows` says that it is the next in its list too."""

    text: str
    column: str = ""
    follows: bool = False


def json_lines(text: str) -> list[Said] | None:
    """The lines of a JSON text in order, each column in one piece, or None where it is none."""
    found = _opened(text, 0)
    if found is None:
        return None
    lines: list[list[Said]] = []
    columns: dict[str, tuple[list[Said], _Place]] = {}
    for path, place, words in found:
        if not place or len(words) > _VALUE:
            lines.append([Said(f"{_placed(path, place)}: {words}" if path else words)])
            continue
        column, before = columns.get(path, ([], ()))
        if not column:
            lines.append(column)
        follows = place[:-1] == before[:-1] and before[-1:] == (place[-1] - 1,)
        column.append(Said(f"[{'.'.join(map(str, place))}] {words}", path, follows))
        columns[path] = column, place
    return [said for line in lines for said in line]


def value_of(text: str) -> str:
    """A value of a column without its place."""
    return text.partition("] ")[2]


def _opened(text: str, depth: int, path: str = "", place: _Place = ()) -> Iterator[_SaidPart] | None:
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return _parts(path, place, value, depth) if isinstance(value, dict | list) else None


def _parts(path: str, place: _Place, value: Any, depth: int) -> Iterator[_SaidPart]:
    if isinstance(value, str):
        yield from _text(path, place, value, depth)
    elif not isinstance(value, dict | list) or depth >= _DEPTH or _is_one(value):
        yield path, place, json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    elif isinstance(value, list):
        for at, part in enumerate(value):
            yield from _parts(f"{path}[]", (*place, at), part, depth + 1)
    elif value.keys() <= {"type", "text", "annotations"} and isinstance(value.get("text"), str):
        yield from _text(path, place, value["text"], depth)
    else:
        for key, part in value.items():
            yield from _parts(f"{path}.{key}" if path else str(key), place, part, depth + 1)


def _is_one(value: dict[str, Any] | list[Any]) -> bool:
    """Whether it is said in one piece: where it is empty, or a short list of plain values."""
    if not value or isinstance(value, dict):
        return not value
    size = 0
    for part in value:
        if isinstance(part, dict | list) or (isinstance(part, str) and "\n" in part):
            return False
        size += len(part) + 3 if isinstance(part, str) else 8
    return size <= _VALUE


def _text(path: str, place: _Place, text: str, depth: int) -> Iterator[_SaidPart]:
    opens = depth < _DEPTH and text.lstrip()[:1] in ("{", "[")
    inner = _opened(text, depth + 1, f"{path} >" if path else "", place) if opens else None
    if inner is not None:
        yield from inner
    elif "\n" in text:
        if path:
            yield "", (), f"{_placed(path, place)}:"
        yield from (("", (), line) for line in text.split("\n"))
    else:
        yield path, place, text


def _placed(path: str, place: _Place) -> str:
    """A path with its numbers in it."""
    for at in place:
        path = path.replace("[]", f"[{at}]", 1)
    return path
