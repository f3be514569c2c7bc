"""Which history a request belongs to, told by the request alone: a chain of hashes, one link for each message.

A link stands for a message and for all before it. Two messages are the same where the provider's cache takes them for
the same: cache marks are dropped, a string is one text block, ids are kept. So a retry is the same history, an edited
turn and a sub-agent are others, whatever session they claim to be in.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from hashlib import sha256
from itertools import islice
from typing import Any, NamedTuple

from pagefold.log import Log
from pagefold.model_proxy.totals import Prefix
from pagefold.wire import json_text
from pagefold.wire.anthropic import unmarked
from pagefold.wire.json_text import dumps
from pagefold.wire.message import Message, Request

NO_HASH = bytes(32)
_HASHES = 50_000
_READ = frozenset(("role", "content", "cache_control"))


def canonical(message: Message) -> str:
    """A message as the provider's cache takes it: marks dropped, a string the same as one text block, ids kept."""
    return _canonical(json_text.parse(message.raw))


def _canonical(value: Any) -> str:
    if not isinstance(value, dict):
        return dumps(unmarked(value))
    role, content = dumps(value.get("role")), value.get("content")
    # The JSON of what `unmarked` makes of it: a text needs no list to be made.
    spelled = f'[{{"type":"text","text":{dumps(content)}}}]' if isinstance(content, str) else dumps(unmarked(content))
    if value.keys() <= _READ:
        return f"[{role},{spelled},{{}}]"
    rest = {key: part for key, part in value.items() if key not in _READ}
    return f"[{role},{spelled},{dumps(rest)}]"


def prefix_hashes_of(values: Iterable[Any], link: bytes) -> list[bytes]:
    """For each of the messages that say these values the history as far as it, where `link` is what came before."""
    found: list[bytes] = []
    for value in values:
        link = sha256(link + sha256(_canonical(value).encode()).digest()).digest()
        found.append(link)
    return found


class MessageHashes:
    """The hash of each message's canonical form. Remembers them by the bytes that arrived: hashing those is far
    cheaper than reading them."""

    def __init__(self, most: int = _HASHES) -> None:
        self._most = most
        self._known: dict[bytes, bytes] = {}

    def digest(self, raw: str) -> bytes:
        key = hash_of(json_text.bytes_of(raw))
        found = self._known.get(key)
        if found is None:
            if len(self._known) >= self._most:
                self._known.clear()
            found = self._known[key] = hash_of(_canonical(json_text.parse(raw)).encode())
        return found

    def prefix_hashes(self, messages: Iterable[Message], link: bytes = NO_HASH) -> list[bytes]:
        """For each message the history as far as that message, where `link` stands for what came before."""
        found: list[bytes] = []
        for message in messages:
            link = hash_of(link + self.digest(message.raw))
            found.append(link)
        return found

    def head(self, request: Request) -> bytes:
        """A hash of what stands before the messages in cache order: tools and system prompt."""
        return hash_of(b"".join(map(self.digest, (*request.tools, *(message.raw for message in request.head)))))


class Last(NamedTuple):
    """What the newest request of a history came to: tokens of its messages by what they are spent on, as some counter
    has them, all tokens that went upstream, and when."""

    parts: Mapping[str, int]
    counter: str
    estimated: int
    at: float


@dataclass(slots=True)
class Tip:
    """The newest request that went through some hashes: how long it was, its head, and what it came to."""

    length: int
    head: bytes
    last: Last | None = None


class Histories:
    """Tells how a request relates to earlier ones. Keeps only hashes and counts, and forgets the least recently used.

    A fork (an edited turn, a side question) looks like a prefix that moved, until its parent goes on.
    """

    def __init__(self, most: int = _HASHES) -> None:
        self._most = most
        self._newest: dict[bytes, Tip] = {}

    def nearest(self, hashes: Log[bytes]) -> tuple[Tip | None, int]:
        """The newest request that has the most messages in common with this one, and how many they are."""
        newest, kept = self._newest, hashes.length
        for link in reversed(hashes):
            if (tip := newest.get(link)) is not None:
                return tip, kept
            kept -= 1
        return None, 0

    def place(self, hashes: Log[bytes], head: bytes) -> tuple[Prefix, Tip]:
        """How this request stands to what was seen before it; it is remembered from here on, as the tip. That still
        says what the request before it came to."""
        tip, kept = self.nearest(hashes)
        if tip is None:
            found, tip = Prefix(histories=1), Tip(0, head)
        else:
            found = Prefix(0, kept, tip.length - kept, int(head != tip.head))
            if tip.length != kept:  # it is no mere continuation: from now on all its hashes lead here
                tip, kept = Tip(0, head, tip.last), 0
        tip.length, tip.head = hashes.length, head
        newest = self._newest
        for link in hashes.since(kept):
            newest.pop(link, None)
            newest[link] = tip
        if len(newest) > self._most:
            # Many at once: to find its first key, a dict looks past all that were deleted before it.
            for link in list(islice(newest, len(newest) - self._most + self._most // 16)):
                del newest[link]
        return found, tip


def hash_of(data: bytes) -> bytes:
    return sha256(data).digest()
