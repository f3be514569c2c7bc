"""Writes keys and values as TOML, with control characters escaped so that a terminal shows them."""

import re
from collections.abc import Iterable
from dataclasses import fields, is_dataclass

KeyPath = tuple[str, ...]


def toml_key(path: KeyPath) -> str:
    """Returns a path as a TOML key."""
    return ".".join(part if re.fullmatch(r"[A-Za-z0-9_-]+", part) else toml_value(part) for part in path)


def toml_value(value: object) -> str:
    """Returns a value as TOML spells it, with control characters escaped. Raw lists and tables are only named."""
    if isinstance(value, str):
        return '"' + "".join(map(_escaped, value)) + '"'
    if is_dataclass(value):
        members = ((item.name, getattr(value, item.name)) for item in fields(value))
        return _inline_table((name, member) for name, member in members if member not in (None, ()))
    if isinstance(value, tuple):
        # A table that a file gives is kept as pairs, so that settings stay hashable.
        if value and isinstance(value[0], tuple):
            return _inline_table(value)
        return f"[{', '.join(map(toml_value, value))}]"
    if isinstance(value, dict | list):
        return "a table" if isinstance(value, dict) else "a list"
    if isinstance(value, int) and value.bit_length() > 64:
        # Python refuses to write thousands of decimal digits.
        return hex(value)
    return str(value).lower() if isinstance(value, bool) else str(value)


def _inline_table(members: Iterable[tuple[str, object]]) -> str:
    return "{" + ", ".join(f"{toml_key((name,))} = {toml_value(value)}" for name, value in members) + "}"


def _escaped(character: str) -> str:
    if character in '"\\':
        return "\\" + character
    if character.isprintable():
        return character
    return f"\\u{ord(character):04x}" if ord(character) <= 0xFFFF else f"\\U{ord(character):08x}"
