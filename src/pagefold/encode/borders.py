"""Says where a run of lines may be cut without tearing what belongs together, and which lines tell an outcome.

A reference that ends in the middle of a function leaves half of it in one place and half in another; whoever then edits
the function has to put it together. So a reference gives up the lines of a block that it holds only in part.
"""

import re
from collections.abc import Sequence

NEAR = 2
"""Lines that stay on the literal side of a cut where no border of a block is near."""
FAR = 4
"""Lines within which a border is looked for."""
_LONG, _WORDS = 80, 10  # characters and spaces that a line has if it is a paragraph
_HUNK = ("@@ ", "diff --git ")
_OUTCOME = re.compile(
    r"\s*(?:ok|not ok|pass(?:ed)?|fail(?:ed|ure|ures)?|done|success(?:ful(?:ly)?)?|error\w*|fatal|panic|exception"
    r"|traceback|denied|aborted|exit(?:ed)?(?: (?:code|status|with))?|process exited)\b"
    r"|.*\b(?:passed|failed|succeeded|successfully|exit (?:code|status) \d+|permission denied|not found)\b"
    r"|\w*(?:Error|Exception)\b: |.*\berror\b.*: ",
    re.IGNORECASE,
)
_STEMS = (
    *("ok", "pass", "fail", "done", "succe", "error", "fatal", "panic", "exception", "traceback", "denied", "abort"),
    *("exit", "not found"),
)
"""Every line that tells an outcome holds one of these; looking for them is far faster than the pattern."""


def tells_outcome(line: str) -> bool:
    """Whether a line of a command's output says how something ended. Such a line is never replaced."""
    if len(line) > 400:
        return False
    lower = line.lower()
    for stem in _STEMS:  # a loop takes half as long as a generator
        if stem in lower:
            return _OUTCOME.match(line) is not None
    return False


def start_of_whole(lines: Sequence[str], start: int, end: int) -> int:
    """Returns the first line from `start` on, before `end`, from which on only whole blocks are left."""
    return _nearest(lines, range(start, min(start + FAR, end) + 1), min(start + NEAR, end))


def end_of_whole(lines: Sequence[str], start: int, end: int) -> int:
    """Returns the last line up to `end`, after `start`, before which there are only whole blocks."""
    return _nearest(lines, range(end, max(end - FAR, start) - 1, -1), max(end - NEAR, start))


def _nearest(lines: Sequence[str], candidates: range, otherwise: int) -> int:
    """Returns the nearest of the places where a block begins that is no deeper than the others."""
    best, depth = otherwise, _NO_BORDER
    for at in candidates:
        found = _depth(lines, at)
        if found < depth and (
            at != candidates[0] or not _is_gap(lines[at - 1])
        ):  # neighbours are often edited together
            best, depth = at, found
        elif at != candidates[0] and depth and _is_row(lines, at):
            best, depth = at, 0
        if not depth:
            break
    return best


_NO_BORDER = 1000


def _depth(lines: Sequence[str], at: int) -> int:
    """Returns how far the block is indented that begins at a line, or _NO_BORDER where none begins."""
    if not 0 < at < len(lines):
        return 0
    line, before = lines[at], lines[at - 1]
    indent = len(line) - len(line.lstrip())
    if before.startswith(_HUNK) or line.startswith(_HUNK):
        return 0
    if _is_gap(before):
        return indent if indent < len(line) else _NO_BORDER
    if _is_gap(line):
        return 0 if line.strip() else _NO_BORDER
    alone = not indent and not before[0].isspace() and (_is_paragraph(line) or _is_paragraph(before))
    return 0 if alone else _NO_BORDER


def _is_gap(line: str) -> bool:
    """Whether a line is empty, in a diff too, or a rule such as `--` between two search hits."""
    return not line.strip(" \t-=+")


def _is_paragraph(line: str) -> bool:
    return len(line) >= _LONG and line.count(" ") >= _WORDS


def _is_row(lines: Sequence[str], at: int) -> bool:
    """Whether a line and the one before it begin at the margin, as rows of a list do. One of them is given up."""
    line, before = lines[at], lines[at - 1]
    return bool(line) and bool(before) and not line[0].isspace() and not before[0].isspace() and line[0] not in "})]"
