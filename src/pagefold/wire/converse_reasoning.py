"""Reasoning in Bedrock's Converse: where it is in a message, and how a message reads without it.

The models are Anthropic's and bind it as they do in their own API (`anthropic_reasoning`).
"""

from pagefold.wire import json_text
from pagefold.wire.anthropic_reasoning import LEFT_OUT, binds, refused_from
from pagefold.wire.api import ReasoningFormat
from pagefold.wire.converse import message_of, parse_message, says_something
from pagefold.wire.json_text import as_list, as_object, as_string
from pagefold.wire.message import Message, Request, Role

_REASONING = "reasoningContent"
_SIGNS = ('"signature"', '"redactedContent"')


def keys(message: Message) -> tuple[str, ...]:
    """The signature of every piece of reasoning in a message."""
    if message.role is not Role.ASSISTANT or not any(sign in message.raw for sign in _SIGNS):
        return ()
    value = as_object(json_text.parse(message.raw))
    if "role" not in value:  # an item of another API with such a part
        return ()
    content = map(as_object, as_list(value.get("content")))
    said = [as_object(part.get(_REASONING)) for part in content]
    found = (as_object(each.get("reasoningText")).get("signature") or each.get("redactedContent") for each in said)
    return tuple(key for each in found if (key := as_string(each)))


def without(message: Message) -> Message:
    """The message without its reasoning; every other part keeps its bytes."""
    start, end = json_text.find(message.raw, ("content",))
    if not message.raw.startswith("[", start):
        return message
    parts = json_text.elements(message.raw, start)
    kept = [message.raw[spot.start : spot.end] for spot in parts if _REASONING not in as_object(spot.value)]
    if len(kept) == len(parts):
        return message
    if not says_something([spot.value for spot in parts if _REASONING not in as_object(spot.value)]):
        return message_of(message.role, [{"text": LEFT_OUT}], message.place)
    raw = json_text.splice(message.raw, [(start, end, f"[{','.join(kept)}]")])
    return parse_message(json_text.parse(raw), raw, message.place)


def is_bound(request: Request) -> bool:
    """Whether the model of a request may check what stood before its reasoning."""
    if not binds(request.model):
        return False
    more = as_object(json_text.parse(request.member("additionalModelRequestFields") or "null"))
    asked = as_object(more.get("thinking") or more.get("reasoning_config"))
    return asked.get("type") != "enabled"


REASONING = ReasoningFormat(tuple(sign.encode() for sign in _SIGNS), keys, without, binds, is_bound, refused_from)
