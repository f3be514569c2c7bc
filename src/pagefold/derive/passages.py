"""Messages as passages of lines: what a fold may keep of them, word for word.

A passage is one thing that was said, called or answered. Its lines are those of the text itself; JSON is opened into
lines that say where they stand, and lines that are too long to quote are cut into pieces. Every passage knows which of
its lines hold a fact.
"""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TypeAlias

from pagefold.derive.arrival import Standings, arguments_of
from pagefold.derive.json_lines import json_lines
from pagefold.encode import numbered
from pagefold.pages.facts import is_fact, words_of
from pagefold.pages.pins import OPENING
from pagefold.wire.message import Block, BlockKind, Message, Role

LONGEST = 400
_PIECE = 160
_BREAK = re.compile(r"(?<=[,;.!?}\])>|])\s|\s{2,}|(?<=[,;|])(?=\S)")
_SHORT = 200
_DEFINES = re.compile(
    r"\s*(?:export |pub(?:\(\w+\))? |async |static |public |private |protected |abstract |default )*"
    r"(?:func|def|class|type|interface|struct|enum|trait|impl|fn|function|const|var|let|module|package)\b"
)


class Speaker(StrEnum):
    USER = "user"
    ASSISTANT = "assistant"
    CALL = "call"
    RESULT = "result"
    SYSTEM = "system"


Line: TypeAlias = tuple[str, int, int | None, int]
"""Text, place, the number it carries in its file, and which piece it is of a longer line. Bare tuples: there are very
many, and the collector of garbage leaves those alone."""


def cost_of(text: str) -> float:
    """About what a line costs in tokens. The whole is counted when it is made."""
    return len(text) / 3.4 + 1.5


@dataclass(frozen=True, slots=True)
class Passage:
    """`label` is how the model knows it; `text` is the whole of it. `where` says which of its lines hold a fact.

    The first line of a call is its label; `keys` are the names of its arguments. `defining` are the lines that
    define something, as code does.
    """

    speaker: Speaker
    label: str
    text: str
    lines: tuple[Line, ...]
    where: Mapping[str, Sequence[int]] = field(repr=False)
    call_id: str = ""
    failed: bool = False
    keys: tuple[str, ...] = ()
    defining: frozenset[int] = field(default=frozenset(), repr=False)


def passages(message: Message, standings: Standings) -> tuple[Passage, ...]:
    """What a message holds."""
    return tuple(_passages(message, standings))


def _passages(message: Message, standings: Standings) -> Iterator[Passage]:
    for block in message.blocks:
        if block.kind is BlockKind.RESULT:
            quotable = json_lines(block.text) if block.text.lstrip()[:1] in ("{", "[") else None
            lines = tuple(_lines(block.text) if quotable is None else _plain_lines(quotable))
            label = standings.label(block)
            where, defining, call = _where(lines), _defining(lines), block.call_id
            yield Passage(Speaker.RESULT, label, block.text, lines, where, call, block.failed, defining=defining)
        elif block.kind is BlockKind.CALL:
            label, lines = _called(block)
            keys = tuple(arguments_of(block))
            where, defining = _where(lines), _defining(lines)
            yield Passage(Speaker.CALL, label, block.text, lines, where, block.call_id, keys=keys, defining=defining)
        elif block.kind in (BlockKind.TEXT, BlockKind.OTHER) and block.text:
            if message.place < 0 and block.text.startswith(OPENING):
                continue  # what is held stands in every request: no digest has to quote it
            lines = tuple(_lines(block.text))
            yield Passage(_speaker(message.role), "", block.text, lines, _where(lines), defining=_defining(lines))


def _where(lines: Sequence[Line]) -> dict[str, tuple[int, ...]]:
    where: dict[str, list[int]] = {}
    for index, line in enumerate(lines):
        for word in words_of(line[0]):
            if is_fact(word):
                places = where.get(word)
                if places is None:
                    where[word] = [index]
                elif places[-1] != index:
                    places.append(index)
    return {fact: tuple(places) for fact, places in where.items()}


def _defining(lines: Sequence[Line]) -> frozenset[int]:
    return frozenset([index for index, line in enumerate(lines) if _DEFINES.match(line[0])])


def _speaker(role: Role) -> Speaker:
    if role in (Role.SYSTEM, Role.DEVELOPER):
        return Speaker.SYSTEM
    return Speaker.ASSISTANT if role is Role.ASSISTANT else Speaker.USER


def _plain_lines(lines: Sequence[str]) -> Iterator[Line]:
    for at, line in enumerate(lines):
        yield from _line(line, at, None)


def _lines(text: str) -> Iterator[Line]:
    at = 0
    for part in numbered.split(text) or text.split("\n"):
        if isinstance(part, str):
            yield from _line(part, at, None)
            at += 1
            continue
        for number, line in enumerate(part.lines, part.first):
            yield from _line(line, at, number)
            at += 1


def _line(text: str, at: int, number: int | None) -> Iterator[Line]:
    if len(text) <= LONGEST:
        if text and not text.isspace():
            yield text, at, number, 0
        return
    for piece, words in enumerate(_pieces(text)):
        yield words, at, number, piece


def _pieces(text: str) -> Iterator[str]:
    """A long line cut where it pauses, into pieces that can be quoted."""
    start = 0
    while len(text) - start > LONGEST:
        end = start + LONGEST
        for pause in _BREAK.finditer(text, start + _PIECE, end):
            end = pause.end()
            break
        yield text[start:end]
        start = end
    if start < len(text):
        yield text[start:]


def _called(call: Block) -> tuple[str, tuple[Line, ...]]:
    """A call as a person would say it: the tool and its short arguments, and the lines it was given besides."""
    said, lines, at = [call.name], list[Line](), 1
    for value in arguments_of(call).values() or [call.text]:
        word = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
        if "\n" not in word and len(word) <= _SHORT:
            said.append(word)
            continue
        lines += [(text, at + below, None, piece) for text, below, _, piece in _lines(word)]
        at += word.count("\n") + 2
    label = " ".join(said).strip()
    return label, ((label, 0, None, 0), *lines)
