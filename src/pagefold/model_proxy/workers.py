"""Keeps worker processes running on one listening socket: starts them, starts again what dies, and ends them together.

All accept from the same socket, so a connection that waits is taken by whoever is free, and one worker's death resets
no connection but its own. A worker that dies is started again at once; one that dies young, after a pause.
"""

import asyncio
import os
import signal
import time
from collections.abc import Awaitable, Callable
from contextlib import suppress
from multiprocessing.context import SpawnProcess
from typing import Any

from pagefold.errors import ConfigError
from pagefold.model_proxy.worker_link import LinkError, WorkerConnection, WorkerLink
from pagefold.model_proxy.worker_reports import WorkerReport, WorkerReports

_KILL = getattr(signal, "SIGKILL", signal.SIGTERM)
_YOUNG_SECONDS, _PAUSE_SECONDS = 5.0, 1.0
_REPORT_SECONDS = 1.0
_START_SECONDS = 60.0
_LATE_SECONDS = 5.0  # beyond its time, before a worker is killed


class Workers:
    """`start` starts a worker and returns its process and the connection to it. `heard` gets each new report, before
    it is counted. `answer` answers what workers ask. `report` gets the kind of a problem and a sentence."""

    def __init__(
        self,
        count: int,
        start: Callable[[], tuple[SpawnProcess, WorkerConnection]],
        *,
        heard: Callable[[WorkerReport], None],
        answer: Callable[[str, Any], Awaitable[Any]],
        report: Callable[[str, str], None],
        grace_seconds: float,
    ) -> None:
        self.count, self.restarted = count, 0
        self.reports = WorkerReports()
        self._start, self._heard, self._answer, self._report = start, heard, answer, report
        self._grace = grace_seconds
        self._links: dict[int, WorkerLink] = {}
        self._processes: dict[int, SpawnProcess] = {}
        self._ready: set[int] = set()
        self._refusal = ""
        self._ending = asyncio.Event()
        self._pulling: asyncio.Task[None] | None = None

    @property
    def processes(self) -> list[int]:
        """The ids of the workers that serve."""
        return sorted(self._ready)

    async def run(self, started: Callable[[], None], stopping: Callable[[], None]) -> None:
        """Runs the workers until a signal arrives. `started` is called when all are ready, and `stopping` when the
        signal arrives. Raises ConfigError where a worker says that it cannot start."""
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, self._end, number, stopping)
        keepers = [asyncio.ensure_future(self._keep()) for _ in range(self.count)]
        try:
            await self._until_ready()
            if not self._refusal and not self._ending.is_set():
                started()
            while not self._ending.is_set():
                await self.pull()
                with suppress(TimeoutError):
                    await asyncio.wait_for(self._ending.wait(), _REPORT_SECONDS)
        finally:
            self._ending.set()
            self._signal(signal.SIGTERM)
            killing = loop.call_later(self._grace + _LATE_SECONDS, self._signal, _KILL)
            await asyncio.gather(*keepers)
            killing.cancel()
        if self._refusal:
            raise ConfigError(self._refusal)

    async def pull(self) -> None:
        """Brings the reports up to date. Whoever asks while they are under way waits for the same."""
        if self._pulling is None or self._pulling.done():
            self._pulling = asyncio.ensure_future(self._pull())
        await asyncio.shield(self._pulling)

    def pull_soon(self) -> None:
        if self._pulling is None or self._pulling.done():
            self._pulling = asyncio.ensure_future(self._pull())

    async def _pull(self) -> None:
        ready = [(process, self._links[process]) for process in self._ready]
        answers = await asyncio.gather(*(link.ask("report") for _, link in ready), return_exceptions=True)
        for (process, _), answer in zip(ready, answers, strict=True):
            if isinstance(answer, WorkerReport):
                self._take(process, answer)
            elif isinstance(answer, LinkError) and process in self._ready:
                self._report("worker silent", f"worker {process} does not say what it has counted: {answer}")

    def _take(self, process: int, report: WorkerReport) -> None:
        if process in self._links:
            self._heard(report)
            self.reports.add(process, report)

    async def _until_ready(self) -> None:
        due = time.monotonic() + _START_SECONDS
        while len(self._ready) < self.count and not self._ending.is_set() and time.monotonic() < due:
            await asyncio.sleep(0.02)

    async def _keep(self) -> None:
        """Keeps one worker running until all are to end."""
        while not self._ending.is_set():
            began = time.monotonic()
            code = await self._live()
            if self._ending.is_set():
                return
            self.restarted += 1
            how = f"by signal {-code}" if code < 0 else f"with code {code}"
            self._report("worker ended", f"a worker ended {how} and is started again")
            if time.monotonic() - began < _YOUNG_SECONDS:
                with suppress(TimeoutError):
                    await asyncio.wait_for(self._ending.wait(), _PAUSE_SECONDS)

    async def _live(self) -> int:
        """Starts a worker, waits for its end, and returns its exit code."""
        process, connection = self._start()
        number, link = process.pid or 0, WorkerLink(connection)
        self._links[number], self._processes[number] = link, process
        ended = asyncio.Event()

        async def answer(what: str, value: Any) -> Any:
            if what == "ready":
                self._ready.add(number)
            elif what == "refusal":
                self._refusal = self._refusal or str(value)
                self._ending.set()
            elif what == "last report":
                self._take(number, value)
            elif what == "spoke":
                for other in self._ready - {number}:
                    self._links[other].tell(what, value)
            else:
                return await self._answer(what, value)
            return None

        link.start(answer, ended.set)
        await ended.wait()
        self._ready.discard(number)
        code = await asyncio.to_thread(_joined, process)
        self.reports.end(number)
        del self._links[number], self._processes[number]
        link.close()
        return code

    def _end(self, number: int, stopping: Callable[[], None]) -> None:
        if self._ending.is_set():  # the user does not want to wait for answers that are under way
            self._signal(number)
        stopping()
        self._ending.set()

    def _signal(self, number: int) -> None:
        for process in self._processes:
            with suppress(ProcessLookupError):
                os.kill(process, number)


def _joined(process: SpawnProcess) -> int:
    """Waits for the end of a process that has hung up, kills it where that takes long, and returns its exit code."""
    process.join(_LATE_SECONDS)
    if process.is_alive():
        process.kill()
        process.join()
    return process.exitcode or 0
