"""Where even the last exchanges do not fit: their largest results are trimmed to what there is room for."""

from collections.abc import Callable
from dataclasses import replace

from pagefold.derive.entry import Entry, counted
from pagefold.encode.trim import trim
from pagefold.encode.trim.keywords import keywords_of
from pagefold.errors import PagefoldError
from pagefold.log import Log
from pagefold.pages.kinds import PageKind
from pagefold.pages.page import Page
from pagefold.tokens import counter
from pagefold.wire.message import BlockKind

_DENSE, _MOST_OF = 0.75, 0.4
_LEAST = 120  # tokens below which no result is cut: what is left would only name it


def squeezed(log: Log[Entry], cut: int, room: int, tokens: str) -> tuple[Log[Entry], list[Page], str]:
    """The log with the results after the cut trimmed to `room` tokens, the pages they recall, and what still does not
    fit, in words, where it does not."""
    count = counter(tokens).count
    entries = log[cut:]
    sizes = [
        (count(block.text), at, index)
        for at, entry in enumerate(entries)
        for index, block in enumerate(entry.shown.blocks)
        if block.kind is BlockKind.RESULT and block.path
    ]
    other = sum(entry.tokens for entry in entries) - sum(size for size, _, _ in sizes)
    level = _level([size for size, _, _ in sizes], room - other)
    about = keywords_of(passage.label for entry in entries for passage in entry.passages)
    pages: list[Page] = []
    for size, at, index in sizes:
        if size <= level:
            continue
        entry = entries[at]
        block = entry.message.blocks[index]
        page = Page.of(PageKind.EVIDENCE, block.text, block.name)
        room_left = max(_LEAST, level)
        text = _headed(entry.shown.blocks[index].text, block.text, room_left, page.handle, count)
        if text is None:
            try:
                text = trim(
                    block.text, room_left, tool=block.name, keywords=about, handle=page.handle, count=count
                ).text
            except PagefoldError:  # nothing can be said in so little room: it stands as it is, and is reported below
                continue
        shown = entry.shown.with_text(index, text)
        entries[at] = replace(entry, shown=shown, tokens=counted(shown, tokens))
        pages.append(page)
    new = Log(log[:cut])
    for entry in entries:
        new = new.with_items((entry,))
    left = sum(entry.tokens for entry in entries) - room
    short = (
        f"the last exchange and what always stays are {left:,} tokens more than the window holds" if left > 0 else ""
    )
    return new, pages, short


def _headed(form: str, text: str, room: int, handle: str, count: Callable[[str], int]) -> str | None:
    """The beginning of a dense form: it says more than the best part of the text where the form is much shorter."""
    whole = count(form)
    if form == text or whole > _DENSE * count(text) or room < _MOST_OF * whole:
        return None
    lines = form.split("\n")
    kept = int(len(lines) * room / whole)
    while kept > 0:
        end = f'[cut here: {len(lines) - kept:,} more lines; context_recall("{handle}") returns all of it as it came]'
        shown = "\n".join([*lines[:kept], end])
        if (size := count(shown)) <= room:
            return shown
        kept = min(kept - 1, int(kept * room / size))
    return None


def _level(sizes: list[int], room: int) -> int:
    """The size to which the largest have to be cut so that all together fit."""
    left = room
    for done, size in enumerate(sorted(sizes)):
        share = left // (len(sizes) - done)
        if size > share:
            return max(0, share)
        left -= size
    return max(sizes, default=0)
