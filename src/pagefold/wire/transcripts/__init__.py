"""Recorded sessions of real agents, as one kind of value. Which format a recording has is seen in its beginning."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from enum import StrEnum
from typing import Any, TypeAlias

from pagefold.errors import WireError
from pagefold.wire.transcripts import chat_jsonl, claude_code, codex, opencode
from pagefold.wire.transcripts.session import Problem, Session, unanswered

__all__ = ["Format", "Problem", "Session", "detect", "parse_line", "read_document", "read_records", "unanswered"]

NumberedLines: TypeAlias = Iterable[tuple[int, str]]


class Format(StrEnum):
    CHAT = "chat"
    CLAUDE_CODE = "claude-code"
    CODEX = "codex"
    OPENCODE = "opencode"


# OpenCode before chat: both have "messages", only the one has "info".
_LOOKS: Mapping[Format, Callable[[Any], bool]] = {
    Format.OPENCODE: opencode.looks_like,
    Format.CHAT: chat_jsonl.looks_like,
    Format.CODEX: codex.looks_like,
    Format.CLAUDE_CODE: claude_code.looks_like,
}


def detect(value: Any) -> Format | None:
    """The format of a recording whose first record, or whole document, is `value`."""
    return next((known for known, looks_like in _LOOKS.items() if looks_like(value)), None)


def parse_line(line: str, *, name: str) -> Session:
    """One session of a chat JSONL. Raises WireError."""
    return chat_jsonl.parse_session(line, name=name)


def read_records(kind: Format, lines: NumberedLines, *, name: str) -> Iterator[Session | Problem]:
    """The sessions of a log that is written record by record."""
    reader = claude_code.read if kind is Format.CLAUDE_CODE else codex.read
    yield from reader(lines, name=name)


def read_document(kind: Format, text: str, *, name: str) -> Iterator[Session | Problem]:
    """The sessions of a recording that is one JSON document."""
    try:
        if kind is Format.OPENCODE:
            yield from opencode.read(text, name=name)
        else:
            yield chat_jsonl.parse_session(text.removeprefix("\ufeff"), name=name)
    except WireError as error:
        yield Problem(1, str(error))
