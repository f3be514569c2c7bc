"""Answers calls before a server is asked: with reads that were run early, repeats of pure calls, and refusals.

What may be run early, kept or refused is decided in `tools`; here the early calls are sent to the servers under ids of
the proxy, and their results wait until the client makes the very same call. An early call is cancelled like any other.
The client sees its own call answered, under its own id, with everything that is done to results.
"""

import asyncio
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from pagefold.adapters.prefetch import Prefetcher, witness
from pagefold.mcp_proxy.commands import ToolCall
from pagefold.mcp_proxy.relay import OWN
from pagefold.mcp_proxy.replies import request
from pagefold.mcp_proxy.tool_result import ToolResult
from pagefold.settings.sections import Settings
from pagefold.tools.call_memo import CallMemo, note
from pagefold.tools.fail_fast import FailFast
from pagefold.tools.from_settings import registry_of
from pagefold.tools.planner import Planner
from pagefold.wire import json_text

Send = Callable[[str, bytes], Awaitable[None]]


class PrefetchDriver:
    """The early calls of one connection."""

    def __init__(self, settings: Settings, counts: Counter[str]) -> None:
        self._annotations: dict[str, Mapping[str, Any]] = {}
        self._envelope: Mapping[str, Any] = {}
        self._registry = registry_of(settings)
        planner = Planner(self._registry, settings.prefetch, self._annotations)
        self._calls: Prefetcher[ToolResult | None] = Prefetcher(
            self._run, self._registry, planner, text_of=lambda result: result.text if result else ""
        )
        self._memo: CallMemo[bytes] = CallMemo(self._registry, self._calls.epochs)
        self._fail_fast = FailFast(self._registry, self._calls.epochs)
        self._counts = counts
        self._send: Send | None = None
        self._number = 0
        self._waiting: dict[str, asyncio.Future[ToolResult | None]] = {}

    def attach(self, send: Send, annotations: Mapping[str, Mapping[str, Any]], envelope: Mapping[str, Any]) -> None:
        """How to send a server a message, what the servers say about their tools, what a stateless call carries."""
        self._send, self._envelope = send, envelope
        self._annotations.update(annotations)

    def refusal(self, call: ToolCall) -> str | None:
        """Why a call is not worth making, if it is not."""
        refusal = self._fail_fast.refusal(name_of(call), call.arguments, time.monotonic())
        self._counts["calls refused"] += refusal is not None
        return refusal

    async def begin(self, call: ToolCall) -> ToolResult | None:
        """The answer to a client's call, as it would come from the server, if it is at hand."""
        tool = name_of(call)
        early = await self._calls.begin(tool, call.arguments)
        if early is not None:
            self._counts["calls answered early"] += 1
            return early.answering(call.id)
        kept = self._memo.recall(tool, call.arguments, time.monotonic(), self._seen(tool, call.arguments))
        if kept is None:
            return None
        self._counts["calls answered again"] += 1
        return ToolResult.parse(with_note(kept, note(tool))).answering(call.id)

    def end(self, call: ToolCall, result: ToolResult | None) -> None:
        """A client's call was answered with this result; with None it failed or was cancelled."""
        tool, now = name_of(call), time.monotonic()
        failed = result is None or result.failed
        if result is not None and not failed:
            seen = self._seen(tool, call.arguments, first=True)
            self._memo.remember(tool, call.arguments, result.data, now, failed=False, witness=seen)
            if self._fail_fast.watches(tool):
                length = len(result.text.encode("utf-8", "replace"))
                self._fail_fast.answered(tool, call.arguments, length, now)
        self._calls.end(tool, call.arguments, result, failed=failed)
        self._counts["early calls"] = self._calls.started

    def settle(self, id: str, result: ToolResult | None) -> None:
        """A server has answered an early call; with None it failed."""
        waiting = self._waiting.pop(id, None)
        if waiting is not None and not waiting.done():
            waiting.set_result(result)

    async def close(self) -> None:
        await self._calls.close()

    async def _run(self, tool: str, arguments: Mapping[str, Any]) -> tuple[ToolResult | None, bool]:
        assert self._send is not None
        server, own_name = split(tool)
        self._number += 1
        id = f'{OWN}early-{self._number}"'
        params: dict[str, Any] = {"name": own_name, "arguments": dict(arguments)}
        if self._envelope:
            params["_meta"] = dict(self._envelope)
        waiting = self._waiting[id] = asyncio.get_running_loop().create_future()
        await self._send(server, request(id, "tools/call", params))
        try:
            result = await waiting
        except asyncio.CancelledError:
            self._waiting.pop(id, None)
            notice = f'{{"jsonrpc":"2.0","method":"notifications/cancelled","params":{{"requestId":{id}}}}}'
            await self._send(server, json_text.bytes_of(notice))
            raise
        return result, result is None or result.failed

    def _seen(self, tool: str, arguments: Mapping[str, Any], *, first: bool = False) -> object:
        """The state of the files that a call of a local tool reads."""
        entry = self._registry.find(tool)
        return witness(entry.model, arguments, first=first) if entry and entry.model.is_local() else None


def name_of(call: ToolCall) -> str:
    """The name by which value models know a tool: with its server's name in front, where that has one."""
    return f"mcp__{call.server}__{call.tool}" if call.server else call.tool


def split(tool: str) -> tuple[str, str]:
    """The server and its own name of a tool."""
    if not tool.startswith("mcp__"):
        return "", tool
    server, _, name = tool.removeprefix("mcp__").partition("__")
    return server, name


def with_note(data: bytes, words: str) -> bytes:
    """An answer with one more text after the others."""
    raw = json_text.text_of(data)
    start, end = json_text.find(raw, ("result", "content"))
    comma = "," if json_text.elements(raw, start) else ""
    block = json_text.dumps({"type": "text", "text": words})
    return json_text.bytes_of(json_text.splice(raw, [(end - 1, end - 1, comma + block)]))
