"""The model proxy as an ASGI application: forwards every request to its upstream, and counts what passes.

Promises: method, path, query and headers reach the upstream as they came, and so does the body unless a policy derived
another. Status, headers and body come back as they were sent, piece by piece as they arrive, in whatever content
encoding; x-pagefold-* headers are added, and the model's calls of context tools are answered here and left out. Only
headers of one connection, `host`, and headers meant for pagefold are not forwarded. A client that leaves ends the
request upstream; an upstream that breaks off ends the client's connection the same way. If an upstream is not reached
the answer is a 502 with the reason. `steps` handles a fault in pagefold's own work: the client's own request is sent,
and the fault is counted and reported. A fault anywhere else is counted, reported and raised to the server.

Refuses web pages of other origins and requests for another host (403, see `door`), WebSockets and other upgrades (426),
a client without the token if one is set (401), any upstream that is not in its table (404), and a request target that
is no path, a header that is not UTF-8 or an unknown policy (400). API keys are forwarded and written nowhere; they are
kept, in memory, only while `keep_alive` waits to use them again.
"""

import asyncio
import sys
import time
import traceback
from collections.abc import Awaitable, Callable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

import aiohttp
from yarl import URL

from pagefold import tokens
from pagefold.adapters.asgi import App, Event, Receive, Send, end
from pagefold.adapters.process_memory import give_back, resident_bytes
from pagefold.adapters.steady_store import StoreHealth
from pagefold.adapters.steady_time import steady_time
from pagefold.adapters.store_thread import Pending, at_once
from pagefold.derive.notebook import CacheUse
from pagefold.derive.trial import Arm
from pagefold.door import FOREIGN, Door
from pagefold.errors import StoreError
from pagefold.model_proxy import compress
from pagefold.model_proxy.answer_reader import READ_BYTES
from pagefold.model_proxy.aws_signing import AwsSigning, Session
from pagefold.model_proxy.conversations import Conversations
from pagefold.model_proxy.counting import RequestCounts
from pagefold.model_proxy.exchange import Exchange
from pagefold.model_proxy.forward import ProxiedRequest
from pagefold.model_proxy.history_memory import TIDY_SECONDS, tidy
from pagefold.model_proxy.http import (
    CONNECT_SECONDS,
    ClientLeftError,
    Headers,
    are_text,
    needs_upgrade,
    refuse,
    reply,
)
from pagefold.model_proxy.idle_plan import IdlePlan, conversation_names, idle_plan
from pagefold.model_proxy.keep_alive import KeepAlive
from pagefold.model_proxy.limited_http import ConnectionLimits
from pagefold.model_proxy.other_version import OtherVersion
from pagefold.model_proxy.readiness import PATHS, Readiness
from pagefold.model_proxy.recalling import ENOUGH
from pagefold.model_proxy.saving import Saving
from pagefold.model_proxy.session_rows import SessionRows
from pagefold.model_proxy.threads import finished, told
from pagefold.model_proxy.totals import CostCheck, Ending, Seen, Totals
from pagefold.model_proxy.turn_recorder import TurnRecorder
from pagefold.model_proxy.upstreams import Upstreams
from pagefold.wire import json_text
from pagefold.wire.api import error_json
from pagefold.wire.api_paths import error_at
from pagefold.wire.message import Usage

_HEADER_BYTES = 256 << 10
_ASIDE = 4  # threads that derive long histories
_UNAUTHENTICATED = "this pagefold asks for its token in x-pagefold-token"
_NO_UPSTREAM = "this pagefold was given no address to send this on to"


def to_stderr(line: str) -> None:
    sys.stderr.write(f"pagefold: {line}\n")


class Proxy(RequestCounts):
    """The ASGI application. `totals` is what it has counted so far, see `counting`.

    `conversations` holds the policy that derives requests; `put` stores pages, `write_back` stores pins before a fold,
    `answers` answers context tools. `exchange` makes the part of one exchange without network I/O. `report` gets one
    line for each kind of fault, the first time it happens, and never what a client or an upstream wrote. `recorder`
    records every exchange that was read; `dashboard` answers the other paths below /pagefold/. `http_proxies` has the
    HTTP proxies by which upstreams are reached, by host and port. `keep_alive` lets it send requests of its own that
    keep a prompt cache alive, where that is expected to be cheaper. `limits` are those it is served within, and
    `store_health` tells how the store is. `signing` is what is done about requests that are signed for AWS,
    `other_version` the instances of another version.
    """

    def __init__(
        self,
        upstreams: Upstreams,
        conversations: Conversations | None = None,
        *,
        put: Callable[..., object] | None = None,
        write_back: Callable[..., object] = lambda pins, boundary, **more: None,
        soon: Callable[[Callable[[], object]], Pending] = at_once,
        answers: Callable[..., str] | None = None,
        door: Door | None = None,
        report: Callable[[str], None] = to_stderr,
        exchange: Callable[..., Exchange] = Exchange,
        read_bytes: int = READ_BYTES,
        recorder: TurnRecorder | None = None,
        dashboard: App | None = None,
        http_proxies: Mapping[str, str] | None = None,
        keep_alive: bool = False,
        limits: ConnectionLimits | None = None,
        store_health: Callable[[], StoreHealth] = StoreHealth,
        signing: AwsSigning | None = None,
        other_version: OtherVersion | None = None,
    ) -> None:
        super().__init__()
        self.upstreams, self.exchange, self.read_bytes = upstreams, exchange, read_bytes
        self.conversations = conversations or Conversations()
        self.saving, self.soon = Saving(put, write_back), soon
        self.answers = answers or _no_answer
        self.recorder, self.dashboard, self.http_proxies = recorder, dashboard, http_proxies or {}
        self.session_rows: SessionRows | None = None
        # What is saved is saved in order, by one worker. Long histories are derived aside: nobody waits for them.
        self._worker = ThreadPoolExecutor(1, "pagefold-save")
        self._aside = ThreadPoolExecutor(_ASIDE, "pagefold-derive")
        self._working: Future[Any] | None = None
        self._door, self._report = door or Door(), report
        self._compress = compress.CompressEndpoint(self._door, self.fault, read_bytes)
        self._reported: set[str] = set()
        self._session: Session | None = None
        self._signing = signing or AwsSigning()
        self.other_version = other_version or OtherVersion()
        self.readiness = Readiness(limits or ConnectionLimits(), asks_token=bool(self._door.token), store=store_health)
        self._keeps_alive, self._keep_alive = keep_alive, KeepAlive(self._send_keep_alive, self._kept_alive)
        self._loop: asyncio.AbstractEventLoop | None = None
        self.status: Callable[[], Awaitable[str]] = self._own_status
        self.sessions: Callable[[], Awaitable[str]] = self._no_sessions
        self.tell_others: Callable[[tuple[str, ...]], None] = lambda names: None
        # Gets the host of an upstream that gave no answer, and why.
        self.unanswered: Callable[[str, str], None] = lambda host, cause: None

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
        ) as session:
            self._session = self._signing.over(session)
            self._loop = asyncio.get_running_loop()
            await send({"type": "lifespan.startup.complete"})
            tidying = self._loop.call_later(TIDY_SECONDS, self._tidy)
            await receive()
            tidying.cancel()
            await self._keep_alive.close()
        self.count_finished()
        self._aside.shutdown()
        self._worker.shutdown()
        self.count_and_flush()
        if self.dashboard is not None:
            await end(self.dashboard)
        await send({"type": "lifespan.shutdown.complete"})

    async def _answer(self, scope: Event, receive: Receive, send: Send) -> None:
        path, headers = scope["raw_path"], scope["headers"]
        named = dict(headers)
        if self._door.is_foreign(named):
            await refuse(send, 403, error_at(scope["path"])("permission_error", FOREIGN))
        elif path in PATHS and scope["method"] in ("GET", "HEAD"):
            await reply(send, *self.readiness.answer(path))
        elif path.startswith(b"/pagefold") and (path == b"/pagefold" or path.startswith(b"/pagefold/")):
            await self._serve_own_paths(path, named, scope, receive, send)
        elif path == compress.PATH and scope["method"] == "POST":
            await self._compress(named, receive, send)
        elif refusal := self._refusal(path, named, headers):
            status, kind, message = refusal
            await refuse(send, status, error_at(scope["path"])(kind, message))
        elif (target := self.upstreams.target(path, scope["query_string"], headers)) is None:
            await refuse(send, 404, error_at(scope["path"])("not_found_error", _NO_UPSTREAM))
        else:
            assert self._session is not None, "the lifespan has begun"
            if named.get(b"authorization", b"").startswith(b"AWS4-"):
                try:
                    scope, receive, problem = await self._signing.admitted(scope, receive)
                except ClientLeftError:
                    self.add(Totals(requests=1, abandoned=1))
                    return
                if problem:
                    await refuse(send, 400, error_at(scope["path"])("invalid_request_error", problem))
                    return
            await ProxiedRequest(self, self._session, target, scope, named, receive, send).run()

    def _refusal(self, path: bytes, named: Mapping[bytes, bytes], headers: Headers) -> tuple[int, str, str] | None:
        """Returns status, kind and message of the error for a request that may not be forwarded, or None."""
        if not self._door.lets_in(named):
            return 401, "authentication_error", _UNAUTHENTICATED
        if b"upgrade" in named and needs_upgrade(named):
            return 426, "invalid_request_error", "pagefold speaks HTTP/1.1 and upgrades to nothing else"
        if not path.startswith(b"/"):
            return 400, "invalid_request_error", "the request target is not a path"
        if not are_text(headers):
            return 400, "invalid_request_error", "a header is not UTF-8 and could not be passed on as it is"
        return None

    async def _serve_own_paths(
        self, path: bytes, named: Mapping[bytes, bytes], scope: Event, receive: Receive, send: Send
    ) -> None:
        if self.dashboard is not None and path not in (b"/pagefold/status", b"/pagefold/sessions"):
            await self.dashboard(scope, receive, send)  # it asks for the token in its own ways
        elif not self._door.lets_in(named):
            await refuse(send, 401, error_json("authentication_error", _UNAUTHENTICATED))
        elif path == b"/pagefold/status":
            await reply(send, 200, json_text.bytes_of(await self.status()))
        elif path == b"/pagefold/sessions":
            await reply(send, 200, json_text.bytes_of(await self.sessions()))
        else:
            message = "pagefold answers to /pagefold/status, /pagefold/sessions, /pagefold/live and /pagefold/ready"
            await refuse(send, 404, error_json("not_found_error", message))

    async def _own_status(self) -> str:
        return self.totals.to_json()

    async def _no_sessions(self) -> str:
        return json_text.dumps({"sessions": []})

    def fell_silent(
        self, exchange: Exchange, seen: Seen, target: URL, upstream: tuple[list[tuple[str, str]], bytes]
    ) -> None:
        """A request was answered. Where caches are kept alive, it is decided later what is done about its own."""
        record, loop = exchange.record, self._loop
        if not self._keeps_alive or record is None or record.inline or loop is None or exchange.arm == Arm.HELD_OUT:
            return
        headers, body = upstream
        prices = self.conversations.prices_of(record.parsed)
        plan = idle_plan(record.parsed, body, seen, prices, folds=exchange.may_shrink)
        if plan is not None:
            loop.call_soon_threadsafe(self._keep_alive.answered, plan, target, headers)

    def goes_on(self, exchange: Exchange | None) -> None:
        """A request has come: its conversation is no longer silent, however long the answer takes."""
        if self._keeps_alive and exchange is not None and (record := exchange.record) is not None:
            self.count_finished()  # an answer that is not counted yet would begin a silence afterwards
            names = conversation_names(record.parsed)
            asyncio.get_running_loop().call_soon(self.spoke, *names)
            self.tell_others(names)

    def spoke(self, *names: str) -> None:
        """A conversation with any of these names goes on, here or behind another worker."""
        self._keep_alive.spoke(*names)

    async def _send_keep_alive(self, target: URL, headers: list[tuple[str, str]], body: bytes) -> tuple[int, bytes]:
        assert self._session is not None
        through = self.http_proxies.get(target.raw_authority)
        sending = self._session.request(
            "POST", target, headers=headers, data=body, allow_redirects=False, proxy=through
        )
        async with await sending as response:
            return response.status, await response.content.read(self.read_bytes)

    def _kept_alive(self, plan: IdlePlan, usage: Usage | None) -> None:
        if usage is None:
            self.add(Totals(keep_alives_refused=1))
            return
        self.conversations.reckoner.kept_alive(plan.hashes, now := steady_time())
        self.conversations.notebook.note_use(plan.conversation, CacheUse(now, plan.prices.life))
        cost = CostCheck(usd=plan.prices.bill(usage))
        self.add(Totals(keep_alives=1, usage=usage, reckoned=cost))
        self.meter(Seen("", Ending.WHOLE, usage=usage, reckoned=cost), {})

    def flush(self) -> None:
        """Writes the events of counted requests, and has notes written, which nobody waits for."""
        try:
            saving = self.soon(partial(self.conversations.notebook.save, time.time()))
            saving.step.add_done_callback(self._saved)
            if self.recorder is not None:
                self.recorder.flush()
        except Exception as error:  # noqa: BLE001 - as in `steps`: neither the store nor the recorder may stop the proxy
            self.fault(error)

    def _saved(self, done: Future[Any]) -> None:
        if (error := done.exception()) is not None and isinstance(error, Exception):
            self.fault(error)

    def _tidy(self) -> None:
        tidy(self.conversations.memory, self.conversations.memory_bytes, resident_bytes, give_back)
        if self._loop is not None and not self._loop.is_closed():
            self._loop.call_later(TIDY_SECONDS, self._tidy)

    def is_free(self) -> bool:
        """Whether the worker is idle, so that a short step may run on the event loop."""
        if self._working is not None and self._working.done():
            self._working = None
        return self._working is None

    async def work(self, step: Callable[[], Any]) -> Callable[[], Any]:
        """Queues a step on the worker and waits. Returns a callable that gives its result or raises its exception."""
        self._working = done = self._worker.submit(self._timed, step, time.perf_counter())
        return await finished(done)

    async def work_aside(self, step: Callable[[], Any]) -> Callable[[], Any]:
        """The same for a step that needs no store and may take long: several run side by side."""
        return await finished(self._aside.submit(self._timed, step, time.perf_counter()))

    def aside(self, step: Callable[[], None]) -> None:
        """Runs a step for which nobody waits, in a thread."""
        self._aside.submit(told, step, self.fault)

    def _timed(self, step: Callable[[], Any], submitted: float) -> Any:
        began = time.perf_counter()
        self.readiness.times["queue"].add(began - submitted)
        try:
            return step()
        finally:
            self.readiness.times["work"].add(time.perf_counter() - began)

    def drain(self) -> None:
        """Is not ready any more from now on; what is under way goes on."""
        self.readiness.draining = True

    def store_is_back(self) -> None:
        """Has all that waits for the store saved. For any thread."""
        if self.saving.waiting:
            try:
                self._worker.submit(self.saving.save_waiting)
            except RuntimeError:  # the worker has ended already
                self.saving.save_waiting()

    def fault(self, error: Exception) -> None:
        """Counts and reports a fault of pagefold. The exception's text is left out, because it may quote a client."""
        if isinstance(error, ExceptionGroup):
            error = error.exceptions[0]
        self.add(Totals(faults=1))
        *_, (frame, line) = traceback.walk_tb(error.__traceback__)
        place = f"{type(error).__name__} at {Path(frame.f_code.co_filename).name}:{line}"
        if place not in self._reported:
            self._reported.add(place)
            whose = f"the store ({error.kind})" if isinstance(error, StoreError) else "pagefold itself"
            self._report(f"a fault of {whose}, reported once, counted in /pagefold/status: {place}")


def _no_answer(tool: str, arguments: Mapping[str, Any], history: str, work: Callable[[], object]) -> str:
    return ENOUGH
