"""Requests as they are read: one that begins like one seen lately costs only what is new in it.

A reading says the same whether it was read whole or from where it differs; what is remembered is a cache of work and
bounded. Bodies are found again by hashes of what their beginnings, of doubling lengths, end in, the longest first, and
compared before they are used.
"""

from dataclasses import dataclass, field

from pagefold.model_proxy.apis import Api
from pagefold.model_proxy.histories import NO_LINK, Digests
from pagefold.wire import json_text
from pagefold.wire.message import Request
from pagefold.wire.reread import reread

_CHARACTERS = 32 << 20
_FIRST = 256  # characters of the shortest beginning that is hashed
_SAMPLE = 1024  # of a longer one only the end: whoever is found is compared, and reading all of it twice is dear


@dataclass(slots=True, eq=False)
class Reading:
    """One request of an API, with the link of each of its messages and the hash of its head. `keys` is under what it is
    found, `known` how long the longest of those beginnings is."""

    api: Api
    request: Request
    links: list[bytes]
    head: bytes
    keys: list[int] = field(default_factory=list)
    known: int = 0


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
        before = self._like(api, text)
        request = reread(text, before.request, api.shape) if before else None
        if before is None or request is None:
            request = api.parse_request(body)
            reading = Reading(api, request, self.digests.links(request.messages), self.digests.head(request))
        else:
            reading = self._after(before, request)
        self._keep(reading)
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
        reading = Reading(before.api, request, links, before.head if same else self.digests.head(request))
        if request.end_of(kept) >= before.known:  # it begins like all that the other is found by, and takes its place
            reading.keys, reading.known, before.keys = before.keys, before.known, []
            self._found.update(dict.fromkeys(reading.keys, reading))
            self._drop(before)
        return reading

    def _like(self, api: Api, text: str) -> Reading | None:
        """The reading with the longest beginning in common, as far as it shows."""
        stop = 1 << len(text).bit_length()
        while (stop := stop // 2) >= _FIRST:
            if found := self._found.get(_key(api, text, stop)):
                return found
        return None

    def _keep(self, reading: Reading) -> None:
        request = reading.request
        if len(request.body) > self._most // 4:
            for key in reading.keys:
                del self._found[key]
            return
        stop = reading.known * 2 or _FIRST
        while stop <= request.end:  # what comes behind the messages moves with every turn
            key = _key(reading.api, request.body, stop)
            if other := self._found.get(key):
                other.keys.remove(key)
                if not other.keys:
                    self._drop(other)
            reading.keys.append(key)
            self._found[key] = reading
            reading.known, stop = stop, stop * 2
        if not reading.keys:
            return
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


def _key(api: Api, text: str, stop: int) -> int:
    """The key of a text's beginning of this length."""
    return hash((api.name, stop, text[max(0, stop - _SAMPLE) : stop]))
