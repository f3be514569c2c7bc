"""Runs one MCP server as a child process and starts it again when it ends.

Promises: messages go in whole and in order; a server that does not read holds up those who write to it, and a client
that does not read holds up the server. A process that ends is replaced, after a pause that doubles while replacements
end early. What is sent meanwhile waits for the replacement, or is answered with an error where there is none. `close`
leaves no process behind, not even one that the server itself has started in its process group.
"""

import asyncio
import signal
import sys
import threading
import time
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from typing import IO

from pagefold.errors import ConfigError
from pagefold.mcp_proxy.launch import KILL, ChildProcess, launch
from pagefold.mcp_proxy.lines import LONGEST_BYTES, LineSplitter, Overlong, id_of
from pagefold.mcp_proxy.pace import Pace
from pagefold.mcp_proxy.session import ProxySession
from pagefold.printable import printable

PIECE_BYTES = 1 << 18
_STEADY_SECONDS = 30.0
_FIRST_PAUSE_SECONDS = 0.1
_LONGEST_PAUSE_SECONDS = 10.0
_WAITING_BYTES = 16 << 20
_LAST_WORDS_SECONDS = 0.2
_ASKED_SECONDS = 0.3
_HEAD_BYTES = 4096


class Process:
    """`first` is a process that has been started already; `label` goes in front of what the server writes to stderr.

    The session is told of everything that happens; more is read only when it has taken what was read before.
    """

    def __init__(
        self,
        name: str,
        command: Sequence[str],
        session: ProxySession,
        *,
        environment: Mapping[str, str] | None = None,
        folder: str = "",
        longest_bytes: int = LONGEST_BYTES,
        label: str = "",
        first: ChildProcess | None = None,
    ) -> None:
        self.name, self.command, self.session = name, list(command), session
        self._environment, self._folder, self._longest = environment, folder, longest_bytes
        self._label, self._first = label.encode(), first
        self._child: ChildProcess | None = None
        self._input: asyncio.StreamWriter | None = None
        self._output = asyncio.StreamReader()
        self._exited = asyncio.Event()
        self._waiting: deque[bytes] = deque()
        self._waiting_bytes = 0
        self._ready = self._used = self._idle = False
        self._heard = 0
        self._gone = ""
        self._closing = asyncio.Event()
        self._running: asyncio.Task[None] | None = None
        self._watching: asyncio.Task[None] | None = None

    async def start(self) -> None:
        """Starts the first process. Raises ConfigError where it cannot be started."""
        await self._spawn()
        self._ready = True
        self._running = asyncio.ensure_future(self._run())

    async def send(self, data: bytes, *, now: bool = False) -> None:
        """Returns when the server has room for more. A greeting goes `now`, the rest once the server is ready."""
        if now or self._ready:
            self._used = self._used or not now
            await self._write(data)
        elif self._gone or self._waiting_bytes > _WAITING_BYTES:
            await self.session.refused(self.name, data, self._gone or "has too much waiting for it")
        else:
            self._waiting.append(data)
            self._waiting_bytes += len(data)

    async def ready(self) -> None:
        """The replacement has been greeted: sends what waits, and from now on what comes."""
        while self._waiting:
            data = self._waiting.popleft()
            self._waiting_bytes -= len(data)
            await self._write(data)
        self._ready = True

    async def close(self, grace_seconds: float) -> None:
        """Closes the input and reads what the server still writes. One that does not end is terminated, then killed."""
        self._closing.set()
        child = self._child
        if child is None:
            return
        if self._input is not None:
            self._input.close()
        heard = -1
        while self._running is not None and heard != self._heard and not self._running.done():
            heard = self._heard
            await asyncio.wait([self._running], timeout=grace_seconds)
        for sign in (signal.SIGTERM, KILL):
            child.signal_all(sign)
            with suppress(TimeoutError):
                await asyncio.wait_for(self._exited.wait(), _ASKED_SECONDS)
            if self._exited.is_set():
                child.signal_all(KILL)
                break
        for task in (self._running, self._watching):
            if task is not None:
                task.cancel()
                with suppress(asyncio.CancelledError):
                    await task
        self._reading.close()

    async def _spawn(self) -> None:
        loop = asyncio.get_running_loop()
        child, self._first = self._first or launch(self.command, self._environment, self._folder), None
        process = child.process
        assert process.stdin is not None
        assert process.stdout is not None
        assert process.stderr is not None
        self._child, self._exited, self._used = child, asyncio.Event(), False
        self._input = await pipe_writer(loop, process.stdin)
        self._output = asyncio.StreamReader(limit=PIECE_BYTES)
        reading = asyncio.StreamReaderProtocol(self._output)
        self._reading, _ = await loop.connect_read_pipe(lambda: reading, process.stdout)
        # Threads, because our stderr may be a terminal or a file, which an event loop cannot wait for, and because
        # waiting for a process differs from system to system.
        for target in (self._copy_stderr, self._wait):
            threading.Thread(
                target=target, args=(child, loop, self._exited), daemon=True, name=f"pagefold {self.name}"
            ).start()

    async def _run(self) -> None:
        pause = _FIRST_PAUSE_SECONDS
        loop = asyncio.get_running_loop()
        while not self._closing.is_set():
            began = loop.time()
            why = await self._listen()
            self._ready = False
            if self._closing.is_set():
                return
            if not await self.session.lost(self.name, why):
                self._gone = why
                return
            # The pause starts anew after a process that did its work or lived long.
            pause = _FIRST_PAUSE_SECONDS if self._used or loop.time() - began > _STEADY_SECONDS else pause
            while not await self._replaced(pause):
                pause = min(2 * pause, _LONGEST_PAUSE_SECONDS)
                await self._give_up("cannot be started again")
            pause = min(2 * pause, _LONGEST_PAUSE_SECONDS)

    async def _replaced(self, pause: float) -> bool:
        """Returns whether there is a new process, or no need for one."""
        with suppress(TimeoutError):
            await asyncio.wait_for(self._closing.wait(), pause)
        if self._closing.is_set():
            return True
        try:
            await self._spawn()
        except ConfigError:
            return False
        await self.session.restarted(self.name)
        return True

    async def _listen(self) -> str:
        """Reads until the process has ended. Returns how it ended."""
        child = self._child
        assert child is not None
        self._watching = asyncio.ensure_future(self._end_with(child))
        pace = Pace()
        async for line in read_lines(self._read, self._longest):
            await self.session.heard(self.name, line)
            self._heard += 1
            is_notification = isinstance(line, bytes) and not id_of(line[:_HEAD_BYTES], line[-_HEAD_BYTES:])
            if is_notification and (rest := pace.after(time.monotonic())):
                await asyncio.sleep(rest)
        with suppress(TimeoutError):
            await asyncio.wait_for(self._exited.wait(), 1.0)
        why = child.ending if self._exited.is_set() else "closed its output"
        if not self._closing.is_set():
            child.signal_all(KILL)
            await self._exited.wait()
            self._reading.close()
            if self._input is not None:
                self._input.close()
            if not self._ready:
                # What waited for a process that ended before it was greeted does not wait for another.
                await self._give_up(why)
        return why

    async def _read(self, size: int) -> bytes:
        self._idle = True
        data = await self._output.read(size)
        self._idle = False
        return data

    async def _end_with(self, child: ChildProcess) -> None:
        """Once a server is gone, ends what it has started, which would keep the output open for ever."""
        output, reading, heard = self._output, self._reading, -1
        await self._exited.wait()
        await asyncio.sleep(_LAST_WORDS_SECONDS)
        child.signal_all(KILL)
        # What is left in the pipe is still read. Somebody else who only holds the pipe open is not waited for.
        while not (self._idle and heard == self._heard):
            heard = self._heard
            await asyncio.sleep(_LAST_WORDS_SECONDS)
        reading.close()
        output.feed_eof()

    async def _give_up(self, why: str) -> None:
        waiting, self._waiting, self._waiting_bytes = self._waiting, deque(), 0
        for data in waiting:
            await self.session.refused(self.name, data, why)

    async def _write(self, data: bytes) -> None:
        assert self._input is not None
        # A broken pipe is noticed by the reader, which answers every open call.
        with suppress(ConnectionError, RuntimeError):
            self._input.write(data + b"\n")
            await self._input.drain()

    def _wait(self, child: ChildProcess, loop: asyncio.AbstractEventLoop, exited: asyncio.Event) -> None:
        child.process.wait()
        with suppress(RuntimeError):  # the loop may have ended first
            loop.call_soon_threadsafe(exited.set)

    def _copy_stderr(self, child: ChildProcess, loop: asyncio.AbstractEventLoop, exited: asyncio.Event) -> None:
        splitter = LineSplitter()
        assert child.process.stderr is not None
        with child.process.stderr as stream:
            while data := stream.read(PIECE_BYTES):
                self._show(splitter.feed(data))
            self._show(splitter.finish())

    def _show(self, lines: Sequence[bytes | Overlong]) -> None:
        for line in lines:
            # Whoever reads our stderr may have gone; that is no reason to end.
            with suppress(OSError, ValueError):
                text = (line if isinstance(line, bytes) else line.head).decode("utf-8", "replace")
                sys.stderr.buffer.write(self._label + printable(text, "\t").encode() + b"\n")
                sys.stderr.buffer.flush()


async def pipe_writer(loop: asyncio.AbstractEventLoop, pipe: IO[bytes]) -> asyncio.StreamWriter:
    transport, protocol = await loop.connect_write_pipe(lambda: asyncio.streams.FlowControlMixin(loop), pipe)
    return asyncio.StreamWriter(transport, protocol, None, loop)


async def read_lines(read: Callable[[int], Awaitable[bytes]], longest: int) -> AsyncIterator[bytes | Overlong]:
    """The lines of a stream, as `read` returns its pieces, up to its end."""
    splitter = LineSplitter(longest)
    while data := await read(PIECE_BYTES):
        for line in splitter.feed(data):
            yield line
    for line in splitter.finish():
        yield line
