"""Reads Chat and Responses requests as the provider does: items with their hash, tokens, ids and breakpoints.

One message of a chat is one item, and so is one input item of the Responses API. An item that was read before is not
read again.
"""

from collections.abc import Mapping, Sequence
from itertools import chain
from typing import Any

from pagefold.frozen import frozen
from pagefold.provider.messages_content import hash_of_value
from pagefold.provider.offered_tools import OfferedTool, tools_in
from pagefold.provider.signature import Sealed, sealed_of
from pagefold.tokens import FRAME, Counter
from pagefold.wire import json_text
from pagefold.wire.json_text import as_list, as_object, as_string
from pagefold.wire.message import Message, Request

BREAKPOINT = "prompt_cache_breakpoint"
_MEMORY = 200_000
_IMAGE_TOKENS = 1000
_IMAGES = ("input_image", "image_url", "input_file", "file")


@frozen
class InputItem:
    """One message or item. `calls` are the ids of the calls it makes, `answers` the id of the call it is the result of.
    `sealed` is what its encrypted content says, and `foreign` that it has some which the provider did not write;
    `offers` are tools that it adds."""

    kind: str
    role: str
    content: bytes
    tokens: int
    id: str = ""
    calls: tuple[str, ...] = ()
    answers: str = ""
    breaks: bool = False
    sealed: Sealed | None = None
    foreign: bool = False
    empty: bool = False
    offers: tuple[tuple[str, OfferedTool], ...] = ()

    @property
    def of_model(self) -> bool:
        """Whether the model wrote it."""
        return self.role == "assistant" or (not self.role and not self.answers and self.kind != "item_reference")


@frozen
class Conversation:
    """One request: what stands before the items, the items, and the other members of its body as they are."""

    model: str
    head: Sequence[InputItem]
    items: Sequence[InputItem]
    members: Mapping[str, Any]
    stream: bool
    tools: Mapping[str, OfferedTool]


class ItemReader:
    """Reads the items of requests; those that it read lately are the same objects again."""

    def __init__(self) -> None:
        self._items: dict[tuple[str, str], InputItem] = {}

    def read(self, request: Request, counter: Counter) -> Conversation:
        """Raises WireError."""
        members = {
            spot.key: json_text.parse(request.member(spot.key))
            for spot in request._around  # noqa: SLF001 - the members of this very body
            if spot.key != "tools"
        }
        tools = as_list(json_text.parse(request.member("tools") or "[]"))
        head = [InputItem("tools", "", hash_of_value(tools), counter.count(json_text.dumps(tools)))] if tools else []
        if instructions := members.get("instructions"):
            head.append(InputItem("instructions", "", hash_of_value(instructions), _tokens(instructions, counter)))
        items = [self._item(message, counter) for message in request.messages]
        offered = dict(chain(tools_in(tools), *(item.offers for item in items)))
        return Conversation(request.model, head, items, members, request.stream, offered)

    def _item(self, message: Message, counter: Counter) -> InputItem:
        key = message.raw, counter.name
        item = self._items.get(key)
        if item is None:
            if len(self._items) > _MEMORY:
                self._items.clear()
            item = self._items[key] = item_of(as_object(json_text.parse(message.raw)), counter)
        return item


def item_of(value: Mapping[str, Any], counter: Counter) -> InputItem:
    kind = as_string(value.get("type")) or ("message" if "role" in value else "")
    role = as_string(value.get("role"))
    encrypted = as_string(value.get("encrypted_content"))
    sealed = sealed_of(encrypted) if encrypted else None
    calls = tuple(as_string(as_object(call).get("id")) for call in as_list(value.get("tool_calls")))
    answers = as_string(value.get("tool_call_id"))
    if kind.endswith(("_output", "_call")) and (call := as_string(value.get("call_id"))):
        answers, calls = (call, calls) if kind.endswith("_output") else (answers, (call,))
    content = value.get("content")
    return InputItem(
        kind=kind,
        role=role,
        content=hash_of_value(_unmarked(value)),
        tokens=FRAME + (sealed.tokens if sealed else _tokens(value, counter)),
        id=as_string(value.get("id")),
        calls=calls,
        answers=answers,
        breaks=any(BREAKPOINT in as_object(part) for part in as_list(content)),
        sealed=sealed,
        foreign=bool(encrypted) and sealed is None,
        empty=content is None or content == [],
        offers=tuple(tools_in(value.get("tools"))) if kind == "additional_tools" else (),
    )


def _unmarked(value: Mapping[str, Any]) -> dict[str, Any]:
    """An item without breakpoints, and without the id that the provider gave it: neither is content for the cache."""
    kept = {key: part for key, part in value.items() if key not in ("id", "status")}
    if isinstance(kept.get("content"), list):
        kept["content"] = [
            {key: part for key, part in block.items() if key != BREAKPOINT} if isinstance(block, dict) else block
            for block in kept["content"]
        ]
    return kept


def _tokens(value: Any, counter: Counter) -> int:
    if isinstance(value, str):
        return counter.count(value)
    if isinstance(value, list):
        return sum(_tokens(part, counter) for part in value)
    if isinstance(value, dict):
        if value.get("type") in _IMAGES:
            return _IMAGE_TOKENS
        left_out = ("type", "role", "id", "call_id", "tool_call_id", "status", BREAKPOINT)
        return sum(_tokens(part, counter) for key, part in value.items() if key not in left_out)
    return 0
