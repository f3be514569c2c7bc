"""What an API is: one value that says how its requests, answers, calls and errors are written.

All that differs between APIs is a field here. Whoever handles requests asks the value and names no API.
"""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pagefold.errors import WireError
from pagefold.wire import json_text, sse
from pagefold.wire.json_text import as_object
from pagefold.wire.message import BlockKind, Message, Request, RequestShape, Response, Role, linked, user_text
from pagefold.wire.turn import TurnView

_KIND = re.compile(r"[a-z_]{1,40}")
_PLAIN_ERROR = ("message", "__type")
# As the providers and the servers that speak like them put it.
_TOO_LONG = re.compile(
    r"context_length_exceeded|(?:prompt|input) is too long|maximum context|context (?:window|length|limit)"
    r"|too many tokens|exceeds? the (?:model's )?(?:context|maximum)|request_too_large",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class AccountUpstream:
    """Where a provider takes requests of clients that have logged in: its name and address as an upstream. Those
    clients are known by `header`. The address stands in place of the API's version, `/v1`."""

    name: str
    url: str
    header: str


@dataclass(frozen=True, slots=True)
class ApiProvider:
    """Who answers an API, by the name of its upstream.

    Besides the paths of its APIs, `paths` go to its upstream. So do `shared_paths`, which other providers have too, if
    it has an upstream and the request has no other provider's `header`, by which that provider's clients are known.
    `window_flag` is a header, a word in it, and how many tokens fit where a request has that. `account` is where its
    clients go that have a login in place of a key. `url` is its address where no setting says another. `key_header` is
    the header that carries a key, and what stands there before it.
    """

    name: str
    paths: tuple[str, ...] = ()
    shared_paths: tuple[str, ...] = ()
    header: str = ""
    window_flag: tuple[bytes, bytes, int] | None = None
    account: AccountUpstream | None = None
    url: str = ""
    key_header: tuple[bytes, bytes] = (b"authorization", b"Bearer ")


@dataclass(frozen=True, slots=True)
class CallFormat:
    """How calls of tools and their results are written in messages.

    `speaks` tells by a message's JSON whether it is one of this API; `call_id_paths` where the ids of its calls are;
    `result` writes the result of a call (its id, the text, the message that called); `with_results` keeps those results
    of a message that are numbered, under the ids given, and returns None where nothing is left; `parted` splits a
    message that says more than results. `answers_in_items`: other items of the same answer may follow a call before its
    result.
    """

    speaks: Callable[[Mapping[str, Any]], bool]
    call_id_paths: Callable[[Mapping[str, Any]], Iterator[json_text.Path]]
    result: Callable[[str, str, Message], Message]
    with_results: Callable[[Message, Mapping[int, str]], Message | None]
    parted: Callable[[Message], tuple[Message, Message]] = lambda message: (message, message)
    answers_in_items: bool = False


@dataclass(frozen=True, slots=True)
class CacheMarks:
    """How a client marks what the provider is to cache: `of` reads a message's mark (JSON, or ""), `put` sets one at
    its end and returns None where nothing there can carry it. `asks_long` tells whether a request asks for the longer
    of two lives, `filling` writes a request that reads what this one has cached and gets no answer, or returns None
    where the provider would refuse it."""

    of: Callable[[Message], str]
    put: Callable[[Message, str], Message | None]
    asks_long: Callable[[Request], bool] = lambda request: False
    filling: Callable[[Request], bytes | None] = lambda request: None


@dataclass(frozen=True, slots=True)
class ReasoningFormat:
    """How messages carry reasoning that the provider binds to what stood before it, and refuses behind anything else.

    One of `signs` is in every request or stream that carries some. `keys` returns for each piece in a message what
    tells it from all others, `without` the message without them. `binds` tells whether a model of this name may check
    them, `is_bound` whether that of a request may. `refused_from` reads an error: the place of the first message whose
    reasoning was refused, or None.
    """

    signs: tuple[bytes, ...]
    keys: Callable[[Message], tuple[str, ...]]
    without: Callable[[Message], Message]
    binds: Callable[[str], bool]
    is_bound: Callable[[Request], bool]
    refused_from: Callable[[int, bytes], int | None]


@dataclass(frozen=True, slots=True)
class ResultClearing:
    """How a request asks its provider to clear tool results: by the member `key`. `asked` tells whether its JSON does,
    `without` returns the JSON that does not."""

    key: str
    asked: Callable[[str], bool]
    without: Callable[[str], str]


def error_json(kind: str, message: str) -> str:
    """An error as the providers known here spell it."""
    return json_text.dumps({"type": "error", "error": {"type": kind, "message": message}})


def error_members(body: bytes) -> Mapping[str, Any]:
    """The members of the error in an error body, or of the body where it is the error itself, as AWS writes it; empty
    where there is none."""
    try:
        value = json_text.parse(json_text.text_of(body))
    except WireError:
        return {}
    members = as_object(value)
    return as_object(members.get("error")) or {key: members[key] for key in _PLAIN_ERROR if key in members}


@dataclass(frozen=True, slots=True)
class Api:
    """One way to ask a model, asked by POST at `path`, or at those that `api_paths` knows besides. `name` stands in
    stored notes and totals and never changes.

    `shape` tells where model, system prompt, tools, messages and stream stand in a request; `stream` reads a streamed
    answer; `turn` shows a client an answer without the calls that are hidden from it (None: no recall inside a turn).
    `reasoning` is there where reasoning is bound to what stood before it.
    `continues` names what the provider holds of the conversation, `plain` drops what differs between two spellings of
    one message, `user_text` writes a text of the user, `alternating` joins neighbours of one side where the provider
    refuses them, `error` writes an error, and `read_error` returns an error's members, `type` or `code` among them.
    """

    name: str
    path: str
    provider: ApiProvider
    shape: RequestShape
    parse_request: Callable[[bytes], Request]
    parse_response: Callable[[bytes], Response]
    stream: type[sse.StreamedAnswer]
    calls: CallFormat
    turn: type[TurnView] | None = None
    continues: Callable[[Request], str] = lambda request: ""
    clearing: ResultClearing | None = None
    marks: CacheMarks | None = None
    reasoning: ReasoningFormat | None = None
    plain: Callable[[Message], Message] = lambda message: message
    user_text: Callable[[str], Message] = user_text
    alternating: Callable[[Sequence[Message]], Sequence[Message]] = lambda messages: messages
    error: Callable[[str, str], str] = error_json
    read_error: Callable[[bytes], Mapping[str, Any]] = error_members

    def parse_message(self, raw: str) -> Message:
        """Raises WireError."""
        return self.shape.parse(json_text.parse(raw), raw)

    def linked(self, messages: Sequence[Message], before: Sequence[Message] = ()) -> list[Message]:
        """Messages that follow others in a history, with what they take from their place and the message before."""
        link = self.shape.link
        if link is None:
            return list(messages)
        placed = [
            self.shape.parse(json_text.parse(message.raw), message.raw, place)
            for place, message in enumerate(messages, len(before))
        ]
        return linked(placed, link, before[-1] if before else None)

    def clears_results(self, request: Request) -> bool:
        """Whether the provider may clear results in this request. Raises WireError."""
        return self.clearing is not None and self.clearing.asked(request.member(self.clearing.key))

    def spelled(self, messages: list[Message]) -> list[Message]:
        """Messages as this API spells them: with those that a policy wrote as texts of the user."""
        if self.user_text is not user_text:
            messages = [self.user_text(message.text) if _is_written(message) else message for message in messages]
        return list(self.alternating(messages))

    def error_kind(self, body: bytes) -> str:
        """The kind that an error body names, or "" where it names none."""
        members = self.read_error(body)
        kind = members.get("type") or members.get("code")
        return kind if isinstance(kind, str) and _KIND.fullmatch(kind) else ""

    def is_too_long(self, status: int, body: bytes) -> bool:
        """Whether a provider refused a request because it does not fit into the model's window."""
        if status not in (400, 413, 422):
            return False
        texts = [text for text in self.read_error(body).values() if isinstance(text, str)]
        return any(_TOO_LONG.search(text) is not None for text in texts)


def _is_written(message: Message) -> bool:
    """Whether a policy wrote a message: it has no place in the client's history and holds nothing but text."""
    is_text = all(block.kind is BlockKind.TEXT for block in message.blocks)
    return message.place < 0 and message.role is Role.USER and is_text
