"""HTTP in front of a server that speaks HTTP itself: every request goes on as it came, and so does every answer.

Sessions, versions, resumption and whatever a later protocol puts into headers stay between client and server. Only the
answers to calls are read, whole or event by event, and only those that a relay changes are written anew.
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping

import aiohttp
from aiohttp import web

from pagefold.errors import WireError
from pagefold.mcp_proxy.commands import ToServer
from pagefold.mcp_proxy.connection import ConnectionFactory
from pagefold.mcp_proxy.http import is_local
from pagefold.mcp_proxy.relay import Relay
from pagefold.mcp_proxy.replies import SERVER_LOST, failure
from pagefold.mcp_proxy.session import ProxySession
from pagefold.wire import json_text, sse
from pagefold.wire.jsonrpc import Call, parse

_OF_ONE_CONNECTION = frozenset(
    ("connection", "keep-alive", "transfer-encoding", "te", "trailer", "upgrade", "host", "content-length", "expect")
)
_CONNECT_SECONDS = 20
_KEPT_CLIENTS = 10_000


class HttpPassthrough:
    """The handler of every request, for the one server at `front.specs[0].url`."""

    def __init__(self, front: ConnectionFactory) -> None:
        self._front, self._spec = front, front.specs[0]
        self._work = front.session(_nowhere, shared=True).work
        self._options = front.options(self._spec)
        self._names: dict[str, str] = {}
        self._http: aiohttp.ClientSession | None = None

    async def __call__(self, request: web.BaseRequest) -> web.StreamResponse:
        if not is_local(request):
            return web.Response(status=403, text="pagefold answers to this machine alone")
        if self._http is None:
            self._http = aiohttp.ClientSession(
                connector=aiohttp.TCPConnector(limit=0),
                timeout=aiohttp.ClientTimeout(total=None, sock_connect=_CONNECT_SECONDS),
                cookie_jar=aiohttp.DummyCookieJar(),
            )
        data = await request.read()
        told: list[bytes] = []

        async def tell(message: bytes) -> None:
            told.append(message)

        session, relay = self._session(request.headers.get("Mcp-Session-Id", ""), tell)
        if request.method == "POST":
            commands = session.commands_for(data, self._spec.name)
            if not any(isinstance(command, ToServer) for command in commands):
                await session.carry_out(commands)
                return web.Response(body=b"".join(told), content_type="application/json")
        headers = {key: value for key, value in request.headers.items() if key.lower() not in _OF_ONE_CONNECTION}
        # What comes back compressed could not be read here.
        headers |= {"Accept-Encoding": "identity", **self._spec.headers}
        target = self._spec.url + (f"?{request.query_string}" if request.query_string else "")
        try:
            async with self._http.request(
                request.method, target, headers=headers, data=data or None, allow_redirects=False
            ) as answer:
                return await self._passed(request, answer, session, relay, told)
        except (aiohttp.ClientError, OSError, TimeoutError) as error:
            body = failure(_id(data), SERVER_LOST, f"pagefold: the server cannot be reached ({type(error).__name__})")
            return web.Response(status=502, body=body, content_type="application/json")

    async def close(self) -> None:
        self._work.close()
        if self._http is not None:
            await self._http.close()

    def _session(self, name: str, tell: Callable[[bytes], Awaitable[None]]) -> tuple[ProxySession, Relay]:
        relay = Relay(self._spec.name, self._options, self._names.get(name, ""))
        session = ProxySession(relay, self._work, tell, counts=self._front.counts)
        session.watch = self._front.watch
        return session, relay

    async def _passed(
        self,
        request: web.BaseRequest,
        answer: aiohttp.ClientResponse,
        session: ProxySession,
        relay: Relay,
        told: list[bytes],
    ) -> web.StreamResponse:
        if (name := answer.headers.get("Mcp-Session-Id")) and relay.client:
            self._names[name] = relay.client
            if len(self._names) > _KEPT_CLIENTS:
                del self._names[next(iter(self._names))]
        headers = _kept(answer.headers)
        if request.method != "POST" or not relay.calls:
            return await _as_it_is(request, answer, headers)
        if answer.content_type == "application/json":
            body = await _whole(answer, self._front.settings.max_message_bytes)
            if body is None:
                words = "pagefold: the answer is longer than mcp.max_message_bytes; ask for less of it"
                ids = list(relay.calls)
                return web.Response(body=failure(ids[0], SERVER_LOST, words), content_type="application/json")
            await session.heard(self._spec.name, body)
            return web.Response(status=answer.status, body=b"".join(told), headers=headers)
        if answer.content_type != "text/event-stream":
            return await _as_it_is(request, answer, headers)
        response = web.StreamResponse(status=answer.status, headers=headers)
        await response.prepare(request)
        reader = sse.EventSplitter()
        async for piece in answer.content.iter_any():
            for event in reader.feed(piece):
                await response.write(await self._event(event, session, told))
        for event in reader.finish():
            await response.write(event.raw)
        await response.write_eof()
        return response

    async def _event(self, event: sse.StreamEvent, session: ProxySession, told: list[bytes]) -> bytes:
        if not event.data.strip():
            return event.raw
        before = json_text.bytes_of(event.data)
        told.clear()
        await session.heard(self._spec.name, before)
        if told == [before] or not told:
            return event.raw
        lines = [line for line in event.raw.splitlines() if line and not line.startswith(b"data:")]
        return b"\n".join([*lines, b"data: " + told[0], b"", b""])


async def _as_it_is(
    request: web.BaseRequest, answer: aiohttp.ClientResponse, headers: Mapping[str, str]
) -> web.StreamResponse:
    response = web.StreamResponse(status=answer.status, headers=headers)
    if answer.content_length is not None:
        response.content_length = answer.content_length
    await response.prepare(request)
    async for piece in answer.content.iter_any():
        await response.write(piece)
    await response.write_eof()
    return response


async def _whole(answer: aiohttp.ClientResponse, most: int) -> bytes | None:
    body = bytearray()
    async for piece in answer.content.iter_any():
        body += piece
        if len(body) > most:
            return None
    return bytes(body)


async def _nowhere(data: bytes) -> None:
    await asyncio.sleep(0)


def _kept(headers: Mapping[str, str]) -> dict[str, str]:
    return {key: value for key, value in headers.items() if key.lower() not in _OF_ONE_CONNECTION}


def _id(data: bytes) -> str:
    try:
        message = parse(data)
    except WireError:
        return ""
    return message.id if isinstance(message, Call) else ""
