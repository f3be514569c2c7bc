"""Writes keys and values as TOML, with control characters escaped so that a terminal shows them."""

import re
import tomllib
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


def with_setting(text: str, table: str, key: str, value: object) -> str:
    """Returns a TOML text in which a plain table has this value under a key; every other line stays as it is.

    Raises ValueError where that cannot be done line by line: the value is written over several lines, or elsewhere.
    """
    line = f"{key} = {toml_value(value)}"
    lines = text.split("\n")
    heads = [at for at, found in enumerate(lines) if re.fullmatch(rf"\s*\[\s*{table}\s*\]\s*(?:#.*)?", found)]
    if not heads:
        made = f"{text.rstrip()}\n\n[{table}]\n{line}\n".lstrip()
    else:
        end = next((at for at in range(heads[0] + 1, len(lines)) if re.match(r"\s*\[", lines[at])), len(lines))
        given = [at for at in range(heads[0] + 1, end) if re.match(rf"\s*{key}\s*=", lines[at])]
        at = given[0] if given else heads[0] + 1
        made = "\n".join([*lines[:at], line, *lines[at + len(given) :]])
    wanted = tomllib.loads(text)
    wanted[table] = {**wanted.get(table, {}), key: value}
    if tomllib.loads(made) != wanted:
        raise ValueError(f"{table}.{key} cannot be set line by line")
    return made


def _inline_table(members: Iterable[tuple[str, object]]) -> str:
    return "{" + ", ".join(f"{toml_key((name,))} = {toml_value(value)}" for name, value in members) + "}"


def _escaped(character: str) -> str:
    if character in '"\\':
        return "\\" + character
    if character.isprintable():
        return character
    return f"\\u{ord(character):04x}" if ord(character) <= 0xFFFF else f"\\U{ord(character):08x}"
