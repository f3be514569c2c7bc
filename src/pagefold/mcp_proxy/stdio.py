"""The client on our own standard input and output, as MCP clients start their servers.

Ends when the client closes our input, stops reading our output, or a signal asks for it; no server outlives that. Calls
that are open when the input ends are still answered, within bounds.
"""

import asyncio
import os
import stat
import sys
import threading
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Any

from pagefold.mcp_proxy.lines import LineSplitter
from pagefold.mcp_proxy.session import ProxySession
from pagefold.mcp_proxy.signals import asked_to_end

_PIECE_BYTES = 1 << 18
_GRACE_SECONDS = 5.0
_HURRY_SECONDS = 0.05


class Output:
    """What the client is told, whole lines one after the other; `gone` once it does not read any more."""

    def __init__(self, writer: asyncio.StreamWriter) -> None:
        self._writer = writer
        self._turn = asyncio.Lock()
        self.gone = asyncio.Event()

    async def tell(self, data: bytes) -> None:
        # Several servers may speak at once; draining with two waiting at a time is not allowed before Python 3.12.
        async with self._turn:
            try:
                self._writer.write(data + b"\n")
                await self._writer.drain()
            except (ConnectionError, RuntimeError):
                self.gone.set()


async def serve(begin: Callable[[Output], Awaitable[ProxySession]]) -> int:
    """`begin` starts the servers and gives the session; this returns when everything has ended: 1 if none ever came."""
    loop = asyncio.get_running_loop()
    asked = asked_to_end()
    reader = await _input(loop)
    output = Output(await _output(loop))
    session = await begin(output)
    reading = asyncio.ensure_future(_read(reader, session))
    ends = [asyncio.ensure_future(event.wait()) for event in (asked, output.gone, session.ended)]
    await asyncio.wait([reading, *ends], return_when=asyncio.FIRST_COMPLETED)
    hurry = asked.is_set() or output.gone.is_set() or session.ended.is_set()
    if not hurry:
        closing = asyncio.ensure_future(session.close(_GRACE_SECONDS))
        waiting: list[asyncio.Future[Any]] = [closing, *ends[:2]]
        await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
        closing.cancel()
        await asyncio.wait([closing])
    await session.close(_HURRY_SECONDS)
    for task in (reading, *ends):
        task.cancel()
    with suppress(asyncio.CancelledError):
        await reading
    return int(session.ended.is_set())


async def _read(reader: asyncio.StreamReader, session: ProxySession) -> None:
    lines = LineSplitter()
    while data := await reader.read(_PIECE_BYTES):
        for line in lines.feed(data):
            if isinstance(line, bytes):
                await session.asked(line)
    for line in lines.finish():
        if isinstance(line, bytes):
            await session.asked(line)


async def _input(loop: asyncio.AbstractEventLoop) -> asyncio.StreamReader:
    reader = asyncio.StreamReader(limit=_PIECE_BYTES)
    descriptor = sys.stdin.fileno()
    if _is_file(descriptor):
        descriptor = _pumped(descriptor, into=False)
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), os.fdopen(descriptor, "rb", 0))
    return reader


async def _output(loop: asyncio.AbstractEventLoop) -> asyncio.StreamWriter:
    descriptor = sys.stdout.fileno()
    if _is_file(descriptor):
        descriptor = _pumped(descriptor, into=True)
    transport, protocol = await loop.connect_write_pipe(
        lambda: asyncio.streams.FlowControlMixin(loop), os.fdopen(descriptor, "wb", 0)
    )
    return asyncio.StreamWriter(transport, protocol, None, loop)


def leave() -> None:
    """Input and output belong to the event loop and are closed with it; Python would close them once more."""
    for name in ("stdin", "stdout"):
        setattr(sys, name, open(os.devnull, "r" if name == "stdin" else "w"))  # noqa: SIM115, PTH123 - until we end


def _is_file(descriptor: int) -> bool:
    """An event loop waits for pipes, sockets and terminals, and not for files."""
    kind = os.fstat(descriptor).st_mode
    return stat.S_ISREG(kind) or (stat.S_ISCHR(kind) and not os.isatty(descriptor))


def _pumped(descriptor: int, *, into: bool) -> int:
    """Our end of a pipe that a thread fills from a file, or empties into it."""
    read, write = os.pipe()
    source, target = (read, descriptor) if into else (descriptor, write)

    def pump() -> None:
        with suppress(OSError):
            while data := os.read(source, _PIECE_BYTES):
                view = memoryview(data)
                while view:
                    view = view[os.write(target, view) :]
        if not into:
            os.close(target)

    threading.Thread(target=pump, daemon=not into, name="pagefold pump").start()
    return write if into else read
