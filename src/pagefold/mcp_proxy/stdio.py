"""Serves the client on our own standard input and output, as MCP clients start their servers.

Ends when the client closes our input or stops reading our output, or when a signal asks for it; no server outlives
that. Calls that are open when the input ends are still answered, within bounds.
"""

import asyncio
import os
import stat
import sys
import threading
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Any

from pagefold.mcp_proxy.lines import LONGEST_BYTES
from pagefold.mcp_proxy.process import PIECE_BYTES, pipe_writer, read_lines
from pagefold.mcp_proxy.session import ProxySession
from pagefold.mcp_proxy.signals import asked_to_end

_GRACE_SECONDS = 5.0
_HURRY_SECONDS = 0.05


class Output:
    """Writes whole lines to the client, one after the other; `gone` is set once the client no longer reads."""

    def __init__(self, writer: asyncio.StreamWriter) -> None:
        self._writer = writer
        self._turn = asyncio.Lock()
        self.gone = asyncio.Event()

    async def tell(self, data: bytes, message: object) -> None:
        # Several servers may answer at once; before Python 3.12 only one task may wait in drain().
        async with self._turn:
            try:
                self._writer.write(data + b"\n")
                await self._writer.drain()
            except (ConnectionError, RuntimeError):
                self.gone.set()


async def serve(begin: Callable[[Output], Awaitable[ProxySession]]) -> int:
    """`begin` starts the servers and returns the session. Returns when all have ended: 1 if no server ever answered."""
    loop = asyncio.get_running_loop()
    signalled = asked_to_end()
    reader = await _input(loop)
    output = Output(await _output(loop))
    session = await begin(output)
    reading = asyncio.ensure_future(_read(reader, session))
    ends = [asyncio.ensure_future(event.wait()) for event in (signalled, output.gone, session.ended)]
    await asyncio.wait([reading, *ends], return_when=asyncio.FIRST_COMPLETED)
    if not (signalled.is_set() or output.gone.is_set() or session.ended.is_set()):
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
    async for line in read_lines(reader.read, LONGEST_BYTES):
        if isinstance(line, bytes):
            await session.asked(line)


async def _input(loop: asyncio.AbstractEventLoop) -> asyncio.StreamReader:
    reader = asyncio.StreamReader(limit=PIECE_BYTES)
    descriptor = sys.stdin.fileno()
    if _is_file(descriptor):
        descriptor = _piped(descriptor, into=False)
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), os.fdopen(descriptor, "rb", 0))
    return reader


async def _output(loop: asyncio.AbstractEventLoop) -> asyncio.StreamWriter:
    descriptor = sys.stdout.fileno()
    if _is_file(descriptor):
        descriptor = _piped(descriptor, into=True)
    return await pipe_writer(loop, os.fdopen(descriptor, "wb", 0))


def leave() -> None:
    """Replaces sys.stdin and sys.stdout: the event loop closes the real ones, and Python would close them once more."""
    for name in ("stdin", "stdout"):
        setattr(sys, name, open(os.devnull, "r" if name == "stdin" else "w"))  # noqa: SIM115, PTH123 - until we end


def _is_file(descriptor: int) -> bool:
    """Whether this is a file: an event loop can wait for pipes, sockets and terminals only."""
    kind = os.fstat(descriptor).st_mode
    return stat.S_ISREG(kind) or (stat.S_ISCHR(kind) and not os.isatty(descriptor))


def _piped(descriptor: int, *, into: bool) -> int:
    """Our end of a pipe that a thread fills from a file, or empties into it."""
    read, write = os.pipe()
    source, target = (read, descriptor) if into else (descriptor, write)

    def pump() -> None:
        with suppress(OSError):
            while data := os.read(source, PIECE_BYTES):
                view = memoryview(data)
                while view:
                    view = view[os.write(target, view) :]
        if not into:
            os.close(target)

    threading.Thread(target=pump, daemon=not into, name="pagefold pump").start()
    return write if into else read
