"""Splits a text into blocks along its structure, so that cuts fall between things and not through them.

    source         a symbol and what follows it; methods within their class
    diff           files, and hunks within them
    test output    one test's output; failures are told from the rest
    markdown       sections within sections
    search hits    files
    log            runs of lines
    anything else  paragraphs, and runs where there are none

Blocks follow each other and hold every unit once. The `signs` of a block are the units that name it, such as a
signature or a heading. A block within another is worth showing only where the other is shown.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass, field

from pagefold.encode.shape import HEADING, TextShape
from pagefold.encode.trim.landmarks import HIT, is_symbol, without_numbers
from pagefold.encode.trim.units import Unit

_RUN = 12
_LONG = 24  # units after which a block is cut into runs
_ABOVE = re.compile(r"\s*(?:#(?!#)|//|/\*|\*|@|--|\"\"\")")
_TEST = re.compile(
    r"=+ .* =+$|_{3,} \S.* _{3,}$|--- (?:FAIL|PASS)|=== RUN|(?:FAIL|ok|PASS|FAILED|PASSED)\b[ :\t]|FAIL: |ERROR: "
)
_FILE_NAME = re.compile(r"diff --git a/(.*?) b/|Index: (.*)")


@dataclass(frozen=True, slots=True)
class TrimBlock:
    start: int
    end: int
    signs: tuple[int, ...] = ()
    parent: int | None = None
    path: str = field(default="", compare=False)


@dataclass(frozen=True, slots=True)
class _Head:
    """Tells where a block begins, how deep it lies, and which unit names it."""

    at: int
    depth: int
    sign: int
    path: str = ""


def blocks_of(units: Sequence[Unit], shape: TextShape) -> list[TrimBlock]:
    texts, shape = without_numbers([unit.text if unit.first else "" for unit in units], shape)
    if shape is TextShape.HITS:
        heads = _files(texts)
    else:
        find = {
            TextShape.SOURCE: _symbols,
            TextShape.DIFF: _hunks,
            TextShape.MARKDOWN: _sections,
            TextShape.TESTS: _tests,
        }.get(shape)
        heads = find(texts) if find is not None else []
    return _nested(heads, texts)


def _nested(heads: Sequence[_Head], texts: Sequence[str]) -> list[TrimBlock]:
    """Makes blocks from their heads: each lies in the nearest one before it that is less deep; long ones are cut."""
    blocks: list[TrimBlock] = []
    above: list[tuple[int, int]] = []  # (depth, index of the block)
    bounds = [head.at for head in heads] + [len(texts)]
    if bounds[0] > 0:
        blocks += _runs(0, bounds[0], (), None, "", texts, 0)
    for head, end in zip(heads, bounds[1:], strict=True):
        while above and above[-1][0] >= head.depth:
            above.pop()
        parent = above[-1][1] if above else None
        above.append((head.depth, len(blocks)))
        blocks += _runs(head.at, end, (head.sign,), parent, head.path, texts, len(blocks))
    return blocks


def _runs(
    start: int, end: int, signs: tuple[int, ...], parent: int | None, path: str, texts: Sequence[str], index: int
) -> list[TrimBlock]:
    """Returns one block, or the runs of a long one: within the first if it has a sign, beside it if not."""
    if end - start <= _LONG:
        return [TrimBlock(start, end, signs, parent, path)]
    cuts = [start]
    for at in range(start + 1, end):
        length = at - cuts[-1]
        if end - at >= _RUN // 3 and (length >= _LONG or (length >= _RUN // 2 and _may_part(texts, at))):
            cuts.append(at)
    inside = index if signs else parent
    first, *others = zip(cuts, [*cuts[1:], end], strict=True)
    return [TrimBlock(*first, signs, parent, path), *(TrimBlock(a, b, (), inside, path) for a, b in others)]


def _may_part(texts: Sequence[str], at: int) -> bool:
    """Whether a run may end before this unit: after an empty line, or where the indent becomes smaller."""
    before, here = texts[at - 1], texts[at]
    return not before.strip() or _depth(here) < _depth(before)


def _depth(text: str) -> int:
    return len(text) - len(text.lstrip())


def _symbols(texts: Sequence[str]) -> list[_Head]:
    heads: list[_Head] = []
    for index, text in enumerate(texts):
        if not is_symbol(text):
            continue
        at = index
        while at > 0 and _ABOVE.match(texts[at - 1]) and (not heads or at - 1 > heads[-1].sign):
            at -= 1
        heads.append(_Head(at, _depth(text), index))
    return heads


def _sections(texts: Sequence[str]) -> list[_Head]:
    found = ((index, HEADING.match(text)) for index, text in enumerate(texts))
    return [_Head(index, len(heading[1]), index) for index, heading in found if heading]


def _hunks(texts: Sequence[str]) -> list[_Head]:
    heads: list[_Head] = []
    path = ""
    for index, text in enumerate(texts):
        if text.startswith(("diff --git ", "Index: ")):
            name = _FILE_NAME.match(text)
            path = (name[1] or name[2] or "") if name else ""
            heads.append(_Head(index, 0, index, path))
        elif text.startswith("@@ "):
            heads.append(_Head(index, 1, index, path))
    return heads


def _tests(texts: Sequence[str]) -> list[_Head]:
    return [_Head(index, 0, index) for index, text in enumerate(texts) if _TEST.match(text)]


def _files(texts: Sequence[str]) -> list[_Head]:
    """Begins a block where the file of search hits changes; its first hit names it."""
    heads: list[_Head] = []
    path, start, sign = "", 0, -1
    for index, text in enumerate([*texts, ""]):
        hit = HIT.match(text)
        other = hit is not None and not text.startswith((f"{path}:", f"{path}-"))
        if (other or index == len(texts)) and path:
            heads.append(_Head(start, 0, sign if sign >= 0 else start, path))
        if other and hit is not None:
            path, start, sign = hit[1], index, -1
        if hit is not None and hit[2] == ":" and sign < 0:
            sign = index
    return heads
