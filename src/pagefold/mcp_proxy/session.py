"""One client and the servers behind it: carries out what a relay commands.

Where code of ours raises, the bytes go on as they came (`fail_open`). Commands of one direction are carried out one
after the other, so that answers, progress and notices keep their order; a large answer is worked on in a thread while
the other direction goes on.
"""

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import Any, Protocol

from pagefold.mcp_proxy.commands import (
    AnswerOwnTool,
    CallCancelled,
    Command,
    ForgetShown,
    OwnCallAnswered,
    ReportLine,
    ServerReady,
    Shorten,
    ToClient,
    ToolCall,
    ToServer,
)
from pagefold.mcp_proxy.fail_open import FailOpen, to_stderr
from pagefold.mcp_proxy.lines import Overlong
from pagefold.mcp_proxy.replies import SERVER_LOST, failure, text_reply

_INLINE_BYTES = 20_000


class Switch(Protocol):
    """The pure half, for one server or for many."""

    def from_client(self, data: bytes) -> list[Command]: ...

    def from_server(self, server: str, data: bytes) -> list[Command]: ...

    def overlong(self, server: str, line: Overlong) -> list[Command]: ...

    def lost(self, server: str, why: str) -> list[Command]: ...

    def back(self, server: str) -> list[Command]: ...

    def refused(self, server: str, data: bytes, why: str) -> list[Command]: ...

    def is_known(self, server: str) -> bool: ...

    def drop(self, server: str, id: str) -> None: ...

    @property
    def annotations(self) -> Mapping[str, Mapping[str, Any]]: ...

    @property
    def envelope(self) -> Mapping[str, Any]: ...

    def overdue(self) -> list[Command]: ...


class Upstream(Protocol):
    async def send(self, data: bytes, *, now: bool = False) -> None: ...

    async def ready(self) -> None: ...

    async def close(self, grace_seconds: float) -> None: ...


class Early(Protocol):
    """Answers that are there before a server is asked; `prefetch_driver.PrefetchDriver` is one."""

    annotations: dict[str, Mapping[str, Any]]
    envelope: Mapping[str, Any]

    def attach(self, send: Callable[[str, bytes], Awaitable[None]]) -> None: ...

    def refusal(self, call: ToolCall) -> str | None: ...

    async def begin(self, call: ToolCall) -> bytes | None: ...

    def end(self, call: ToolCall, data: bytes | None) -> None: ...

    def settle(self, id: str, data: bytes) -> None: ...

    async def close(self) -> None: ...


class ResultProcessor(Protocol):
    """What is done to what passes; imported late, since a client waits for the greeting and for nothing else."""

    @property
    def warm(self) -> bool: ...

    @property
    def early(self) -> Early | None: ...

    def begin(self) -> None:
        """A greeting has gone by: there is time now."""

    @property
    def may_wait(self) -> bool: ...

    def shorten(self, command: Shorten) -> tuple[bytes, Callable[[], Mapping[str, int]]]: ...

    def forget(self) -> None: ...

    def close(self) -> None: ...

    def answer(self, command: AnswerOwnTool) -> tuple[str, bool]: ...


class ProxySession:
    def __init__(
        self,
        switch: Switch,
        work: ResultProcessor,
        tell: Callable[[bytes], Awaitable[None]],
        *,
        counts: Counter[str] | None = None,
        report: Callable[[str], None] = to_stderr,
        aside: Callable[[str, bytes], None] | None = None,
    ) -> None:
        self.switch, self.work, self.counts = switch, work, Counter() if counts is None else counts
        self.upstreams: dict[str, Upstream] = {}
        self._tell, self._report = tell, report
        self._aside = aside or self._report_aside
        self._fail_open = FailOpen(self.counts, report)
        self._begun: set[str] = set()
        self.watch: Callable[[str, Mapping[str, int]], None] | None = None  # of telemetry: a tool, and what was counted
        self.never_came: set[str] = set()
        self.ended = asyncio.Event()
        self._timer: asyncio.TimerHandle | None = None
        self._late: asyncio.Future[None] | None = None

    async def asked(self, data: bytes) -> None:
        """A message of the client's."""
        await self.carry_out(self.commands_for(data, next(iter(self.upstreams), "")))

    def commands_for(self, data: bytes, otherwise: str) -> list[Command]:
        """What becomes of a message of the client's; it goes to the server `otherwise` where code of ours fails."""
        return self._told([ToServer(otherwise, data)], self.switch.from_client, data)

    def _told(self, otherwise: list[Command], step: Callable[..., list[Command]], *shown: object) -> list[Command]:
        """What the switch commands; where code of ours fails, what is to be done otherwise."""
        with self._fail_open:
            return step(*shown)
        return otherwise

    async def heard(self, server: str, line: bytes | Overlong) -> None:
        """A message of a server's."""
        if isinstance(line, Overlong):
            await self.carry_out(self._told([], self.switch.overlong, server, line))
        else:
            await self.carry_out(self._told([ToClient(line)], self.switch.from_server, server, line))

    async def lost(self, server: str, why: str) -> bool:
        """Answers for what it cannot answer any more. Whether a new process of it makes sense."""
        self.counts["servers lost"] += 1
        self._report(f"the server {server} {why}" if server else f"the server {why}")
        await self.carry_out(self._told([], self.switch.lost, server, why))
        if self.switch.is_known(server):
            return True
        self.never_came.add(server)
        if self.never_came >= self.upstreams.keys():
            self.ended.set()
        return False

    async def back(self, server: str) -> None:
        await self.carry_out(self._told([ServerReady(server)], self.switch.back, server))

    async def refused(self, server: str, data: bytes, why: str) -> None:
        await self.carry_out(self._told([], self.switch.refused, server, data, why))

    def wait_for_greetings(self, seconds: float) -> None:
        """Several servers: those that have not greeted by then are not waited for."""
        loop = asyncio.get_running_loop()

        def overdue() -> None:
            self._late = asyncio.ensure_future(self.carry_out(self._told([], self.switch.overdue)))

        self._timer = loop.call_later(seconds, overdue)

    async def carry_out(self, commands: Iterable[Command]) -> None:
        for command in commands:
            match command:
                case ToServer():
                    await self._to_server(command)
                case ToClient():
                    await self._tell(command.data)
                    self._ended(command.call, None)
                    if not self.work.warm:
                        self.work.begin()
                case Shorten():
                    data, noted = await self._shortened(command)
                    await self._tell(data)
                    self._count(command, noted)
                    self._ended(command.call, command.data)
                case AnswerOwnTool():
                    await self._tell(await self._answered(command))
                case ForgetShown():
                    await asyncio.to_thread(self.work.forget)
                case ServerReady():
                    await self.upstreams[command.server].ready()
                case ReportLine() | OwnCallAnswered() | CallCancelled():
                    self._note(command)

    def _note(self, command: ReportLine | OwnCallAnswered | CallCancelled) -> None:
        """What nobody waits for."""
        match command:
            case ReportLine():
                self._aside(command.server, command.line)
            case OwnCallAnswered() if self.work.early is not None:
                self.work.early.settle(command.id, command.data)
            case CallCancelled():
                self._ended(command.call, None)

    async def _to_server(self, command: ToServer) -> None:
        upstream = self.upstreams.get(command.server)
        if upstream is None:
            await self.refused(command.server, command.data, "is not there")
        elif command.call is None or not await self._answered_early(command.call):
            await upstream.send(command.data, now=command.now)

    async def _answered_early(self, call: ToolCall) -> bool:
        """Whether a call was answered without asking the server for it now."""
        early = self.work.early
        if early is None:
            return False
        early.attach(self._send)
        told = data = None  # the server is asked as if there were none of this
        with self._fail_open:
            early.annotations.update(self.switch.annotations)
            early.envelope = self.switch.envelope
            told = early.refusal(call)
            if told is None:
                self._begun.add(call.id)
                data = await early.begin(call)
        if told is not None:
            self.switch.drop(call.server, call.id)
            await self._tell(text_reply(call.id, told, modern=bool(early.envelope)))
            return True
        if data is not None:
            await self.heard(call.server, data)
        return data is not None

    def _ended(self, call: ToolCall | None, data: bytes | None) -> None:
        early = self.work.early
        if call is None or early is None or call.id not in self._begun:
            return
        self._begun.discard(call.id)
        with self._fail_open:  # the client has its answer already
            early.end(call, data)

    async def _send(self, server: str, data: bytes) -> None:
        if (upstream := self.upstreams.get(server)) is not None:
            await upstream.send(data)

    async def _shortened(self, command: Shorten) -> tuple[bytes, Callable[[], Mapping[str, int]]]:
        with self._fail_open:
            if len(command.data) > _INLINE_BYTES or self.work.may_wait:
                return await asyncio.to_thread(self.work.shorten, command)
            return self.work.shorten(command)
        return command.data, dict

    def _count(self, command: Shorten, noted: Callable[[], Mapping[str, int]]) -> None:
        self.counts["calls"] += 1
        with self._fail_open:  # the client has its answer already
            counts = noted()
            for name, times in counts.items():
                self.counts[name] += times
            if self.watch is not None:
                self.watch(command.tool, counts)

    async def _answered(self, command: AnswerOwnTool) -> bytes:
        self.counts[f"own calls {command.tool}"] += 1
        with self._fail_open:
            text, failed = await asyncio.to_thread(self.work.answer, command)
            return text_reply(command.id, text, failed=failed, modern=command.modern)
        # There is no original to pass on, so it is said.
        return failure(command.id, SERVER_LOST, "pagefold: a fault of pagefold itself; do not try it again")

    async def close(self, grace_seconds: float) -> None:
        """Ends what runs early, and every server."""
        if self.work.early is not None:
            await self.work.early.close()
        await asyncio.gather(*(upstream.close(grace_seconds) for upstream in self.upstreams.values()))

    def _report_aside(self, server: str, line: bytes) -> None:
        self.counts["lines aside"] += 1
        self._report(f"{server or 'the server'} wrote what is no message: {line[:500].decode('utf-8', 'replace')}")
