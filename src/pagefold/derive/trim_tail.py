"""Where even the last exchanges do not fit: their largest results are trimmed to what there is room for.

Nothing that comes later refers to a result that was trimmed: it has no title.
"""

from collections.abc import Callable, Collection, Iterable
from dataclasses import replace
from typing import NamedTuple, TypeAlias

from pagefold.derive.entry import Entry, Standings, counted
from pagefold.encode.codec import PLAIN, first_line
from pagefold.encode.trim import trim
from pagefold.encode.trim.keywords import keywords_of
from pagefold.errors import PagefoldError
from pagefold.log import Log
from pagefold.pages.kinds import PageKind
from pagefold.pages.ledger import LedgerEntry
from pagefold.pages.page import Page
from pagefold.tokens import counter
from pagefold.wire.message import Block, BlockKind

_DENSE, _MOST_OF = 0.75, 0.4
_LEAST = 120  # tokens below which no result is cut: what is left would only name it
_LOWER = 0.8
_TRIES = 4

Encode: TypeAlias = Callable[[Standings, Entry], tuple[Standings, Entry]]
"""An entry as it is shown where this stands above it, and what stands then."""


class Squeezed(NamedTuple):
    """The log after trimming, and the places that were trimmed. `short` describes what still does not fit, or is ""."""

    log: Log[Entry]
    standings: Standings
    pages: tuple[Page, ...]
    short: str
    trimmed: frozenset[int]


def squeezed(log: Log[Entry], cut: int, room: int, standings: Standings, encode: Encode, tokens: str) -> Squeezed:
    """Returns the log with the results after the cut trimmed to `room` tokens. `standings`: what is shown before it."""
    count = counter(tokens).count
    entries = log[cut:]
    sizes = [count(block.text) for entry in entries for _, block in _results(entry)]
    other = sum(entry.tokens for entry in entries) - sum(sizes)
    level = _level(sizes, room - other)
    about = keywords_of(passage.label for entry in entries for passage in entry.passages)
    for _ in range(_TRIES):
        made = _Trimmer(max(_LEAST, level), about, count, tokens).all(entries, standings, encode)
        left = sum(entry.tokens for entry in made.log) - room
        if left <= 0 or level <= _LEAST:
            break
        level = int(level * _LOWER)  # without what was trimmed to refer to, the others may be longer
    short = f"the last exchange and what always stays are {left:,} tokens more than the window holds"
    trimmed = frozenset([cut + index for index in made.trimmed])
    return Squeezed(log.with_items(made.log, cut), made.standings, made.pages, short if left > 0 else "", trimmed)


class _Part(NamedTuple):
    """What is shown of a page."""

    page: Page
    text: str


class _Trimmer(NamedTuple):
    """Trims results of more than `room` tokens, by what they are `about`."""

    room: int
    about: Collection[str]
    count: Callable[[str], int]
    tokens: str

    def all(self, entries: Iterable[Entry], standings: Standings, encode: Encode) -> Squeezed:
        shown: list[Entry] = []
        pages: list[Page] = []
        trimmed: set[int] = set()
        for index, entry in enumerate(entries):
            after, stands = encode(standings, entry)
            made, parts = self._one(stands)
            standings = _without_lines(after, standings) if parts else after
            trimmed.update([index] if parts else [])
            shown.append(made)
            pages += (part.page for part in parts)
        return Squeezed(Log(shown), standings, tuple(pages), "", frozenset(trimmed))

    def _one(self, entry: Entry) -> tuple[Entry, list[_Part]]:
        parts: list[_Part] = []
        shown = entry.shown
        for index, block in _results(entry):
            if self.count(block.text) > self.room and (part := self._part(entry.message.blocks[index], block.text)):
                shown = shown.with_text(index, part.text)
                parts.append(part)
        return (replace(entry, shown=shown, tokens=counted(shown, self.tokens)) if parts else entry), parts

    def _part(self, came: Block, form: str) -> _Part | None:
        page = Page.of(PageKind.EVIDENCE, came.text, came.name)
        if head := self._headed(form, came.text, page.handle):
            return _Part(page, head)
        about, count = self.about, self.count
        try:
            made = trim(came.text, self.room, tool=came.name, keywords=about, handle=page.handle, count=count)
        except PagefoldError:  # nothing can be said in so little room: it stands as it is, and is reported as too long
            return None
        return _Part(page, made.text)

    def _headed(self, form: str, text: str, handle: str) -> str | None:
        """The beginning of a dense form: it says more than the best part of the text where the form is much shorter."""
        whole = self.count(form)
        if form == text or first_line(form) == PLAIN:  # all below that mark is the tool's
            return None
        if whole > _DENSE * self.count(text) or self.room < _MOST_OF * whole:
            return None
        lines = form.split("\n")
        kept = int(len(lines) * self.room / whole)
        while kept > 0:
            more = len(lines) - kept
            end = f'[cut here: {more:,} more lines; context_recall("{handle}") returns all of it as it came]'
            shown = "\n".join([*lines[:kept], end])
            if (size := self.count(shown)) <= self.room:
                return shown
            kept = min(kept - 1, int(kept * self.room / size))
        return None


def _results(entry: Entry) -> list[tuple[int, Block]]:
    """Returns the results in an entry that can be shortened, as they are shown."""
    blocks = enumerate(entry.shown.blocks)
    return [(index, block) for index, block in blocks if block.kind is BlockKind.RESULT and block.path]


def _without_lines(after: Standings, before: Standings) -> Standings:
    """What stands where the last message was trimmed: nothing refers to its lines, and its titles are taken."""
    ledger = before.ledger
    for _ in range(len(before.ledger), len(after.ledger)):
        ledger = ledger.with_text(LedgerEntry("", ()))
    return replace(after, ledger=ledger)


def _level(sizes: list[int], room: int) -> int:
    """Returns the size to which the largest have to be cut so that all together fit."""
    left = room
    for done, size in enumerate(sorted(sizes)):
        share = left // (len(sizes) - done)
        if size > share:
            return max(0, share)
        left -= size
    return max(sizes, default=0)
