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
    head, _, given = _place_of(lines, table, key)
    if head is None:
        made = f"{text.rstrip()}\n\n[{table}]\n{line}\n".lstrip()
    else:
        at = given[0] if given else head + 1
        made = "\n".join([*lines[:at], line, *lines[at + len(given) :]])
    wanted = tomllib.loads(text)
    wanted[table] = {**wanted.get(table, {}), key: value}
    if tomllib.loads(made) != wanted:
        raise ValueError(f"{table}.{key} cannot be set line by line")
    return made


def without_setting(text: str, table: str, key: str) -> str:
    """Returns a TOML text without what `with_setting` wrote: the line, and its table where nothing else stands there.

    Raises ValueError where that cannot be done line by line.
    """
    lines = text.split("\n")
    head, end, given = _place_of(lines, table, key)
    wanted = tomllib.loads(text)
    wanted.get(table, {}).pop(key, None)
    if head is not None and given:
        kept = [*lines[head + 1 : given[0]], *lines[given[0] + 1 : end]]
        if any(map(str.strip, kept)):
            lines[head + 1 : end] = kept
        else:
            before = "\n".join(lines[:head]).rstrip()
            lines = [*([before, ""] if before else []), *lines[end:]]
            wanted.pop(table)
    made = "\n".join(lines)
    if tomllib.loads(made) != wanted:
        raise ValueError(f"{table}.{key} cannot be taken out line by line")
    return made


def _place_of(lines: list[str], table: str, key: str) -> tuple[int | None, int, list[int]]:
    """Where a table's head stands, where the table ends, and the lines in it that set the key."""
    heads = (at for at, found in enumerate(lines) if re.fullmatch(rf"\s*\[\s*{table}\s*\]\s*(?:#.*)?", found))
    head = next(heads, None)
    if head is None:
        return None, len(lines), []
    end = next((at for at in range(head + 1, len(lines)) if re.match(r"\s*\[", lines[at])), len(lines))
    return head, end, [at for at in range(head + 1, end) if re.match(rf"\s*{key}\s*=", lines[at])]


def _inline_table(members: Iterable[tuple[str, object]]) -> str:
    return "{" + ", ".join(f"{toml_key((name,))} = {toml_value(value)}" for name, value in members) + "}"


def _escaped(character: str) -> str:
    if character in '"\\':
        return "\\" + character
    if character.isprintable():
        return character
    return f"\\u{ord(character):04x}" if ord(character) <= 0xFFFF else f"\\U{ord(character):08x}"
