"""Parses JSON into values that keep everything, and writes them as the usual serialisers do.

Numbers keep their spelling, objects are tuples of members, in order and with duplicate keys.
"""

import json
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final, TypeAlias

JsonValue: TypeAlias = "str | Number | bool | list[Any] | Members | None"


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


ABSENT: Final = object()
"""The value of an empty cell in a table: the row's object has no such key."""


@lru_cache(maxsize=4096)
def number(lexeme: str) -> Number:
    """Returns one shared object for each common spelling: comparing an object with itself costs nothing."""
    return Number(lexeme)


_decoder = json.JSONDecoder(
    parse_int=number, parse_float=number, parse_constant=number, object_pairs_hook=Members, strict=False
)


scan_string: Callable[[str, int, bool], tuple[str, int]] = json.decoder.scanstring  # type: ignore[attr-defined]
"""Reads a JSON string from behind its opening quote; returns it, and the place behind its closing quote."""


def parse(text: str) -> JsonValue:
    """Raises ValueError where the text is no JSON, RecursionError where it is nested too deeply."""
    value: JsonValue = _decoder.decode(text)
    return value


@lru_cache(maxsize=4)
def container(text: str) -> "Members | list[Any] | None":
    """Returns the object or array that a text is, or None where it is neither.

    Cached, failures included, so that everybody who looks at a text shares one parse; nobody changes a value.
    """
    try:
        value = parse(text)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, Members | list) else None


def plain(value: JsonValue) -> Any:
    """Returns a value as Python's own parser would: the last of duplicate keys, numbers as numbers."""
    if isinstance(value, Number):
        return json.loads(value)
    if isinstance(value, Members):
        return {key: plain(inner) for key, inner in value}
    if isinstance(value, list):
        return [plain(inner) for inner in value]
    return value


LITERALS = {None: "null", True: "true", False: "false"}


@dataclass(frozen=True, slots=True)
class Layout:
    """One way to set JSON out. `dump` writes the bytes that json.dumps would, but keeps the spelling of numbers."""

    name: str
    comma: str
    colon: str
    indent: str
    quote: Callable[[str], str]

    def quick(self, value: Any) -> str:
        """Dumps a value of Python's own parser, faster; returns "" where that would not be faster."""
        if self.indent:
            return ""
        ascii_only = self.quote is json.encoder.encode_basestring_ascii
        return json.dumps(value, ensure_ascii=ascii_only, separators=(self.comma, self.colon))

    def dump(self, value: Any) -> str:
        parts: list[str] = []
        self._add(parts, "", value, "\n" if self.indent else "")
        return "".join(parts)

    def _add(self, parts: list[str], before: str, value: Any, line: str) -> None:
        """Adds a value after `before`. `line` is a line break with the indent of what holds the value, or empty."""
        if type(value) is str:
            parts.append(f"{before}{self.quote(value)}")
        elif isinstance(value, Members):
            self._object(parts, before, value, line)
        elif isinstance(value, list):
            inner = line + self.indent
            before += f"[{inner}" if value else "["
            for item in value:
                self._add(parts, before, item, inner)
                before = self.comma + inner
            parts.append(f"{line}]" if value else f"{before}]")
        else:
            parts.append(f"{before}{str.__str__(value) if isinstance(value, str) else LITERALS[value]}")

    def _object(self, parts: list[str], before: str, value: Members, line: str) -> None:
        quote, colon, inner = self.quote, self.colon, line + self.indent
        before += f"{{{inner}" if value else "{"
        for key, item in value:
            if type(item) is str:
                parts.append(f"{before}{quote(key)}{colon}{quote(item)}")
            else:
                self._add(parts, f"{before}{quote(key)}{colon}", item, inner)
            before = self.comma + inner
        parts.append(f"{line}}}" if value else f"{before}}}")


LAYOUTS = tuple(
    Layout(f"{name}{suffix}", comma, colon, indent, quote)
    for name, comma, colon, indent in (
        ("compact", ",", ":", ""),
        ("spaced", ", ", ": ", ""),
        ("indent 2", ",", ": ", "  "),
        ("indent 4", ",", ": ", "    "),
        ("indent 1", ",", ": ", " "),
    )
    for suffix, quote in (("", json.encoder.encode_basestring), (" ascii", json.encoder.encode_basestring_ascii))
)


def compact(value: Any) -> str:
    """Returns a value as JSON without spaces, with the spelling of its numbers and its duplicate keys."""
    return LAYOUTS[0].dump(value)
