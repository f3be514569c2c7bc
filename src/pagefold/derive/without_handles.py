"""Takes handles out of a request whose pages could not be stored: it must not promise what cannot be recalled."""

import re
from collections.abc import Iterable, Sequence

from pagefold.pages.page import Page
from pagefold.wire.message import Message

_NO_RECALL = "no recall (the store could not be written)"


def without_handles(messages: Iterable[Message], pages: Sequence[Page]) -> list[Message]:
    """The messages with words in place of every call that would recall one of these pages."""
    if not pages:
        return list(messages)
    handles = "|".join(sorted({re.escape(page.handle) for page in pages}))
    call, alone = re.compile(rf'context_recall\("(?:{handles})"\)'), re.compile(handles)
    return [_without(message, call, alone) for message in messages]


def _without(message: Message, call: re.Pattern[str], alone: re.Pattern[str]) -> Message:
    for index, block in enumerate(message.blocks):
        if block.path and alone.search(block.text):
            message = message.with_text(index, alone.sub("no recall", call.sub(_NO_RECALL, block.text)))
    return message
