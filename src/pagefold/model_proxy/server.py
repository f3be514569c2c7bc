"""The driver of the model proxy: an ASGI application that passes every request on, and the server that runs it.

Promises: method, path, query, headers and body reach the upstream as they came, and status, headers and body come back
as they were sent, piece by piece as they arrive, in whatever content encoding. Only what belongs to one connection (hop
by hop headers, `host`, our own token) is not passed on, and nothing is added. A client that leaves ends the request
upstream; an upstream that breaks off ends the client's connection the same way. Where it is not reached the answer is a
502 that says why. A fault in what observes the exchange never reaches the client: it is counted and reported.

Refuses: WebSockets and other upgrades (426), a client without the token where one is set (401), and any upstream but
the two it was given. Keys are passed on and neither kept nor written anywhere.
"""

import asyncio
import hmac
import io
import os
import socket
import sys
import threading
import traceback
import zlib
from collections.abc import Awaitable, Callable, Generator, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, TypeAlias

import aiohttp
import uvicorn
import zstandard
from yarl import URL

from pagefold import tokens
from pagefold.errors import ConfigError
from pagefold.model_proxy.exchange import READ_BYTES, Ending, Exchange, Histories, Totals
from pagefold.model_proxy.http import (
    CONNECT_SECONDS,
    ClientLeftError,
    Event,
    Headers,
    Receive,
    Send,
    Upload,
    Upstreams,
    cause_of,
    decoder_for,
    is_text,
    passed_on,
    refuse,
    reply,
)
from pagefold.wire import json_text

new_event_loop: Callable[[], asyncio.AbstractEventLoop] = asyncio.new_event_loop
with suppress(ImportError):  # there is none for Windows
    import uvloop

    new_event_loop = uvloop.new_event_loop

App: TypeAlias = Callable[[Event, Receive, Send], Awaitable[None]]

TOKEN_HEADER = b"x-pagefold-token"

_NOT_FOR_THE_UPSTREAM = frozenset((b"host", b"expect", TOKEN_HEADER))
_LENGTH = frozenset((b"content-length",))
_SKIPPED = ("accept", "accept-encoding", "content-type", "user-agent")  # aiohttp would add its own
_IDLE_SECONDS = 300
_GRACE_SECONDS = 30
_HEADER_BYTES = 256 << 10
_PLAIN_BYTES = 1 << 20
_SLICE_BYTES = 1024


def to_stderr(line: str) -> None:
    sys.stderr.write(f"pagefold: {line}\n")


class Proxy:
    """The ASGI application. `totals` is what it has seen so far.

    `exchange` makes the observer of one request; `report` gets one line for each kind of fault, the first time it
    happens, and never anything that a client or an upstream wrote.
    """

    def __init__(
        self,
        upstreams: Upstreams,
        *,
        token: str = "",
        report: Callable[[str], None] = to_stderr,
        exchange: Callable[[str, str, bytes | None, Histories], Exchange] = Exchange,
        read_bytes: int = READ_BYTES,
    ) -> None:
        self.totals = Totals()
        self.upstreams, self.exchange, self.read_bytes = upstreams, exchange, read_bytes
        self.histories = Histories()
        self._token, self._report = token.encode(), report
        self._reported: set[str] = set()
        self._session: aiohttp.ClientSession | None = None

    async def __call__(self, scope: Event, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self._live(receive, send)
        elif scope["type"] == "http":
            try:
                await self._answer(scope, receive, send)
            except Exception as error:
                self.fault(error)
                raise
        else:
            await send({"type": "websocket.close"})

    async def _live(self, receive: Receive, send: Send) -> None:
        await receive()
        tokens.counter()  # loading the vocabulary later would hold up everyone who is served then
        async with aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(limit=0),
            timeout=aiohttp.ClientTimeout(total=None, sock_connect=CONNECT_SECONDS),
            cookie_jar=aiohttp.DummyCookieJar(),
            auto_decompress=False,
            max_line_size=_HEADER_BYTES,
            max_field_size=_HEADER_BYTES,
        ) as self._session:
            await send({"type": "lifespan.startup.complete"})
            await receive()
        await send({"type": "lifespan.shutdown.complete"})

    async def _answer(self, scope: Event, receive: Receive, send: Send) -> None:
        path, headers = scope["raw_path"], scope["headers"]
        named = dict(headers)
        if path == b"/pagefold/health":
            await reply(send, 200, b'{"status":"ok"}')
        elif self._token and not hmac.compare_digest(named.get(TOKEN_HEADER, b""), self._token):
            await refuse(send, 401, "authentication_error", "this pagefold asks for its token in x-pagefold-token")
        elif path == b"/pagefold/status":
            await reply(send, 200, json_text.bytes_of(self.totals.to_json()))
        elif path.startswith(b"/pagefold/"):
            await refuse(send, 404, "not_found_error", "pagefold answers to /pagefold/status and /pagefold/health")
        elif needs_upgrade(named):
            await refuse(send, 426, "invalid_request_error", "pagefold speaks HTTP/1.1 and upgrades to nothing else")
        elif not path.startswith(b"/"):
            await refuse(send, 400, "invalid_request_error", "the request target is not a path")
        elif not all(is_text(value) for _, value in headers):
            await refuse(
                send, 400, "invalid_request_error", "a header is not UTF-8 and could not be passed on as it is"
            )
        elif (target := self.upstreams.target(path, scope["query_string"], headers)) is None:
            await refuse(send, 404, "not_found_error", "this pagefold was given no OpenAI address to send this on to")
        else:
            assert self._session is not None, "the lifespan has begun"
            await Passage(self, self._session, target, scope, receive, send).run()

    def fault(self, error: Exception) -> None:
        """Counts a mistake of ours and reports it. An exception's own words may quote a client: they are left out."""
        if isinstance(error, ExceptionGroup):
            error = error.exceptions[0]
        self.totals += Totals(faults=1)
        *_, (frame, line) = traceback.walk_tb(error.__traceback__)
        place = f"{type(error).__name__} at {Path(frame.f_code.co_filename).name}:{line}"
        if place not in self._reported:
            self._reported.add(place)
            self._report(f"a fault of pagefold itself, reported once, counted in /pagefold/status: {place}")


class Passage:
    """One request on its way to the upstream, and the answer on its way back."""

    def __init__(
        self, proxy: Proxy, session: aiohttp.ClientSession, target: URL, scope: Event, receive: Receive, send: Send
    ) -> None:
        self._proxy, self._session, self._target = proxy, session, target
        self._scope, self._send = scope, send
        self._upload = Upload(receive)
        self._exchange: Exchange | None = None
        self._decode: Callable[[bytes], bytes] | None = None
        self._faulty = False
        self._ending = Ending.ABANDONED
        self._bytes_down = 0

    async def run(self) -> None:
        try:
            body = await self._upload.read(self._proxy.read_bytes)
            self._observe(self._begin, body if self._upload.whole else None)
            async with asyncio.TaskGroup() as group:
                watcher = group.create_task(self._upload.watch())
                await self._relay(body)
                watcher.cancel()
            if self._ending is Ending.WHOLE:
                await self._send({"type": "http.response.body"})
                await asyncio.sleep(0)  # uvloop writes at the end of a turn: the client waits for no counting
        except* ClientLeftError:
            pass
        finally:
            self._count()

    async def _relay(self, body: bytes) -> None:
        try:
            response = await self._request(body)
        except (aiohttp.ClientError, OSError) as error:
            if self._upload.gone:
                raise ClientLeftError from error
            self._ending = Ending.UNREACHABLE
            host = self._target.host_port_subcomponent
            await refuse(self._send, 502, "api_error", f"pagefold got no answer from {host}: {cause_of(error)}")
            return
        try:
            await self._send(
                {"type": "http.response.start", "status": response.status, "headers": self._head(response)}
            )
            self._observe(self._answer_began, response)
            async for data in response.content.iter_any():
                await self._send({"type": "http.response.body", "body": data, "more_body": True})
                self._bytes_down += len(data)
                self._observe(self._hear, data)
        except (aiohttp.ClientError, OSError):
            # Returning without the end of the answer makes the server close the client's connection.
            self._ending = Ending.CUT_OFF
            return
        finally:
            response.close()
        self._ending = Ending.WHOLE

    async def _request(self, body: bytes) -> aiohttp.ClientResponse:
        headers = passed_on(self._scope["headers"], _NOT_FOR_THE_UPSTREAM)
        data: Any = body or None
        if not self._upload.whole:
            data = self._upload.rest(body)
        elif len(body) > _PLAIN_BYTES:
            data = io.BytesIO(body)  # aiohttp writes plain bytes in one go and warns about it above this size
        return await self._session.request(
            self._scope["method"],
            self._target,
            headers=[(name.decode(), value.decode()) for name, value in headers],
            data=data,
            allow_redirects=False,
            skip_auto_headers=_SKIPPED,
        )

    def _head(self, response: aiohttp.ClientResponse) -> Headers:
        # Neither status has a body, but a 304 may tell the length of what it does not send.
        headers = passed_on(response.raw_headers, _LENGTH if response.status in (204, 304) else frozenset())
        if any(name == b"upgrade" for name, _ in self._scope["headers"]):
            headers.append((b"connection", b"close"))  # the parser reads no second request behind an upgrade
        return headers

    def _observe(self, step: Callable[..., None], *shown: object) -> None:
        """The edge of what observes: a fault of ours must never cost the client a byte."""
        if self._faulty:
            return
        try:
            step(*shown)
        except Exception as error:  # noqa: BLE001 - the single fail-open point of this surface
            self._faulty = True
            self._proxy.fault(error)

    def _begin(self, body: bytes | None) -> None:
        path = self._scope["raw_path"].decode("ascii")
        self._exchange = self._proxy.exchange(self._scope["method"], path, body, self._proxy.histories)

    def _answer_began(self, response: aiohttp.ClientResponse) -> None:
        assert self._exchange is not None
        encoding = response.headers.get("content-encoding", "").strip().lower()
        self._decode = decoder_for(encoding)
        legible = self._decode is not None or encoding in ("", "identity")
        self._exchange.answer_began(response.status, response.headers.get("content-type", ""), legible=legible)

    def _hear(self, data: bytes) -> None:
        assert self._exchange is not None
        if self._decode is None:
            self._exchange.hear(data)
            return
        # In slices, because a few compressed bytes can become very many, and the exchange sets the bound.
        for at in range(0, len(data), _SLICE_BYTES):
            if not self._exchange.listening:
                return
            try:
                self._exchange.hear(self._decode(data[at : at + _SLICE_BYTES]))
            except (zlib.error, zstandard.ZstdError):
                self._exchange.not_legible()

    def _finish(self) -> None:
        assert self._exchange is not None
        seen = self._exchange.finish(self._ending, bytes_up=self._upload.bytes, bytes_down=self._bytes_down)
        self._proxy.totals += Totals.of(seen)

    def _count(self) -> None:
        if self._exchange is not None:
            self._observe(self._finish)
        if self._exchange is None or self._faulty:
            left = int(self._ending is Ending.ABANDONED)
            self._proxy.totals += Totals(
                requests=1, abandoned=left, bytes_up=self._upload.bytes, bytes_down=self._bytes_down
            )


def needs_upgrade(headers: Mapping[bytes, bytes]) -> bool:
    """Whether a request asks for another protocol in a way that cannot be passed over.

    An offer (of HTTP/2, say) can, unless there is a body: the parser takes what follows for the other protocol.
    """
    if b"upgrade" not in headers.get(b"connection", b"").lower() or b"upgrade" not in headers:
        return False
    has_body = b"transfer-encoding" in headers or headers.get(b"content-length", b"0") != b"0"
    return has_body or headers[b"upgrade"].lower() == b"websocket"


class Server(uvicorn.Server):
    """Ends on a signal as on any other call to stop: raising it again would keep the caller from saying a last word."""

    @contextmanager
    def capture_signals(self) -> Generator[None, None, None]:
        with super().capture_signals():
            yield
            self._captured_signals.clear()


def server_for(app: App) -> Server:
    return Server(
        uvicorn.Config(
            app,
            http="httptools",
            ws="none",
            lifespan="on",
            loop="none",
            log_config=None,
            log_level="critical",
            access_log=False,
            proxy_headers=False,
            server_header=False,
            date_header=False,
            timeout_keep_alive=_IDLE_SECONDS,
            timeout_graceful_shutdown=_GRACE_SECONDS,
        )
    )


def listen(host: str, port: int) -> socket.socket:
    """Raises ConfigError."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        return socket.create_server((host, port), family=family, backlog=2048)
    except OSError as error:
        reason = error.strerror if isinstance(error, socket.gaierror) else os.strerror(error.errno or 0)
        raise ConfigError(f"serve.port = {port}: cannot listen on {host} ({reason}); 0 takes any free port") from error


async def serve(app: App, host: str, port: int, *, started: Callable[[int], None]) -> None:
    """Serves until it is cancelled or a signal arrives, and then lets running answers end. `started` gets the port.

    Raises ConfigError where it cannot listen.
    """
    with listen(host, port) as listening:
        server = server_for(app)
        serving = asyncio.ensure_future(server.serve([listening]))
        started(listening.getsockname()[1])
        try:
            await asyncio.shield(serving)
        except asyncio.CancelledError:
            server.should_exit = True
            await serving
            raise


def run(app: App, host: str, port: int, *, started: Callable[[int], None]) -> None:
    """`serve` on the fastest event loop there is, until a signal arrives. Raises ConfigError."""
    with asyncio.Runner(loop_factory=new_event_loop) as runner:
        runner.run(serve(app, host, port, started=started))


@contextmanager
def running(app: App) -> Iterator[str]:
    """The address of the application, served on loopback by a thread of its own until the block ends."""
    server = server_for(app)
    listening = listen("127.0.0.1", 0)

    def work() -> None:
        with asyncio.Runner(loop_factory=new_event_loop) as runner:
            runner.run(server.serve([listening]))

    thread = threading.Thread(target=work, name="pagefold")
    thread.start()
    try:
        yield f"http://127.0.0.1:{listening.getsockname()[1]}"
    finally:
        server.should_exit = True
        thread.join()
