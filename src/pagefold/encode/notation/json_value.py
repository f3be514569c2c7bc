"""JSON values that forget nothing: numbers as they were spelled, objects as their members, duplicates included.

And JSON again, as serialisers set it out.
"""

import json
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, TypeAlias

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


@lru_cache(maxsize=4096)
def number(lexeme: str) -> Number:
    """The one object for a spelling that comes often: to find that it equals itself costs nothing."""
    return Number(lexeme)


_decoder = json.JSONDecoder(
    parse_int=number, parse_float=number, parse_constant=number, object_pairs_hook=Members, strict=False
)


@lru_cache(maxsize=4)
def parse(text: str) -> JsonValue:
    """Raises ValueError where the text is no JSON, RecursionError where it is nested too deeply.

    The newest few are remembered, because the gate asks for what was encoded a moment ago; nobody changes a value.
    """
    value: JsonValue = _decoder.decode(text)
    return value


def plain(value: JsonValue) -> Any:
    """The value as Python's own parser would give it: the last of duplicate keys, numbers as numbers."""
    if isinstance(value, Number):
        return json.loads(value)
    if isinstance(value, Members):
        return {key: plain(inner) for key, inner in value}
    if isinstance(value, list):
        return [plain(inner) for inner in value]
    return value


_SAID = {None: "null", True: "true", False: "false"}


@dataclass(frozen=True, slots=True)
class Layout:
    """`dump` gives the bytes that json.dumps would, but for what a float forgets of its spelling."""

    name: str
    comma: str
    colon: str
    indent: str
    quote: Callable[[str], str]

    def quick(self, value: Any) -> str:
        """The same of a value that has forgotten its lexemes, or nothing where that would take as long."""
        if self.indent:
            return ""
        ascii_only = self.quote is json.encoder.encode_basestring_ascii
        return json.dumps(value, ensure_ascii=ascii_only, separators=(self.comma, self.colon))

    def dump(self, value: Any) -> str:
        parts: list[str] = []
        self._add(parts, "", value, "\n" if self.indent else "")
        return "".join(parts)

    def _add(self, parts: list[str], before: str, value: Any, line: str) -> None:
        """A value after what stands before it. `line` is a line break with the indent of what holds the value."""
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
            parts.append(f"{before}{str.__str__(value) if isinstance(value, str) else _SAID[value]}")

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
    """A value as JSON without spaces: lexemes and duplicate keys as they were."""
    return LAYOUTS[0].dump(value)
