"""The values every wire format is read into: a request of messages, a message of blocks.

Keep what arrived: a message carries its own JSON text, and a request the whole body. What nobody changed is rendered
from that text byte for byte, whatever it holds; a changed block is spliced into it. Nothing here knows a provider.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Any

from pagefold.errors import WireError
from pagefold.wire import json_text


class Role(StrEnum):
    SYSTEM = "system"
    DEVELOPER = "developer"
    USER = "user"
    ASSISTANT = "assistant"
    TOOL = "tool"


class BlockKind(StrEnum):
    TEXT = "text"
    CALL = "call"
    RESULT = "result"
    THINKING = "thinking"
    MEDIA = "media"
    OTHER = "other"


@dataclass(frozen=True, slots=True)
class Block:
    """One piece of a message: what the model reads of it, and where that text lies in the message's JSON.

    `path` is empty where there is no single string to replace (an image, a block type from next year).
    """

    kind: BlockKind
    text: str
    path: json_text.Path = ()
    call_id: str = ""
    name: str = ""
    failed: bool = False


@dataclass(frozen=True, slots=True)
class Usage:
    """Token counts as a provider reports them. `fresh` was neither read from its cache nor written to it."""

    fresh: int = 0
    cache_read: int = 0
    cache_write: int = 0
    output: int = 0

    @property
    def prompt(self) -> int:
        return self.fresh + self.cache_read + self.cache_write


@dataclass(frozen=True, slots=True)
class Message:
    """One message with its blocks. `raw` is the JSON text it arrived as, in its own wire format."""

    role: Role
    blocks: tuple[Block, ...]
    raw: str

    @property
    def text(self) -> str:
        """All that a model reads of it, as one string: a call is its name and its arguments."""
        if len(self.blocks) == 1 and self.blocks[0].kind is not BlockKind.CALL:
            return self.blocks[0].text
        return "\n".join(f"{b.name} {b.text}" if b.kind is BlockKind.CALL else b.text for b in self.blocks)

    def with_text(self, index: int, text: str) -> "Message":
        """The message with one block saying `text`. Raises WireError where the block has no string of its own."""
        block = self.blocks[index]
        raw = json_text.replaced(self.raw, block.path, text)
        blocks = (*self.blocks[:index], replace(block, text=text), *self.blocks[index + 1 :])
        return replace(self, blocks=blocks, raw=raw)


@dataclass(frozen=True, slots=True)
class Request:
    """One call to a model: the body as it arrived, and what pagefold reads in it.

    `head` is what stands before the messages in cache order and is not a message of the list: the system prompt.
    """

    body: str
    model: str
    stream: bool
    head: tuple[Message, ...]
    tools: tuple[str, ...]
    messages: tuple[Message, ...]
    _array: tuple[int, int] = (0, 0)
    _spans: tuple[tuple[int, int], ...] = field(default=(), repr=False)

    def render(self, messages: Sequence[Message]) -> str:
        """The body with `messages` in place of its own. Messages it already had keep their bytes."""
        if [message.raw for message in messages] == [message.raw for message in self.messages]:
            return self.body
        # There are no spans where the body says its messages in another way than as a list.
        if not len(messages) == len(self.messages) == len(self._spans):
            inner = ",".join(message.raw for message in messages)
            return json_text.splice(self.body, [(*self._array, f"[{inner}]")])
        changes = [
            (*span, new.raw)
            for span, old, new in zip(self._spans, self.messages, messages, strict=True)
            if new.raw != old.raw
        ]
        return json_text.splice(self.body, changes)


@dataclass(frozen=True, slots=True)
class Response:
    """What a model answered: one assistant message, why it stopped, and what the provider says it read."""

    message: Message
    stop: str
    usage: Usage | None = None
    model: str = ""


def read_request(
    text: str, top: Sequence[json_text.Spot], key: str, parse: Callable[[Any, str], Message], head: Sequence[Message]
) -> Request:
    """The request in a body whose messages are the list under `key`; `top` are the body's members. Raises WireError."""
    array = json_text.member(top, key)
    if array is None or not isinstance(array.value, list):
        raise WireError(f"a request of this kind has a list under {key!r}")
    spots = json_text.elements(text, array.start)
    model, stream, tools = (json_text.member(top, name) for name in ("model", "stream", "tools"))
    schemas = json_text.elements(text, tools.start) if tools is not None and isinstance(tools.value, list) else ()
    return Request(
        body=text,
        model=json_text.as_string(model.value if model else None),
        stream=stream is not None and stream.value is True,
        head=tuple(head),
        tools=tuple(text[spot.start : spot.end] for spot in schemas),
        messages=tuple(parse(spot.value, text[spot.start : spot.end]) for spot in spots),
        _array=(array.start, array.end),
        _spans=tuple((spot.start, spot.end) for spot in spots),
    )


def role_of(value: Any) -> Role:
    """The role a message names. Raises WireError where there is no message, or no such role."""
    if not isinstance(value, dict):
        raise WireError(f"expected a message, found {json_text.dumps(value)[:40]}")
    role = value.get("role")
    if not isinstance(role, str) or role not in Role.__members__.values():
        raise WireError(f"role {json_text.dumps(role)[:40]}: expected one of {', '.join(Role)}")
    return Role(role)


def as_result(content: Iterable[Block], call_id: str, name: str = "", *, failed: bool = False) -> Iterator[Block]:
    """The blocks of a result's content: each text is a result, and what has no text at all is still an empty one."""
    blocks = [replace(block, call_id=call_id, name=name) for block in content]
    if not any(block.kind is BlockKind.TEXT for block in blocks):
        yield Block(BlockKind.RESULT, "", (), call_id, name, failed)
    for block in blocks:
        text = block.kind is BlockKind.TEXT
        yield replace(block, kind=BlockKind.RESULT, failed=failed) if text else block
