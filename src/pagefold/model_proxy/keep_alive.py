"""Keeps prompt caches alive through silences, where `serve.keep_alive` asks for it: the timers and the requests.

When to send is decided by `idle_plan`. While a conversation waits, its last request and its headers, the key included,
are held in memory, and nowhere else. A provider that refuses a keep-alive is not asked again for that model. A fault
here never reaches a client.
"""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import TypeAlias

import aiohttp
from yarl import URL

from pagefold.derive.idle import Idle
from pagefold.errors import WireError
from pagefold.model_proxy.idle_plan import IdlePlan, keep_alive_body
from pagefold.wire.message import Usage

_MOST = 64  # conversations that wait at once; the one that was silent longest gives way
_REPLACED = ("content-length", "accept-encoding")

SendKeepAlive: TypeAlias = Callable[[URL, list[tuple[str, str]], bytes], Awaitable[tuple[int, bytes]]]
"""Sends a request; its status and its answer. Raises aiohttp.ClientError and OSError."""


@dataclass(slots=True)
class _SilentSession:
    plan: IdlePlan
    target: URL
    headers: list[tuple[str, str]]
    timer: asyncio.TimerHandle | None = None


class KeepAlive:
    """`sent` is told of every keep-alive that was answered: its plan and the usage that was reported, or None where it
    was refused. Its methods are for the event loop's thread."""

    def __init__(self, send: SendKeepAlive, sent: Callable[[IdlePlan, Usage | None], None]) -> None:
        self._send, self._sent = send, sent
        self._waiting: dict[str, _SilentSession] = {}
        self._refused: set[str] = set()
        self._tasks: set[asyncio.Future[None]] = set()

    def answered(self, plan: IdlePlan, target: URL, headers: list[tuple[str, str]]) -> None:
        """A conversation was answered: from now on it is silent."""
        self.spoke(plan.conversation, plan.began)
        if plan.model not in self._refused:
            while len(self._waiting) >= _MOST:
                self.spoke(next(iter(self._waiting)))
            kept = [one for one in headers if one[0].lower() not in _REPLACED]
            self._wait(_SilentSession(plan, target, [*kept, ("accept-encoding", "identity")]))

    def spoke(self, *names: str) -> None:
        """A conversation with any of these names goes on: what waits for it is forgotten."""
        for name in names:
            waiting = self._waiting.pop(name, None)
            if waiting is not None and waiting.timer is not None:
                waiting.timer.cancel()

    async def close(self) -> None:
        for conversation in list(self._waiting):
            self.spoke(conversation)
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def _wait(self, waiting: _SilentSession) -> None:
        self._waiting[waiting.plan.conversation] = waiting
        waiting.timer = asyncio.get_running_loop().call_later(waiting.plan.wait, self._due, waiting)

    def _due(self, waiting: _SilentSession) -> None:
        if (
            waiting.plan.choice() is not Idle.KEEP
            or (body := keep_alive_body(waiting.plan.body, waiting.plan.api)) is None
        ):
            self.spoke(waiting.plan.conversation)
            return
        task = asyncio.ensure_future(self._keep(waiting, body))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _keep(self, waiting: _SilentSession, body: bytes) -> None:
        plan = waiting.plan
        try:
            status, answer = await self._send(waiting.target, waiting.headers, body)
            usage = plan.api.parse_response(answer).usage if 200 <= status < 300 else None
            if usage is None:
                self._refused.add(plan.model)
        except (aiohttp.ClientError, OSError, WireError):  # it is not tried again: the cache is cold by then
            usage = None
        self._sent(plan, usage)
        if self._waiting.get(plan.conversation) is waiting:  # nobody has spoken meanwhile
            self.spoke(plan.conversation)
            if usage is not None:
                self._wait(_SilentSession(plan.kept(), waiting.target, waiting.headers))
