"""Names a history by its messages alone: a chain of hashes, one for each message and all that come before it.

Two messages have the same hash where the provider's prompt cache takes them for the same: cache marks are dropped, a
string is one text block, ids are kept. So a retry is the same history, and an edited turn or a sub-agent is another,
whatever session it claims to be in. Notes are stored under these hashes.
"""

from collections.abc import Iterable, Sequence
from hashlib import sha256
from typing import Any, NamedTuple

from pagefold.wire import json_text
from pagefold.wire.json_text import dumps
from pagefold.wire.message import Message, Request, Role
from pagefold.wire.shared_parsing import unmarked

NO_HASH = bytes(32)
"""The prefix hash before the first message."""
_MESSAGES = 50_000
_HASHED = frozenset(("role", "content", "cache_control"))


class Root(NamedTuple):
    """Where a history begins: the prefix hash of its first request, and of the first answer, where there is one.

    Histories that begin with the same words share the first hash; no two share an answer.
    """

    asked: bytes
    answered: bytes | None


def root_of(messages: Sequence[Message], hashes: Sequence[bytes]) -> Root:
    """Where a history with at least one message begins."""
    first = next((place for place, message in enumerate(messages) if message.role is Role.ASSISTANT), None)
    if first is None:
        return Root(hashes[-1], None)
    return Root(hashes[max(0, first - 1)], hashes[first])


def canonical(value: Any) -> str:
    """The JSON value of a message as the provider's cache takes it, as text to be hashed."""
    if not isinstance(value, dict):
        return dumps(unmarked(value))
    role, content = dumps(value.get("role")), value.get("content")
    # The JSON of what `unmarked` makes of it: a text needs no list to be made.
    spelled = f'[{{"type":"text","text":{dumps(content)}}}]' if isinstance(content, str) else dumps(unmarked(content))
    if value.keys() <= _HASHED:
        return f"[{role},{spelled},{{}}]"
    rest = {key: part for key, part in value.items() if key not in _HASHED}
    return f"[{role},{spelled},{dumps(rest)}]"


def prefix_hashes_of(values: Iterable[Any], before: bytes) -> list[bytes]:
    """The prefix hash of each of the messages that have these JSON values; `before` is that of what comes before."""
    hashes: list[bytes] = []
    for value in values:
        before = sha256(before + sha256(canonical(value).encode()).digest()).digest()
        hashes.append(before)
    return hashes


def raw_prefix_hashes(messages: Iterable[Message], before: bytes = b"") -> list[bytes]:
    """The prefix hashes that `Context` made of messages as they were spelled, until it took the canonical ones. Its
    notes of that time lie in stores, and histories that began under them go on under them."""
    hashes: list[bytes] = []
    for message in messages:
        before = sha256(before + json_text.bytes_of(message.raw)).digest()
        hashes.append(before)
    return hashes


class MessageHashes:
    """Hashes messages, and remembers the hash of each by the bytes that arrived: hashing those is far cheaper than
    reading them."""

    def __init__(self, most: int = _MESSAGES) -> None:
        self._most = most
        self._hashes: dict[bytes, bytes] = {}

    def of(self, raw: str) -> bytes:
        """The hash of one message."""
        key = sha256(json_text.bytes_of(raw)).digest()
        known = self._hashes.get(key)
        if known is None:
            if len(self._hashes) >= self._most:
                self._hashes.clear()
            known = self._hashes[key] = sha256(canonical(json_text.parse(raw)).encode()).digest()
        return known

    def prefix_hashes(self, messages: Iterable[Message], before: bytes = NO_HASH) -> list[bytes]:
        """The prefix hash of each message."""
        hashes: list[bytes] = []
        for message in messages:
            before = sha256(before + self.of(message.raw)).digest()
            hashes.append(before)
        return hashes

    def head(self, request: Request) -> bytes:
        """A hash of what stands before the messages in cache order: tools and system prompt."""
        return sha256(b"".join(map(self.of, (*request.tools, *(message.raw for message in request.head))))).digest()
