"""Makes a page at each of its levels, as requests may hold it, and the difference of a level to the whole text."""

import difflib
from collections.abc import Iterator
from dataclasses import dataclass

from pagefold.derive.representations import represent
from pagefold.encode.choose import encode
from pagefold.pages.kinds import PageKind, ResidencyLevel
from pagefold.pages.page import Page

MOST_CHARACTERS = 400_000
_MOST_LINES = 4_000
_AROUND = 3
_HOW = {
    ResidencyLevel.FULL: "as it came",
    ResidencyLevel.COMPRESSED: "as it is",
    ResidencyLevel.STRUCTURED: "its outline, or all of it where it is short",
    ResidencyLevel.POINTER: "one line and the way back",
}


@dataclass(frozen=True, slots=True)
class Level:
    """A page at one level. `how` says how the text was made."""

    level: ResidencyLevel
    text: str
    tokens: int
    how: str


def levels_of(content: bytes, name: str = "") -> list[Level]:
    """Returns the four levels of a tool result, from the whole text to a pointer.

    A text of more than MOST_CHARACTERS is not worked on: it has one level, its first part.
    """
    page = Page(PageKind.EVIDENCE, content, name)
    if len(page.text) > MOST_CHARACTERS:
        part = f"its first {MOST_CHARACTERS:,} characters"
        return [Level(ResidencyLevel.FULL, page.text[:MOST_CHARACTERS], 0, part)]
    codecs = " > ".join(encode(page.text, tool=name).codecs)
    how = {**_HOW, ResidencyLevel.COMPRESSED: codecs} if codecs else _HOW
    made = (represent(page, level) for level in ResidencyLevel)
    return [Level(one.level, one.text, one.tokens, how[one.level]) for one in made]


@dataclass(frozen=True, slots=True)
class DiffLine:
    """One line of a difference: `sign` is "+", "-", " ", or "…" where lines that are the same were left out."""

    sign: str
    text: str


def difference(whole: str, level: str) -> Iterator[DiffLine]:
    """Yields the difference between the whole text and a level, line by line, of the first few thousand lines."""
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
