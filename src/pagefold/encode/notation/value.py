"""JSON values that forget nothing: numbers as they were spelled, objects as their members, duplicates included."""

import json
from functools import lru_cache
from typing import Any, TypeAlias

Value: TypeAlias = "str | Number | bool | list[Any] | Members | None"


class Number(str):
    """A number as it was spelled. It equals no string, and `1` does not equal `1.0`."""

    __slots__ = ()

    def __eq__(self, other: object) -> bool:
        return type(other) is Number and str.__eq__(self, other)

    def __ne__(self, other: object) -> bool:
        return not self == other

    __hash__ = str.__hash__


class Members(tuple[tuple[str, Any], ...]):
    """The members of an object. It equals no list."""

    __slots__ = ()


_quoted = json.encoder.encode_basestring  # what json.dumps does to a string, without the rest of it
_decoder = json.JSONDecoder(
    parse_int=Number, parse_float=Number, parse_constant=Number, object_pairs_hook=Members, strict=False
)


@lru_cache(maxsize=4)
def parse(text: str) -> Value:
    """Raises ValueError where the text is no JSON, RecursionError where it is nested too deeply.

    The newest few are remembered, because the gate asks for what was encoded a moment ago; nobody changes a value.
    """
    value: Value = _decoder.decode(text)
    return value


def plain(value: Value) -> Any:
    """The value as Python's own parser would give it: the last of duplicate keys, numbers as numbers."""
    if isinstance(value, Number):
        return json.loads(value)
    if isinstance(value, Members):
        return {key: plain(inner) for key, inner in value}
    if isinstance(value, list):
        return [plain(inner) for inner in value]
    return value


def compact(value: Any) -> str:
    """A value as JSON without spaces: lexemes and duplicate keys as they were."""
    parts: list[str] = []
    _compact(value, parts)
    return "".join(parts)


def _compact(value: Any, parts: list[str]) -> None:
    if isinstance(value, tuple):
        parts.append("{")
        for index, (key, item) in enumerate(value):
            parts.append(f"{',' if index else ''}{_quoted(key)}:")
            _compact(item, parts)
        parts.append("}")
    elif isinstance(value, list):
        parts.append("[")
        for index, item in enumerate(value):
            parts.append("," if index else "")
            _compact(item, parts)
        parts.append("]")
    elif type(value) is str:
        parts.append(_quoted(value))
    else:
        parts.append(str.__str__(value) if isinstance(value, str) else json.dumps(value))
