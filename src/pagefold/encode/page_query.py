"""A part of a page, by its lines, by a path into its JSON, or by a word in it.

    lines="40-80,120"      by the numbers that the lines carry, where they carry any; by their place from 1 otherwise
    path="$.items[3].name" keys, indices from 0 or from the end (-1), and [*] for all entries
    find="renew"           the lines with the word, large or small, and the line before and after each

What is found stands as it does in the page. More than the budget holds is cut at a line, and the last line says how
much was left off. Nothing found, or a question that is none, is a RecallError with what would do.
"""

import re
from collections.abc import Callable, Iterator, Sequence

from pagefold.encode.mcp_text_view import view_of
from pagefold.encode.page_pieces import usable
from pagefold.encode.shape import TextShape, shape_of
from pagefold.encode.trim.json_scan import Node, scan
from pagefold.encode.trim.units import Unit, whole_lines
from pagefold.errors import RecallError

_SPAN = re.compile(r"\s*(\d+)\s*(?:-\s*(\d+)\s*)?")
_NUMBER = re.compile(r" *(\d+)(?:→|\t)")
_STEP = re.compile(r"\.?([^.\[\]]+)|\[(?:(-?\d+)|(\*)|\"([^\"]*)\"|'([^']*)')\]")
_CUT = 24  # tokens for the line that says what was left off


def lines_within(text: str, lines: str, budget: int, count: Callable[[str], int]) -> str:
    """The lines that were asked for. Raises RecallError where there are none, or the question is none."""
    page = whole_lines(view_of(text).text)
    numbers = _numbers(page)
    found: list[str] = []
    last = -1
    for first, end in _spans(lines):
        inside = [index for index, number in enumerate(numbers) if first <= number <= end and index > last]
        if inside:
            found += [*(["…"] if found and inside[0] > last + 1 else []), *(page[index].text for index in inside)]
            last = inside[-1]
    if not found:
        raise RecallError(f"lines = {lines!r}: this page has lines {min(numbers)} to {max(numbers)}")
    return _bounded(found, budget, count, "ask for fewer lines at a time")


def path_within(text: str, path: str, budget: int, count: Callable[[str], int]) -> str:
    """The values that a path leads to, one on a line, as they are spelled. Raises RecallError where there are none."""
    inside = view_of(text).text
    root = scan(inside)
    if root is None:
        raise RecallError(f"path = {path!r}: this page is not JSON; ask for lines or a word")
    nodes = [root]
    for step in _steps(path):
        nodes = [child for node in nodes for child in _children(node, step)]
        if not nodes:
            raise RecallError(f"path = {path!r}: nothing there; at the top are {_top(root)}")
    return _bounded([inside[node.start : node.end] for node in nodes], budget, count, "ask for a longer path")


def word_within(text: str, word: str, budget: int, count: Callable[[str], int]) -> str:
    """The lines that hold a word, with their neighbours. Raises RecallError where there are none."""
    if not word.strip():
        raise RecallError(f"find = {word!r}: expected a word")
    page = whole_lines(view_of(text).text)
    wanted = word.casefold()
    hits = [index for index, line in enumerate(page) if wanted in line.text.casefold()]
    if not hits:
        raise RecallError(f"find = {word!r}: no line of this page holds it")
    kept = sorted({near for index in hits for near in (index - 1, index, index + 1) if 0 <= near < len(page)})
    said = [f"[{len(hits)} line{'s' if len(hits) > 1 else ''} with {word!r}]"]
    numbered = _numbers(page) != list(range(1, len(page) + 1)) or shape_of(text) is TextShape.NUMBERED
    for at, index in enumerate(kept):
        if at and kept[at - 1] != index - 1:
            said.append("…")
        line = page[index].text
        line = line if len(line) <= 1_000 else _around(line, wanted)
        said.append(line if numbered else f"{index + 1}\t{line}")
    return _bounded(said, budget, count, "search for a longer word")


def _around(line: str, wanted: str) -> str:
    at = max(0, line.casefold().find(wanted))
    start, end = max(0, at - 200), at + 400
    return f"{'… ' if start else ''}{line[start:end]}{' …' if end < len(line) else ''}"


def _numbers(page: Sequence[Unit]) -> list[int]:
    """The number of each line: its own where most lines carry one, else its place."""
    own = [_NUMBER.match(line.text) for line in page]
    if 2 * sum(found is not None for found in own) < len(page):
        return list(range(1, len(page) + 1))
    numbers: list[int] = []
    for found in own:
        numbers.append(int(found[1]) if found is not None else (numbers[-1] if numbers else 0))
    return numbers


def _spans(lines: str) -> Iterator[tuple[int, int]]:
    for part in lines.split(","):
        found = _SPAN.fullmatch(part)
        if found is None:
            raise RecallError(f"lines = {lines!r}: expected numbers and ranges, such as 40-80,120")
        yield int(found[1]), int(found[2] or found[1])


def _steps(path: str) -> list[str | int | None]:
    """Keys as strings, indices as numbers, None for all entries."""
    at = 1 if path.startswith("$") else 0
    steps: list[str | int | None] = []
    while at < len(path):
        found = _STEP.match(path, at)
        if found is None:
            raise RecallError(f"path = {path!r}: expected keys and indices, such as $.items[3].name")
        key, index, every, quoted, single = found.groups()
        if every:
            steps.append(None)
        elif index is not None:
            steps.append(int(index))
        else:
            steps.append(next(name for name in (key, quoted, single) if name is not None))
        at = found.end()
    return steps


def _children(node: Node, step: str | int | None) -> list[Node]:
    if step is None:
        return node.children
    if isinstance(step, int):
        inside = node.kind == "[" and -len(node.children) <= step < len(node.children)
        return [node.children[step]] if inside else []
    return [child for child in node.children if child.key == step]


def _top(root: Node) -> str:
    if root.kind == "[":
        return f"{len(root.children)} entries"
    return ", ".join(str(child.key) for child in root.children[:12])


def _bounded(lines: Sequence[str], budget: int, count: Callable[[str], int], advice: str) -> str:
    whole = "\n".join(lines)
    if count(whole) <= usable(budget):
        return whole
    room, kept = budget - _CUT, 0
    for line in lines:
        room -= count(line) + 1
        if room < 0:
            break
        kept += 1
    shown, left = list(lines[:kept]), len(lines) - kept
    while True:
        text = "\n".join([*shown, f"[{left} more of {len(lines)}; {advice}]"])
        if count(text) <= budget:
            return text if shown else f"{_start(lines[0], budget, count)}\n[cut off; {advice}]"
        shown.pop()
        left += 1


def _start(line: str, budget: int, count: Callable[[str], int]) -> str:
    """As much of a line as fits with the line that says so."""
    end = len(line)
    while count(line[:end]) > budget - _CUT:
        end = end * 3 // 4
    return line[:end]
