"""Returns the part of a page that a recall asks for: by lines, by a path into its JSON, or by a word.

    lines="40-80,120"      by the numbers that the lines carry, if most do; otherwise by position, starting at 1
    path="$.items[3].name" keys, indices from 0 or from the end (-1), and [*] for all entries
    find="renew"           lines containing the text, ignoring case, and the line before and after each

Lines come in the order of the page, with "…" where some between them are left out. They and values are returned
unchanged, except that `find` puts a number before a line that carries none and shows of a line over 1,000 characters
only what surrounds the text; a line that could be taken for one of pagefold's stands behind a bar. What exceeds the
budget (in tokens, at least 100) is cut at a line, and the last line states how much was left out. A query that finds
nothing or is malformed raises RecallError, which says what would work.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Sequence

from pagefold.encode.mcp_text_view import view_of
from pagefold.encode.own_lines import quoted
from pagefold.encode.page_pieces import usable
from pagefold.encode.shape import NUMBERED, TextShape, shape_of
from pagefold.encode.trim.json_scan import Node, scan
from pagefold.encode.trim.units import Unit, whole_lines
from pagefold.errors import RecallError

_SPAN = re.compile(r"\s*(\d{1,15})\s*(?:-\s*(\d{1,15})\s*)?")
_STEP = re.compile(r"\.?([^.\[\]]+)|\[(?:(-?\d{1,15})|(\*)|\"([^\"]*)\"|'([^']*)')\]")
_NOTICE_TOKENS = 24  # reserved for the line that states what was left out
_LONG_LINE = 1_000


def find_lines(text: str, lines: str, budget: int, count: Callable[[str], int]) -> str:
    """Returns the lines with these numbers. Raises RecallError where there are none, or `lines` is malformed."""
    page = whole_lines(view_of(text).text)
    numbers = _numbers(page)
    spans = list(_spans(lines))
    kept = [index for index, number in enumerate(numbers) if any(first <= number <= last for first, last in spans)]
    if not kept:
        raise RecallError(f"lines = {lines!r}: this page has lines {min(numbers)} to {max(numbers)}")
    shown = _with_gaps(kept, lambda index: quoted(page[index].text))
    return _bounded(shown, budget, count, "ask for fewer lines at a time")


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
    values = ["\n".join(map(quoted, inside[node.start : node.end].split("\n"))) for node in nodes]
    return _bounded(values, budget, count, "ask for a longer path")


def find_word(text: str, word: str, budget: int, count: Callable[[str], int]) -> str:
    """Returns the lines that contain a text, with their neighbours. Raises RecallError where there are none."""
    if not word.strip():
        raise RecallError(f"find = {word!r}: expected a word")
    page = whole_lines(view_of(text).text)
    wanted = word.casefold()
    hits = [index for index, line in enumerate(page) if wanted in line.text.casefold()]
    if not hits:
        raise RecallError(f"find = {word!r}: no line of this page holds it")
    kept = sorted({near for index in hits for near in (index - 1, index, index + 1) if 0 <= near < len(page)})
    title = f"[{len(hits)} line{'s' if len(hits) > 1 else ''} with {word!r}]"
    numbered = _numbers(page) != list(range(1, len(page) + 1)) or shape_of(text) is TextShape.NUMBERED

    def show(index: int) -> str:
        line = page[index].text
        line = line if len(line) <= _LONG_LINE else _around(line, wanted)
        return quoted(line) if numbered else f"{index + 1}\t{line}"

    return _bounded([title, *_with_gaps(kept, show)], budget, count, "search for a longer word")


def _with_gaps(kept: Sequence[int], show: Callable[[int], str]) -> Iterator[str]:
    """Yields the lines with these indices, which ascend, and "…" between two that do not follow each other."""
    for before, index in zip((kept[0] - 1, *kept), kept, strict=False):
        if before != index - 1:
            yield "…"
        yield show(index)


def _around(line: str, wanted: str) -> str:
    """Returns what surrounds a text in a long line."""
    place = max(0, line.casefold().find(wanted))
    start, end = max(0, place - 200), place + 400
    return f"{'… ' if start else ''}{line[start:end]}{' …' if end < len(line) else ''}"


def _numbers(page: Sequence[Unit]) -> list[int]:
    """Returns the number of each line: its own where at least half of them carry one, else its position from 1."""
    own = [NUMBERED.match(line.text) for line in page]
    if 2 * sum(number is not None for number in own) < len(page):
        return list(range(1, len(page) + 1))
    numbers: list[int] = []
    for number in own:
        numbers.append(int(number[1]) if number is not None else (numbers[-1] if numbers else 0))
    return numbers


def _spans(lines: str) -> Iterator[tuple[int, int]]:
    """Yields the first and last number of each range, in the order in which they are written."""
    for part in lines.split(","):
        span = _SPAN.fullmatch(part)
        if span is None:
            raise RecallError(f"lines = {lines!r}: expected numbers and ranges, such as 40-80,120")
        yield int(span[1]), int(span[2] or span[1])


def _steps(path: str) -> list[str | int | None]:
    """Parses a path into keys (strings), indices (numbers) and None for all entries."""
    position = 1 if path.startswith("$") else 0
    steps: list[str | int | None] = []
    while position < len(path):
        step = _STEP.match(path, position)
        if step is None:
            raise RecallError(f"path = {path!r}: expected keys and indices, such as $.items[3].name")
        key, index, every, quoted, single = step.groups()
        if every:
            steps.append(None)
        elif index is not None:
            steps.append(int(index))
        else:
            steps.append(next(name for name in (key, quoted, single) if name is not None))
        position = step.end()
    return steps


def _children(node: Node, step: str | int | None) -> list[Node]:
    if step is None:
        return node.children
    if isinstance(step, int):
        inside = node.kind == "[" and -len(node.children) <= step < len(node.children)
        return [node.children[step]] if inside else []
    return [child for child in node.children if child.key == step]


def _top(root: Node) -> str:
    """Returns what is at the top of a JSON text, for an error text."""
    if root.kind == "[":
        return f"{len(root.children)} entries"
    return ", ".join(str(child.key) for child in root.children[:12])


def _bounded(shown: Iterable[str], budget: int, count: Callable[[str], int], advice: str) -> str:
    """Returns the lines that fit the budget, and a notice of what was left out. Raises BudgetError below 100 tokens."""
    usable(budget)  # the notice always fits after this, so the loops below end
    lines = list(shown)
    whole = "\n".join(lines)
    if count(whole) <= budget:
        return whole
    room, kept = budget - _NOTICE_TOKENS, 0
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
    """Returns as much of a line as fits together with the notice that it was cut."""
    end = len(line)
    while count(line[:end]) > budget - _NOTICE_TOKENS:
        end = end * 3 // 4
    return line[:end]
