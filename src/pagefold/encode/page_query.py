"""Returns the part of a page that a recall asks for: by lines, by a path into its JSON, or by a word.

    lines="40-80,120"      by the numbers that the lines carry, where they carry any; by their place from 1 otherwise
    path="$.items[3].name" keys, indices from 0 or from the end (-1), and [*] for all entries
    find="renew"           the lines with the word, large or small, and the line before and after each

Lines and values are returned unchanged. What exceeds the budget is cut at a line, and the last line says how much was
left out. A query that finds nothing or makes no sense raises RecallError, which says what would work.
"""

import re
from collections.abc import Callable, Iterator, Sequence

from pagefold.encode.mcp_text_view import view_of
from pagefold.encode.page_pieces import usable
from pagefold.encode.shape import NUMBERED, TextShape, shape_of
from pagefold.encode.trim.json_scan import Node, scan
from pagefold.encode.trim.units import Unit, whole_lines
from pagefold.errors import RecallError

_SPAN = re.compile(r"\s*(\d+)\s*(?:-\s*(\d+)\s*)?")
_STEP = re.compile(r"\.?([^.\[\]]+)|\[(?:(-?\d+)|(\*)|\"([^\"]*)\"|'([^']*)')\]")
_CUT = 24  # tokens for the line that says what was left out


def find_lines(text: str, lines: str, budget: int, count: Callable[[str], int]) -> str:
    """Returns the lines with these numbers. Raises RecallError where there are none, or `lines` makes no sense."""
    page = whole_lines(view_of(text).text)
    numbers = _numbers(page)
    kept: list[str] = []
    last = -1
    for first, end in _spans(lines):
        inside = [index for index, number in enumerate(numbers) if first <= number <= end and index > last]
        if inside:
            kept += [*(["…"] if kept and inside[0] > last + 1 else []), *(page[index].text for index in inside)]
            last = inside[-1]
    if not kept:
        raise RecallError(f"lines = {lines!r}: this page has lines {min(numbers)} to {max(numbers)}")
    return _bounded(kept, budget, count, "ask for fewer lines at a time")


def find_path(text: str, path: str, budget: int, count: Callable[[str], int]) -> str:
    """Returns the values that a path leads to, one on a line, as spelled. Raises RecallError where there are none."""
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


def find_word(text: str, word: str, budget: int, count: Callable[[str], int]) -> str:
    """Returns the lines that hold a word, with their neighbours. Raises RecallError where there are none."""
    if not word.strip():
        raise RecallError(f"find = {word!r}: expected a word")
    page = whole_lines(view_of(text).text)
    wanted = word.casefold()
    hits = [index for index, line in enumerate(page) if wanted in line.text.casefold()]
    if not hits:
        raise RecallError(f"find = {word!r}: no line of this page holds it")
    kept = sorted({near for index in hits for near in (index - 1, index, index + 1) if 0 <= near < len(page)})
    shown = [f"[{len(hits)} line{'s' if len(hits) > 1 else ''} with {word!r}]"]
    numbered = _numbers(page) != list(range(1, len(page) + 1)) or shape_of(text) is TextShape.NUMBERED
    for at, index in enumerate(kept):
        if at and kept[at - 1] != index - 1:
            shown.append("…")
        line = page[index].text
        line = line if len(line) <= 1_000 else _around(line, wanted)
        shown.append(line if numbered else f"{index + 1}\t{line}")
    return _bounded(shown, budget, count, "search for a longer word")


def _around(line: str, wanted: str) -> str:
    at = max(0, line.casefold().find(wanted))
    start, end = max(0, at - 200), at + 400
    return f"{'… ' if start else ''}{line[start:end]}{' …' if end < len(line) else ''}"


def _numbers(page: Sequence[Unit]) -> list[int]:
    """Returns the number of each line: its own where most lines carry one, else its place from 1."""
    own = [NUMBERED.match(line.text) for line in page]
    if 2 * sum(number is not None for number in own) < len(page):
        return list(range(1, len(page) + 1))
    numbers: list[int] = []
    for number in own:
        numbers.append(int(number[1]) if number is not None else (numbers[-1] if numbers else 0))
    return numbers


def _spans(lines: str) -> Iterator[tuple[int, int]]:
    for part in lines.split(","):
        span = _SPAN.fullmatch(part)
        if span is None:
            raise RecallError(f"lines = {lines!r}: expected numbers and ranges, such as 40-80,120")
        yield int(span[1]), int(span[2] or span[1])


def _steps(path: str) -> list[str | int | None]:
    """Parses a path into keys (strings), indices (numbers) and None for all entries."""
    at = 1 if path.startswith("$") else 0
    steps: list[str | int | None] = []
    while at < len(path):
        step = _STEP.match(path, at)
        if step is None:
            raise RecallError(f"path = {path!r}: expected keys and indices, such as $.items[3].name")
        key, index, every, quoted, single = step.groups()
        if every:
            steps.append(None)
        elif index is not None:
            steps.append(int(index))
        else:
            steps.append(next(name for name in (key, quoted, single) if name is not None))
        at = step.end()
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
    while True:
        text = "\n".join([*lines[:kept], f"[{len(lines) - kept} more of {len(lines)}; {advice}]"])
        if count(text) <= budget:
            return text if kept else f"{_start(lines[0], budget, count)}\n[cut off; {advice}]"
        kept -= 1


def _start(line: str, budget: int, count: Callable[[str], int]) -> str:
    """Returns as much of a line as fits together with the line that says it was cut."""
    end = len(line)
    while count(line[:end]) > budget - _CUT:
        end = end * 3 // 4
    return line[:end]
