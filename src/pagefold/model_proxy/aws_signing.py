"""Requests to Bedrock that are signed for the proxy's own address: refused in a sentence, or signed again.

A signature of AWS is for one host and one body, and both are others behind a proxy. Where the user has asked for it, a
request is signed again with the user's own access key, after it was derived. Only one that was signed with the very
same key, for this address and this body, is: so nobody can do here what they could not do without the proxy.
"""

import io
import secrets
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from typing import Any, TypeAlias

import aiohttp
from yarl import URL

from pagefold.adapters.asgi import Event, Receive
from pagefold.model_proxy.http import CAME_WITH, Upload
from pagefold.wire.apis import providers
from pagefold.wire.aws_signature import (
    ALGORITHM,
    NO_SIGNATURE,
    AwsCredentials,
    SignedRequest,
    SigningScope,
    problem_with,
    scope_of,
    signed,
)

_PATHS = tuple(f"{path}/".encode() for path in providers()["bedrock"].paths)
_ASKED = (
    "this request is signed for another address (AWS Signature Version 4) and cannot be passed on; set "
    "AWS_BEARER_TOKEN_BEDROCK to a Bedrock API key, which needs no signature, or have requests signed again with "
    "`sign = true` below [upstreams.bedrock]"
)
_NO_KEY = "upstreams.bedrock.sign needs AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY in pagefold's own environment"
_TOO_LONG = "this request is too long to be signed again"


class AwsSigning:
    """What is done about signed requests. Without `credentials` they are refused; `asked` says that they are missed."""

    def __init__(
        self,
        credentials: AwsCredentials | None = None,
        *,
        asked: bool = False,
        most: int = 64 << 20,
        clock: Callable[[], datetime] = lambda: datetime.now(tz=UTC),
    ) -> None:
        self._credentials, self._most, self._clock = credentials, most, clock
        self._refusal = _NO_KEY if asked else _ASKED
        # In place of the signature of a request that was checked. Nobody else can know it.
        self._mark = f"{ALGORITHM} {secrets.token_hex(32)} "

    async def admitted(self, scope: Event, receive: Receive) -> tuple[Event, Receive, str]:
        """A signed request as it goes on, what gives its body, and why it does not go on; "" where it does. Raises
        ClientLeftError."""
        if not scope["raw_path"].startswith(_PATHS):
            return scope, receive, ""
        if self._credentials is None:
            return scope, receive, self._refusal
        upload = Upload(receive)
        body = await upload.read(self._most)
        if not upload.whole or len(body) > self._most:
            return scope, receive, _TOO_LONG
        headers = [(name.decode(), value.decode()) for name, value in scope.get(CAME_WITH, scope["headers"])]
        path, query = scope["raw_path"].decode(), scope["query_string"].decode()
        request = SignedRequest(scope["method"], path, query, headers, body)
        of = scope_of(headers)
        if of is None or (problem := problem_with(request, self._credentials, self._clock())):
            return scope, receive, f"this request cannot be signed again: {problem if of else NO_SIGNATURE}"
        marked = [header for header in scope["headers"] if header[0] != b"authorization"]
        marked.append((b"authorization", f"{self._mark}{' '.join(of)}".encode()))
        return {**scope, "headers": marked}, _again(body, receive), ""

    def over(self, session: aiohttp.ClientSession) -> "Session":
        """A session that signs the requests that were checked."""
        if self._credentials is None:
            return session
        return SigningSession(session, self._credentials, self._mark, self._clock)


class SigningSession:
    """Sends requests upstream, and signs those that hold the mark of a request that was checked."""

    def __init__(
        self,
        session: aiohttp.ClientSession,
        credentials: AwsCredentials,
        mark: str,
        clock: Callable[[], datetime],
    ) -> None:
        self._session, self._credentials, self._mark, self._clock = session, credentials, mark, clock

    def request(
        self, method: str, url: URL, *, headers: list[tuple[str, str]], data: Any = None, **more: Any
    ) -> Awaitable[aiohttp.ClientResponse]:
        authorization = next((value for name, value in headers if name == "authorization"), "")
        if authorization.startswith(self._mark):
            body = data.getvalue() if isinstance(data, io.BytesIO) else data or b""
            own = [header for header in headers if header[0] != "authorization"]
            asked = SignedRequest(method, url.raw_path, url.raw_query_string, own, body)
            of = SigningScope(*authorization.removeprefix(self._mark).split(" "))
            headers = list(signed(asked, url.host_port_subcomponent or "", self._credentials, of, self._clock()))
        return self._session.request(method, url, headers=headers, data=data, **more)


Session: TypeAlias = aiohttp.ClientSession | SigningSession


def _again(body: bytes, receive: Receive) -> Receive:
    """Gives a body that was read once more, and then what comes after it."""
    given = False

    async def following() -> Event:
        nonlocal given
        if given:
            return await receive()
        given = True
        return {"type": "http.request", "body": body, "more_body": False}

    return following
