"""Writes the line that replaces a text that is left out: what it was, how large it was and how to get it.

    [left out: Read src/loans.py, 240 lines, 2,310 tokens; context_recall("pf-abcdefghij") returns it]

The line explains itself, holds nothing that changes with time, and is the same for the same page and call. An empty
handle is refused, because there would be no way back.
"""

import json
import re
from collections.abc import Callable
from typing import Any

from pagefold.encode.shape import TextShape, json_of, shape_of
from pagefold.tokens import counter

_ARGUMENTS = 80
_VALUE = 60
_MAIN = ("file_path", "path", "notebook_path", "command", "cmd", "pattern", "query", "url", "uri", "id", "key", "name")
_SPACE = re.compile(r"\s+")
_KEYS = 4
_UNNAMED = (TextShape.NUMBERED, TextShape.SOURCE, TextShape.TEXT)  # the tool's name says as much


def pointer(
    text: str, *, handle: str, tool: str = "", arguments: str = "", count: Callable[[str], int] | None = None
) -> str:
    """Returns the line that replaces a text. `arguments` are those of the call, as JSON or any other text."""
    if not handle:
        raise ValueError("a pointer needs the handle of what it stands for")
    tokens = (count or counter("o200k").count)(text)
    name = call_name(tool, arguments)
    return f'[left out: {name}, {described(text)}, {tokens:,} tokens; context_recall("{handle}") returns it]'


def call_name(tool: str, arguments: str) -> str:
    """Names a call by its tool and its arguments in a few words."""
    return " ".join(filter(None, (one_line(tool, _VALUE), call_words(arguments)))) or "a text"


def described(text: str) -> str:
    """Describes what a text is and how much of it there is: `JSON list of 40`, `log, 500 lines`."""
    shape = shape_of(text)
    if shape is TextShape.JSON:
        value = json_of(text)
        assert value is not None
        if isinstance(value, list):
            return f"JSON list of {len(value):,}"
        keys = ", ".join(one_line(key, 24) for key in list(value)[:_KEYS])
        return f"JSON with {keys}{' …' if len(value) > _KEYS else ''}" if keys else "empty JSON"
    lines = text.count("\n") + (not text.endswith("\n"))
    many = f"{lines:,} line{'s' if lines != 1 else ''}" if text else "empty"
    return many if shape in _UNNAMED else f"{shape}, {many}"


def call_words(arguments: str) -> str:
    """Writes a call's arguments in a few words: the main one first, the others by name, cut where it gets long."""
    try:
        members = json.loads(arguments) if arguments else {}
    except (ValueError, RecursionError):
        return one_line(arguments, _ARGUMENTS)
    if not isinstance(members, dict):
        return one_line(arguments, _ARGUMENTS)
    main = next((key for key in _MAIN if isinstance(members.get(key), str | int)), None)
    words = [] if main is None else [_short(members[main])]
    words += [f"{key}={_short(value)}" for key, value in members.items() if key != main]
    return one_line(" ".join(words), _ARGUMENTS)


def one_line(text: str, most: int) -> str:
    flat = _SPACE.sub(" ", text).strip()
    return flat if len(flat) <= most else f"{flat[: most - 1]}…"


def _short(value: Any) -> str:
    """Returns a value in few characters; of a long path the end, which names the file."""
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    if len(text) > _VALUE and "/" in text and not _SPACE.search(text):
        return f"…{text[1 - _VALUE :]}"
    return one_line(text, _VALUE)
