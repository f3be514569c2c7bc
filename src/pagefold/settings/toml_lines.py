"""On which line of a TOML text each key stands. A line number is either right or left out."""

import re
import tomllib
from collections.abc import Iterator
from typing import Any

from pagefold.settings.toml_text import KeyPath

# Finding the end of a statement takes one more parse per line of it; past this, lines are not worth the wait.
_STATEMENT_LINES = 200


def key_lines(text: str) -> dict[KeyPath, int]:
    """The line on which each key or table first appears, in a text that tomllib accepts.

    tomllib itself finds the statements: a run of lines is one as soon as it parses on its own, since no beginning of
    a longer statement does. Left out are keys inside arrays of tables and, in a value of several lines, keys below
    its own.
    """
    found: dict[KeyPath, int] = {}
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
                found.setdefault(path[:end], line)
    return found


def _statements(text: str) -> Iterator[tuple[int, str, dict[str, Any]]]:
    """Each statement with its first line and what it says on its own. Stops at one that is too long."""
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
    """The key before the equals sign: the first one at which cutting leaves a key, and not half a quoted name."""
    for sign in re.finditer("=", statement):
        try:
            return first_path(tomllib.loads(statement[: sign.start()] + "= 0"))
        except tomllib.TOMLDecodeError:
            continue
    return None


def first_path(table: dict[str, Any]) -> KeyPath:
    """The path of the one key that a table of one key holds, however deep."""
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
