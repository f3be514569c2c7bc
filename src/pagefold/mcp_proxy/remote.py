"""One MCP server that is reached by its address, over streamable HTTP.

Each message is a request of its own, answered by one message or by a stream of them. The session that the server opens
is kept; where it is gone, the server is greeted again, as a new process would be. Messages that belong to no request
come over a stream of their own, as long as the server offers one.
"""

import asyncio
import base64
import re
from collections import deque
from collections.abc import AsyncIterator
from contextlib import suppress
from typing import Any

import aiohttp

from pagefold.errors import WireError
from pagefold.mcp_proxy.lines import LONGEST_BYTES, Overlong
from pagefold.mcp_proxy.relay import VERSION
from pagefold.mcp_proxy.replies import value_text
from pagefold.mcp_proxy.session import ProxySession
from pagefold.mcp_proxy.specs import Spec
from pagefold.wire import json_text, jsonrpc, sse
from pagefold.wire.json_text import as_object, as_string
from pagefold.wire.jsonrpc import Batch, Call, Notification, Single

_NAMED_BY = {"tools/call": "name", "prompts/get": "name", "resources/read": "uri"}
_PLAIN = re.compile(r"[\x21-\x7e](?:[\x20-\x7e]*[\x21-\x7e])?")
_CONNECT_SECONDS = 20
_LONGEST_PAUSE_SECONDS = 30.0
_UNREACHABLE = (aiohttp.ClientError, OSError, TimeoutError)

Parsed = Single | Batch | None
"""A message as it was parsed; None where it could not be."""


class Remote:
    def __init__(self, spec: Spec, session: ProxySession, *, longest_bytes: int = LONGEST_BYTES) -> None:
        self.name, self.url, self.session = spec.name, spec.url, session
        self._headers, self._longest = dict(spec.headers), longest_bytes
        self._http: aiohttp.ClientSession | None = None
        self._session_id = self._version = ""
        self._open: dict[str, asyncio.Task[None]] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._greeting: asyncio.Task[None] | None = None
        self._listening: asyncio.Task[None] | None = None
        self._waiting: deque[bytes] = deque()
        self._ready = True

    async def send(self, data: bytes, *, now: bool = False) -> None:
        if not self._ready and not now:
            self._waiting.append(data)
            return
        message = _parsed(data)
        if isinstance(message, Call) and message.method == "initialize":
            self._session_id, self._greeting = "", self._begin(data, message)
        elif isinstance(message, Notification) and self._cancels(message):
            return
        elif self._greeting is not None:
            # What follows a greeting belongs to the session that the greeting opens.
            await asyncio.wait([self._greeting])
            self._greeting = None
            self._begin(data, message)
        elif isinstance(message, Call):
            self._begin(data, message)
        else:
            await self._post(data, message)

    async def ready(self) -> None:
        self._ready = True
        while self._waiting:
            await self.send(self._waiting.popleft())

    async def close(self, grace_seconds: float) -> None:
        if self._listening is not None:
            self._listening.cancel()
        if self._tasks:
            await asyncio.wait(self._tasks, timeout=grace_seconds)
        for task in (*self._tasks, *([self._listening] if self._listening else [])):
            task.cancel()
            with suppress(asyncio.CancelledError):
                await task
        http, self._http = self._http, None
        if http is not None:
            if self._session_id:
                with suppress(*_UNREACHABLE):
                    await asyncio.wait_for(http.delete(self.url, headers=self._request_headers()), 1.0)
            await http.close()

    def _begin(self, data: bytes, message: Parsed) -> asyncio.Task[None]:
        task = asyncio.ensure_future(self._post(data, message))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        if isinstance(message, Call):
            self._open[message.id] = task
            task.add_done_callback(lambda _: self._open.pop(message.id, None))
        return task

    def _cancels(self, notice: Notification) -> bool:
        """In the stateless era a call is cancelled by closing its answer; the server takes no notification."""
        if notice.method != "notifications/cancelled" or self._session_id or self._version < "2026":
            return False
        if task := self._open.get(value_text(notice.raw, ("params", "requestId"))):
            task.cancel()
        return True

    async def _post(self, data: bytes, message: Parsed) -> None:
        if self._http is None:
            self._http = open_http()
        headers = self._request_headers(message) | {
            "Content-Type": "application/json",
            "Accept": "application/json, text/event-stream",
        }
        try:
            async with self._http.post(self.url, data=data, headers=headers) as response:
                await self._answered(response, data, message)
        except _UNREACHABLE as error:
            await self.session.refused(self.name, data, f"cannot be reached ({type(error).__name__})")

    async def _answered(self, response: aiohttp.ClientResponse, data: bytes, message: Parsed) -> None:
        self._session_id = response.headers.get("Mcp-Session-Id", self._session_id)
        kind = response.content_type
        if response.status == 404 and self._session_id and isinstance(message, Call) and message.method != "initialize":
            self._session_id, self._ready = "", False
            self._waiting.append(data)
            await self.session.restarted(self.name)
        elif kind == "text/event-stream":
            await self._stream(response, data)
        elif kind == "application/json" and (body := await body_within(response, self._longest)):
            if isinstance(body, bytes):
                body = body.replace(b"\r\n", b" ").replace(b"\n", b" ")
            if isinstance(body, bytes) and response.status >= 400 and _parsed(body) is None:
                await self.session.refused(self.name, data, f"answered with HTTP status {response.status}")
            else:
                self._note_version(body)
                await self.session.heard(self.name, body)
        elif response.status >= 400:
            await self.session.refused(self.name, data, f"answered with HTTP status {response.status}")
        if isinstance(message, Notification) and message.method == "notifications/initialized" and not self._listening:
            self._listening = asyncio.ensure_future(self._listen())

    async def _stream(self, response: aiohttp.ClientResponse, data: bytes) -> None:
        async for line in self._messages(response):
            if isinstance(line, Overlong):
                await self.session.refused(self.name, data, "answered with more than mcp.max_message_bytes")
                return
            self._note_version(line)
            await self.session.heard(self.name, line)
        # Where the answer has come, no call is open any more and this has no effect.
        await self.session.refused(self.name, data, "broke off before it answered")

    async def _messages(self, response: aiohttp.ClientResponse) -> AsyncIterator[bytes | Overlong]:
        reader, held = sse.EventSplitter(), 0
        async for piece in response.content.iter_any():
            events = reader.feed(piece)
            held = 0 if events else held + len(piece)
            if held > self._longest:
                yield Overlong(held, b"", b"")
                return
            for event in events:
                if event.data.strip():
                    yield json_text.bytes_of(event.data.replace("\n", " "))

    async def _listen(self) -> None:
        """Reads the stream of messages that belong to no call, and opens it again whenever it ends."""
        assert self._http is not None
        pause = 1.0
        while True:
            try:
                headers = self._request_headers() | {"Accept": "text/event-stream"}
                async with self._http.get(self.url, headers=headers) as response:
                    if response.status >= 400 or response.content_type != "text/event-stream":
                        return
                    pause = 1.0
                    async for line in self._messages(response):
                        if isinstance(line, bytes):
                            await self.session.heard(self.name, line)
            except _UNREACHABLE:
                pause = min(2 * pause, _LONGEST_PAUSE_SECONDS)
            await asyncio.sleep(pause)

    def _note_version(self, body: bytes | Overlong) -> None:
        if self._greeting is None or isinstance(body, Overlong):
            return
        with suppress(WireError):
            result = as_object(as_object(json_text.parse(json_text.text_of(body))).get("result"))
            self._version = as_string(result.get("protocolVersion")) or self._version

    def _request_headers(self, message: Parsed = None) -> dict[str, str]:
        headers = dict(self._headers)
        params = as_object(message.params) if isinstance(message, Call) else {}
        version = as_string(as_object(params.get("_meta")).get(VERSION))
        if version and isinstance(message, Call):
            self._version = version
            headers["Mcp-Method"] = message.method
            if name := as_string(params.get(_NAMED_BY.get(message.method, ""))):
                headers["Mcp-Name"] = _header_value(name)
        if self._version:
            headers["Mcp-Protocol-Version"] = self._version
        if self._session_id:
            headers["Mcp-Session-Id"] = self._session_id
        return headers


def open_http(**options: Any) -> aiohttp.ClientSession:
    """A client for servers: as many connections as there are calls, and no limit to the time that an answer takes."""
    timeout = aiohttp.ClientTimeout(total=None, sock_connect=_CONNECT_SECONDS)
    return aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0), timeout=timeout, **options)


async def body_within(response: aiohttp.ClientResponse, most: int) -> bytes | Overlong:
    """The whole body, unless it is longer than this."""
    body = bytearray()
    async for piece in response.content.iter_any():
        body += piece
        if len(body) > most:
            length = int(response.headers.get("Content-Length", len(body)))
            return Overlong(length, bytes(body[:4096]), b"")
    return bytes(body)


def _parsed(data: bytes) -> Parsed:
    try:
        return jsonrpc.parse(data)
    except WireError:
        return None


def _header_value(name: str) -> str:
    """A name as a header may carry it: what is not plain ASCII is wrapped as the protocol says."""
    if _PLAIN.fullmatch(name) and not name.startswith("=?base64?"):
        return name
    return f"=?base64?{base64.b64encode(name.encode()).decode()}?="
