"""Keys and values as TOML spells them, with nothing in them that a terminal would obey."""

import re
from dataclasses import fields, is_dataclass
from typing import Any

from pagefold.settings.tools import Group

KeyPath = tuple[str, ...]


def toml_key(path: KeyPath) -> str:
    """A path as a TOML key."""
    return ".".join(part if re.fullmatch(r"[A-Za-z0-9_-]+", part) else toml_value(part) for part in path)


def toml_value(value: object) -> str:
    """A value as TOML spells it, with nothing in it that a terminal would obey."""
    if isinstance(value, str):
        return '"' + "".join(map(_spelled_character, value)) + '"'
    if isinstance(value, tuple):
        inner = ", ".join(_spelled_entry(one) if is_dataclass(one) else toml_value(one) for one in value)
        return f"{{{inner}}}" if value and isinstance(value[0], Group) else f"[{inner}]"
    if isinstance(value, dict | list):
        return "a table" if isinstance(value, dict) else "a list"
    if isinstance(value, int) and value.bit_length() > 64:
        # Python refuses to write thousands of decimal digits.
        return hex(value)
    return str(value).lower() if isinstance(value, bool) else str(value)


def _spelled_entry(entry: Any) -> str:
    """One entry of a list of tables, or of a table of tables, without what is as it would be anyway."""
    parts = {item.name: getattr(entry, item.name) for item in fields(entry) if item.name != "name"}
    told = {name: one for name, one in parts.items() if one is not None and one != ()}
    if "constants" in told:
        pairs = ", ".join(f"{toml_key((name,))} = {toml_value(one)}" for name, one in told.pop("constants"))
        inner = [*(f"{name} = {toml_value(one)}" for name, one in told.items()), f"constants = {{{pairs}}}"]
    else:
        inner = [f"{name} = {toml_value(one)}" for name, one in told.items()]
    table = f"{{{', '.join(inner)}}}"
    return f"{toml_key((entry.name,))} = {table}" if isinstance(entry, Group) else table


def _spelled_character(character: str) -> str:
    if character in '"\\':
        return "\\" + character
    if character.isprintable():
        return character
    return f"\\u{ord(character):04x}" if ord(character) <= 0xFFFF else f"\\U{ord(character):08x}"
