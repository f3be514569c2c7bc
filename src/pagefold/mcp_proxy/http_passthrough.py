"""Passes HTTP requests on to a server that speaks HTTP itself, and its answers back.

Sessions, versions, resumption and whatever a later protocol puts into headers stay between client and server. Only the
answers to calls are read, whole or event by event, and only those that a relay changes are written anew. In an answer
that comes where no call waits for it, lines that could be taken for pagefold's are quoted.
"""

import asyncio
from collections.abc import Mapping

import aiohttp
from aiohttp import web

from pagefold.errors import WireError
from pagefold.mcp_proxy.commands import Quote, ToServer
from pagefold.mcp_proxy.connection import ConnectionFactory
from pagefold.mcp_proxy.http import refusal
from pagefold.mcp_proxy.lines import Overlong
from pagefold.mcp_proxy.relay import Relay
from pagefold.mcp_proxy.remote import body_within, open_http
from pagefold.mcp_proxy.replies import may_pose, value_text
from pagefold.mcp_proxy.session import ProxySession
from pagefold.wire import json_text, jsonrpc, sse
from pagefold.wire.jsonrpc import Call, Notification

_HOP_BY_HOP = frozenset(
    ("connection", "keep-alive", "transfer-encoding", "te", "trailer", "upgrade", "host", "content-length", "expect")
)
_KEPT_CLIENTS = 10_000


class HttpPassthrough:
    """Handles every request, for the one server at `factory.specs[0].url`."""

    def __init__(self, factory: ConnectionFactory) -> None:
        self._factory, self._spec = factory, factory.specs[0]
        self._processor = factory.processor(shared=True)
        self._options = factory.options(self._spec)
        self._client_names: dict[str, str] = {}
        self._http: aiohttp.ClientSession | None = None

    async def __call__(self, request: web.BaseRequest) -> web.StreamResponse:
        if self._http is None:
            self._http = open_http(cookie_jar=aiohttp.DummyCookieJar())
        data = await request.read()
        messages: list[bytes] = []

        async def tell(data: bytes, message: object) -> None:
            messages.append(data)

        client = self._client_names.get(request.headers.get("Mcp-Session-Id", ""), "")
        relay = Relay(self._spec.name, self._options, client)
        session = self._factory.session_of(relay, self._processor, tell)
        if request.method == "POST":
            commands = session.commands_for(data, self._spec.name)
            if not any(isinstance(command, ToServer) for command in commands):
                await session.carry_out(commands)
                return web.Response(body=b"".join(messages), content_type="application/json")
        # What comes back compressed could not be read here.
        headers = _end_to_end(request.headers) | {"Accept-Encoding": "identity", **self._spec.headers}
        target = self._spec.url + (f"?{request.query_string}" if request.query_string else "")
        try:
            async with self._http.request(
                request.method, target, headers=headers, data=data or None, allow_redirects=False
            ) as answer:
                return await self._answered(request, answer, session, relay, messages)
        except (aiohttp.ClientError, OSError, TimeoutError) as error:
            words = f"pagefold: the server cannot be reached ({type(error).__name__})"
            return refusal(502, words, id=value_text(json_text.text_of(data), ("id",)))

    async def close(self) -> None:
        self._processor.close()
        if self._http is not None:
            await self._http.close()

    async def _answered(
        self,
        request: web.BaseRequest,
        answer: aiohttp.ClientResponse,
        session: ProxySession,
        relay: Relay,
        messages: list[bytes],
    ) -> web.StreamResponse:
        if (name := answer.headers.get("Mcp-Session-Id")) and relay.client:
            self._client_names[name] = relay.client
            if len(self._client_names) > _KEPT_CLIENTS:
                del self._client_names[next(iter(self._client_names))]
        headers = _end_to_end(answer.headers)
        is_read = request.method == "POST" and bool(relay.calls)
        kind = answer.headers.get("Content-Type", "").lower()
        if "application/json" in kind and request.method == "POST":  # as clients look for it
            body = await body_within(answer, self._factory.settings.max_message_bytes)
            if isinstance(body, Overlong):
                words = "pagefold: the answer is longer than mcp.max_message_bytes; ask for less of it"
                return refusal(200, words, id=next(iter(relay.calls), ""))
            if not is_read:
                return web.Response(status=answer.status, body=await self._unasked(body), headers=headers)
            await session.heard(self._spec.name, body)
            return web.Response(status=answer.status, body=b"".join(messages), headers=headers)
        response = web.StreamResponse(status=answer.status, headers=headers)
        has_events = "text/event-stream" in kind
        if not has_events and answer.content_length is not None:
            response.content_length = answer.content_length
        await response.prepare(request)
        reader = sse.EventSplitter()
        async for piece in answer.content.iter_any():
            if not has_events:
                await response.write(piece)
                continue
            for event in reader.feed(piece):
                await response.write(await self._event(event, session if is_read else None, messages))
        for event in reader.finish():
            await response.write(await self._event(event, session if is_read else None, messages))
        await response.write_eof()
        return response

    async def _unasked(self, data: bytes) -> bytes:
        """A message where no call waits for an answer. A client takes an answer wherever it comes, so in one the lines
        are quoted that could be taken for pagefold's."""
        if not may_pose(data):
            return data
        try:
            message = jsonrpc.parse(data)
        except WireError:
            return data
        if isinstance(message, Call | Notification):
            return data
        return await asyncio.to_thread(self._processor.quote, Quote(data))

    async def _event(self, event: sse.StreamEvent, session: ProxySession | None, messages: list[bytes]) -> bytes:
        """An event as the client gets it; without a session, of a stream that answers no call that waits."""
        if not event.data.strip():
            return event.raw
        before = json_text.bytes_of(event.data)
        if session is None:
            messages[:] = [await self._unasked(before)]
        else:
            messages.clear()
            await session.heard(self._spec.name, before)
        if messages == [before] or not messages:
            return event.raw
        lines = [line for line in event.raw.splitlines() if line and not line.startswith(b"data:")]
        return b"\n".join([*lines, b"data: " + messages[0], b"", b""])


def _end_to_end(headers: Mapping[str, str]) -> dict[str, str]:
    """Without the headers that belong to one connection only."""
    return {key: value for key, value in headers.items() if key.lower() not in _HOP_BY_HOP}
