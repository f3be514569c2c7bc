"""Trims a text to a budget of tokens: its best part, a list of what is missing, and the cursor that returns it.

    [part of Read src/loans.py, 240 lines, 2,310 tokens]
    …the body, cut along its structure…
    [missing: 3 chunks; context_recall("pf-abcdefghij", cursor="eyJ2Ij…") returns chunk 2]
      chunk 2: lines 41-120: def renew and 3 more
      …

The result is within the budget by the real token counter: what the tree estimates is only where the search begins. A
text that fits is returned unchanged. What is shown whole and what the cursors return are together the text, every
character once; lone lines and shortened values come again with what is around them.
"""

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass

from pagefold.encode.cursor import Cursor
from pagefold.encode.mcp_text_view import TextView, view_of
from pagefold.encode.page_pieces import Piece, gaps, piece, usable
from pagefold.encode.pointer import call_name, described, one_line, pointer
from pagefold.encode.trim.json_scan import scan_mostly_json
from pagefold.encode.trim.json_tree import FieldWeights, JsonTree
from pagefold.encode.trim.strategy import strategy_for
from pagefold.encode.trim.text_tree import TextTree, TrimSelection
from pagefold.pages.page import PageId, handle_of, id_of
from pagefold.tokens import counter

_TRIES = 6
_ENOUGH = 0.93
_RUN = 240  # characters below which a shown range is returned by the cursors once more
_RUN_TOKENS = 160  # of a budget, for one range in a cursor
_RUNS = 16
_LISTED = 6  # chunks with a line of their own
_INDEX = 0.12  # of a budget, for the lines that say what is missing
_MISSING = 8
_SLICE = 20_000  # characters counted at a time, so that no text takes long


@dataclass(frozen=True, slots=True)
class TextChunk:
    """A part of the text that is not shown: what it is, its ranges, and the cursor that returns it."""

    what: str
    parts: tuple[tuple[int, int], ...]
    cursor: str


@dataclass(frozen=True, slots=True)
class Trimmed:
    """`text` is what to show; `body` is the part of it that has the format of the original.

    `shown` are the ranges of the original that the body shows whole, `chunks` the first pieces of the rest. `cursor`
    returns the first chunk and leads to all others. `gap` is the solver's, 0 where the choice is proven best.
    """

    text: str
    body: str
    tokens: int
    before: int
    shown: tuple[tuple[int, int], ...]
    chunks: tuple[TextChunk, ...] = ()
    cursor: str | None = None
    strategy: str = "default"
    gap: float = 0.0
    reason: str = ""


Tree = TextTree | JsonTree


def trim(
    text: str,
    budget: int,
    *,
    tool: str = "",
    arguments: str = "",
    keywords: Collection[str] = frozenset(),
    strategy: str | None = None,
    strategies: Mapping[str, str] | None = None,
    field_groups: Mapping[str, FieldWeights] | None = None,
    handle: str = "",
    count: Callable[[str], int] | None = None,
) -> Trimmed:
    """Returns the most useful part of a text within a budget of tokens.

    `keywords` say what the task and the recent turns are about; `strategies` maps tools to strategies, `strategy` names
    one for this text. Raises BudgetError where the budget is too small, ConfigError for an unknown strategy.
    """
    usable(budget)
    count = count or counter("o200k").count
    chosen = strategy_for(tool, strategy, strategies)
    before = size_of(text, count)
    if before <= budget and count(text) <= budget:
        return Trimmed(text, text, before, before, ((0, len(text)),) if text else (), strategy=chosen, reason="fits")
    page = id_of(text.encode("utf-8", "surrogatepass"))
    view = view_of(text)
    tree = _tree(view.text, frozenset(keywords), chosen, field_groups or {}, count)
    fit = _Fit(text, view, tree, page, handle or handle_of(page), budget, _title(view, tool, arguments, before), count)
    return fit.best(before, chosen, tool, arguments)


def size_of(text: str, count: Callable[[str], int]) -> int:
    """Counts the tokens of a text slice by slice, so that a long run of one character takes no longer."""
    return sum(count(text[at : at + _SLICE]) for at in range(0, len(text), _SLICE))


def _tree(
    text: str, keywords: Collection[str], strategy: str, groups: Mapping[str, FieldWeights], count: Callable[[str], int]
) -> Tree:
    root = scan_mostly_json(text)
    if root is not None:
        return JsonTree.of(text, root, keywords, strategy, groups, count)
    return TextTree.of(text, keywords, strategy, count)


def _title(view: TextView, tool: str, arguments: str, tokens: int) -> str:
    block = " in an MCP text block" if view.opened else ""
    return f"[part of {call_name(tool, arguments)}, {described(view.text)}{block}, {tokens:,} tokens]"


@dataclass(frozen=True, slots=True)
class _Fit:
    text: str
    view: TextView
    tree: Tree
    page: PageId
    handle: str
    budget: int
    title: str
    count: Callable[[str], int]

    def best(self, before: int, strategy: str, tool: str, arguments: str) -> Trimmed:
        """Returns the fullest trim within the budget; each try corrects the estimates by the real cost of the last."""
        room = self.budget - self.count(self.title) - int(_INDEX * self.budget) - 60
        best: Trimmed | None = None
        real = 1.0  # what a token of the tree's estimates costs
        for _ in range(_TRIES):
            picked, real = self._picked(room, real)
            made = self._made(picked, before, strategy)
            over = made.tokens - self.budget
            if over <= 0 and (best is None or made.tokens > best.tokens):
                best = made
            if (over <= 0 and made.tokens >= _ENOUGH * self.budget) or (over > 0 and room <= 0):
                break
            if best is not None and best is not made:
                break
            room += int(0.95 * -over) if over <= 0 else -over - 8
        return best or self._pointer(before, strategy, tool, arguments)

    def _picked(self, room: int, real: float) -> tuple[TrimSelection, float]:
        """Selects the best part that fits into `room`, within a few tries, and returns the corrected factor."""
        best: TrimSelection | None = None
        most = -1
        for _ in range(_TRIES):
            target = max(0, int(room / real))
            picked = self.tree.pick(target)
            cost = self.count(picked.body) + sum(self.count(line) for line in self._left(picked))
            if most < cost <= room:
                best, most = picked, cost
            if _ENOUGH * room <= cost <= room or target <= 0 or (best is not None and best is not picked):
                break
            last, real = real, max(0.2, cost / target) * (1.0 if cost <= room else 1.03)
            if abs(last - real) < 0.03 * real:
                if cost <= room:
                    break  # what is left does not fit anywhere
                real = last * 1.15
        return best or self.tree.pick(0), real

    def _pointer(self, before: int, strategy: str, tool: str, arguments: str) -> Trimmed:
        """Returns one line in place of the text, a shorter one where the first does not fit."""
        cursor = str(Cursor(self.page, 0, self.budget))
        for line in (
            pointer(self.view.text, handle=self.handle, tool=tool, arguments=arguments, count=lambda _: before),
            f'[left out: {before:,} tokens; context_recall("{self.handle}") returns them]',
        ):
            if (tokens := self.count(line)) <= self.budget:
                return Trimmed(line, "", tokens, before, (), (), cursor, strategy, reason="only a pointer fits")
        raise AssertionError(f"budget {self.budget} holds no pointer")

    def _made(self, picked: TrimSelection, before: int, strategy: str) -> Trimmed:
        shown = self._shown(picked.ranges)
        missing = list(gaps(0, len(self.text), shown))
        start = missing[0][0] if missing else len(self.text)
        runs = tuple(run for run in shown if run[0] >= start)
        cursor = Cursor(self.page, start, self.budget, runs) if missing else None
        chunks, rest = self._chunks(cursor)
        text = "\n".join(filter(None, [self.title, picked.body, *self._left(picked), *self._index(chunks, rest)]))
        onward = str(cursor) if cursor is not None else None
        return Trimmed(text, picked.body, self.count(text), before, shown, chunks, onward, strategy, picked.gap)

    def _shown(self, ranges: Collection[tuple[int, int]]) -> tuple[tuple[int, int], ...]:
        """Maps ranges of the view to ranges of the text: the longest, as many as a cursor has room to name."""
        outer: list[tuple[int, int]] = []
        for first, last in ranges:
            start, end = self.view.outer(first), self.view.outer(last)
            if self.view.opened and first == 0:
                start = 0  # the title says what the block's beginning said
            if end - start >= _RUN or (start, end) == (0, len(self.text)):
                outer.append((start, end))
        most = min(_RUNS, max(1, self.budget // _RUN_TOKENS))
        longest = sorted(sorted(outer, key=lambda run: (run[0] - run[1], run[0]))[:most])
        return tuple(longest)

    def _chunks(self, cursor: Cursor | None) -> tuple[tuple[TextChunk, ...], Cursor | None]:
        """Returns the first pieces of the rest, each with what it is, and the cursor of those that follow."""
        chunks: list[TextChunk] = []
        while cursor is not None and len(chunks) < _LISTED:
            following: Piece = piece(self.text, cursor, self.count)
            chunks.append(TextChunk(self._what(following.parts), following.parts, str(cursor)))
            cursor = following.cursor
        return tuple(chunks), cursor

    def _what(self, parts: tuple[tuple[int, int], ...]) -> str:
        return self.tree.described(self.view.inner(parts[0][0]), self.view.inner(parts[-1][1]))

    def _left(self, picked: TrimSelection) -> list[str]:
        if not picked.missing:
            return []
        more = f" and {len(picked.missing) - _MISSING} more" if len(picked.missing) > _MISSING else ""
        return [f"[left out: {', '.join(picked.missing[:_MISSING])}{more}]"]

    def _index(self, chunks: tuple[TextChunk, ...], rest: Cursor | None) -> list[str]:
        """Returns a line that says how to get the first chunk, and one for each chunk as far as there is room."""
        if not chunks:
            return []
        many = f"{len(chunks)} chunk{'s' if len(chunks) > 1 else ''}"
        if rest is not None:
            each = (rest.position - chunks[0].parts[0][0]) / len(chunks)
            many = f"about {len(chunks) + 1 + int((len(self.text) - rest.position) / each):,} chunks"
        lines = [f'[missing: {many}; context_recall("{self.handle}", cursor="{chunks[0].cursor}") returns chunk 2]']
        room = int(_INDEX * self.budget)
        for number, chunk in enumerate(chunks, 2):
            line = f"  chunk {number}: {one_line(chunk.what, 100)}"
            room -= self.count(line) + 1
            if room < 0:
                lines.append(f"  chunk {number} and on: what follows")
                return lines
            lines.append(line)
        if rest is not None:
            lines.append(f"  chunk {len(chunks) + 2} and on: {self._what(((rest.position, len(self.text)),))}")
        return lines
