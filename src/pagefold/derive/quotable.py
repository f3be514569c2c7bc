"""Messages as passages of lines: what a fold may keep of them, word for word.

A passage is one thing that was said, called or answered. Its lines are those of the text itself; JSON is opened into
lines that say where they stand, and lines that are too long to quote are cut into pieces. Every passage knows which of
its lines hold a fact.
"""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field, replace
from enum import StrEnum
from functools import lru_cache
from typing import Any, TypeAlias

from pagefold.derive.json_lines import Said, json_lines
from pagefold.encode.codecs import numbered
from pagefold.frozen import frozen
from pagefold.pages.envelope import text_in
from pagefold.pages.facts import find_facts
from pagefold.pages.pins import OPENING
from pagefold.pages.voices import reminders_emptied
from pagefold.wire.message import Block, BlockKind, Message, Role, arguments_of

LONGEST = 400
_PIECE = 160
_BREAK = re.compile(r"(?<=[,;.!?}\])>|])\s|\s{2,}|(?<=[,;|])(?=\S)")
_SHORT = 200
_MESSAGES = 1024  # whose passages are remembered: a fold asks several times, and the next fold again
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


Line: TypeAlias = tuple[str, int, int | str | None, int]
"""Text, place, the number it carries in its file or the name of the column it is of, and which piece it is of a longer
line. Bare tuples: there are very many, and the collector of garbage leaves those alone."""


def cost_of(text: str) -> float:
    """About what a line costs in tokens. The whole is counted when it is made."""
    return len(text) / 3.4 + 1.5


@frozen
class Passage:
    """`label` is how the model knows it; `text` is the whole of it. `where` says which of its lines hold a fact.

    The first line of a call is its label; `keys` are the names of its arguments. `costs` is about what each line costs
    in tokens; `defining` are the lines that define something, as code does; `doubt` is what may have
    changed lines of a file since. `by_path`: it is JSON, and its lines say each value behind its path.
    """

    speaker: Speaker
    label: str
    text: str
    lines: tuple[Line, ...]
    where: Mapping[str, Sequence[int]] = field(repr=False)
    costs: tuple[float, ...] = field(repr=False)
    call_id: str = ""
    failed: bool = False
    keys: tuple[str, ...] = ()
    defining: frozenset[int] = field(default=frozenset(), repr=False)
    doubt: str = ""
    by_path: bool = False


@lru_cache(maxsize=_MESSAGES)
def passages(message: Message, labels: tuple[str, ...], *, written: bool = False) -> tuple[Passage, ...]:
    """What a message holds. `labels` are those of its results, in order; `written`: pagefold wrote the message."""
    return tuple(_passages(message, iter(labels), written=written))


def _passages(message: Message, labels: Iterator[str], *, written: bool) -> Iterator[Passage]:
    label = "result"
    for block in message.blocks:
        if block.kind is BlockKind.RESULT or (block.call_id and block.kind is BlockKind.OTHER):
            quotable = _opened(block.text)
            lines = _lines(reminders_emptied(block.text)) if quotable is None else _columns(quotable)
            label = next(labels, "result") if block.kind is BlockKind.RESULT else label
            made = _passage(Speaker.RESULT, label, block, lines)
            yield made if quotable is None or not _has_paths(block.text) else replace(made, by_path=True)
        elif block.kind is BlockKind.CALL:
            arguments = arguments_of(block)
            label, said = _called(block, arguments)
            yield _passage(Speaker.CALL, label, block, said, tuple(arguments))
        elif block.kind in (BlockKind.TEXT, BlockKind.OTHER) and block.text:
            if written and block.text.startswith(OPENING):
                continue  # what is held stands in every request: no digest has to quote it
            yield _passage(_speaker(message.role), "", block, _lines(reminders_emptied(block.text)))


def _opened(text: str) -> list[Said] | None:
    return json_lines(text) if text.lstrip()[:1] in ("{", "[") else None


def _has_paths(text: str) -> bool:
    """Whether JSON is more than an envelope around words, which are quoted as they are."""
    inner = text_in(text)
    return inner == text or _opened(inner) is not None


def _passage(speaker: Speaker, label: str, block: Block, lines: Sequence[Line], keys: tuple[str, ...] = ()) -> Passage:
    where, costs, defining = _where(lines), _costs(lines), _defining(lines)
    return Passage(speaker, label, block.text, tuple(lines), where, costs, block.call_id, block.failed, keys, defining)


def _where(lines: Sequence[Line]) -> dict[str, tuple[int, ...]]:
    where: dict[str, list[int]] = {}
    named: dict[str, list[str]] = {}
    for index, (text, _, column, _) in enumerate(lines):
        facts = find_facts(text)
        if isinstance(column, str):  # every value of a column is quoted with its name
            if column not in named:
                named[column] = find_facts(column)
            facts += named[column]
        for fact in facts:
            places = where.get(fact)
            if places is None:
                where[fact] = [index]
            elif places[-1] != index:
                places.append(index)
    return {fact: tuple(places) for fact, places in where.items()}


def _defining(lines: Sequence[Line]) -> frozenset[int]:
    return frozenset([index for index, line in enumerate(lines) if _DEFINES.match(line[0])])


def is_defining(line: str) -> bool:
    """Whether a line defines something, as code does."""
    return _DEFINES.match(line) is not None


def _speaker(role: Role) -> Speaker:
    if role in (Role.SYSTEM, Role.DEVELOPER):
        return Speaker.SYSTEM
    return Speaker.ASSISTANT if role is Role.ASSISTANT else Speaker.USER


def _lines(text: str) -> list[Line]:
    parts = numbered.split(text)
    if parts is None:
        return _quotable(text.split("\n"))
    lines, at = list[Line](), 0
    for part in parts:
        inside, first = ((part,), None) if isinstance(part, str) else (part.lines, part.first)
        lines += _quotable(inside, at, first)
        at += len(inside)
    return lines


def _quotable(lines: Sequence[str], at: int = 0, first: int | None = None) -> list[Line]:
    """Lines that stand in a row from a place on, without empty ones, and long ones in pieces."""
    found: list[Line] = []
    for place, text in enumerate(lines, at):
        number = None if first is None else first + place - at
        if len(text) > LONGEST:
            found += [(words, place, number, piece) for piece, words in enumerate(_pieces(text))]
        elif text and not text.isspace():
            found.append((text, place, number, 0))
    return found


def _columns(said: Sequence[Said]) -> list[Line]:
    """Lines of JSON. The values of a column are pieces of one line, neighbours where they were so in their list."""
    found: list[Line] = []
    place, before = -1, ""
    for text, column, follows in said:
        if column and column == before:
            found.append((text, place, column, found[-1][3] + (1 if follows else 2)))
            continue
        place, before = place + 1, column
        found += [(text, place, column, 0)] if column else _quotable([text], place)
    return found


def _costs(lines: Sequence[Line]) -> tuple[float, ...]:
    """What each line costs, by `cost_of`; with the first value of a column, what its name costs too."""
    costs: list[float] = []
    for text, _, column, piece in lines:
        if isinstance(column, str):
            costs.append(len(text) / 3.4 + 0.5 + (0.0 if piece else cost_of(column)))
        else:
            costs.append(len(text) / 3.4 + 1.5)
    return tuple(costs)


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


def _called(call: Block, arguments: Mapping[str, Any]) -> tuple[str, list[Line]]:
    """A call as a person would say it: the tool and its short arguments, and the lines it was given besides."""
    said, lines, at = [call.name], list[Line](), 1
    for value in arguments.values() or [call.text]:
        word = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
        if "\n" not in word and len(word) <= _SHORT:
            said.append(word)
            continue
        lines += [(text, at + below, None, piece) for text, below, _, piece in _lines(word)]
        at += word.count("\n") + 2
    label = " ".join(said).strip()
    return label, [(label, 0, None, 0), *lines]
