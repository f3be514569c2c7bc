"""Parses requests; one that goes on from one of the last few costs what is new in it."""

from pagefold.wire.api import Api
from pagefold.wire.incremental_parse import parse_again
from pagefold.wire.message import Request

_REQUESTS = 64
_BEGINNING = 1024


class RequestMemory:
    """The newest requests, by how their bodies begin."""

    def __init__(self) -> None:
        self._requests: dict[tuple[str, bytes], Request] = {}

    def parse(self, api: Api, body: bytes) -> Request:
        """Raises WireError."""
        key = api.name, body[:_BEGINNING]
        before = self._requests.pop(key, None)
        again = parse_again(body, before, api.shape) if before is not None else None
        request = again[0] if again is not None else api.parse_request(body)
        self._requests[key] = request
        if len(self._requests) > _REQUESTS:
            del self._requests[next(iter(self._requests))]
        return request
