"""Makes a page at each of its levels, as requests may hold it, and the difference of a level to the whole text."""

import difflib
from collections.abc import Iterator
from dataclasses import dataclass

from pagefold.derive.working_set.alone import digest_of
from pagefold.encode.choose import encode
from pagefold.encode.pointer import pointer
from pagefold.pages.kinds import PageKind, ResidencyLevel
from pagefold.pages.page import Page
from pagefold.tokens import counter

MOST_CHARACTERS = 400_000
_MOST_LINES = 4_000
_AROUND = 3


@dataclass(frozen=True, slots=True)
class Level:
    """A page at one level. `how` says how the text was made."""

    level: ResidencyLevel
    text: str
    tokens: int
    how: str


def levels_of(content: bytes, name: str = "") -> list[Level]:
    """Returns the four levels of a tool result, from the whole text to a pointer, made as a request's are.

    What a digest holds of it depends on all that happened; here it is what one would hold if nothing else had.
    A text of more than MOST_CHARACTERS is not worked on: it has one level, its first part.
    """
    page = Page(PageKind.EVIDENCE, content, name)
    if len(page.text) > MOST_CHARACTERS:
        part = f"its first {MOST_CHARACTERS:,} characters"
        return [Level(ResidencyLevel.FULL, page.text[:MOST_CHARACTERS], 0, part)]
    count = counter("o200k").count
    dense = encode(page.text, tool=name, count=count)
    made = [
        (ResidencyLevel.FULL, page.text, "as it came"),
        (ResidencyLevel.COMPRESSED, dense.text, " > ".join(dense.codecs) or "as it is"),
        (ResidencyLevel.STRUCTURED, digest_of(page), "in a digest of this result alone"),
        (ResidencyLevel.POINTER, pointer(page.text, handle=page.handle, tool=name, count=count), "the way back"),
    ]
    return [Level(level, text, count(text), how) for level, text, how in made]


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
