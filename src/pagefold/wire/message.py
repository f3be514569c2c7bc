"""Defines what every wire format is parsed into: a request of messages, a message of blocks, a response with usage.

A message keeps the JSON text it arrived as, and a request the whole body. What nobody changed is rendered from that
text byte for byte; a changed block is spliced into it. Nothing here knows a provider.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import field
from enum import StrEnum
from typing import Any, Protocol, TypeAlias

from pagefold.errors import WireError
from pagefold.frozen import frozen
from pagefold.log import Log
from pagefold.wire import json_text

PLACED = "#"
"""How the id of a call begins that came without one: it is made of the call's place."""


MOST_MESSAGES = 100_000


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


@frozen
class Block:
    """One piece of a message: the text that the model reads, and the path of that text in the message's JSON.

    `path` is empty where there is no single string to replace (an image, a block type that is not known). Where it
    leads to another JSON value, `text` is that JSON, and `within` the keys of objects that a string in its place is in.
    """

    kind: BlockKind
    text: str
    path: json_text.Path = ()
    call_id: str = ""
    name: str = ""
    failed: bool = False
    within: tuple[str, ...] | None = None


@frozen
class Usage:
    """Token counts as a provider reports them. `fresh` was neither read from its cache nor written to it; `cleared` is
    what it took out of the request, as the client asked, before it read the rest. `cache_write_long` is the part of
    `cache_write` that went to the cache of the longer life."""

    fresh: int = 0
    cache_read: int = 0
    cache_write: int = 0
    output: int = 0
    cleared: int = 0
    cache_write_long: int = 0

    @property
    def prompt(self) -> int:
        return self.fresh + self.cache_read + self.cache_write


@frozen
class Message:
    """One message with its blocks. `raw` is the JSON text it arrived as, in its own wire format.

    `place` is its index in the request, or in the history that a policy is shown. A message that a policy changed keeps
    it; one that a policy wrote has -1.
    """

    role: Role
    blocks: tuple[Block, ...]
    raw: str
    place: int = field(default=-1, compare=False, repr=False)

    @property
    def text(self) -> str:
        """Returns all text that a model reads, as one string. A call is its name and its arguments."""
        if len(self.blocks) == 1 and self.blocks[0].kind is not BlockKind.CALL:
            return self.blocks[0].text
        return "\n".join([f"{b.name} {b.text}" if b.kind is BlockKind.CALL else b.text for b in self.blocks])

    def with_text(self, index: int, text: str) -> "Message":
        """Returns the message with another text in one block. Raises WireError where the block has no path."""
        block = self.blocks[index]
        path = (*block.path, *(block.within or ()))
        if block.within is None:
            raw = json_text.replaced(self.raw, path, text)
        else:
            raw = json_text.splice(self.raw, [(*json_text.find(self.raw, block.path), _within(block.within, text))])
        changed = Block(block.kind, text, path, block.call_id, block.name, block.failed)
        return Message(self.role, (*self.blocks[:index], changed, *self.blocks[index + 1 :]), raw, self.place)


def _within(keys: Sequence[str], text: str) -> str:
    value: Any = text
    for key in reversed(keys):
        value = {key: value}
    return json_text.dumps(value)


def arguments_of(call: Block) -> dict[str, Any]:
    """The arguments of a call; none where they are no JSON object."""
    try:
        arguments = json.loads(call.text)
    except (ValueError, RecursionError):
        return {}
    return arguments if isinstance(arguments, dict) else {}


class Parse(Protocol):
    def __call__(self, value: Any, raw: str, place: int = -1) -> Message:
        """Parses a message from its JSON value; `raw` is that value's text. Raises WireError."""


@frozen
class RequestShape:
    """Where things stand in a request of one API: the keys of its members, how a message is parsed, and how the system
    prompt is that stands before the messages.

    `also_system` is another spelling of its key. `tools_in` is the member of the tools that is their list, or "" where
    they are one themselves. `tools_end` is where in the JSON of the tools one more is put; 0 where it cannot be. `link`
    gives results that name no call the id of theirs, by the message before; None where all do.
    """

    messages: str
    parse: Parse
    system: str = ""
    parse_system: Callable[[Any, str], Message | None] = lambda value, raw: None
    model: str = "model"
    tools: str = "tools"
    tools_in: str = ""
    stream: str = "stream"
    also_system: str = ""
    tools_end: Callable[[str], int] = lambda tools: len(tools) - 1
    link: Callable[[Message, Message], Message] | None = None


@frozen
class Request:
    """One request to a model: the body as it arrived, and what was parsed from it.

    `head` is the system prompt where it is not in the list of messages. Positions in the body are in bytes. Those after
    the list of messages are counted from the end, so that they stay the same when only the list grows.
    """

    body: bytes
    model: str
    stream: bool
    head: tuple[Message, ...]
    tools: tuple[str, ...]
    messages: Log[Message]
    _array: tuple[int, int] = (0, 0)
    _ends: Log[int] = field(default_factory=Log, repr=False)
    _around: tuple[json_text.Spot, ...] = field(default=(), repr=False)
    _tools_key: str = field(default="tools", repr=False)
    _tools_end: Callable[[str], int] = field(default=lambda tools: len(tools) - 1, repr=False, compare=False)

    @property
    def end(self) -> int:
        """Returns the position in the body where the messages end."""
        return self._array[1]

    def end_of(self, count: int) -> int:
        """Returns the position where the first `count` messages end; 0 where that is not known."""
        return self._ends[count - 1] if 0 < count <= len(self._ends) else 0

    def member(self, key: str) -> str:
        """Returns the JSON of a member of the body other than the messages, or "" where there is none."""
        spot = json_text.member(self._around, key)
        return json_text.text_of(self.body[spot.start : spot.end]) if spot else ""

    def render(
        self,
        messages: Sequence[Message],
        more_tools: Sequence[str] = (),
        members: Mapping[str, str] | None = None,
        edited: Sequence[int] | None = None,
    ) -> bytes:
        """Returns the body with these messages instead of its own. Messages that it already had keep their bytes.

        `more_tools` are added after its own, if it has any. `members` replaces the JSON of members that it has.
        `edited` are the places of those that may differ, where that is known and all are in their places.
        """
        changes = [*self._changes(messages, edited), *self._offer(more_tools)]
        for key, raw in (members or {}).items():
            if spot := json_text.member(self._around, key):
                changes.append((self._from_start(spot.start), self._from_start(spot.end), raw))
        spelled = [(start, end, json_text.bytes_of(raw)) for start, end, raw in sorted(changes)]
        return json_text.splice(self.body, spelled) if spelled else self.body

    def _changes(self, messages: Sequence[Message], edited: Sequence[int] | None) -> list[tuple[int, int, str]]:
        # There are no ends where the body does not have its messages as a list.
        if len(messages) == self.messages.length == self._ends.length:
            ends, own = self._ends.since(0), self.messages.since(0)
            places = range(len(own)) if edited is None else edited
            return [
                (ends[at] - len(old.raw if old.raw.isascii() else json_text.bytes_of(old.raw)), ends[at], new.raw)
                for at in places
                if (new := messages[at]) is not (old := own[at]) and new.raw != old.raw
            ]
        raws = [message.raw for message in messages]
        return [] if raws == [message.raw for message in self.messages] else [(*self._array, f"[{','.join(raws)}]")]

    def _offer(self, tools: Sequence[str]) -> list[tuple[int, int, str]]:
        spot = json_text.member(self._around, self._tools_key)
        if not tools or not self.tools or spot is None:
            return []
        listed = json_text.text_of(self.body[spot.start : spot.end])
        inside = self._tools_end(listed)
        last = self._from_start(spot.start) + len(json_text.bytes_of(listed[:inside]))
        return [(last, last, "," + ",".join(tools))] if inside else []

    def _from_start(self, place: int) -> int:
        return place + len(self.body) if place < 0 else place


@frozen
class Response:
    """A model's answer: one assistant message, why it stopped, and the usage that the provider reports."""

    message: Message
    stop: str
    usage: Usage | None = None
    model: str = ""


def parse_body(body: bytes, shape: RequestShape) -> Request:
    """Parses a body by the shape of its API. Raises WireError."""
    text = json_text.text_of(body)
    return read_request(body, text, json_text.top(text, listed=shape.messages), shape)


def read_request(body: bytes, text: str, top: Sequence[json_text.Spot], shape: RequestShape) -> Request:
    """Parses a body, given as bytes and as text, whose members are `top`: those of the list of messages are spots.
    Raises WireError."""
    array = json_text.member(top, shape.messages)
    if array is None or not isinstance(array.value, list):
        raise WireError(f"a request of this kind has a list under {shape.messages!r}")
    spots: list[json_text.Spot] = array.value
    refuse_too_many(len(spots))
    said = {spot.key: (spot.value, text[spot.start : spot.end]) for spot in top if spot is not array}
    around, (start, end) = _around(body, text, top, array)
    ends = json_text.places_in_bytes(text, [spot.end for spot in spots])
    return Request(
        body=body,
        model=model_of(said, shape),
        stream=streams(said, shape),
        head=head_of(said, shape),
        tools=tools_of(said, shape),
        messages=Log(_parsed(text, spots, shape)),
        _array=(start, end),
        _ends=Log(ends),
        _around=around,
        _tools_key=shape.tools,
        _tools_end=shape.tools_end,
    )


def refuse_too_many(messages: int) -> None:
    """Raises WireError for more messages than any conversation has: each takes a kilobyte, however short it is."""
    if messages > MOST_MESSAGES:
        raise WireError(f"a request of {messages:,} messages; up to {MOST_MESSAGES:,} are read")


def _parsed(text: str, spots: Sequence[json_text.Spot], shape: RequestShape) -> list[Message]:
    found = [shape.parse(spot.value, text[spot.start : spot.end], at) for at, spot in enumerate(spots)]
    return found if shape.link is None else linked(found, shape.link)


def linked(
    messages: Sequence[Message], link: Callable[[Message, Message], Message], before: Message | None = None
) -> list[Message]:
    """Messages of one history, each linked to the one before."""
    found: list[Message] = []
    for message in messages:
        before = message if before is None else link(before, message)
        found.append(before)
    return found


def _around(
    body: bytes, text: str, top: Sequence[json_text.Spot], array: json_text.Spot
) -> tuple[tuple[json_text.Spot, ...], tuple[int, int]]:
    """Returns the positions of the other members in the body, and those of the list of messages."""
    places = iter(json_text.places_in_bytes(text, [place for spot in top for place in spot[:2]]))
    found: list[json_text.Spot] = []
    listed = (0, 0)
    for spot, start, end in zip(top, places, places, strict=True):
        if spot is array:
            listed = start, end
        else:
            # Without their values: the request has them parsed, and may be kept for long.
            off = len(body) if spot.start > array.start else 0
            found.append(json_text.Spot(start - off, end - off, None, spot.key))
    return tuple(found), listed


BodyMembers: TypeAlias = Mapping[str, tuple[Any, str]]
"""Members of a body by key: the value and its JSON. With duplicate keys the last one counts."""


def model_of(members: BodyMembers, shape: RequestShape) -> str:
    return json_text.as_string(members[shape.model][0]) if shape.model in members else ""


def streams(members: BodyMembers, shape: RequestShape) -> bool:
    return shape.stream in members and members[shape.stream][0] is True


def head_of(members: BodyMembers, shape: RequestShape) -> tuple[Message, ...]:
    said = members.get(shape.system) or members.get(shape.also_system)
    head = shape.parse_system(*said) if said else None
    return (head,) if head else ()


def tools_of(members: BodyMembers, shape: RequestShape) -> tuple[str, ...]:
    value, raw = members.get(shape.tools, (None, ""))
    if shape.tools_in and isinstance(value, dict) and shape.tools_in in value:
        start, end = json_text.find(raw, (shape.tools_in,))
        value, raw = value[shape.tools_in], raw[start:end]
    found = json_text.elements(raw) if isinstance(value, list) else ()
    return tuple(raw[tool.start : tool.end] for tool in found)


def user_text(text: str) -> Message:
    """A text of the user, in the spelling that most APIs take."""
    raw = json_text.dumps({"role": "user", "content": text})
    return Message(Role.USER, (Block(BlockKind.TEXT, text, ("content",)),), raw)
