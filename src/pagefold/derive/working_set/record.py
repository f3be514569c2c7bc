"""The folded messages themselves, as pages that a digest's handle recalls."""

from collections.abc import Sequence
from typing import NamedTuple

from pagefold.derive.entry import Entry
from pagefold.pages.kinds import PageKind
from pagefold.pages.page import Page
from pagefold.wire.message import BlockKind, Message

_WORTH_A_HANDLE = 600  # characters


class Record(NamedTuple):
    """By which handle the first so many folded messages are recalled."""

    messages: int
    handle: str


def result_pages(entries: Sequence[Entry]) -> dict[str, Page]:
    """The pages of longer results, by the call that they answer: each can be recalled by itself."""
    return {
        block.call_id: Page.of(PageKind.EVIDENCE, block.text, block.name)
        for entry in entries
        for block in entry.message.blocks
        if block.kind is BlockKind.RESULT and len(block.text) >= _WORTH_A_HANDLE
    }


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
    return Record(len(messages), page.handle), (page,)
