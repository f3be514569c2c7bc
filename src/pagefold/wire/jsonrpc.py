"""MCP's JSON-RPC 2.0: lines out of bytes, and what each line is.

Keeps every message as the text it arrived as, `_meta` and unknown fields included, and every id as it was spelled:
`1`, `1.0`, `"1"` and `null` are four ids. Refuses, with WireError, a line that is not JSON-RPC 2.0 and one that does
not end.
"""

from dataclasses import dataclass, field, replace
from typing import Any, TypeAlias, TypeVar

from pagefold.errors import WireError
from pagefold.frozen import frozen
from pagefold.wire import json_text
from pagefold.wire.json_text import as_count, as_object, as_string
from pagefold.wire.message import Block, BlockKind, as_result

LONGEST_LINE_BYTES = 64 << 20
TEXTS = ("result", "content", "text")
"""The way to the texts of an answer to `tools/call`, as `json_text.opened` goes."""
_MEDIA = ("image", "audio", "resource_link")
_NO_IDS = frozenset((dict, list, bool))


@frozen
class Call:
    """A request that wants an answer under its id. Ids are JSON text. `params` is what `raw` says of them."""

    id: str
    method: str
    raw: str
    params: Any = field(default=None, repr=False, compare=False)


@frozen
class Notification:
    method: str
    raw: str


@frozen
class Reply:
    id: str
    raw: str


@frozen
class Failure:
    """`id` is empty where the other side does not say which call failed."""

    id: str
    code: int
    message: str
    raw: str


Single: TypeAlias = Call | Notification | Reply | Failure


@frozen
class Batch:
    messages: tuple[Single, ...]
    raw: str


_Kept = TypeVar("_Kept", Call, Notification, Reply, Failure)


@dataclass(slots=True)
class LineReader:
    """Feed it what arrives; it keeps what is not a whole line yet. Lines come without their end, blank ones never."""

    limit_bytes: int = LONGEST_LINE_BYTES
    _rest: bytearray = field(default_factory=bytearray)
    _searched: int = 0
    _too_long: bool = False

    def feed(self, data: bytes) -> list[bytes]:
        """The lines that are whole now. Raises WireError once a line is too long, after the lines before it."""
        found: list[bytes] = []
        self._rest += data
        while not self._too_long:
            end = self._rest.find(b"\n", self._searched)
            self._searched = len(self._rest)
            self._too_long = (self._searched if end < 0 else end) > self.limit_bytes
            if end < 0 or self._too_long:
                break
            found += _spoken(self._rest[:end])
            del self._rest[: end + 1]
            self._searched = 0
        if self._too_long:
            self._rest.clear()
            if not found:
                raise WireError(f"a line is longer than {self.limit_bytes:,} bytes")
        return found

    def finish(self) -> list[bytes]:
        """What is left when the stream ends: a last line that nobody terminated. Raises WireError as `feed` does."""
        self.feed(b"")
        rest, self._rest, self._searched = self._rest, bytearray(), 0
        return _spoken(rest)


def parse(data: bytes) -> Single | Batch:
    """One line, or one body, as what it is. Raises WireError."""
    text = json_text.text_of(data).strip(" \t\r\n")
    if not text.removeprefix("\ufeff").lstrip().startswith("["):
        return _single(text)
    if not json_text.parse(text):
        raise WireError("an empty batch says nothing")
    return Batch(tuple(_single(text[spot.start : spot.end]) for spot in json_text.elements(text)), text)


def content_blocks(reply: Reply) -> tuple[Block, ...]:
    """What a model reads of the answer to `tools/call`, each text with its path in `raw`; nothing of other answers.

    `structuredContent` is for the program that asked, and is no block.
    """
    result = as_object(as_object(json_text.parse(reply.raw)).get("result"))
    parts = result.get("content")
    if not isinstance(parts, list):
        return ()
    content = (_part(part, ("result", "content", index)) for index, part in enumerate(parts))
    return tuple(as_result(content, reply.id, failed=result.get("isError") is True))


def with_text(message: _Kept, path: json_text.Path, text: str) -> _Kept:
    """The message with the string at `path` saying `text`. Raises WireError where there is no such string."""
    return replace(message, raw=json_text.replaced(message.raw, path, text))


def _spoken(line: bytearray) -> list[bytes]:
    said = bytes(line).removesuffix(b"\r")
    return [said] if said.strip(b" \t\r") else []


def _single(text: str) -> Single:
    whole = json_text.opened(text, TEXTS)
    spots: list[json_text.Spot] = whole.value if json_text.is_object(text, whole) else []
    said = {spot.key: spot.value for spot in spots}
    if said.get("jsonrpc") != "2.0":
        raise WireError('a JSON-RPC message is an object with "jsonrpc": "2.0"')
    spelled = _id(text, json_text.member(spots, "id"))
    if isinstance(method := said.get("method"), str):
        return Call(spelled, method, text, said.get("params")) if spelled else Notification(method, text)
    if isinstance(error := said.get("error"), dict):
        return Failure(spelled, as_count(error.get("code")), as_string(error.get("message")), text)
    if "result" in said and spelled:
        return Reply(spelled, text)
    raise WireError("a JSON-RPC message has a method, or an id with a result or an error")


def _id(text: str, spot: json_text.Spot | None) -> str:
    if spot is None:
        return ""
    if type(spot.value) in _NO_IDS:
        raise WireError(f"id {text[spot.start : spot.end][:40]}: expected a string, a number or null")
    return text[spot.start : spot.end]


def _part(part: Any, path: json_text.Path) -> Block:
    kind = part.get("type") if isinstance(part, dict) else None
    if kind == "text" and isinstance(part.get("text"), str):
        return Block(BlockKind.TEXT, part["text"], (*path, "text"))
    if kind == "resource":
        resource = as_object(part.get("resource"))
        if isinstance(resource.get("text"), str):
            return Block(BlockKind.TEXT, resource["text"], (*path, "resource", "text"))
        return Block(BlockKind.MEDIA, "")
    if kind in _MEDIA:
        return Block(BlockKind.MEDIA, "")
    return Block(BlockKind.OTHER, json_text.dumps(part))
