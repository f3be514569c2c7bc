"""Clients that speak streamable HTTP, on loopback: one address for whatever stands behind.

A client of the handshake era gets a session with servers of its own. Requests of the stateless era share one set of
servers: their ids and progress tokens are told apart on the way in and put back on the way out. An answer that is the
first thing to say is one JSON body; where something else comes first, it is a stream.

Refuses what a web page could send: another host's name, or an origin that is not this machine.
"""

import asyncio
import secrets
from collections import deque
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass, field

from aiohttp import web

from pagefold.errors import ConfigError, WireError
from pagefold.loopback import is_loopback_url
from pagefold.mcp_proxy.connection import ConnectionFactory
from pagefold.mcp_proxy.replies import SERVER_LOST, failure, respelled
from pagefold.mcp_proxy.session import ProxySession
from pagefold.wire import json_text, jsonrpc
from pagefold.wire.json_text import as_object, as_string
from pagefold.wire.jsonrpc import Batch, Call, Failure, Notification, Reply

_VERSION = "io.modelcontextprotocol/protocolVersion"
_SESSIONS = 64
_BACKLOG = 1000
_IDLE_SECONDS = 1800.0
_ALIVE_SECONDS = 15.0
_GRACE_SECONDS = 0.2
_EVENT = b"event: message\ndata: %b\n\n"


@dataclass(eq=False, slots=True)
class AnswerStream:
    """What one request is answered with: messages until the last of its calls is answered."""

    open: set[str] = field(default_factory=set)
    queue: asyncio.Queue[bytes] = field(default_factory=asyncio.Queue)


class HttpSession:
    """One set of servers, and the requests that wait for them."""

    def __init__(self, front: ConnectionFactory, *, shared: bool) -> None:
        self.session: ProxySession = front.session(self.tell, shared=shared)
        self.used = asyncio.get_running_loop().time()
        self.listener: AnswerStream | None = None
        self._front, self._shared = front, shared
        self._starting: asyncio.Task[None] | None = None
        self._calls: dict[str, tuple[AnswerStream, str]] = {}
        self._tokens: dict[str, tuple[AnswerStream, str]] = {}
        self._backlog: deque[bytes] = deque(maxlen=_BACKLOG)
        self._counted = 0

    async def start(self) -> None:
        if self._starting is None:
            self._starting = asyncio.ensure_future(self._front.start(self.session))
        await asyncio.shield(self._starting)

    async def ask(self, message: jsonrpc.Single | Batch, data: bytes) -> AnswerStream:
        """Gives a message to the servers. The stream has what comes of it."""
        stream = AnswerStream()
        for call in message.messages if isinstance(message, Batch) else (message,):
            if not isinstance(call, Call):
                continue
            id = call.id
            if self._shared:
                self._counted += 1
                id = f'"h-{self._counted}"'
                data = self._apart(call, stream, id)
            self._calls[id] = (stream, call.id)
            stream.open.add(id)
            self._note_token(call, stream)
        await self.session.asked(data)
        return stream

    def leave(self, stream: AnswerStream) -> None:
        """Nobody reads this stream any more."""
        for id in stream.open:
            self._calls.pop(id, None)
        for token in [token for token, (owner, _) in self._tokens.items() if owner is stream]:
            del self._tokens[token]

    async def tell(self, data: bytes) -> None:
        try:
            message = jsonrpc.parse(data)
        except WireError:
            return  # nobody would know whose it is
        if isinstance(message, Reply | Failure) and message.id in self._calls:
            stream, id = self._calls.pop(message.id)
            stream.open.discard(message.id)
            if not stream.open:
                self.leave(stream)
            stream.queue.put_nowait(data if id == message.id else respelled(message.raw, ("id",), id))
            return
        if isinstance(message, Notification) and message.method == "notifications/progress":
            token = _at(message.raw, ("params", "progressToken"))
            if token in self._tokens:
                stream, there = self._tokens[token]
                stream.queue.put_nowait(respelled(message.raw, ("params", "progressToken"), there))
                return
        self._aside(data)

    def listen(self) -> AnswerStream:
        """The stream for what belongs to no request."""
        self.listener = AnswerStream()
        while self._backlog:
            self.listener.queue.put_nowait(self._backlog.popleft())
        return self.listener

    async def close(self) -> None:
        if self._starting is not None:
            with suppress(ConfigError, asyncio.CancelledError):
                await self._starting
        await self.session.close(_GRACE_SECONDS)
        await asyncio.to_thread(self.session.work.close)

    def _aside(self, data: bytes) -> None:
        """To whoever is there: the listener, or a request that is open; else it waits."""
        if self.listener is not None and self.listener.queue.qsize() < _BACKLOG:
            self.listener.queue.put_nowait(data)
        elif self._calls and not self._shared:
            stream, _ = next(reversed(self._calls.values()))
            stream.queue.put_nowait(data)
        else:
            self._backlog.append(data)

    def _apart(self, call: Call, stream: AnswerStream, id: str) -> bytes:
        raw = json_text.text_of(respelled(call.raw, ("id",), id))
        token = _at(raw, ("params", "_meta", "progressToken"))
        if token:
            self._tokens[id] = (stream, token)
            return respelled(raw, ("params", "_meta", "progressToken"), id)
        return json_text.bytes_of(raw)

    def _note_token(self, call: Call, stream: AnswerStream) -> None:
        if not self._shared and (token := _at(call.raw, ("params", "_meta", "progressToken"))):
            self._tokens[token] = (stream, token)


class HttpEndpoint:
    """The handler of every request. `http_passthrough` takes them instead where one server speaks HTTP itself."""

    def __init__(self, front: ConnectionFactory) -> None:
        self._front = front
        self._clients: dict[str, HttpSession] = {}
        self._shared: HttpSession | None = None
        self._sweeping: asyncio.Task[None] | None = None

    async def __call__(self, request: web.BaseRequest) -> web.StreamResponse:
        if not is_local(request):
            return web.Response(status=403, text="pagefold answers to this machine alone")
        if self._sweeping is None:
            self._sweeping = asyncio.ensure_future(self._sweep())
        name = request.headers.get("Mcp-Session-Id", "")
        if name and name not in self._clients:
            return _refusal(404, "pagefold knows no such session; greet again")
        client = self._clients.get(name)
        if client is not None:
            client.used = asyncio.get_running_loop().time()
        match request.method:
            case "POST":
                return await self._post(request, client)
            case "GET" if client is not None:
                return await self._listen(request, client)
            case "DELETE" if client is not None:
                del self._clients[name]
                await client.close()
                return web.Response(status=204)
        return web.Response(status=405, headers={"Allow": "POST"})

    async def close(self) -> None:
        if self._sweeping is not None:
            self._sweeping.cancel()
        clients = [*self._clients.values(), *([self._shared] if self._shared else [])]
        await asyncio.gather(*(client.close() for client in clients))

    async def _post(self, request: web.BaseRequest, client: HttpSession | None) -> web.StreamResponse:
        data = (await request.read()).replace(b"\r\n", b" ").replace(b"\n", b" ")
        try:
            message = jsonrpc.parse(data)
        except WireError as error:
            return _refusal(400, f"pagefold: {error}", code=-32700)
        headers: dict[str, str] = {}
        if client is None:
            if isinstance(message, Call) and message.method == "initialize":
                if len(self._clients) >= _SESSIONS:
                    return _refusal(503, f"pagefold: {_SESSIONS} sessions are open already")
                name = secrets.token_urlsafe(24)
                client = self._clients[name] = HttpSession(self._front, shared=False)
                headers["Mcp-Session-Id"] = name
            elif isinstance(message, Call) and _is_stateless(message):
                if self._shared is None:
                    self._shared = HttpSession(self._front, shared=True)
                client = self._shared
            else:
                return _refusal(400, "pagefold: greet with initialize first, and name the session")
        try:
            await client.start()
        except ConfigError as error:
            return _refusal(502, f"pagefold: {error}")
        stream = await client.ask(message, data)
        if not stream.open and stream.queue.empty():
            return web.Response(status=202, headers=headers)
        return await _answer(request, client, stream, headers)

    async def _listen(self, request: web.BaseRequest, client: HttpSession) -> web.StreamResponse:
        response = await _begun(request, {})
        stream = client.listen()
        try:
            while True:
                try:
                    data = await asyncio.wait_for(stream.queue.get(), _ALIVE_SECONDS)
                except TimeoutError:
                    await response.write(b": alive\n\n")
                else:
                    await response.write(_EVENT % data)
        except ConnectionError:
            return response
        finally:
            if client.listener is stream:
                client.listener = None

    async def _sweep(self) -> None:
        """Lets sessions go that nobody has used for long; their servers are processes."""
        while True:
            await asyncio.sleep(60)
            before = asyncio.get_running_loop().time() - _IDLE_SECONDS
            for name, client in list(self._clients.items()):
                if client.used < before and client.listener is None:
                    del self._clients[name]
                    await client.close()


async def _answer(
    request: web.BaseRequest, client: HttpSession, stream: AnswerStream, headers: dict[str, str]
) -> web.StreamResponse:
    """One body where the answer comes first, else a stream."""
    try:
        first = await stream.queue.get()
        if not stream.open and stream.queue.empty():
            return web.Response(body=first, content_type="application/json", headers=headers)
        response = await _begun(request, headers)
        await response.write(_EVENT % first)
        while stream.open or not stream.queue.empty():
            try:
                data = await asyncio.wait_for(stream.queue.get(), _ALIVE_SECONDS)
            except TimeoutError:
                await response.write(b": alive\n\n")
            else:
                await response.write(_EVENT % data)
        await response.write_eof()
    except ConnectionError:
        return web.Response(status=499)
    finally:
        client.leave(stream)
    return response


async def _begun(request: web.BaseRequest, headers: dict[str, str]) -> web.StreamResponse:
    response = web.StreamResponse(
        headers={"Content-Type": "text/event-stream", "Cache-Control": "no-cache, no-transform", **headers}
    )
    await response.prepare(request)
    return response


async def run(
    handler: Callable[[web.BaseRequest], Awaitable[web.StreamResponse]],
    port: int,
    *,
    started: Callable[[int], None],
    until: asyncio.Event,
) -> None:
    """Serves on loopback until the event is set. Raises ConfigError where it cannot listen."""
    runner = web.ServerRunner(web.Server(handler), handler_cancellation=True)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", port, backlog=2048, shutdown_timeout=0.5)
    try:
        await site.start()
        assert runner.addresses
        started(runner.addresses[0][1])
        await until.wait()
    except OSError as error:
        raise ConfigError(f"--http {port}: cannot listen on 127.0.0.1 ({error.strerror}); 0 takes any port") from error
    finally:
        await runner.cleanup()


def is_local(request: web.BaseRequest) -> bool:
    """A page in a browser can send requests here under a name of its own; such a name is not this machine's."""
    origin = request.headers.get("Origin")
    return is_loopback_url(f"//{request.headers.get('Host', '')}") and (origin is None or is_loopback_url(origin))


def _is_stateless(call: Call) -> bool:
    params = as_object(as_object(json_text.parse(call.raw)).get("params"))
    return bool(as_string(as_object(params.get("_meta")).get(_VERSION)))


def _refusal(status: int, words: str, code: int = SERVER_LOST) -> web.Response:
    return web.Response(status=status, body=failure("", code, words), content_type="application/json")


def _at(raw: str, path: json_text.Path) -> str:
    """The JSON text of the value at `path`, or "" where there is none."""
    try:
        start, end = json_text.find(raw, path)
    except WireError:
        return ""
    return raw[start:end]
