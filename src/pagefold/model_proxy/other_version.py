"""Hands requests on to instances of another version of pagefold, for as long as both serve.

A conversation goes on byte for byte only with the version that began it. While a new version takes over, one that an
earlier version began is handed on to an instance of that: the request as it came, and its answer as it comes. That
instance derives, counts and records it. Where none answers any more, the conversation is derived anew here, once.
A request that was handed on is never handed on again.
"""

from collections.abc import Mapping
from contextlib import suppress
from typing import NamedTuple

import aiohttp

from pagefold.adapters.asgi import Event
from pagefold.model_proxy.aws_signing import Session
from pagefold.model_proxy.http import (
    CAME_WITH,
    HANDED_ON_HEADER,
    are_text,
    beginning,
    not_to_add,
    passed_on,
    sendable,
)
from pagefold.model_proxy.upstreams import Upstreams
from pagefold.wire.api import error_members
from pagefold.wire.json_text import as_string

_OWN = frozenset((b"host", b"expect"))
_NOBODY = frozenset((502, 503, 504))  # from whatever stands before the instances
_OUR_HEADERS, _OUR_NAME = "x-pagefold-", "pagefold"
_ERROR_BYTES = 64 << 10
_TRIES = 2  # one of several instances may have gone, and its connection was kept


class GivenAnswer(NamedTuple):
    """An answer of another instance, and the part of its body that was read already."""

    response: aiohttp.ClientResponse
    begun: bytes = b""


class OtherVersion:
    """The instances of another version, at one `address`; "" is none."""

    def __init__(self, address: str = "") -> None:
        self._upstreams = Upstreams({"": address})
        self._is_there = bool(address)

    def takes(self, named: Mapping[bytes, bytes]) -> bool:
        """Whether a request with these headers could be handed on. One that is signed for AWS is for one address."""
        signed = named.get(b"authorization", b"").startswith(b"AWS4-")
        return self._is_there and HANDED_ON_HEADER not in named and not signed

    async def answer(self, session: Session, scope: Event, body: bytes) -> GivenAnswer | None:
        """The answer of an instance of the other version, or None where there is none any more."""
        target = self._upstreams.at("", scope["raw_path"], scope["query_string"])
        headers = passed_on(scope.get(CAME_WITH, scope["headers"]), _OWN)
        if target is None or not are_text(headers):
            return None
        sent = [(name.decode(), value.decode()) for name, value in [*headers, (HANDED_ON_HEADER, b"1")]]
        answer = None
        for _ in range(_TRIES):
            with suppress(aiohttp.ClientError, OSError):
                answer = await session.request(
                    scope["method"],
                    target,
                    headers=sent,
                    data=sendable(body),
                    allow_redirects=False,
                    skip_auto_headers=not_to_add(dict(headers)),
                )
                break
        if answer is None:
            return None
        if answer.status not in _NOBODY or any(name.lower().startswith(_OUR_HEADERS) for name in answer.headers):
            return GivenAnswer(answer)
        with suppress(aiohttp.ClientError, OSError):
            begun = await beginning(answer, _ERROR_BYTES)
            if _OUR_NAME in as_string(error_members(begun).get("message")):  # it is there, and the provider is not
                return GivenAnswer(answer, begun)
        answer.close()
        return None
