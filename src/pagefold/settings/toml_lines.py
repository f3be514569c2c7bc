"""Finds the line of each key in a TOML text. A line number is either right or left out."""

import re
import tomllib
from collections.abc import Iterator
from typing import Any

from pagefold.settings.toml_text import KeyPath

# Each line of a statement costs one more parse; after a longer statement no lines are given.
_STATEMENT_LINES = 200


def key_lines(text: str) -> dict[KeyPath, int]:
    """Returns the line on which each key or table first appears, in a text that tomllib accepts.

    tomllib itself finds the statements: lines are a statement as soon as they parse on their own, since no beginning
    of a longer statement does. Keys inside arrays of tables are left out, and in a value of several lines the keys
    below its own.
    """
    first_lines: dict[KeyPath, int] = {}
    lists: set[KeyPath] = set()
    above: KeyPath | None = ()
    for line, statement, table in _statements(text):
        if statement.lstrip().startswith("["):
            above = path = first_path(table)
            if any(path[:end] in lists for end in range(1, len(path) + 1)):
                above = None
                continue
            if statement.lstrip().startswith("[["):
                lists.add(path)
                above = None
            paths = {path}
        elif above is None:
            continue
        else:
            own = _own_key(statement) if "\n" in statement else None
            paths = {(*above, *path) for path in ([own] if own else _paths(table))}
        for path in paths:
            for end in range(1, len(path) + 1):
                first_lines.setdefault(path[:end], line)
    return first_lines


def _statements(text: str) -> Iterator[tuple[int, str, dict[str, Any]]]:
    """Yields each statement with its first line and its value. Stops at a statement that is too long."""
    pending: list[str] = []
    for number, line in enumerate(text.replace("\r\n", "\n").split("\n"), 1):
        pending.append(line)
        statement = "\n".join(pending)
        try:
            table = tomllib.loads(statement)
        except tomllib.TOMLDecodeError:
            if len(pending) == _STATEMENT_LINES:
                return
            continue
        if table:
            yield number - len(pending) + 1, statement, table
        pending = []


def _own_key(statement: str) -> KeyPath | None:
    """Returns the key before the equals sign. A sign inside a quoted name is skipped: the part before it is no key."""
    for sign in re.finditer("=", statement):
        try:
            return first_path(tomllib.loads(statement[: sign.start()] + "= 0"))
        except tomllib.TOMLDecodeError:
            continue
    return None


def first_path(table: dict[str, Any]) -> KeyPath:
    """Returns the path of the only key in a table, at any depth."""
    path: list[str] = []
    inner: object = table
    while isinstance(inner, dict) and inner:
        name, inner = next(iter(inner.items()))
        path.append(name)
    return tuple(path)


def _paths(table: dict[str, Any]) -> Iterator[KeyPath]:
    for name, value in table.items():
        yield (name,)
        if isinstance(value, dict):
            yield from ((name, *below) for below in _paths(value))
