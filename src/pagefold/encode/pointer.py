"""pointer: the lowest level, one line in place of a text. It names what was there, how large it was and how to get it.

    [left out: Read src/loans.py, 240 lines, 2,310 tokens; context_recall("pf-abcdefghij") returns it]

The line needs no primer, says nothing that changes with time, and is the same for the same page and call. Without a
handle there would be no way back, so an empty one is refused.
"""

import json
import re
from collections.abc import Callable
from typing import Any

from pagefold.encode.shape import TextShape, shape_of
from pagefold.tokens import counter

_ARGUMENTS = 80
_VALUE = 60
_MAIN = ("file_path", "path", "notebook_path", "command", "cmd", "pattern", "query", "url", "uri", "id", "key", "name")
_SPACE = re.compile(r"\s+")
_KEYS = 4
_SAID = {TextShape.NUMBERED: "", TextShape.SOURCE: "", TextShape.TEXT: ""}  # the tool's name says as much


def pointer(
    text: str, *, handle: str, tool: str = "", arguments: str = "", count: Callable[[str], int] | None = None
) -> str:
    """The line that stands for a text. `arguments` are the call's, as JSON or as they are."""
    if not handle:
        raise ValueError("a pointer needs the handle of what it stands for")
    tokens = (count or counter("o200k").count)(text)
    name = " ".join(filter(None, (one_line(tool, _VALUE), call_words(arguments)))) or "a text"
    return f'[left out: {name}, {described(text)}, {tokens:,} tokens; context_recall("{handle}") returns it]'


def described(text: str) -> str:
    """What a text is and how much of it there is, without reading it: `JSON list of 40`, `log, 500 lines`."""
    shape = shape_of(text)
    if shape is TextShape.JSON:
        value = json.loads(text)
        if isinstance(value, list):
            return f"JSON list of {len(value):,}"
        keys = ", ".join(one_line(key, 24) for key in list(value)[:_KEYS])
        return f"JSON with {keys}{' …' if len(value) > _KEYS else ''}" if keys else "empty JSON"
    lines = text.count("\n") + (not text.endswith("\n"))
    many = f"{lines:,} line{'s' if lines != 1 else ''}" if text else "empty"
    return f"{said}, {many}" if (said := _SAID.get(shape, str(shape))) else many


def call_words(arguments: str) -> str:
    """A call's arguments in a few words: what it was about first, the rest by name, cut where it gets long."""
    try:
        members = json.loads(arguments) if arguments else {}
    except (ValueError, RecursionError):
        return one_line(arguments, _ARGUMENTS)
    if not isinstance(members, dict):
        return one_line(arguments, _ARGUMENTS)
    main = next((key for key in _MAIN if isinstance(members.get(key), str | int)), None)
    words = [] if main is None else [_said(members[main])]
    words += [f"{key}={_said(value)}" for key, value in members.items() if key != main]
    return one_line(" ".join(words), _ARGUMENTS)


def one_line(text: str, most: int) -> str:
    flat = _SPACE.sub(" ", text).strip()
    return flat if len(flat) <= most else f"{flat[: most - 1]}…"


def _said(value: Any) -> str:
    """A value in few characters; of a long path the end, which names the file."""
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    if len(text) > _VALUE and "/" in text and not _SPACE.search(text):
        return f"…{text[1 - _VALUE :]}"
    return one_line(text, _VALUE)
