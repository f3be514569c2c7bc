"""Serves clients that speak streamable HTTP, on loopback, at one address for all servers.

A client of the handshake era gets a session with servers of its own. Requests of the stateless era share one set of
servers: their ids and progress tokens are made unique on the way in and restored on the way out. Where the answer is
the first message to send, it is one JSON body; otherwise it is an event stream.

Refuses what a web page could send (see `door`), and a client without the token if one is set. Hangs up on who does not
go on with a head or a body, and on connections beyond what clients of one user need.
"""

import asyncio
import secrets
from collections import deque
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from aiohttp import StreamReader, web
from aiohttp.http_parser import RawRequestMessage
from aiohttp.web_protocol import RequestHandler

from pagefold.door import FOREIGN, Door
from pagefold.errors import ConfigError, WireError
from pagefold.mcp_proxy.connection import ConnectionFactory
from pagefold.mcp_proxy.relay import VERSION
from pagefold.mcp_proxy.replies import SERVER_LOST, failure, respelled, value_text, with_id
from pagefold.mcp_proxy.session import ProxySession
from pagefold.wire import json_text, jsonrpc
from pagefold.wire.json_text import as_object, as_string
from pagefold.wire.jsonrpc import Batch, Call, Failure, Notification, Reply

_SESSIONS = 64
_BACKLOG = 1000
_IDLE_SECONDS = 1800.0
_ALIVE_SECONDS = 15.0
_GRACE_SECONDS = 0.2
_CONNECTIONS = 512
_REQUEST_BYTES = 64 << 20  # an agent may write a whole file in one call
_HEAD_SECONDS, _BODY_SECONDS = 75.0, 120.0  # a connection may be idle for as long as a head may take
_EVENT = b"event: message\ndata: %b\n\n"
_ALIVE = b": alive\n\n"
_TOKEN = ("params", "_meta", "progressToken")
_NOTICE_TOKEN = ("params", "progressToken")
_SUBSCRIPTION = ("params", "_meta", "io.modelcontextprotocol/subscriptionId")
"""What a notification of the stateless era names: the id of the call that listens for it."""


@dataclass(eq=False, slots=True)
class RequestStream:
    """The messages that answer one request. `open` are its calls that are not answered yet."""

    open: set[str] = field(default_factory=set)
    queue: asyncio.Queue[bytes] = field(default_factory=asyncio.Queue)


class HttpSession:
    """One set of servers, and the requests that wait for them."""

    def __init__(self, factory: ConnectionFactory, *, shared: bool) -> None:
        self.session: ProxySession = factory.session(self.tell, shared=shared)
        self.used = asyncio.get_running_loop().time()
        self.listener: RequestStream | None = None
        self._factory, self._shared = factory, shared
        self._starting: asyncio.Task[None] | None = None
        # By the id or token that the servers know: the stream, and the id or token of the client's.
        self._calls: dict[str, tuple[RequestStream, str]] = {}
        self._tokens: dict[str, tuple[RequestStream, str]] = {}
        self._backlog: deque[bytes] = deque(maxlen=_BACKLOG)
        self._counted = 0
        self._cancelling: set[asyncio.Future[None]] = set()  # kept until they are done

    async def start(self) -> None:
        if self._starting is None:
            self._starting = asyncio.ensure_future(self._factory.start(self.session))
        await asyncio.shield(self._starting)

    async def ask(self, message: jsonrpc.Single | Batch, data: bytes) -> RequestStream:
        """Gives a message to the servers. Returns the stream of its answers."""
        stream = RequestStream()
        for call in message.messages if isinstance(message, Batch) else (message,):
            if not isinstance(call, Call):
                continue
            id, token = call.id, value_text(call.raw, _TOKEN)
            if self._shared:
                self._counted += 1
                id = f'"h-{self._counted}"'
                data = respelled(call.raw, ("id",), id)
                data = respelled(json_text.text_of(data), _TOKEN, id) if token else data
            self._calls[id] = (stream, call.id)
            stream.open.add(id)
            if token:
                self._tokens[id if self._shared else token] = (stream, token)
        await self.session.asked(data)
        return stream

    def leave(self, stream: RequestStream) -> None:
        """Nobody reads this stream any more. In the stateless era that cancels what it waited for: a server that is
        listened to would never end by itself."""
        for id in stream.open if self._shared else ():
            cancel = f'{{"jsonrpc":"2.0","method":"notifications/cancelled","params":{{"requestId":{id}}}}}'
            task = asyncio.ensure_future(self.session.asked(json_text.bytes_of(cancel)))
            self._cancelling.add(task)
            task.add_done_callback(self._cancelling.discard)
        for id in stream.open:
            self._calls.pop(id, None)
        for token in [token for token, (owner, _) in self._tokens.items() if owner is stream]:
            del self._tokens[token]

    async def tell(self, data: bytes, message: jsonrpc.Single | Batch | None) -> None:
        """Puts a message into the stream that it belongs to."""
        try:
            message = message or jsonrpc.parse(data)
        except WireError:
            return  # nobody can tell whose it is
        if isinstance(message, Reply | Failure) and message.id in self._calls:
            stream, id = self._calls.pop(message.id)
            stream.open.discard(message.id)
            if not stream.open:
                self.leave(stream)
            stream.queue.put_nowait(data if id == message.id else with_id(data, message.id, id))
            return
        if isinstance(message, Notification) and message.method == "notifications/progress":
            token = value_text(message.raw, _NOTICE_TOKEN)
            if token in self._tokens:
                stream, client_token = self._tokens[token]
                stream.queue.put_nowait(respelled(message.raw, _NOTICE_TOKEN, client_token))
                return
        if isinstance(message, Notification) and (owner := self._calls.get(value_text(message.raw, _SUBSCRIPTION))):
            stream, id = owner
            stream.queue.put_nowait(respelled(message.raw, _SUBSCRIPTION, id))
            return
        self._tell_listener(data)

    def listen(self) -> RequestStream:
        """The stream for messages that belong to no request."""
        self.listener = RequestStream()
        while self._backlog:
            self.listener.queue.put_nowait(self._backlog.popleft())
        return self.listener

    async def close(self) -> None:
        if self._starting is not None:
            with suppress(ConfigError, asyncio.CancelledError):
                await self._starting
        await self.session.close(_GRACE_SECONDS)
        await asyncio.to_thread(self.session.processor.close)

    def _tell_listener(self, data: bytes) -> None:
        """To the listener, or else to a request that is open; otherwise the message waits."""
        if self.listener is not None and self.listener.queue.qsize() < _BACKLOG:
            self.listener.queue.put_nowait(data)
        elif self._calls and not self._shared:
            stream, _ = next(reversed(self._calls.values()))
            stream.queue.put_nowait(data)
        else:
            self._backlog.append(data)


class HttpEndpoint:
    """Handles every request. Where the only server speaks HTTP itself, `http_passthrough` does instead."""

    def __init__(self, factory: ConnectionFactory) -> None:
        self._factory = factory
        self._sessions: dict[str, HttpSession] = {}
        self._shared: HttpSession | None = None
        self._sweeping: asyncio.Task[None] | None = None

    async def __call__(self, request: web.BaseRequest) -> web.StreamResponse:
        if self._sweeping is None:
            self._sweeping = asyncio.ensure_future(self._sweep())
        name = request.headers.get("Mcp-Session-Id", "")
        if name and name not in self._sessions:
            return refusal(404, "pagefold knows no such session; greet again")
        session = self._sessions.get(name)
        if session is not None:
            session.used = asyncio.get_running_loop().time()
        match request.method:
            case "POST":
                return await self._post(request, session)
            case "GET" if session is not None:
                return await self._listen(request, session)
            case "DELETE" if session is not None:
                del self._sessions[name]
                await session.close()
                return web.Response(status=204)
        return web.Response(status=405, headers={"Allow": "POST"})

    async def close(self) -> None:
        if self._sweeping is not None:
            self._sweeping.cancel()
        sessions = [*self._sessions.values(), *([self._shared] if self._shared else [])]
        await asyncio.gather(*(session.close() for session in sessions))

    async def _post(self, request: web.BaseRequest, session: HttpSession | None) -> web.StreamResponse:
        data = (await request.read()).replace(b"\r\n", b" ").replace(b"\n", b" ")
        try:
            message = jsonrpc.parse(data)
        except WireError as error:
            return refusal(400, f"pagefold: {error}", code=-32700)
        headers: dict[str, str] = {}
        if session is None:
            if isinstance(message, Call) and message.method == "initialize":
                if len(self._sessions) >= _SESSIONS:
                    return refusal(503, f"pagefold: {_SESSIONS} sessions are open already")
                name = secrets.token_urlsafe(24)
                session = self._sessions[name] = HttpSession(self._factory, shared=False)
                headers["Mcp-Session-Id"] = name
            elif isinstance(message, Call) and _is_stateless(message):
                if self._shared is None:
                    self._shared = HttpSession(self._factory, shared=True)
                session = self._shared
            else:
                return refusal(400, "pagefold: greet with initialize first, and name the session")
        try:
            await session.start()
        except ConfigError as error:
            return refusal(502, f"pagefold: {error}")
        stream = await session.ask(message, data)
        if not stream.open and stream.queue.empty():
            return web.Response(status=202, headers=headers)
        return await _answer(request, session, stream, headers)

    async def _listen(self, request: web.BaseRequest, session: HttpSession) -> web.StreamResponse:
        response = await _begin_events(request, {})
        stream = session.listen()
        try:
            with suppress(ConnectionError):
                await _write_events(response, stream, forever=True)
        finally:
            if session.listener is stream:
                session.listener = None
        return response

    async def _sweep(self) -> None:
        """Closes sessions that nobody has used for long: their servers are processes."""
        while True:
            await asyncio.sleep(60)
            before = asyncio.get_running_loop().time() - _IDLE_SECONDS
            for name, session in list(self._sessions.items()):
                if session.used < before and session.listener is None:
                    del self._sessions[name]
                    await session.close()


async def _answer(
    request: web.BaseRequest, session: HttpSession, stream: RequestStream, headers: dict[str, str]
) -> web.StreamResponse:
    """One JSON body where the answer comes first, otherwise an event stream."""
    try:
        first = await stream.queue.get()
        if not stream.open and stream.queue.empty():
            return web.Response(body=first, content_type="application/json", headers=headers)
        response = await _begin_events(request, headers)
        await response.write(_EVENT % first)
        await _write_events(response, stream)
        await response.write_eof()
    except ConnectionError:
        return web.Response(status=499)
    finally:
        session.leave(stream)
    return response


async def _begin_events(request: web.BaseRequest, headers: dict[str, str]) -> web.StreamResponse:
    response = web.StreamResponse(
        headers={"Content-Type": "text/event-stream", "Cache-Control": "no-cache, no-transform", **headers}
    )
    await response.prepare(request)
    return response


async def _write_events(response: web.StreamResponse, stream: RequestStream, *, forever: bool = False) -> None:
    """Writes what comes, and a comment now and then while nothing comes, until the last call is answered."""
    while forever or stream.open or not stream.queue.empty():
        try:
            event = _EVENT % await asyncio.wait_for(stream.queue.get(), _ALIVE_SECONDS)
        except TimeoutError:
            event = _ALIVE
        await response.write(event)


class _Connections(web.Server):
    """As many connections as there may be; more are hung up on."""

    def connection_made(self, handler: RequestHandler, transport: asyncio.Transport) -> None:
        super().connection_made(handler, transport)
        if len(self.connections) > _CONNECTIONS:
            transport.abort()


async def run(
    handler: Callable[[web.BaseRequest], Awaitable[web.StreamResponse]],
    port: int,
    *,
    started: Callable[[int], None],
    until: asyncio.Event,
    token: str = "",
) -> None:
    """Serves requests of this machine that show the token, if there is one, until the event is set. Raises ConfigError
    where it cannot listen."""
    door = Door(token=token)

    async def handle(request: web.BaseRequest) -> web.StreamResponse:
        headers = {name.lower(): value for name, value in request.raw_headers}
        if door.is_foreign(headers):
            return web.Response(status=403, text=FOREIGN)
        if not door.lets_in(headers):
            return web.Response(status=401, text="this pagefold asks for its token in x-pagefold-token")
        try:
            async with asyncio.timeout(_BODY_SECONDS):
                await request.read()  # it is kept for whoever reads it again
        except TimeoutError:
            return web.Response(status=408, headers={"Connection": "close"})
        return await handler(request)

    def made(
        head: RawRequestMessage, body: StreamReader, handler: RequestHandler, out: Any, task: Any
    ) -> web.BaseRequest:
        loop = asyncio.get_running_loop()
        return web.BaseRequest(head, body, handler, out, task, loop, client_max_size=_REQUEST_BYTES)

    server = _Connections(
        handle, request_factory=made, handler_cancellation=True, keepalive_timeout=_HEAD_SECONDS, lingering_time=1.0
    )
    runner = web.ServerRunner(server, shutdown_timeout=0.5)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", port, backlog=2048)
    try:
        await site.start()
        assert runner.addresses
        started(runner.addresses[0][1])
        await until.wait()
    except OSError as error:
        raise ConfigError(f"--http {port}: cannot listen on 127.0.0.1 ({error.strerror}); 0 takes any port") from error
    finally:
        await runner.cleanup()


def _is_stateless(call: Call) -> bool:
    return bool(as_string(as_object(as_object(call.params).get("_meta")).get(VERSION)))


def refusal(status: int, words: str, *, id: str = "", code: int = SERVER_LOST) -> web.Response:
    """A JSON-RPC error in place of an answer."""
    return web.Response(status=status, body=failure(id, code, words), content_type="application/json")
