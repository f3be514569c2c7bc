"""Thinking in Anthropic's Messages API: where it is in a message, and how a message reads without it.

Newer models check a `thinking` or `redacted_thinking` block that comes back against all that stood before it when it
was made. One that stood behind something else is refused, with a 400 before any output. A request may leave thinking
out: only where thinking is switched on by hand (`"type": "enabled"`, older models) does the provider ask for it inside
a running loop of tool calls, and those models check nothing.
"""

import re
from typing import Any

from pagefold.wire import json_text
from pagefold.wire.anthropic import parse_message
from pagefold.wire.api import ReasoningFormat, error_members
from pagefold.wire.json_text import as_list, as_object, as_string
from pagefold.wire.message import Message, Request, Role

_KEYS = {"thinking": "signature", "redacted_thinking": "data"}
_SIGNS = ('"signature"', '"redacted_thinking"')
LEFT_OUT = "[thinking left out]"
"""What a message says that held nothing but thinking: providers refuse an empty one."""
# As of 2026-11: bound are Fable and Mythos from 5.1 on, and Opus, Sonnet and Haiku 5.5. A name that is not here may be.
_UNBOUND = re.compile(
    r"claude-(?:v?[123]\b|instant|mythos-preview|(?:opus|sonnet|haiku)-[34]\b"
    r"|(?:opus|sonnet|haiku|fable|mythos)-5(?![-.]\d(?!\d)))"
)
_REFUSED = re.compile(r"bound to a different conversation|not created in this conversation", re.IGNORECASE)
_PLACE = re.compile(r"messages\.(\d{1,6})\.content")


def keys(message: Message) -> tuple[str, ...]:
    """The signature of every thinking block of a message. An item without a role is another API's: none."""
    if message.role is not Role.ASSISTANT or not any(sign in message.raw for sign in _SIGNS):
        return ()
    value = as_object(json_text.parse(message.raw))
    blocks = map(as_object, as_list(value.get("content")) if "role" in value else ())
    return tuple(key for block in blocks if (key := as_string(block.get(_key_of(block)))))


def without(message: Message) -> Message:
    """The message without its thinking; every other block keeps its bytes."""
    start, end = json_text.find(message.raw, ("content",))
    if not message.raw.startswith("[", start):
        return message
    blocks = json_text.elements(message.raw, start)
    kept = [message.raw[spot.start : spot.end] for spot in blocks if not _key_of(as_object(spot.value))]
    if len(kept) == len(blocks):
        return message
    content = ",".join(kept) or json_text.dumps({"type": "text", "text": LEFT_OUT})
    raw = json_text.splice(message.raw, [(start, end, f"[{content}]")])
    return parse_message(json_text.parse(raw), raw, message.place)


def binds(model: str) -> bool:
    """Whether a model of this name may check the prefix of thinking."""
    return not _UNBOUND.search(model)


def is_bound(request: Request) -> bool:
    """Whether the model of a request may check the prefix of thinking."""
    if not binds(request.model):
        return False
    asked = request.member("thinking")
    return not asked or as_object(json_text.parse(asked)).get("type") != "enabled"


def refused_from(status: int, body: bytes) -> int | None:
    """The place of the first message whose thinking a provider refused as bound to something else; None where it
    refused nothing of the kind."""
    told = as_string(error_members(body).get("message")) if status == 400 else ""
    if not _REFUSED.search(told):
        return None
    place = _PLACE.search(told)
    return int(place[1]) if place else 0


def _key_of(block: dict[str, Any]) -> str:
    return _KEYS.get(as_string(block.get("type")), "")


REASONING = ReasoningFormat(tuple(sign.encode() for sign in _SIGNS), keys, without, binds, is_bound, refused_from)
