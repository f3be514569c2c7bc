"""A page at each of its levels, as it would stand in a request, and how a level differs from the whole."""

import difflib
from collections.abc import Iterator
from dataclasses import dataclass

from pagefold.encode import choose
from pagefold.encode.pointer import pointer
from pagefold.encode.trim import trim
from pagefold.errors import PagefoldError
from pagefold.pages.kinds import ResidencyLevel
from pagefold.pages.page import PageId, handle_of
from pagefold.tokens import counter

MOST_CHARACTERS = 400_000
_SHARE = 0.3  # of a page's tokens, what the structured level shown here may hold
_LEAST = 120
_MOST_LINES = 4_000
_AROUND = 3


@dataclass(frozen=True, slots=True)
class Level:
    """`how` says by what the text was made, or why there is none."""

    level: ResidencyLevel
    text: str
    tokens: int
    how: str


def levels_of(page: PageId, text: str, name: str = "") -> list[Level]:
    """The four levels, from the whole text to a pointer. A text that is too long to be worked on has two."""
    count = counter("o200k").count
    handle = handle_of(page)
    if len(text) > MOST_CHARACTERS:
        cut = text[:MOST_CHARACTERS]
        return [Level(ResidencyLevel.FULL, cut, 0, f"its first {MOST_CHARACTERS:,} characters")]
    tokens = count(text)
    tool, _, arguments = name.partition(" ")
    return [
        Level(ResidencyLevel.FULL, text, tokens, "as it came"),
        _compressed(text, tool, tokens),
        _structured(text, tool, arguments, tokens, handle),
        _pointer(text, tool, arguments, handle),
    ]


def _compressed(text: str, tool: str, tokens: int) -> Level:
    shown = choose.encode(text, tool=tool)
    by = " > ".join(shown.codecs) if shown.codecs else shown.reason or "as it is"
    return Level(ResidencyLevel.COMPRESSED, shown.text, shown.tokens or tokens, by)


def _structured(text: str, tool: str, arguments: str, tokens: int, handle: str) -> Level:
    budget = max(_LEAST, int(tokens * _SHARE))
    try:
        cut = trim(text, budget, tool=tool, arguments=arguments, handle=handle)
    except PagefoldError as error:
        return Level(ResidencyLevel.STRUCTURED, "", 0, str(error))
    how = "it is short enough to stay whole" if cut.text == text else f"within {budget:,} tokens, for show"
    return Level(ResidencyLevel.STRUCTURED, cut.text, cut.tokens, how)


def _pointer(text: str, tool: str, arguments: str, handle: str) -> Level:
    line = pointer(text, handle=handle, tool=tool, arguments=arguments)
    return Level(ResidencyLevel.POINTER, line, counter("o200k").count(line), "one line and the way back")


@dataclass(frozen=True, slots=True)
class DiffLine:
    """One line of a difference: `sign` is "+", "-", " ", or "…" where lines that are the same were left out."""

    sign: str
    text: str


def difference(whole: str, level: str) -> Iterator[DiffLine]:
    """How a level differs from the whole text, line by line. Lines beyond the first few thousand are not compared."""
    before, after = whole.split("\n")[:_MOST_LINES], level.split("\n")[:_MOST_LINES]
    matcher = difflib.SequenceMatcher(None, before, after, autojunk=len(before) + len(after) > _MOST_LINES)
    for tag, start, end, from_, to in matcher.get_opcodes():
        if tag == "equal":
            yield from _same(before[start:end], opens=start == 0, closes=end == len(before))
            continue
        yield from (DiffLine("-", text) for text in before[start:end])
        yield from (DiffLine("+", text) for text in after[from_:to])


def _same(lines: list[str], *, opens: bool, closes: bool) -> Iterator[DiffLine]:
    head, tail = 0 if opens else _AROUND, 0 if closes else _AROUND
    if len(lines) <= head + tail + 1:
        yield from (DiffLine(" ", text) for text in lines)
        return
    yield from (DiffLine(" ", text) for text in lines[:head])
    yield DiffLine("…", f"{len(lines) - head - tail:,} lines are the same")
    yield from (DiffLine(" ", text) for text in lines[len(lines) - tail :])
