"""One MCP server that is reached by its address, over streamable HTTP.

Each message is a request of its own, answered by one message or by a stream of them. The session that a server opens is
kept, and where it is gone the server is greeted again, as a new process would be. Messages that belong to no request
come over a stream of their own, for as long as the server offers one.
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
from pagefold.mcp_proxy.process import Owner
from pagefold.mcp_proxy.specs import Spec
from pagefold.wire import json_text, jsonrpc, sse
from pagefold.wire.json_text import as_object, as_string
from pagefold.wire.jsonrpc import Call, Notification

_VERSION = "io.modelcontextprotocol/protocolVersion"
_NAMED_BY = {"tools/call": "name", "prompts/get": "name", "resources/read": "uri"}
_PLAIN = re.compile(r"[\x21-\x7e](?:[\x20-\x7e]*[\x21-\x7e])?")
_CONNECT_SECONDS = 20
_LONGEST_PAUSE_SECONDS = 30.0


class Remote:
    def __init__(self, spec: Spec, owner: Owner, *, longest_bytes: int = LONGEST_BYTES) -> None:
        self.name, self.url, self.owner = spec.name, spec.url, owner
        self._headers, self._longest = dict(spec.headers), longest_bytes
        self._client: aiohttp.ClientSession | None = None
        self._session = self._version = ""
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
        message = _read(data)
        if isinstance(message, Call) and message.method == "initialize":
            self._session, self._greeting = "", self._begin(data, message)
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
        client, self._client = self._client, None
        if client is not None:
            if self._session:
                with suppress(aiohttp.ClientError, OSError, TimeoutError):
                    await asyncio.wait_for(client.delete(self.url, headers=self._head()), 1.0)
            await client.close()

    def _begin(self, data: bytes, message: object) -> asyncio.Task[None]:
        task = asyncio.ensure_future(self._post(data, message))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        if isinstance(message, Call):
            self._open[message.id] = task
            task.add_done_callback(lambda _: self._open.pop(message.id, None))
        return task

    def _cancels(self, notice: Notification) -> bool:
        """In the stateless era a call is cancelled by closing its answer, and no notice is taken."""
        if notice.method != "notifications/cancelled" or self._session or self._version < "2026":
            return False
        with suppress(WireError):
            start, end = json_text.find(notice.raw, ("params", "requestId"))
            if task := self._open.get(notice.raw[start:end]):
                task.cancel()
        return True

    async def _post(self, data: bytes, message: object) -> None:
        if self._client is None:
            self._client = aiohttp.ClientSession(
                connector=aiohttp.TCPConnector(limit=0),
                timeout=aiohttp.ClientTimeout(total=None, sock_connect=_CONNECT_SECONDS),
            )
        headers = self._head(message) | {
            "Content-Type": "application/json",
            "Accept": "application/json, text/event-stream",
        }
        try:
            async with self._client.post(self.url, data=data, headers=headers) as response:
                await self._answered(response, data, message)
        except (aiohttp.ClientError, OSError, TimeoutError) as error:
            await self.owner.refused(self.name, data, f"cannot be reached ({type(error).__name__})")

    async def _answered(self, response: aiohttp.ClientResponse, data: bytes, message: object) -> None:
        self._session = response.headers.get("Mcp-Session-Id", self._session)
        kind = response.content_type
        if response.status == 404 and self._session and isinstance(message, Call) and message.method != "initialize":
            await self._greet_again(data)
        elif kind == "text/event-stream":
            await self._stream(response, data)
        elif kind == "application/json" and (body := await self._body(response)):
            if isinstance(body, bytes) and response.status >= 400 and not _is_message(body):
                await self.owner.refused(self.name, data, f"answered with HTTP status {response.status}")
            else:
                self._note_version(body)
                await self.owner.heard(self.name, body)
        elif response.status >= 400:
            await self.owner.refused(self.name, data, f"answered with HTTP status {response.status}")
        if isinstance(message, Notification) and message.method == "notifications/initialized" and not self._listening:
            self._listening = asyncio.ensure_future(self._listen())

    async def _greet_again(self, data: bytes) -> None:
        self._session, self._ready = "", False
        self._waiting.append(data)
        await self.owner.back(self.name)

    async def _body(self, response: aiohttp.ClientResponse) -> bytes | Overlong:
        body = bytearray()
        async for piece in response.content.iter_any():
            body += piece
            if len(body) > self._longest:
                length = int(response.headers.get("Content-Length", len(body)))
                return Overlong(length, bytes(body[:4096]), b"")
        return bytes(body).replace(b"\r\n", b" ").replace(b"\n", b" ")

    async def _stream(self, response: aiohttp.ClientResponse, data: bytes) -> None:
        async for line in self._messages(response):
            if isinstance(line, Overlong):
                await self.owner.refused(self.name, data, "answered with more than mcp.max_message_bytes")
                return
            self._note_version(line)
            await self.owner.heard(self.name, line)
        # Where the answer has come this finds no open call any more, and says nothing.
        await self.owner.refused(self.name, data, "broke off before it answered")

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
        """The stream for what belongs to no call, opened again whenever it ends."""
        assert self._client is not None
        pause = 1.0
        while True:
            try:
                headers = self._head() | {"Accept": "text/event-stream"}
                async with self._client.get(self.url, headers=headers) as response:
                    if response.status >= 400 or response.content_type != "text/event-stream":
                        return
                    pause = 1.0
                    async for line in self._messages(response):
                        if isinstance(line, bytes):
                            await self.owner.heard(self.name, line)
            except (aiohttp.ClientError, OSError, TimeoutError):
                pause = min(2 * pause, _LONGEST_PAUSE_SECONDS)
            await asyncio.sleep(pause)

    def _note_version(self, body: bytes | Overlong) -> None:
        if self._greeting is None or isinstance(body, Overlong):
            return
        with suppress(WireError):
            result = as_object(as_object(json_text.parse(json_text.text_of(body))).get("result"))
            self._version = as_string(result.get("protocolVersion")) or self._version

    def _head(self, message: object = None) -> dict[str, str]:
        headers = dict(self._headers)
        params = _params(message)
        envelope = as_string(as_object(params.get("_meta")).get(_VERSION))
        if envelope and isinstance(message, Call):
            self._version = envelope
            headers["Mcp-Method"] = message.method
            if named := as_string(params.get(_NAMED_BY.get(message.method, ""))):
                headers["Mcp-Name"] = _header(named)
        if self._version:
            headers["Mcp-Protocol-Version"] = self._version
        if self._session:
            headers["Mcp-Session-Id"] = self._session
        return headers


def _read(data: bytes) -> object:
    try:
        return jsonrpc.parse(data)
    except WireError:
        return None


def _is_message(body: bytes) -> bool:
    return _read(body) is not None


def _params(message: object) -> dict[str, Any]:
    if not isinstance(message, Call):
        return {}
    return as_object(as_object(json_text.parse(message.raw)).get("params"))


def _header(value: str) -> str:
    """A name as a header may carry it: what is not plain ASCII is wrapped as the protocol says."""
    if _PLAIN.fullmatch(value) and not value.startswith("=?base64?"):
        return value
    return f"=?base64?{base64.b64encode(value.encode()).decode()}?="
