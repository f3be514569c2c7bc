"""The folded messages as they were sent, as pages that can be recalled."""

from collections.abc import Sequence
from typing import NamedTuple

from pagefold.derive.entry import Entry
from pagefold.log import Log
from pagefold.pages.kinds import PageKind
from pagefold.pages.page import Page


class Record(NamedTuple):
    """By which handle the first so many folded messages are recalled. `contents` is the handle of the page that lists
    what was said and done up to the place `listed`."""

    messages: int
    handle: str
    contents: str = ""
    listed: int = 0


def recorded(
    log: Log[Entry], cut: int, stays: Sequence[int], before: Record | None
) -> tuple[Record | None, tuple[Page, ...]]:
    """The record of the messages before the cut but for those that stay, and the page to store for it.

    What an earlier fold recorded is named by its handle, so that a long history is not stored again at every fold.
    """
    count = cut - len(stays)
    if not count:
        return None, ()
    known = before if before is not None and before.messages <= count else None
    if known is not None and known.messages == count:
        return known, ()
    start = _place_of(known.messages, stays) if known else 0
    lines = [log[place].message.raw for place in range(start, cut) if place not in stays]
    if known is not None:
        lines.insert(0, f'[the {known.messages} messages before these: context_recall("{known.handle}")]')
    page = Page.of(PageKind.CONVERSATION, "\n".join(lines), "folded messages")
    contents, listed = (known.contents, known.listed) if known is not None else ("", 0)
    return Record(count, page.handle, contents, listed), (page,)


def _place_of(number: int, stays: Sequence[int]) -> int:
    """The place of the message with this number among those that do not stay; `stays` is in order."""
    place = number
    for stay in stays:
        if stay > place:
            break
        place += 1
    return place
