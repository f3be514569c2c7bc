"""The pure half of the model proxy: what is seen in one exchange, and the counts over many.

An exchange is shown the request and then the answer, piece by piece as it passes by; it changes neither and ends as one
frozen `Seen`. What it cannot read is not an error: the bytes have gone through, and `Seen.unread` says what was not
understood. No value here holds a header, a text of a message or anything else that a client or model wrote, except the
model's name.
"""

import hashlib
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields, replace
from enum import StrEnum
from typing import Any, TypeVar

from pagefold import tokens
from pagefold.errors import WireError
from pagefold.wire import anthropic, json_text
from pagefold.wire.message import BlockKind, Message, Request, Usage

READ_BYTES = 64 << 20
"""Of a request or an answer, decoded, more than this is passed on without being read."""

_NO_USAGE = Usage()
_KIND = re.compile(r"[a-z_]{1,40}")
_NAME_CHARACTERS = 100
_LINKS = 50_000


class Ending(StrEnum):
    WHOLE = "whole"
    CUT_OFF = "cut off"  # the upstream broke off in the middle of its answer
    ABANDONED = "abandoned"  # the client left first
    UNREACHABLE = "unreachable"  # there was no answer at all


@dataclass(frozen=True, slots=True)
class Prefix:
    """How requests stand to the ones before them, in messages: `kept` are equal from the start on, `moved` had been
    sent and are not in their place any more. A request that begins like no other begins a history."""

    histories: int = 0
    kept: int = 0
    moved: int = 0
    heads_moved: int = 0


@dataclass(frozen=True, slots=True)
class Seen:
    """One exchange. What was estimated and how the prefix stands is there for requests that the provider took."""

    api: str
    ending: Ending
    status: int = 0
    model: str = ""
    stream: bool = False
    messages: int = 0
    bytes_up: int = 0
    bytes_down: int = 0
    estimated: Mapping[str, int] = field(default_factory=dict)
    prefix: Prefix = Prefix()
    usage: Usage | None = None
    stop: str = ""
    error: str = ""
    unread: str = ""

    @property
    def failed(self) -> bool:
        return self.ending is not Ending.ABANDONED and bool(self.error)


class Exchange:
    """Reads one exchange as it passes by. A body of None was too large to be kept."""

    def __init__(self, method: str, path: str, body: bytes | None, histories: "Histories") -> None:
        self.api = "messages" if (method, path) == ("POST", "/v1/messages") else "other"
        self._body, self._histories = body, histories
        self._status = 0
        self._events: anthropic.StreamReader | None = None
        self._whole = bytearray()
        self._heard_bytes = 0
        self._deaf = ""

    def answer_began(self, status: int, content_type: str, *, legible: bool = True) -> None:
        """`legible` says whether the pieces to come can be handed over decoded."""
        self._status = status
        if content_type.lower().startswith("text/event-stream"):
            self._events = anthropic.StreamReader()
        if not legible:
            self.not_legible()

    def not_legible(self) -> None:
        self._deaf = self._deaf or "answer in an encoding that is not read"

    @property
    def listening(self) -> bool:
        """Whether more of the answer is of any use."""
        return self.api == "messages" and not self._deaf

    def hear(self, data: bytes) -> None:
        """The next piece of the answer, without its content encoding."""
        if not self.listening:
            return
        self._heard_bytes += len(data)
        if self._heard_bytes > READ_BYTES:
            self._deaf = "answer too large"
            self._whole.clear()
        elif self._events is None:
            self._whole += data
        else:
            try:
                self._events.feed(data)
            except WireError:
                self._deaf = "answer not understood"

    def finish(self, ending: Ending, *, bytes_up: int = 0, bytes_down: int = 0) -> Seen:
        request, unread = self._request()
        usage, stop, model, error = self._answer(ending)
        taken = request if 200 <= self._status < 300 else None
        return Seen(
            api=self.api,
            ending=ending,
            status=self._status,
            model=(model or (request.model if request else ""))[:_NAME_CHARACTERS],
            stream=self._events is not None,
            messages=len(request.messages) if request else 0,
            bytes_up=bytes_up,
            bytes_down=bytes_down,
            estimated=estimated(taken) if taken else {},
            prefix=self._histories.place(taken) if taken else Prefix(),
            usage=usage,
            stop=stop,
            error=error,
            unread=(unread or self._deaf) if self.api == "messages" else "",
        )

    def _request(self) -> tuple[Request | None, str]:
        if self.api != "messages":
            return None, ""
        if self._body is None:
            return None, "request too large"
        try:
            return anthropic.parse_request(self._body), ""
        except WireError:
            return None, "request not understood"

    def _answer(self, ending: Ending) -> tuple[Usage | None, str, str, str]:
        """Usage, stop reason, model and kind of error, as far as they were heard."""
        usage, stop, model, error = None, "", "", ""
        if self._status >= 400:
            error = error_kind(bytes(self._whole)) or f"status {self._status}"
        elif self._events is not None and self.listening:
            response = self._events.response()
            usage, stop, model = response.usage, response.stop, response.model
            error = "" if self._events.ended else error_kind(self._events.error.encode()) or "no end of message"
        elif self.listening and ending is Ending.WHOLE:
            try:
                response = anthropic.parse_response(bytes(self._whole))
            except WireError:
                self._deaf = "answer not understood"
            else:
                usage, stop, model = response.usage, response.stop, response.model
        return usage, stop, model, error if ending is Ending.WHOLE else str(ending)


def error_kind(body: bytes) -> str:
    """The kind that an error body names, or "" where it names none."""
    try:
        value = json_text.parse(json_text.text_of(body))
    except WireError:
        return ""
    inner = value.get("error") if isinstance(value, dict) else None
    kind = inner.get("type") if isinstance(inner, dict) else None
    return kind if isinstance(kind, str) and _KIND.fullmatch(kind) else ""


def estimated(request: Request) -> dict[str, int]:
    """Prompt tokens by what they are spent on: tools, results, and the other words of each role. Media are left out."""
    count = tokens.counter_for(request.model).count
    parts: Counter[str] = Counter(tools=sum(map(count, request.tools)))
    for message in (*request.head, *request.messages):
        parts[str(message.role)] += tokens.FRAME
        for block in message.blocks:
            part = "results" if block.kind is BlockKind.RESULT else str(message.role)
            parts[part] += count(block.text) + (count(block.name) if block.name else 0)
    return dict(parts)


def canonical(message: Message) -> str:
    """A message as the provider's cache takes it: marks dropped, a string the same as one text block, ids kept."""
    return _canonical(message.raw)


def _canonical(raw: str) -> str:
    value = json_text.parse(raw)
    if not isinstance(value, dict):
        return json_text.dumps(_content(value))
    rest = {key: part for key, part in value.items() if key not in ("role", "content", "cache_control")}
    return json_text.dumps([value.get("role"), _content(value.get("content")), rest])


def _content(content: Any) -> Any:
    if isinstance(content, str):
        return [{"type": "text", "text": content}]
    return [_block(block) for block in content] if isinstance(content, list) else content


def _block(block: Any) -> Any:
    """Marks are dropped from a block and from the blocks inside a result; what a call passes to a tool is not ours."""
    if not isinstance(block, dict):
        return block
    kept = {key: part for key, part in block.items() if key != "cache_control"}
    if block.get("type") == "tool_result" and "content" in kept:
        kept["content"] = _content(kept["content"])
    return kept


class Histories:
    """Tells how a request stands to the ones before it, by a chain of hashes: a link stands for a message and for all
    before it. The least recently used links are forgotten; nothing but hashes is kept.

    A fork (an edited turn, a side question) looks like a prefix that moved, until its parent goes on.
    """

    def __init__(self, most: int = _LINKS) -> None:
        self._most = most
        self._newest: dict[bytes, tuple[int, bytes]] = {}  # the length and head of the newest request through a link
        self._digests: dict[bytes, bytes] = {}

    def place(self, request: Request) -> Prefix:
        """How this request stands to what was seen before it; it is remembered from here on."""
        head, links = self.head(request), self.links(request.messages)
        found = Prefix(histories=1)
        for kept in range(len(links), 0, -1):
            if before := self._newest.get(links[kept - 1]):
                length, head_before = before
                found = Prefix(kept=kept, moved=length - kept, heads_moved=int(head != head_before))
                break
        for link in links:
            self._newest.pop(link, None)
            self._newest[link] = (len(links), head)
        while len(self._newest) > self._most:
            del self._newest[next(iter(self._newest))]
        return found

    def links(self, messages: Sequence[Message]) -> list[bytes]:
        """For each message the history as far as that message: equal links mean equal messages up to there."""
        found: list[bytes] = []
        link = bytes(32)
        for message in messages:
            link = _hash(link + self._digest(message.raw))
            found.append(link)
        return found

    def head(self, request: Request) -> bytes:
        """A hash of what stands before the messages in cache order: tools and system prompt."""
        return _hash(b"".join(map(self._digest, (*request.tools, *(message.raw for message in request.head)))))

    def _digest(self, raw: str) -> bytes:
        # Every request repeats nearly all of the one before it; hashing what arrived is far cheaper than reading it.
        key = _hash(json_text.bytes_of(raw))
        found = self._digests.get(key)
        if found is None:
            if len(self._digests) >= self._most:
                self._digests.clear()
            found = self._digests[key] = _hash(_canonical(raw).encode())
        return found


def _hash(data: bytes) -> bytes:
    return hashlib.sha256(data).digest()


@dataclass(frozen=True, slots=True, kw_only=True)
class Totals:
    """Counts over exchanges; adding two is counting both. `messages`, `estimated` and `prefix` count the requests that
    the provider took, so that they can be held against the usage it reported."""

    requests: int = 0
    streamed: int = 0
    failed: int = 0
    abandoned: int = 0
    faults: int = 0
    bytes_up: int = 0
    bytes_down: int = 0
    messages: int = 0
    usage: Usage = _NO_USAGE
    estimated: Mapping[str, int] = field(default_factory=dict)
    prefix: Prefix = Prefix()
    errors: Mapping[str, int] = field(default_factory=dict)
    unread: Mapping[str, int] = field(default_factory=dict)
    by_model: Mapping[str, "Totals"] = field(default_factory=dict)

    @classmethod
    def of(cls, seen: Seen) -> "Totals":
        counts = cls(
            requests=1,
            streamed=int(seen.stream),
            failed=int(seen.failed),
            abandoned=int(seen.ending is Ending.ABANDONED),
            bytes_up=seen.bytes_up,
            bytes_down=seen.bytes_down,
            messages=seen.messages if seen.estimated else 0,
            usage=seen.usage or _NO_USAGE,
            estimated=seen.estimated,
            prefix=seen.prefix,
            errors={seen.error: 1} if seen.failed else {},
            unread={seen.unread: 1} if seen.unread else {},
        )
        # Only what a provider answered to: any name can be asked for, and each would be kept for ever.
        return replace(counts, by_model={seen.model: counts}) if seen.usage and seen.model else counts

    def __add__(self, other: "Totals") -> "Totals":
        return _sum_parts(self, other)

    def to_json(self) -> str:
        return json_text.dumps(asdict(self))


_Parts = TypeVar("_Parts", Totals, Usage, Prefix)


def _sum_parts(one: _Parts, other: _Parts) -> _Parts:
    return type(one)(**{part.name: _sum(getattr(one, part.name), getattr(other, part.name)) for part in fields(one)})


def _sum(one: Any, other: Any) -> Any:
    if isinstance(one, Mapping):
        return {**one, **other, **{key: _sum(one[key], other[key]) for key in one if key in other}}
    return _sum_parts(one, other) if isinstance(one, Totals | Usage | Prefix) else one + other
