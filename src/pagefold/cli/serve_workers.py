"""`pagefold serve --workers N`: several model proxies on one port, which the user sees as one.

The process that was started listens, keeps N workers running and holds no conversation. Workers accept from its socket
and share what they decide through the store, so that any of them takes any turn. Only the first process has totals,
dashboard, trace and counters: workers send it what they see, and pass on to it what is asked below /pagefold/. `/live`
and `/ready` are answered by any worker. A worker that is killed takes with it what it counted in its last second.
"""

import asyncio
import json
import multiprocessing
import os
import signal
import socket
import sys
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from dataclasses import asdict, replace
from functools import partial
from multiprocessing.context import SpawnProcess
from typing import Any, TypeAlias

from pagefold.adapters.asgi import App, Event, Receive, Send, new_event_loop
from pagefold.adapters.problem_log import ProblemLog
from pagefold.cli import telemetry_setup
from pagefold.cli.proxy_metrics import of_proxy
from pagefold.errors import ConfigError, PagefoldError
from pagefold.model_proxy import server
from pagefold.model_proxy.http import reply
from pagefold.model_proxy.proxy import Proxy
from pagefold.model_proxy.totals import Totals
from pagefold.model_proxy.turn_recorder import TurnRecorder
from pagefold.model_proxy.worker_link import LinkError, WorkerConnection, WorkerLink
from pagefold.model_proxy.worker_reports import WorkerReport
from pagefold.model_proxy.workers import Workers
from pagefold.settings.sections import Settings
from pagefold.telemetry import metrics
from pagefold.telemetry.events import TraceEvent
from pagefold.telemetry.live import LiveView, status_rows

OpenedProxy: TypeAlias = Callable[[Settings], AbstractContextManager[Proxy]]
"""A function of a module, because it is named to another process."""
WhileCounting: TypeAlias = Callable[[Settings, Callable[[], Totals]], AbstractContextManager[None]]

_MOST_EVENTS = 10_000
_PAGE_SECONDS = 10.0
_LEAST_MEMORY = 16  # MB of histories that a worker remembers
_UNTOLD = b'{"type":"error","error":{"type":"api_error","message":"pagefold\'s first process does not answer"}}'

# ---- the first process ----------------------------------------------------------------------------------------------


def run(settings: Settings, started: Callable[[int, str], None], opened: OpenedProxy, counted: WhileCounting) -> Totals:
    """Serves until a signal arrives, and returns what was counted. `started` gets the port and the dashboard's key,
    `opened` opens a worker's proxy, and `counted` adds totals to the counters. Raises ConfigError."""
    if sys.platform == "win32":
        # Windows has neither signals for an event loop nor a socket that several processes accept from.
        raise ConfigError(f"serve.workers = {settings.serve.workers}: expected 1 on Windows")
    if tls := server.tls_of(settings.serve):
        tls.check()
    listening = server.listen(settings.serve.host, settings.serve.port)
    with listening, asyncio.Runner(loop_factory=new_event_loop) as runner:
        workers, telemetry = runner.run(_made(settings, listening, opened))
        with counted(settings, lambda: workers.reports.totals):
            port = listening.getsockname()[1]
            runner.run(workers.run(lambda: started(port, telemetry.key), listening.close))
    return workers.reports.totals


async def _made(
    settings: Settings, listening: socket.socket, opened: OpenedProxy
) -> tuple[Workers, telemetry_setup.Telemetry]:
    """The workers, not started yet, and where what they see is shown. For the event loop that they will run on."""
    problems = ProblemLog(as_json=settings.telemetry.log == "json")
    share = max(_LEAST_MEMORY, settings.serve.memory // settings.serve.workers)
    own = replace(settings, serve=replace(settings.serve, memory=share))

    def samples() -> Iterator[metrics.Sample]:
        yield from metrics.of_model_proxy(asdict(workers.reports.totals))
        yield from workers.reports.samples()
        yield from metrics.of_workers(len(workers.processes), workers.restarted)

    def notes() -> Iterator[str]:
        if workers.restarted:
            yield f"{len(workers.processes)} workers serve; {workers.restarted:,} ended and were started again."

    async def answer(what: str, value: Any) -> Any:
        await workers.pull()
        if what == "status":
            counts = {"running": workers.processes, "restarted": workers.restarted}
            return json.dumps({**asdict(workers.reports.totals), "workers": counts})
        if what == "sessions":
            return json.dumps(status_rows(telemetry.live or LiveView()))
        return await _page(telemetry.dashboard, value) if telemetry.dashboard else None

    def heard(report: WorkerReport) -> None:
        if telemetry.see is not None:
            for event in report.events:
                telemetry.see(event)

    workers = Workers(
        settings.serve.workers,
        lambda: _start(own, listening, opened),
        heard=heard,
        answer=answer,
        report=problems,
        grace_seconds=settings.serve.grace_seconds,
    )
    telemetry = telemetry_setup.telemetry_of(settings, samples, workers.pull_soon, notes)
    return workers, telemetry


def _start(settings: Settings, listening: socket.socket, opened: OpenedProxy) -> tuple[SpawnProcess, WorkerConnection]:
    context = multiprocessing.get_context("spawn")
    ours, theirs = context.Pipe()
    process = context.Process(target=work, args=(settings, listening, theirs, opened), name="pagefold-worker")
    process.start()
    theirs.close()
    return process, ours


async def _page(dashboard: App, scope: Event) -> tuple[Event, bytes]:
    """What the dashboard answers to a request: the start of the answer, and its body."""
    sent: list[Event] = []

    async def receive() -> Event:
        return {"type": "http.disconnect"}

    async def send(event: Event) -> None:
        sent.append(event)

    await dashboard(scope, receive, send)
    return sent[0], b"".join(event.get("body", b"") for event in sent[1:])


# ---- a worker -------------------------------------------------------------------------------------------------------


def work(settings: Settings, listening: socket.socket, connection: WorkerConnection, opened: OpenedProxy) -> None:
    """Serves in this process until a signal arrives or the first process has ended."""
    link, events = WorkerLink(connection), deque[TraceEvent](maxlen=_MOST_EVENTS)
    try:
        with opened(settings) as proxy:
            _watch(proxy, settings, link, events)

            async def answer(what: str, value: Any) -> Any:
                if what == "spoke":
                    return proxy.spoke(*value)
                return _report(proxy, events)

            def started(port: int) -> None:
                link.start(answer, lambda: os.kill(os.getpid(), signal.SIGTERM))
                link.tell("ready")

            limits, grace = proxy.readiness.limits, settings.serve.grace_seconds
            service = server.Service(server.tls_of(settings.serve), limits, grace, proxy.drain, listening=listening)
            server.run(proxy, settings.serve.host, settings.serve.port, started=started, service=service)
            link.tell("last report", _report(proxy, events))
    except PagefoldError as error:
        link.tell("refusal", str(error))
    finally:
        link.close()


def _watch(proxy: Proxy, settings: Settings, link: WorkerLink, events: "deque[TraceEvent]") -> None:
    telemetry = settings.telemetry
    if telemetry.dashboard or telemetry.trace or telemetry.otel_endpoint:
        proxy.recorder = TurnRecorder(events.append, spelled=telemetry.content)
    if telemetry.dashboard:
        proxy.dashboard = _PassedOn(link)

    async def status() -> str:
        try:
            return str(await link.ask("status"))
        except LinkError:
            return proxy.totals.to_json()

    async def sessions() -> str:
        try:
            return str(await link.ask("sessions"))
        except LinkError:
            return json.dumps({"sessions": []})

    proxy.status, proxy.sessions = status, sessions
    proxy.tell_others = partial(link.tell, "spoke")


def _report(proxy: Proxy, events: "deque[TraceEvent]") -> WorkerReport:
    proxy.catch_up()
    newest = tuple(events)
    events.clear()
    return WorkerReport(proxy.totals, tuple(of_proxy(proxy)), newest)


class _PassedOn:
    """The dashboard of the first process, as an application in a worker."""

    def __init__(self, link: WorkerLink) -> None:
        self._link = link

    async def __call__(self, scope: Event, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return
        asked = {name: scope[name] for name in ("type", "method", "path", "raw_path", "query_string", "headers")}
        try:
            start, body = await self._link.ask("page", asked, _PAGE_SECONDS)
        except LinkError:
            await reply(send, 503, _UNTOLD)
            return
        await send(start)
        await send({"type": "http.response.body", "body": body})
