"""Reduces a text to its landmarks and the lines that the caller asked to keep.

    [shortened: Read src/loans.py, 240 lines, 2,310 tokens; context_recall("pf-abcdefghij") returns it whole]
         1→class Loan:
    …
        18→    def renew(self, now: date) -> None:
    …

Every line is verbatim, marks say which lines are left out, and the first line says how to get the whole. Where that
would be no shorter than the text, the text itself is returned.
"""

from collections.abc import Callable, Collection, Sequence

from pagefold.encode.mcp_text_view import view_of
from pagefold.encode.pointer import call_name, described
from pagefold.encode.shape import shape_of
from pagefold.encode.trim.gaps import filled, with_gaps
from pagefold.encode.trim.json_scan import scan_mostly_json
from pagefold.encode.trim.json_tree import JsonTree
from pagefold.encode.trim.landmarks import Landmark, landmarks
from pagefold.encode.trim.units import whole_lines
from pagefold.tokens import counter

_SIGNS = 60
_ALARMS = 40
_SHARE, _LEAST = 0.08, 60  # of the tokens of JSON that its signature may have
_WIDE = 400  # a line longer than this is no signature


def skeleton(
    text: str,
    *,
    keep: Collection[int] = (),
    handle: str,
    tool: str = "",
    arguments: str = "",
    signs: int = _SIGNS,
    count: Callable[[str], int] | None = None,
) -> str:
    """Returns the landmarks of a text and the lines with the indices `keep`; of JSON, the members that say most.

    Lines are those inside an MCP text block, if the text is one. `signs` bounds how many landmarks are shown.
    """
    if not handle:
        raise ValueError("a shortened text needs the handle of the whole")
    count = count or counter("o200k").count
    before = count(text)
    text = view_of(text).text
    root = scan_mostly_json(text)
    if root is not None:
        body = JsonTree.of(text, root, frozenset(), "default", {}, count).pick(max(_LEAST, int(_SHARE * before))).body
        shown = f"{title(text, handle, tool, arguments, before)}\n{body}"
        return shown if len(shown) < len(text) else text
    lines = whole_lines(text)
    words = [line.text for line in lines]
    shape = shape_of(text)
    kept = filled(lines, {*keep, *_chosen(words, landmarks(words, shape), signs)}, shape)
    shown = f"{title(text, handle, tool, arguments, before)}\n{with_gaps(lines, kept, shape)}"
    return shown if len(shown) < len(text) else text


def title(text: str, handle: str, tool: str, arguments: str, tokens: int) -> str:
    """Returns the line above a shortened text: what it is, how large it is, and how to get the whole."""
    name = call_name(tool, arguments)
    return f'[shortened: {name}, {described(text)}, {tokens:,} tokens; context_recall("{handle}") returns it whole]'


def _chosen(lines: Sequence[str], marks: Sequence[Landmark], signs: int) -> list[int]:
    """Returns the landmarks worth a line: the first and last alarms, then signs from the start."""
    fit = [index for index, line in enumerate(lines) if marks[index] and line.strip() and len(line) <= _WIDE]
    alarms = [index for index in fit if marks[index] is Landmark.ALARM]
    if len(alarms) > _ALARMS:
        alarms = [*alarms[: _ALARMS // 2], *alarms[-_ALARMS // 2 :]]
    others = [index for index in fit if marks[index] is Landmark.SIGN]
    return [*alarms, *(others if len(others) <= signs else [*others[: signs - 1], others[-1]])] if signs else alarms
