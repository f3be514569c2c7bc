"""A server's answer to `tools/call`, parsed once: whoever handles it on its way reads this value.

Offsets point into `reply.raw`, so a text can be replaced while every other byte stays as it came.
"""

from collections.abc import Iterable, Sequence
from dataclasses import replace

from pagefold.wire import json_text, jsonrpc
from pagefold.wire.json_text import Spot, as_object
from pagefold.wire.jsonrpc import Reply

SpanChange = tuple[int, int, str]
"""A span of the raw message, and the text that replaces it."""


class ToolResult:
    """`data` is the whole message as bytes; `members` are those of its result, `blocks` those of its `content`.

    Both are empty where the result has another shape, for instance that of a task.
    """

    __slots__ = ("_came", "_id_change", "blocks", "data", "members", "reply")

    def __init__(self, reply: Reply, data: bytes, id_change: Sequence[SpanChange] = ()) -> None:
        self.reply, self._came, self._id_change = reply, data, tuple(id_change)
        result = json_text.member(reply.members, "result")
        self.members: Sequence[Spot] = result.value if result and json_text.is_object(reply.raw, result) else ()
        content = self.member("content")
        self.blocks: Sequence[Spot] = content.value if content and json_text.is_array(reply.raw, content) else ()
        self.data = self.with_changes(()) if id_change else data

    @classmethod
    def parse(cls, data: bytes) -> "ToolResult":
        """Reads an answer that is known to be one."""
        reply = jsonrpc.parse(data)
        assert isinstance(reply, Reply)
        return cls(reply, data)

    def member(self, key: str) -> Spot | None:
        return json_text.member(self.members, key)

    @property
    def failed(self) -> bool:
        is_error = self.member("isError")
        return is_error is not None and is_error.value is True

    @property
    def text(self) -> str:
        """The texts of all blocks, for whoever looks for the arguments of a later call in them."""
        spots = (self.text_in(block) for block in self.blocks)
        return "\n".join("" if spot is None else str(spot.value) for spot in spots)

    def texts(self) -> list[Spot]:
        """The texts that the model reads, without those for the user alone."""
        return [spot for block in self.blocks if (spot := self.text_in(block)) and _is_for_model(block, spot)]

    def other_texts(self) -> list[Spot]:
        """The texts for the user alone, and those of resources."""
        found = [spot for block in self.blocks if (spot := self.text_in(block)) and not _is_for_model(block, spot)]
        for block in self.blocks:
            if json_text.is_object(self.reply.raw, block) and (inner := json_text.member(block.value, "resource")):
                found += filter(None, [self._text_of(inner)])
        return [spot for spot in found if isinstance(spot.value, str)]

    def _text_of(self, resource: Spot) -> Spot | None:
        if not isinstance(resource.value, dict):
            return None
        return json_text.member(json_text.members(self.reply.raw, resource.start), "text")

    def answering(self, id: str) -> "ToolResult":
        """The same result as the answer to another call."""
        spot = json_text.member(self.reply.members, "id")
        assert spot is not None, "an answer has an id"
        return ToolResult(replace(self.reply, id=id), self._came, [(spot.start, spot.end, id)])

    def with_changes(self, changes: Iterable[SpanChange]) -> bytes:
        """The message with these spans replaced."""
        every = sorted([*self._id_change, *changes])
        if not every:
            return self._came
        body = self._came.strip(b" \t\r\n")
        return self._came.replace(body, json_text.bytes_of(json_text.splice(self.reply.raw, every)), 1)

    def text_in(self, block: Spot) -> Spot | None:
        """The `text` of a block, whatever kind of block it is."""
        return json_text.member(block.value, "text") if json_text.is_object(self.reply.raw, block) else None


def _is_for_model(block: Spot, text: Spot) -> bool:
    kind, notes = json_text.member(block.value, "type"), json_text.member(block.value, "annotations")
    if kind is None or kind.value != "text" or not isinstance(text.value, str):
        return False
    return notes is None or as_object(notes.value).get("audience") != ["user"]
