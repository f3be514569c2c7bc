"""Runs likely read-only calls early: the driver around the planner and the answers that wait to be asked for.

Real calls come first: while one runs nothing is started early, and one that arrives ends what runs early, except the
very call that it asks for, which it waits for. At most a few early calls run side by side, all of them under one
deadline; `close` cancels and awaits them. A failed early call has no effect.

Before an answer of a tool on this machine is served, the files it was made of are looked at again; it is served only
if they are what they were before the tool read them.
"""

import asyncio
import stat
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Generic, TypeVar

from pagefold.tools.model import ToolValueModel
from pagefold.tools.planner import AnsweredCall, PlannedCall, Planner
from pagefold.tools.prefetch import PrefetchedAnswers, Ticket, WriteEpochs, canonical, may_dispatch
from pagefold.tools.registry import ToolRegistry

Body = TypeVar("Body")

# A file that was written this recently can be written again without its times showing it: clocks of file systems tick.
_SETTLED_NS = 50_000_000
_KEPT_CALLS = 10_000


def witness(model: ToolValueModel, arguments: Mapping[str, Any], *, first: bool = False) -> object | None:
    """The state of the files that a call reads, or None where nobody can tell.

    Two equal states, the first of them taken with `first`, mean that nothing was written in between.
    """
    paths: list[str] = []
    for name in model.watch:
        given = arguments.get(name)
        paths += [given] if isinstance(given, str) else given if isinstance(given, list) else [""]
    states = [_state(path, first=first) for path in paths]
    return None if not states or None in states else tuple(states)


def _state(path: object, *, first: bool) -> tuple[object, ...] | None:
    if not isinstance(path, str) or "\0" in path or not Path(path).is_absolute():
        return None
    try:
        status = Path(path).stat()
    except OSError:
        return None
    if not (stat.S_ISREG(status.st_mode) or stat.S_ISDIR(status.st_mode)):
        return None
    if first and time.time_ns() - max(status.st_mtime_ns, status.st_ctime_ns) < _SETTLED_NS:
        return None
    return path, status.st_dev, status.st_ino, status.st_mode, status.st_size, status.st_mtime_ns, status.st_ctime_ns


@dataclass(slots=True)
class _Early:
    task: asyncio.Task[Any]
    ticket: Ticket
    planned: PlannedCall
    wanted: bool = False


class Prefetcher(Generic[Body]):
    """Early calls of one conversation. `run` makes a call and gives its answer and whether that is an error."""

    def __init__(
        self,
        run: Callable[[str, Mapping[str, Any]], Awaitable[tuple[Body, bool]]],
        registry: ToolRegistry,
        planner: Planner,
        *,
        text_of: Callable[[Body], Any] = lambda body: body,
    ) -> None:
        """`text_of` gives what the planner may look for arguments in."""
        self._run = run
        self._registry = registry
        self._planner = planner
        self._text_of = text_of
        self.epochs = WriteEpochs(registry)
        self.answers: PrefetchedAnswers[Body] = PrefetchedAnswers(self.epochs)
        self.started = 0
        self._real = 0
        self._real_hosts: Counter[str] = Counter()
        self._turn: list[AnsweredCall] = []
        self._asked: dict[tuple[str, str], tuple[int, int]] = {}
        self._early: dict[tuple[str, str], _Early] = {}
        self._closed = False

    async def begin(self, tool: str, arguments: Mapping[str, Any]) -> Body | None:
        """To be called when a real call arrives; the answer, if it is at hand and still holds.

        Whatever it returns, `end` has to be called for the same call later.
        """
        self.epochs.called(tool)
        self._real += 1
        self._count_host(tool, 1)
        self._preempt(tool, arguments)
        registered = self._registry.find(tool)
        if registered is None:
            return None
        if early := self._running(tool, arguments):
            early.wanted = True
            await asyncio.wait({early.task})
        seen = witness(registered.model, arguments) if registered.model.is_local() else None
        if registered.model.is_local() and registered.model.watch and seen is None:
            # What it was made of cannot be looked at any more.
            seen = object()
        return self.answers.take(tool, arguments, time.monotonic(), seen)

    def end(self, tool: str, arguments: Mapping[str, Any], body: Body, *, failed: bool) -> None:
        """The real call was answered, by the tool or by us. When none is left, what is likely next is started."""
        self._real -= 1
        self._count_host(tool, -1)
        self.epochs.called(tool)
        text = canonical(arguments)
        if text is not None:
            self._asked[tool, text] = self.epochs.of(tool)
            if len(self._asked) > _KEPT_CALLS:
                del self._asked[next(iter(self._asked))]
        text = self._text_of(body) if self._planner.looks_into(tool) else ""
        self._turn.append(AnsweredCall(tool, arguments, text, failed))
        if self._real == 0 and not self._closed:
            turn, self._turn = self._turn, []
            self.answers.sweep(time.monotonic())
            for planned in self._planner.plan(turn, has=self._has, busy_hosts=self._busy()):
                if len(self._early) < self._planner.limits.parallel:
                    self._start(planned)

    async def close(self) -> None:
        """Cancels what runs early, and waits until it has ended."""
        self._closed = True
        tasks = [early.task for early in self._early.values()]
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks)

    def _has(self, tool: str, arguments: str) -> bool:
        shown = self._asked.get((tool, arguments)) == self.epochs.of(tool)
        return shown or self.answers.holds(tool, arguments, time.monotonic())

    def _busy(self) -> Counter[str]:
        """Returns how many calls, real and early, each host is answering."""
        early = (early.planned.host for early in self._early.values())
        return self._real_hosts + Counter(filter(None, early))

    def _count_host(self, tool: str, change: int) -> None:
        registered = self._registry.find(tool)
        if registered is not None and (host := registered.model.rate_limit_host):
            self._real_hosts[host] += change

    def _running(self, tool: str, arguments: Mapping[str, Any]) -> _Early | None:
        ticket = self.answers.running(tool, arguments)
        early = self._early.get(ticket.key) if ticket else None
        return early if early and early.ticket is ticket else None

    def _preempt(self, tool: str, arguments: Mapping[str, Any]) -> None:
        own = (tool, canonical(arguments)) if self._early else None
        for key, early in self._early.items():
            if key != own and not early.wanted and not early.task.done():
                early.task.cancel()

    def _start(self, planned: PlannedCall) -> None:
        registered = self._registry.find(planned.tool)
        # Asked here once more, at the very place where a call goes out.
        verdict = may_dispatch(
            planned.tool,
            registered,
            planned.arguments,
            annotations=self._planner.annotations.get(planned.tool),
            allowed_hosts=self._planner.limits.hosts,
        )
        if registered is None or not verdict:
            return
        if verdict.host is not None and self._busy()[verdict.host] >= self._planner.limits.per_host:
            return
        seen = None
        if registered.model.is_local() and registered.model.watch:
            seen = witness(registered.model, planned.arguments, first=True)
            if seen is None:
                return
        ticket = self.answers.begin(planned.tool, planned.arguments, time.monotonic(), seen)
        if ticket is None:
            return
        task = asyncio.get_running_loop().create_task(self._within_deadline(planned))
        self._early[ticket.key] = _Early(task, ticket, planned)
        task.add_done_callback(lambda done: self._ended(ticket, registered.model, planned.arguments, done))
        self.started += 1

    async def _within_deadline(self, planned: PlannedCall) -> tuple[Body, bool]:
        async with asyncio.timeout(self._planner.limits.deadline_ms / 1000):
            return await self._run(planned.tool, planned.arguments)

    def _ended(
        self,
        ticket: Ticket,
        model: ToolValueModel,
        arguments: Mapping[str, Any],
        task: asyncio.Task[tuple[Body, bool]],
    ) -> None:
        """The one place where an early call may fail: nobody else is bothered."""
        self._early.pop(ticket.key, None)
        if task.cancelled() or task.exception() is not None:
            self.answers.abandon(ticket)
        else:
            body, failed = task.result()
            seen = witness(model, arguments) if ticket.witness is not None else None
            self.answers.settle(ticket, body, failed=failed, witness=seen)
