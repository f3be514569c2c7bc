"""Requests as they are read: one that begins like one seen lately costs only what is new in it.

A reading says the same whether it was read whole or from where it differs; what is remembered is a cache of work and
bounded. Bodies are found again by hashes of what their beginnings, of doubling lengths, end in, and compared before
they are used.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field

from pagefold.model_proxy.apis import Api
from pagefold.model_proxy.histories import NO_LINK, Digests
from pagefold.wire import json_text
from pagefold.wire.message import Request
from pagefold.wire.reread import reread

_CHARACTERS = 32 << 20
_FIRST = 8  # the shortest beginning that is hashed has two to the power of this many characters
_SAMPLE = 1024  # of a longer one only the end: whoever is found is compared, and reading all of it twice is dear


@dataclass(slots=True, eq=False)
class Reading:
    """One request of an API, with the link of each of its messages and the hash of its head."""

    api: Api
    request: Request
    links: list[bytes]
    head: bytes
    keys: list[int] = field(default_factory=list)


class Readings:
    """The bodies seen lately, up to a number of characters."""

    def __init__(self, most: int = _CHARACTERS, digests: Digests | None = None) -> None:
        self._most, self.digests = most, digests or Digests()
        self._found: dict[int, Reading] = {}
        self._kept: dict[int, Reading] = {}
        self._characters = 0

    def read(self, api: Api, body: bytes) -> Reading:
        """Raises WireError."""
        text = json_text.text_of(body)
        keys: list[int] = []
        before = self._like(api, text, keys)
        request = reread(text, before.request, api.shape) if before else None
        if before is None or request is None:
            request = api.parse_request(body)
            reading = Reading(api, request, self.digests.links(request.messages), self.digests.head(request))
        else:
            reading = self._after(before, request)
        self._keep(reading, keys)
        return reading

    def _after(self, before: Reading, request: Request) -> Reading:
        old = before.request
        kept = min(len(old.messages), len(request.messages))
        # What was kept are the same objects, so the first from behind that is the same ends what was kept.
        while kept and old.messages[kept - 1] is not request.messages[kept - 1]:
            kept -= 1
        links = before.links[:kept]
        links += self.digests.links(request.messages[kept:], links[-1] if links else NO_LINK)
        same = request.tools is old.tools and request.head is old.head
        return Reading(before.api, request, links, before.head if same else self.digests.head(request))

    def _like(self, api: Api, text: str, keys: list[int]) -> Reading | None:
        """The reading with the longest beginning in common. Adds the keys it looked for to `keys`."""
        found: Reading | None = None
        for key in _keys(api, text, keys, len(text)):
            keys.append(key)
            if key not in self._found:
                break
            found = self._found[key]
        return found

    def _keep(self, reading: Reading, keys: list[int]) -> None:
        request = reading.request
        keys += _keys(reading.api, request.body, keys, request.end)
        # What comes behind the messages moves with every turn.
        reading.keys = keys[: max(0, request.end.bit_length() - _FIRST)]
        if not reading.keys or len(request.body) > self._most // 4:
            return
        for key in reading.keys:
            if other := self._found.get(key):
                other.keys.remove(key)
                if not other.keys:
                    self._drop(other)
            self._found[key] = reading
        self._kept[id(reading)] = reading
        self._characters += len(request.body)
        while self._characters > self._most:
            oldest = self._kept[next(iter(self._kept))]
            for key in oldest.keys:
                del self._found[key]
            self._drop(oldest)

    def _drop(self, reading: Reading) -> None:
        del self._kept[id(reading)]
        self._characters -= len(reading.request.body)


def _keys(api: Api, text: str, known: list[int], end: int) -> Iterator[int]:
    """Keys for beginnings each twice as long as the one before, from the first that is not `known` yet up to `end`."""
    key: int | str = known[-1] if known else api.name
    stop = 1 << (_FIRST + len(known))
    start = stop // 2 if known else 0
    while stop <= end:
        key = hash((key, text[max(start, stop - _SAMPLE) : stop]))
        yield key
        start, stop = stop, stop * 2
