"""The folded messages as they were sent, as pages that can be recalled."""

from collections.abc import Sequence
from typing import NamedTuple

from pagefold.pages.kinds import PageKind
from pagefold.pages.page import Page
from pagefold.wire.message import Message


class Record(NamedTuple):
    """By which handle the first so many folded messages are recalled. `contents` is the handle of the page that lists
    what was said and done up to the place `listed`."""

    messages: int
    handle: str
    contents: str = ""
    listed: int = 0


def recorded(messages: Sequence[Message], before: Record | None) -> tuple[Record | None, tuple[Page, ...]]:
    """The record of folded messages, and the page to store for it.

    What an earlier fold recorded is named by its handle, so that a long history is not stored again at every fold.
    """
    if not messages:
        return None, ()
    known = before if before is not None and before.messages <= len(messages) else None
    if known is not None and known.messages == len(messages):
        return known, ()
    lines = [message.raw for message in messages[known.messages if known else 0 :]]
    if known is not None:
        lines.insert(0, f'[the {known.messages} messages before these: context_recall("{known.handle}")]')
    page = Page.of(PageKind.CONVERSATION, "\n".join(lines), "folded messages")
    contents, listed = (known.contents, known.listed) if known is not None else ("", 0)
    return Record(len(messages), page.handle, contents, listed), (page,)
