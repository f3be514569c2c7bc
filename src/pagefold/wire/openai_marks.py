"""Cache marks of OpenAI's APIs: a block of content may say that the provider is to cache everything up to its end.

Models from GPT-5.6 on take up to four such marks a request, on what the system, the user or a tool says; an answer of
the model cannot carry one. Clients that set none are cached by the provider as it likes.
"""

from functools import partial

from pagefold.wire import json_text
from pagefold.wire.api import CacheMarks
from pagefold.wire.json_text import as_list, as_object
from pagefold.wire.message import Message, Parse, Role
from pagefold.wire.shared_parsing import BREAKPOINT


def marks(parse: Parse, text_type: str) -> CacheMarks:
    """The marks of an API whose messages `parse` reads, and whose texts are blocks of this type."""
    return CacheMarks(mark_of, partial(with_mark, parse=parse, text_type=text_type))


def mark_of(message: Message) -> str:
    """Returns the first mark in a message, as JSON, or "" where there is none."""
    if f'"{BREAKPOINT}"' not in message.raw:
        return ""
    content = map(as_object, as_list(as_object(json_text.parse(message.raw)).get("content")))
    return next((json_text.dumps(mark) for block in content if (mark := block.get(BREAKPOINT))), "")


def with_mark(message: Message, mark: str, *, parse: Parse, text_type: str) -> Message | None:
    """Returns the message with a mark on its last block, or None where nothing there can carry it."""
    value = as_object(json_text.parse(message.raw))
    content = value.get("content")
    blocks = [{"type": text_type, "text": content}] if isinstance(content, str) else list(as_list(content))
    if message.role is Role.ASSISTANT or not blocks or not isinstance(blocks[-1], dict):
        return None
    blocks[-1] = {**blocks[-1], BREAKPOINT: json_text.parse(mark)}
    raw = json_text.dumps({**value, "content": blocks})
    return parse(json_text.parse(raw), raw, message.place)
