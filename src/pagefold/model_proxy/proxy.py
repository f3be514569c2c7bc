"""The model proxy as an ASGI application: passes every request on to its upstream, and counts what passes.

Promises: method, path, query and headers reach the upstream as they came, and so does the body unless a policy derived
another. Status, headers and body come back as they were sent, piece by piece as they arrive, in whatever content
encoding. Only headers of one connection, `host`, and headers meant for pagefold are left out. A client that leaves ends
the request upstream; an upstream that breaks off ends the client's connection the same way. Where an upstream is not
reached the answer is a 502 that says why. A fault of pagefold itself never reaches the client: the client's own bytes
go through, and the fault is counted and reported.

Refuses WebSockets and other upgrades (426), a client without the token where one is set (401), and any upstream that is
not in its table (404). Keys are passed on and neither kept nor written anywhere.
"""

import asyncio
import hmac
import sys
import threading
import time
import traceback
from collections import deque
from collections.abc import Callable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any

import aiohttp

from pagefold import tokens
from pagefold.adapters.asgi import App, Event, Receive, Send
from pagefold.model_proxy.conversations import Conversations
from pagefold.model_proxy.exchange import READ_BYTES, Exchange
from pagefold.model_proxy.forward import ProxiedRequest
from pagefold.model_proxy.http import CONNECT_SECONDS, TOKEN_HEADER, Headers, are_text, refuse, reply
from pagefold.model_proxy.recalling import ENOUGH
from pagefold.model_proxy.totals import Seen, Totals
from pagefold.model_proxy.turn_recorder import TurnRecorder
from pagefold.model_proxy.upstreams import Upstreams
from pagefold.pages.memory_store import MemoryPages
from pagefold.pages.page import PageId
from pagefold.wire import json_text
from pagefold.wire.api import error_json
from pagefold.wire.apis import error_at

_HEADER_BYTES = 256 << 10
_UNCOUNTED = 500
_ENDED, _ENDED_BYTES, _COUNT_SECONDS = 64, 4 << 20, 0.08
_STRANGER = "this pagefold asks for its token in x-pagefold-token"
_NO_UPSTREAM = "this pagefold was given no address to send this on to"


def to_stderr(line: str) -> None:
    sys.stderr.write(f"pagefold: {line}\n")


class Proxy:
    """The ASGI application. `totals` is what it has counted so far.

    `conversations` holds the policy that derives requests; `put` stores pages, `write_back` stores pins before a fold,
    `answers` answers context tools. `exchange` makes the pure half of one exchange. `report` gets one line for each
    kind of fault, the first time it happens, and never anything that a client or an upstream wrote. `teller` records
    every exchange that was read; `dashboard` answers the other paths below /pagefold/. `through` are the HTTP proxies
    by which upstreams are reached, by host and port.
    """

    def __init__(
        self,
        upstreams: Upstreams,
        conversations: Conversations | None = None,
        *,
        put: Callable[..., PageId] | None = None,
        write_back: Callable[..., object] = lambda pins, boundary, **more: None,
        answers: Callable[[str, Mapping[str, Any]], str] | None = None,
        token: str = "",
        report: Callable[[str], None] = to_stderr,
        exchange: Callable[..., Exchange] = Exchange,
        read_bytes: int = READ_BYTES,
        teller: TurnRecorder | None = None,
        dashboard: App | None = None,
        through: Mapping[str, str] | None = None,
    ) -> None:
        self._seen: list[Seen] = []
        self._ended: deque[ProxiedRequest] = deque()
        self._ended_bytes, self._due, self._looked = 0, False, 0.0
        self._counting = threading.RLock()
        self._totals = Totals()
        self.upstreams, self.exchange, self.read_bytes = upstreams, exchange, read_bytes
        self.conversations = conversations or Conversations()
        self.put, self.write_back = put or MemoryPages().put, write_back
        self.answers = answers or _no_answer
        self.teller, self.dashboard, self.through = teller, dashboard, through or {}
        # One worker: what a policy remembers is shared between histories and must not grow in two threads at once.
        self._worker = ThreadPoolExecutor(1, "pagefold-derive")
        self._working: Future[Any] | None = None
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
        tokens.counter("o200k")  # loading the vocabulary later would hold up everyone who is served then
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
        self._worker.shutdown()
        self.count_ended()
        if self.teller is not None:
            self.teller.flush()
        if self.dashboard is not None:
            await _end(self.dashboard)
        await send({"type": "lifespan.shutdown.complete"})

    async def _answer(self, scope: Event, receive: Receive, send: Send) -> None:
        path, headers = scope["raw_path"], scope["headers"]
        named = dict(headers)
        if path.startswith(b"/pagefold") and (path == b"/pagefold" or path.startswith(b"/pagefold/")):
            await self._tell_of_itself(path, named, scope, receive, send)
        elif refusal := self._refusal(path, named, headers):
            status, kind, message = refusal
            await refuse(send, status, error_at(scope["path"])(kind, message))
        elif (target := self.upstreams.target(path, scope["query_string"], headers)) is None:
            await refuse(send, 404, error_at(scope["path"])("not_found_error", _NO_UPSTREAM))
        else:
            assert self._session is not None, "the lifespan has begun"
            await ProxiedRequest(self, self._session, target, scope, named, receive, send).run()

    def _refusal(self, path: bytes, named: Mapping[bytes, bytes], headers: Headers) -> tuple[int, str, str] | None:
        """Status, kind and message of the error for a request that may not be passed on."""
        if self._token and not self._is_allowed(named):
            return 401, "authentication_error", _STRANGER
        if b"upgrade" in named and needs_upgrade(named):
            return 426, "invalid_request_error", "pagefold speaks HTTP/1.1 and upgrades to nothing else"
        if not path.startswith(b"/"):
            return 400, "invalid_request_error", "the request target is not a path"
        if not are_text(headers):
            return 400, "invalid_request_error", "a header is not UTF-8 and could not be passed on as it is"
        return None

    async def _tell_of_itself(
        self, path: bytes, named: Mapping[bytes, bytes], scope: Event, receive: Receive, send: Send
    ) -> None:
        if path == b"/pagefold/health":
            await reply(send, 200, b'{"status":"ok"}')
        elif self.dashboard is not None and path != b"/pagefold/status":
            await self.dashboard(scope, receive, send)  # it asks for the token in its own ways
        elif not self._is_allowed(named):
            await refuse(send, 401, error_json("authentication_error", _STRANGER))
        elif path == b"/pagefold/status":
            await reply(send, 200, json_text.bytes_of(self.totals.to_json()))
        else:
            message = "pagefold answers to /pagefold/status and /pagefold/health"
            await refuse(send, 404, error_json("not_found_error", message))

    def _is_allowed(self, named: Mapping[bytes, bytes]) -> bool:
        return not self._token or hmac.compare_digest(named.get(TOKEN_HEADER, b""), self._token)

    @property
    def totals(self) -> Totals:
        """What was seen so far."""
        self.count_ended()
        return self.counted

    @property
    def counted(self) -> Totals:
        """What was counted so far, for other threads. What has ended is counted on the event loop only: listeners are
        not thread-safe."""
        with self._counting:
            seen, self._seen = self._seen, []
            if seen:
                self._totals += Totals.of(*seen)
            return self._totals

    def add(self, counts: Totals) -> None:
        with self._counting:
            self._totals = self.counted + counts

    def count(self, seen: Seen) -> None:
        self._seen.append(seen)
        if len(self._seen) >= _UNCOUNTED:  # together they are counted faster, and what waits is bounded
            self.add(Totals())

    def ended(self, passage: ProxiedRequest) -> None:
        """Counts a passage soon: together they are counted in half the time, and nobody waits for it."""
        self._ended.append(passage)
        self._ended_bytes += passage.held
        if not self._due:  # whoever looks counts at once, and must not leave one more call behind each time
            self._due = True
            asyncio.get_running_loop().call_later(_COUNT_SECONDS, self._tell)
        elif len(self._ended) >= _ENDED or self._ended_bytes >= _ENDED_BYTES:
            # Not at once: uvloop writes at the end of a turn, and the client waits for no counting.
            asyncio.get_running_loop().call_soon(self.count_ended)

    def count_ended(self) -> None:
        """Counts those that have ended."""
        with self._counting:
            while self._ended:
                self._ended.popleft().count()
            self._ended_bytes = 0

    def catch_up(self) -> None:
        """Counts and tells all that has ended, for whoever looks now and may look again soon."""
        self._looked = time.monotonic()
        self._told()

    def _tell(self) -> None:
        # While somebody looks it is all done then: in two batches of half the size it would take longer.
        left = self._looked + _COUNT_SECONDS - time.monotonic()
        if left > 0:
            asyncio.get_running_loop().call_later(left, self._tell)
            return
        self._due = False
        self._told()

    def _told(self) -> None:
        self.count_ended()
        if self.teller is not None:
            try:
                self.teller.flush()
            except Exception as error:  # noqa: BLE001 - as in a passage: nobody waits for this any more
                self.fault(error)

    def is_free(self) -> bool:
        """Whether nothing is at work, so that a short step may be taken at once."""
        if self._working is not None and self._working.done():
            self._working = None
        return self._working is None

    async def work(self, step: Callable[[], Any]) -> Callable[[], Any]:
        """Has a step taken behind those that are at work; its result is asked for by calling."""
        self._working = done = self._worker.submit(step)
        waited = asyncio.wrap_future(done)
        waited.add_done_callback(_retrieved)
        await asyncio.wait([waited])
        return done.result

    def fault(self, error: Exception) -> None:
        """Counts a mistake of ours and reports it. An exception's own words may quote a client: they are left out."""
        if isinstance(error, ExceptionGroup):
            error = error.exceptions[0]
        self.add(Totals(faults=1))
        *_, (frame, line) = traceback.walk_tb(error.__traceback__)
        place = f"{type(error).__name__} at {Path(frame.f_code.co_filename).name}:{line}"
        if place not in self._reported:
            self._reported.add(place)
            self._report(f"a fault of pagefold itself, reported once, counted in /pagefold/status: {place}")


def _retrieved(done: asyncio.Future[Any]) -> None:
    """The loop would write an exception that nobody asked for to stderr, and with it words of a client."""
    if not done.cancelled():
        done.exception()


async def _end(mounted: App) -> None:
    """Tells a mounted application that it ends, the one part of a lifespan that it waits for."""

    async def receive() -> Event:
        return {"type": "lifespan.shutdown"}

    async def send(event: Event) -> None:
        pass

    await mounted({"type": "lifespan"}, receive, send)


def _no_answer(tool: str, arguments: Mapping[str, Any]) -> str:
    return ENOUGH


def needs_upgrade(headers: Mapping[bytes, bytes]) -> bool:
    """Whether a request asks for another protocol in a way that cannot be passed over.

    An offer (of HTTP/2, say) can, unless there is a body: the parser takes what follows for the other protocol.
    """
    if b"upgrade" not in headers.get(b"connection", b"").lower() or b"upgrade" not in headers:
        return False
    has_body = b"transfer-encoding" in headers or headers.get(b"content-length", b"0") != b"0"
    return has_body or headers[b"upgrade"].lower() == b"websocket"
