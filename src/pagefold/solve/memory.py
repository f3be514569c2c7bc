"""What an agent that knows nothing but the request finds in it.

It is given the text of a request as a model reads it, oldest first, and looks for what it needs: the newest whole text
of a function, the newest match of a pattern, what became of an edit, the items of a list. It believes what it reads,
also what is no longer true, and it takes no hint from how a text is marked: only from its words.
"""

import json
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

_NUMBER = re.compile(r"^[ ]*\d+[\t→|:]", re.MULTILINE)
_LEFT = re.compile(r"nothing was changed|refused|failed|error|doesn't want|locked", re.IGNORECASE)
_MADE = re.compile(r"has been updated|has been written|\bok\b|changed in this session", re.IGNORECASE)
_LONGEST = 40  # lines of a function


class Memory:
    """All that a request says, as lines. Numbers before lines are taken off."""

    def __init__(self, messages: Sequence[Mapping[str, Any]]) -> None:
        failed = frozenset(
            block["tool_use_id"]
            for message in messages
            for block in _blocks(message)
            if block.get("type") == "tool_result" and block.get("is_error")
        )
        texts = [text for message in messages for text in texts_of(message, failed)]
        self.text = _NUMBER.sub("", "\n".join(texts))

    def function(self, anchor: str, pattern: str) -> str | None:
        """The newest whole text of a function that holds this pattern: from its first line to its last `return`."""
        end = len(self.text)
        while (at := self.text.rfind(anchor, 0, end)) >= 0:
            lines = _indented(self.text[at:].split("\n", _LONGEST))
            if lines and lines[-1].startswith("    return ") and re.search(pattern, text := "\n".join(lines)):
                return text
            end = at
        return None

    def newest(self, pattern: str) -> str | None:
        """What the first group of a pattern matches last."""
        found = None
        for match in re.finditer(pattern, self.text):
            found = match[1]
        return found

    def was_left(self, path: str) -> bool:
        """Whether the newest line that tells of an edit of this file says that it was not made."""
        for line in reversed(self.text.split("\n")):
            if path in line and (_LEFT.search(line) or _MADE.search(line)):
                return _LEFT.search(line) is not None
        return False

    def item(self, number: int, names: Sequence[str]) -> str | None:
        """Which of these names stands under a number in the newest list."""
        listed = re.findall(rf"^[ ]*{number}\.[ ]+(\w+)", self.text, re.MULTILINE)
        return next((name for name in reversed(listed) if name in names), None)


def _indented(lines: Sequence[str]) -> list[str]:
    """The first line and those below it that belong to it, up to the first `return` at its level."""
    kept = list(lines[:1])
    for line in lines[1:]:
        if line and not line.startswith("    "):
            break
        kept.append(line)
        if line.startswith("    return "):
            break
    return kept


def texts_of(message: Mapping[str, Any], failed: Collection[str] = ()) -> Iterator[str]:
    """The texts of a message: what was said, what was given to tools, unless the call `failed`, and what they said."""
    for block in _blocks(message):
        if block.get("type") == "text":
            yield block["text"]
        elif block.get("type") == "tool_use":
            yield f"{block['name']} {block['input'].get('file_path', '')}"
            if block["id"] not in failed:
                given = block["input"].items()
                yield from (value for key, value in given if isinstance(value, str) and key != "old_string")
        elif block.get("type") == "tool_result":
            inner = block.get("content")
            if isinstance(inner, str):
                yield inner
            else:
                yield from (part.get("text", json.dumps(part)) for part in inner or ())


def _blocks(message: Mapping[str, Any]) -> Sequence[Mapping[str, Any]]:
    content = message.get("content")
    return [{"type": "text", "text": content}] if isinstance(content, str) else content or []
