"""Parses requests, and remembers the newest: one that begins like one seen lately costs only what is new in it.

A parsed request is the same whether it was parsed whole or from where it differs; what is remembered is a cache of work
and bounded. Earlier bodies are found by hashes of their beginnings, of doubling lengths, the longest first, and are
compared before they are used.
"""

from dataclasses import dataclass, field, replace

from pagefold.derive.prefix_hashes import MessageHashes, Root, prefix_hashes_of
from pagefold.lock import Lock
from pagefold.log import Log
from pagefold.wire.api import Api
from pagefold.wire.incremental_parse import Reparsed, parse_again
from pagefold.wire.message import Request, Role

_BYTES = 32 << 20
_FIRST = 256  # bytes of the shortest beginning that is hashed
_WHOLE = 64 << 10
_SAMPLE = 1024
"""What follows the first 64 KiB is sampled at the end of each beginning: whoever is found is compared, and hashing all
of it is dear. Were less hashed, agents that are given the same files under prompts of one length would be taken for one
another, and each of their requests read whole."""


@dataclass(slots=True, eq=False)
class ParsedRequest:
    """One request of an API, with the prefix hash of each of its messages and the hash of its head.

    `first` is where the model's first answer stands, or how many messages there are where it has not answered yet;
    `answered` is the prefix hash of that answer.
    `continued` says that it goes on from what the provider holds, `clears` that the provider may clear results in it,
    `bound` that the model may refuse reasoning which was made behind something else.
    `after` tells nothing of the request, but how it was read: how many messages the history had in the reading that it
    goes on from, or 0.
    """

    api: Api
    request: Request
    prefix_hashes: Log[bytes]
    head: bytes
    first: int
    answered: bytes | None
    continued: bool
    clears: bool
    bound: bool
    after: int = field(default=0, compare=False)
    name: str = field(init=False, default="")
    """The name of its conversation in the store: the prefix hash as far as the model's first answer, whose ids no
    other conversation has. What is derived later, in a fork too, belongs to that conversation."""

    def __post_init__(self) -> None:
        self.name = (self.answered or (self.prefix_hashes[-1] if self.prefix_hashes else b"")).hex()

    @property
    def root(self) -> Root:
        """Where the history begins. It has at least one message."""
        return Root(self.prefix_hashes[max(0, self.first - 1)], self.answered)


@dataclass(slots=True, eq=False)
class _CachedBody:
    """The newest of the requests that begin alike. `keys` is under what it is found, `length` how long the longest of
    those beginnings is."""

    reading: ParsedRequest
    keys: list[int] = field(default_factory=list)
    length: int = 0


class RequestCache:
    """The bodies seen lately, up to a number of bytes. Threads may share it; they parse side by side."""

    def __init__(self, most: int = _BYTES, message_hashes: MessageHashes | None = None) -> None:
        self._most, self.message_hashes = most, message_hashes or MessageHashes()
        self._by_key: dict[int, _CachedBody] = {}
        self._kept: dict[_CachedBody, int] = {}  # in the order of their last use, with their bytes
        self._bytes = 0
        self._lock = Lock()

    def read(self, api: Api, body: bytes, model: str = "", stream: bool | None = None) -> ParsedRequest:
        """`model` and `stream` are what the path says of them. Raises WireError."""
        keys = _keys(hash((api.name, model, stream)), body)
        entry = self._like(keys)
        before = entry.reading if entry else None
        again = parse_again(body, before.request, api.shape) if before else None
        reading = self._after(before, again) if before and again else self._whole(api, body, model, stream)
        with self._lock:
            if entry is not None and again is not None and again[2] >= entry.length:
                entry.reading = reading  # it begins like all that the other is found by, and takes its place
            else:
                entry = _CachedBody(reading)
            self._keep(entry, keys)
        return reading

    def _whole(self, api: Api, body: bytes, model: str, stream: bool | None) -> ParsedRequest:
        request = api.parse_request(body)
        if model or stream is not None:
            said = request.stream if stream is None else stream
            request = replace(request, model=request.model or model, stream=said)
        hashes, head = Log(self.message_hashes.prefix_hashes(request.messages)), self.message_hashes.head(request)
        return ParsedRequest(api, request, hashes, head, *_first_answer(request, hashes), *_asked(api, request))

    def _after(self, before: ParsedRequest, again: Reparsed) -> ParsedRequest:
        """The reading of a request that goes on from one before."""
        request, kept, _, values, alike = again
        hashes = before.prefix_hashes.with_items(prefix_hashes_of(values, before.prefix_hashes[kept - 1]), kept)
        head, first, answered = before.head, before.first, before.answered
        asked = before.continued, before.clears, before.bound
        if first >= kept:
            first, answered = _first_answer(request, hashes)
        if not alike:
            same = request.tools is before.request.tools and request.head is before.request.head
            head = head if same else self.message_hashes.head(request)
            asked = _asked(before.api, request)
        after = before.prefix_hashes.length
        if kept < after and (hashes.length < after or hashes[after - 1] != before.prefix_hashes[-1]):
            after = 0  # what is spelled anew may say the same, but this does not
        return ParsedRequest(before.api, request, hashes, head, first, answered, *asked, after)

    def _like(self, keys: list[int]) -> _CachedBody | None:
        """The reading with the longest beginning in common, as far as it shows."""
        for key in reversed(keys):
            if (entry := self._by_key.get(key)) is not None:
                return entry
        return None

    def _keep(self, entry: _CachedBody, keys: list[int]) -> None:
        request = entry.reading.request
        size = len(request.body)
        self._bytes += size - self._kept.pop(entry, 0)
        self._kept[entry] = size
        stop = entry.length * 2 or _FIRST
        while stop <= request.end:  # what comes behind the messages moves with every turn
            key = keys[(stop // _FIRST).bit_length() - 1]
            if other := self._by_key.get(key):
                other.keys.remove(key)
                if not other.keys:
                    self._drop(other)
            entry.keys.append(key)
            self._by_key[key] = entry
            entry.length, stop = stop, stop * 2
        if not entry.keys or size > self._most // 4:
            self._drop(entry)
        while self._bytes > self._most:
            self._drop(next(iter(self._kept)))

    def _drop(self, entry: _CachedBody) -> None:
        for key in entry.keys:
            self._by_key.pop(key, None)
        entry.keys, entry.length = [], 0
        self._bytes -= self._kept.pop(entry, 0)


def _asked(api: Api, request: Request) -> tuple[bool, bool, bool]:
    """Whether it goes on from what the provider holds, whether the provider may clear results, and whether reasoning is
    bound."""
    bound = api.reasoning is not None and api.reasoning.is_bound(request)
    return bool(api.continues(request)), api.clears_results(request), bound


def _first_answer(request: Request, hashes: Log[bytes]) -> tuple[int, bytes | None]:
    for at, message in enumerate(request.messages):
        if message.role is Role.ASSISTANT:
            return at, hashes[at]
    return hashes.length, None


def _keys(key: int, body: bytes) -> list[int]:
    """The keys of a body's beginnings, the shortest first. Each is made of the one before, the first of `key`, and of
    what follows it."""
    keys: list[int] = []
    start, stop = 0, _FIRST
    while stop <= len(body):
        key = hash((key, body[start if stop <= _WHOLE else stop - _SAMPLE : stop]))
        keys.append(key)
        start, stop = stop, stop * 2
    return keys
