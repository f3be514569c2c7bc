"""Connects one client with the servers behind it: carries out the commands of a relay.

Where pagefold's own code raises, the message passes as it came (`fail_open`). Commands of one direction are carried out
one after the other, so that answers, progress and notifications keep their order; a large answer is encoded in a thread
while the other direction goes on.
"""

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import Protocol, TypeAlias

from pagefold.mcp_proxy import commands as do
from pagefold.mcp_proxy.fail_open import FailOpen, to_stderr
from pagefold.mcp_proxy.lines import Overlong
from pagefold.mcp_proxy.relay import Relay
from pagefold.mcp_proxy.replies import SERVER_LOST, failure, text_reply
from pagefold.mcp_proxy.result_processor import ResultProcessor
from pagefold.mcp_proxy.servers import Servers
from pagefold.mcp_proxy.tool_result import ToolResult
from pagefold.wire.jsonrpc import Batch, Single

_INLINE_BYTES = 20_000

Switch: TypeAlias = Relay | Servers
"""Decides what happens to a message, without I/O: for one server, or for several."""

Tell: TypeAlias = Callable[[bytes, Single | Batch | None], Awaitable[None]]
"""Sends the client a message: its bytes, and the message as it was parsed before its texts changed, if it was."""


class Upstream(Protocol):
    """A server: `process.Process` or `remote.Remote`."""

    async def send(self, data: bytes, *, now: bool = False) -> None: ...

    async def ready(self) -> None: ...

    async def close(self, grace_seconds: float) -> None: ...


class ProxySession:
    """One client's connection. `watch` is for telemetry: it gets the name of a tool and the counts of each result."""

    def __init__(
        self,
        switch: Switch,
        processor: ResultProcessor,
        tell: Tell,
        *,
        counts: Counter[str],
        watch: Callable[[str, Mapping[str, int]], None] | None = None,
    ) -> None:
        self.switch, self.processor, self.counts = switch, processor, counts
        self.upstreams: dict[str, Upstream] = {}
        self._tell, self._watch = tell, watch
        self._fail_open = FailOpen(self.counts)
        self._begun: set[str] = set()
        self._never_answered: set[str] = set()
        self.ended = asyncio.Event()
        self._timer: asyncio.TimerHandle | None = None
        self._late: asyncio.Future[None] | None = None

    async def asked(self, data: bytes) -> None:
        """Handles a message of the client's."""
        await self.carry_out(self.commands_for(data, next(iter(self.upstreams), "")))

    def commands_for(self, data: bytes, fallback: str) -> list[do.Command]:
        """Returns the commands for a message of the client's. If pagefold's own code raises, `fallback` is sent it."""
        return self._commanded([do.ToServer(fallback, data)], self.switch.from_client, data)

    def _commanded(
        self, otherwise: list[do.Command], step: Callable[..., list[do.Command]], *arguments: object
    ) -> list[do.Command]:
        """Returns the commands of a step of the switch, or `otherwise` if it raises."""
        with self._fail_open:
            return step(*arguments)
        return otherwise

    async def heard(self, server: str, line: bytes | Overlong) -> None:
        """Handles a message of a server's."""
        if isinstance(line, Overlong):
            await self.carry_out(self._commanded([], self.switch.relay_of(server).overlong, line))
        else:
            await self.carry_out(self._commanded([do.ToClient(line)], self.switch.from_server, server, line))

    async def lost(self, server: str, why: str) -> bool:
        """Answers the open calls of a server that has ended. Returns whether it is worth starting again."""
        self.counts["servers lost"] += 1
        to_stderr(f"the server {server} {why}" if server else f"the server {why}")
        await self.carry_out(self._commanded([], self.switch.lost, server, why))
        if self.switch.relay_of(server).greeted:
            return True
        self._never_answered.add(server)
        if self._never_answered >= self.upstreams.keys():
            self.ended.set()
        return False

    async def restarted(self, server: str) -> None:
        await self.carry_out(self._commanded([do.ServerReady(server)], self.switch.restarted, server))

    async def refused(self, server: str, data: bytes, why: str) -> None:
        await self.carry_out(self._commanded([], self.switch.refused, server, data, why))

    def wait_for_greetings(self, seconds: float) -> None:
        """With several servers: greets the client after this time without those that have not greeted."""

        def overdue() -> None:
            self._late = asyncio.ensure_future(self.carry_out(self._commanded([], self.switch.overdue)))

        self._timer = asyncio.get_running_loop().call_later(seconds, overdue)

    async def carry_out(self, commands: Iterable[do.Command]) -> None:
        for command in commands:
            match command:
                case do.ToServer():
                    await self._to_server(command)
                case do.ToClient():
                    await self._tell(command.data, command.message)
                    self._call_ended(command.call, None)
                    self.processor.begin()
                case do.Quote():
                    await self._tell(await self._quoted(command), command.message)
                    self._call_ended(command.call, None)
                case do.Shorten():
                    data, count = await self._shortened(command)
                    await self._tell(data, command.result.reply)
                    self._count(command, count)
                    self._call_ended(command.call, command.result)
                case do.AnswerOwnTool():
                    await self._tell(await self._answered(command), None)
                case do.ForgetShown():
                    await asyncio.to_thread(self.processor.forget)
                case do.ServerReady():
                    await self.upstreams[command.server].ready()
                case do.ReportLine():
                    self.counts["lines aside"] += 1
                    text = command.line[:500].decode("utf-8", "replace")
                    to_stderr(f"{command.server or 'the server'} wrote what is no message: {text}")
                case do.OwnCallAnswered() if self.processor.prefetch is not None:
                    self.processor.prefetch.settle(command.id, command.result)
                case do.CallCancelled():
                    self._call_ended(command.call, None)

    async def _to_server(self, command: do.ToServer) -> None:
        upstream = self.upstreams.get(command.server)
        if upstream is None:
            await self.refused(command.server, command.data, "is not there")
        elif command.call is None or not await self._answered_early(command.call):
            await upstream.send(command.data, now=command.now)

    async def _answered_early(self, call: do.ToolCall) -> bool:
        """Answers a call with a prefetched result or a refusal, if there is one. Returns whether it did."""
        prefetch = self.processor.prefetch
        if prefetch is None:
            return False
        refusal, result = None, None  # if the prefetch raises, the server is asked
        with self._fail_open:
            prefetch.attach(self._send, self.switch.annotations, self.switch.envelope)
            refusal = prefetch.refusal(call)
            if refusal is None:
                self._begun.add(call.id)
                result = await prefetch.begin(call)
        if refusal is not None:
            self.switch.relay_of(call.server).close(call.id)
            await self._tell(text_reply(call.id, refusal, stateless=bool(self.switch.envelope)), None)
        if result is not None:
            passed: list[do.Command] = [do.ToClient(result.data, call)]
            await self.carry_out(self._commanded(passed, self.switch.relay_of(call.server).answered_early, result))
        return refusal is not None or result is not None

    def _call_ended(self, call: do.ToolCall | None, result: ToolResult | None) -> None:
        prefetch = self.processor.prefetch
        if call is None or prefetch is None or call.id not in self._begun:
            return
        self._begun.discard(call.id)
        with self._fail_open:  # the client has its answer already
            prefetch.end(call, result)

    async def _send(self, server: str, data: bytes) -> None:
        if (upstream := self.upstreams.get(server)) is not None:
            await upstream.send(data)

    async def _shortened(self, command: do.Shorten) -> tuple[bytes, Callable[[], Mapping[str, int]]]:
        with self._fail_open:
            if len(command.result.data) > _INLINE_BYTES or self.processor.may_wait:
                return await asyncio.to_thread(self.processor.shorten, command)
            return self.processor.shorten(command)
        return command.result.data, dict

    async def _quoted(self, command: do.Quote) -> bytes:
        with self._fail_open:
            return await asyncio.to_thread(self.processor.quote, command)
        return command.data

    def _count(self, command: do.Shorten, count: Callable[[], Mapping[str, int]]) -> None:
        self.counts["calls"] += 1
        with self._fail_open:  # the client has its answer already
            counts = count()
            for name, times in counts.items():
                self.counts[name] += times
            if self._watch is not None:
                self._watch(command.call.tool, counts)

    async def _answered(self, command: do.AnswerOwnTool) -> bytes:
        self.counts[f"own calls {command.call.tool}"] += 1
        with self._fail_open:
            text, failed = await asyncio.to_thread(self.processor.answer, command)
            return text_reply(command.call.id, text, failed=failed, stateless=command.stateless)
        # There is no original answer to pass on, so the client is told.
        return failure(command.call.id, SERVER_LOST, "pagefold: a fault of pagefold itself; do not try it again")

    async def close(self, grace_seconds: float) -> None:
        """Ends the prefetched calls, and every server."""
        if self.processor.prefetch is not None:
            await self.processor.prefetch.close()
        await asyncio.gather(*(upstream.close(grace_seconds) for upstream in self.upstreams.values()))
