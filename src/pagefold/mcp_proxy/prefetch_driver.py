"""Answers that are there before a server is asked: reads that were run early, repeats of pure calls, and refusals.

What may be run early, kept or refused is decided below; here calls of our own go out under ids of our own, and what
comes back waits until a client asks for the very same. An early call is cancelled like any other. A client sees its own
call answered, under its own id, through everything that is done to answers.
"""

import asyncio
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from pagefold.adapters.prefetch import Limits, Prefetcher, witness
from pagefold.mcp_proxy.commands import ToolCall
from pagefold.mcp_proxy.relay import OWN
from pagefold.mcp_proxy.replies import respelled
from pagefold.settings import Settings
from pagefold.tools.call_memo import CallMemo, note
from pagefold.tools.fail_fast import FailFast
from pagefold.tools.from_settings import budget_of, registry_of
from pagefold.tools.planner import Planner
from pagefold.wire import json_text
from pagefold.wire.json_text import as_list, as_object

Send = Callable[[str, bytes], Awaitable[None]]


class PrefetchDriver:
    """The early calls of one connection. `send` gives a server a message, `envelope` what a stateless call carries."""

    def __init__(self, settings: Settings, counts: Counter[str]) -> None:
        self.annotations: dict[str, Mapping[str, Any]] = {}
        self.envelope: Mapping[str, Any] = {}
        self._known = registry_of(settings)
        prefetch = settings.prefetch
        planner = Planner(self._known, budget_of(settings), prefetch.hosts, self.annotations)
        limits = Limits(prefetch.parallel, prefetch.per_host, prefetch.deadline_ms / 1000)
        self._calls: Prefetcher[bytes] = Prefetcher(self._run, self._known, planner, limits=limits, text_of=text_of)
        self._repeats: CallMemo[bytes] = CallMemo(self._known, self._calls.epochs)
        self._fail_fast = FailFast(self._known, self._calls.epochs)
        self._counts = counts
        self._send: Send | None = None
        self._number = 0
        self._waiting: dict[str, asyncio.Future[bytes]] = {}

    def attach(self, send: Send) -> None:
        self._send = send

    def refusal(self, call: ToolCall) -> str | None:
        """Why a call is not worth making, if it is not."""
        told = self._fail_fast.refusal(name_of(call), call.arguments, time.monotonic())
        self._counts["calls refused"] += told is not None
        return told

    async def begin(self, call: ToolCall) -> bytes | None:
        """The answer to a client's call, as it would come from the server, if it is at hand."""
        tool = name_of(call)
        body = await self._calls.begin(tool, call.arguments)
        if body is not None:
            self._counts["calls answered early"] += 1
            return with_id(body, call.id)
        kept = self._repeats.recall(tool, call.arguments, time.monotonic(), self._seen(tool, call.arguments))
        if kept is None:
            return None
        self._counts["calls answered again"] += 1
        return with_id(with_note(kept, note(tool)), call.id)

    def end(self, call: ToolCall, data: bytes | None) -> None:
        """A client's call was answered; with None it failed."""
        tool, now = name_of(call), time.monotonic()
        failed = data is None or is_failure(data)
        body = data or b""
        if not failed:
            self._repeats.remember(
                tool, call.arguments, body, now, failed=False, witness=self._seen(tool, call.arguments, first=True)
            )
            if self._fail_fast.watches(tool):
                self._fail_fast.answered(tool, call.arguments, len(text_of(body).encode("utf-8", "replace")), now)
        self._calls.end(tool, call.arguments, body, failed=failed)
        self._counts["early calls"] = self._calls.counts.started

    def settle(self, id: str, data: bytes) -> None:
        """A server has answered a call of ours."""
        waiting = self._waiting.pop(id, None)
        if waiting is not None and not waiting.done():
            waiting.set_result(data)

    async def close(self) -> None:
        await self._calls.close()

    async def _run(self, tool: str, arguments: Mapping[str, Any]) -> tuple[bytes, bool]:
        assert self._send is not None
        server, own_name = split(tool)
        self._number += 1
        id = f'{OWN}early-{self._number}"'
        params: dict[str, Any] = {"name": own_name, "arguments": dict(arguments)}
        if self.envelope:
            params["_meta"] = dict(self.envelope)
        said = f'{{"jsonrpc":"2.0","id":{id},"method":"tools/call","params":{json_text.dumps(params)}}}'
        waiting = self._waiting[id] = asyncio.get_running_loop().create_future()
        await self._send(server, json_text.bytes_of(said))
        try:
            data = await waiting
        except asyncio.CancelledError:
            self._waiting.pop(id, None)
            gone = f'{{"jsonrpc":"2.0","method":"notifications/cancelled","params":{{"requestId":{id}}}}}'
            await self._send(server, json_text.bytes_of(gone))
            raise
        return data, is_failure(data)

    def _seen(self, tool: str, arguments: Mapping[str, Any], *, first: bool = False) -> object:
        found = self._known.find(tool)
        return witness(found.model, arguments, first=first) if found and found.model.is_local() else None


def name_of(call: ToolCall) -> str:
    """A tool as the models know it: by its server, where that has a name."""
    return f"mcp__{call.server}__{call.tool}" if call.server else call.tool


def split(tool: str) -> tuple[str, str]:
    """The server and its own name of a tool."""
    if not tool.startswith("mcp__"):
        return "", tool
    server, _, name = tool.removeprefix("mcp__").partition("__")
    return server, name


def text_of(body: bytes) -> str:
    """The texts of an answer, for whoever looks for arguments in it."""
    result = as_object(as_object(json_text.parse(json_text.text_of(body))).get("result")) if body else {}
    return "\n".join(str(as_object(part).get("text", "")) for part in as_list(result.get("content")))


def is_failure(data: bytes) -> bool:
    message = as_object(json_text.parse(json_text.text_of(data)))
    return "result" not in message or as_object(message["result"]).get("isError") is True


def with_id(data: bytes, id: str) -> bytes:
    return respelled(json_text.text_of(data), ("id",), id)


def with_note(data: bytes, words: str) -> bytes:
    """An answer with one more text behind the others."""
    raw = json_text.text_of(data)
    start, end = json_text.find(raw, ("result", "content"))
    comma = "," if json_text.elements(raw, start) else ""
    block = json_text.dumps({"type": "text", "text": words})
    return json_text.bytes_of(json_text.splice(raw, [(end - 1, end - 1, comma + block)]))
