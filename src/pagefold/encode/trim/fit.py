"""A text in its budget: the best part of it, what is missing, and the way to everything else.

    [part of Read src/loans.py, 240 lines, 2,310 tokens]
    …the body, cut along its structure…
    [missing: 3 chunks; context_recall("pf-abcdefghij", cursor="eyJ2Ij…") returns chunk 2]
      chunk 2: lines 41-120: def renew and 3 more
      …

The whole is within the budget by the real counter, always: what the tree says a choice costs is only where the search
begins. A text that fits comes back as it is. What is shown and what the cursors give are together the text that came,
every character once; lone lines and shortened values are shown in passing and come again with what is around them.
"""

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass

from pagefold.encode.cursor import Cursor
from pagefold.encode.mcp_text_view import TextView, view_of
from pagefold.encode.page_pieces import Piece, gaps, piece, usable
from pagefold.encode.pointer import call_words, described, one_line, pointer
from pagefold.encode.trim.json_scan import Node, scan
from pagefold.encode.trim.json_tree import FieldWeights, JsonTree
from pagefold.encode.trim.strategy import strategy_for
from pagefold.encode.trim.text_tree import TextTree, TrimSelection
from pagefold.pages.page import PageId, handle_of, id_of
from pagefold.tokens import counter

_TRIES = 6
_ENOUGH = 0.93
_RUN = 240  # characters below which what is shown is only shown in passing
_RUN_TOKENS = 160  # of a budget, for one range in a cursor
_RUNS = 16
_LISTED = 6  # chunks with a line of their own
_INDEX = 0.12  # of a budget, for the lines that say what is missing
_MISSING = 8
_JSON = 0.5  # of a text that has to be JSON for it to be cut as JSON
_SLICE = 20_000  # characters counted at a time, so that no text takes long


@dataclass(frozen=True, slots=True)
class Chunk:
    """A piece that is not shown: what it is, its ranges, and the cursor that returns it."""

    what: str
    parts: tuple[tuple[int, int], ...]
    cursor: str


@dataclass(frozen=True, slots=True)
class Trimmed:
    """`text` is what to show; `body` the part of it that is in the format of what came.

    `shown` are the ranges of the text that stand in the body whole. `chunks` are the first pieces of the rest; `cursor`
    leads to the first of them and from there to all others. `gap` is the solver's, 0 where the choice is proven best.
    """

    text: str
    body: str
    tokens: int
    before: int
    shown: tuple[tuple[int, int], ...]
    chunks: tuple[Chunk, ...] = ()
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
    """The most useful part of a text within a budget of tokens.

    `keywords` say what the task and the recent turns are about; `strategies` maps tools to strategies, `strategy` names
    one for this text. Raises BudgetError where nothing can be said in the budget, ConfigError for an unknown strategy.
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
    """Tokens of a text of any length, counted piece by piece where it is long: a run of one sign takes no longer."""
    return sum(count(text[at : at + _SLICE]) for at in range(0, len(text), _SLICE))


def _tree(
    text: str, keywords: Collection[str], strategy: str, groups: Mapping[str, FieldWeights], count: Callable[[str], int]
) -> Tree:
    root: Node | None = scan(text)
    if root is not None and root.end >= _JSON * len(text):
        return JsonTree.of(text, root, keywords, strategy, groups, count)
    return TextTree.of(text, keywords, strategy, count)


def _title(view: TextView, tool: str, arguments: str, tokens: int) -> str:
    name = " ".join(filter(None, (one_line(tool, 60), call_words(arguments)))) or "a text"
    block = " in an MCP text block" if view.opened else ""
    return f"[part of {name}, {described(view.text)}{block}, {tokens:,} tokens]"


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
        """The fullest that is within the budget: estimates are corrected by what a try really costs."""
        room = self.budget - self.count(self.title) - int(_INDEX * self.budget) - 60
        found: Trimmed | None = None
        real = 1.0  # what a token of the tree's estimates costs
        for _ in range(_TRIES):
            picked, real = self._picked(room, real)
            made = self._made(picked, before, strategy)
            over = made.tokens - self.budget
            if over <= 0 and (found is None or made.tokens > found.tokens):
                found = made
            if (over <= 0 and made.tokens >= _ENOUGH * self.budget) or (over > 0 and room <= 0):
                break
            if found is not None and found is not made:
                break
            room += int(0.95 * -over) if over <= 0 else -over - 8
        return found or self._last(before, strategy, tool, arguments)

    def _picked(self, room: int, real: float) -> tuple[TrimSelection, float]:
        """The best part that costs no more than there is room for, as near to it as a few tries get."""
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

    def _last(self, before: int, strategy: str, tool: str, arguments: str) -> Trimmed:
        """Where not even the frame fits: one line, the shorter the less room there is."""
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
        said = str(cursor) if cursor is not None else None
        return Trimmed(text, picked.body, self.count(text), before, shown, chunks, said, strategy, picked.gap)

    def _shown(self, ranges: Collection[tuple[int, int]]) -> tuple[tuple[int, int], ...]:
        """Ranges of the view as ranges of the text: the longest, as many as a cursor has room to name."""
        outer: list[tuple[int, int]] = []
        for first, last in ranges:
            start, end = self.view.outer(first), self.view.outer(last)
            if self.view.opened and first == 0:
                start = 0  # the title says what stood before
            if end - start >= _RUN or (start, end) == (0, len(self.text)):
                outer.append((start, end))
        most = min(_RUNS, max(1, self.budget // _RUN_TOKENS))
        longest = sorted(sorted(outer, key=lambda run: (run[0] - run[1], run[0]))[:most])
        return tuple(longest)

    def _chunks(self, cursor: Cursor | None) -> tuple[tuple[Chunk, ...], Cursor | None]:
        """The first pieces, each with what it is, and where the others begin."""
        found: list[Chunk] = []
        while cursor is not None and len(found) < _LISTED:
            one: Piece = piece(self.text, cursor, self.count)
            found.append(Chunk(self._what(one.parts), one.parts, str(cursor)))
            cursor = one.cursor
        return tuple(found), cursor

    def _what(self, parts: tuple[tuple[int, int], ...]) -> str:
        return self.tree.described(self._inner(parts[0][0]), self._inner(parts[-1][1]))

    def _inner(self, place: int) -> int:
        return self.view.inner(place)

    def _left(self, picked: TrimSelection) -> list[str]:
        if not picked.missing:
            return []
        more = f" and {len(picked.missing) - _MISSING} more" if len(picked.missing) > _MISSING else ""
        return [f"[left out: {', '.join(picked.missing[:_MISSING])}{more}]"]

    def _index(self, chunks: tuple[Chunk, ...], rest: Cursor | None) -> list[str]:
        """One line to say how to go on, and one for each chunk as far as there is room."""
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
