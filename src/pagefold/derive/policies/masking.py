"""masking: the newest tool results stand, every older one is a line that says how much was left out.

The published rule keeps the newest ten. The mark moves on with every result, so nearly every request moves: that is
what it costs. Each mark recalls what it stands for. Promises nothing about the window.
"""

from dataclasses import dataclass, replace
from typing import ClassVar

from pagefold.derive.entry import Entry, as_it_came, counted
from pagefold.derive.fold import Folded
from pagefold.derive.policies.folding import Folding, State
from pagefold.derive.policy import Decision, Notes
from pagefold.log import Log
from pagefold.pages.journal import Boundary
from pagefold.pages.kinds import PageKind, ResidencyLevel
from pagefold.pages.page import Page
from pagefold.wire.message import BlockKind

NEWEST = 10
_SHORTEST = 90  # characters: about what a mark has


@dataclass(frozen=True, slots=True)
class Masking(Folding):
    newest: int = NEWEST

    destroys: ClassVar[Boundary] = Boundary.PRUNE

    @property
    def name(self) -> str:
        return "masking"

    def due(self, state: State, notes: Notes, usable: int) -> tuple[str, Folded | None]:
        return "older results are masked", masked(state, self.newest, self.tokens)


def masked(state: State, newest: int, tokens: str) -> Folded | None:
    """The history with all but its newest results masked; None where they are already."""
    left = newest
    changed: dict[int, Entry] = {}
    pages: list[Page] = []
    decisions: list[Decision] = []
    for place in range(len(state.log) - 1, state.folded - 1, -1):
        entry = shown = state.log[place]
        came = as_it_came(entry.message)
        for index, block in enumerate(entry.message.blocks):
            if block.kind is not BlockKind.RESULT or not block.path:
                continue
            left -= 1
            if left >= 0 or len(block.text) <= _SHORTEST or entry.shown.blocks[index].text != came.blocks[index].text:
                continue  # new, too short to gain anything, or masked before
            page = Page.of(PageKind.EVIDENCE, block.text, block.name)
            mark = _mark(block.text, page.handle)
            shown = replace(shown, shown=shown.shown.with_text(index, mark))
            pages.append(page)
            decisions.append(Decision(place, ResidencyLevel.POINTER, f"not one of the newest {newest} results"))
        if shown is not entry:
            changed[place] = replace(shown, tokens=counted(shown.shown, tokens))
    if not changed:
        return None
    first = min(changed)
    log = Log(state.log[:first])
    for place in range(first, len(state.log)):
        log = log.with_items((changed.get(place, state.log[place]),))
    saved = sum(state.log[place].tokens - entry.tokens for place, entry in changed.items())
    return Folded(
        state.front, state.folded, log, state.standings, state.tokens - saved, tuple(pages), tuple(reversed(decisions))
    )


def _mark(text: str, handle: str) -> str:
    lines = text.count("\n") + 1
    return f'[Old tool result: {lines:,} line{"s" if lines > 1 else ""} left out; context_recall("{handle}")]'
