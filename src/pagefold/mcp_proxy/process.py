"""One MCP server as a process of ours: its pipes, its end, and its next beginning.

Promises: messages go in whole and in order; a server that does not read holds up those who write to it, and a client
that does not read holds up the server. A process that ends is replaced, after a pause that doubles while replacements
end early; what was said meanwhile waits for the replacement, or is answered with an error where there is none. `close`
leaves no process behind, nor any that the server itself has started in its process group.
"""

import asyncio
import signal
import sys
import threading
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import Protocol

from pagefold.errors import ConfigError
from pagefold.mcp_proxy.launch import ChildProcess, launch
from pagefold.mcp_proxy.lines import LONGEST_BYTES, LineSplitter, Overlong

_PIECE_BYTES = 1 << 18
_STEADY_SECONDS = 30.0
_FIRST_PAUSE_SECONDS = 0.1
_LONGEST_PAUSE_SECONDS = 10.0
_WAITING_BYTES = 16 << 20
_KEPT_LINES = 100
_LAST_WORDS_SECONDS = 0.2
_ASKED_SECONDS = 0.3


class Owner(Protocol):
    """Who is told what happens. `heard` is awaited before more is read."""

    async def heard(self, server: str, line: bytes | Overlong) -> None: ...

    async def lost(self, server: str, why: str) -> bool:
        """Whether it is worth a new process."""

    async def back(self, server: str) -> None: ...

    async def refused(self, server: str, data: bytes, why: str) -> None: ...


class Process:
    """`first` is a child that has been started already."""

    def __init__(
        self,
        name: str,
        command: Sequence[str],
        owner: Owner,
        *,
        environment: Mapping[str, str] | None = None,
        folder: str = "",
        longest_bytes: int = LONGEST_BYTES,
        label: str = "",
        show: Callable[[bytes], None] | None = None,
        first: ChildProcess | None = None,
    ) -> None:
        self.name, self.command, self.owner = name, list(command), owner
        self.starts = 0
        self.said: deque[bytes] = deque(maxlen=_KEPT_LINES)
        self._environment, self._folder, self._longest = environment, folder, longest_bytes
        self._label, self._show = label.encode(), show or _to_stderr
        self._first = first
        self._child: ChildProcess | None = None
        self._input: asyncio.StreamWriter | None = None
        self._output = asyncio.StreamReader()
        self._exited = asyncio.Event()
        self._waiting: deque[bytes] = deque()
        self._waiting_bytes = 0
        self._ready = self._closing = self._used = self._idle = False
        self._heard = 0
        self._gone = ""
        self._wake = asyncio.Event()
        self._running: asyncio.Task[None] | None = None
        self._watching: asyncio.Task[None] | None = None

    async def start(self) -> None:
        """The first process. Raises ConfigError where it cannot be started."""
        await self._spawn()
        self._ready = True
        self._running = asyncio.ensure_future(self._run())

    async def send(self, data: bytes, *, now: bool = False) -> None:
        """Returns when the server has room for more. What belongs to a greeting goes `now`, the rest when ready."""
        if now or self._ready:
            self._used = self._used or not now
            await self._write(data)
        elif self._gone or self._waiting_bytes > _WAITING_BYTES:
            await self.owner.refused(self.name, data, self._gone or "has too much waiting for it")
        else:
            self._waiting.append(data)
            self._waiting_bytes += len(data)

    async def ready(self) -> None:
        """The replacement has been greeted: what waits goes first, then what comes."""
        while self._waiting:
            data = self._waiting.popleft()
            self._waiting_bytes -= len(data)
            await self._write(data)
        self._ready = True

    async def close(self, grace_seconds: float) -> None:
        """Its input ends; what it says until it ends is still heard. Then it is asked to end, and then made to."""
        self._closing = True
        self._wake.set()
        child = self._child
        if child is None:
            return
        if self._input is not None:
            self._input.close()
        heard = -1
        while self._running is not None and heard != self._heard and not self._running.done():
            heard = self._heard
            await asyncio.wait([self._running], timeout=grace_seconds)
        for sign in (signal.SIGTERM, signal.SIGKILL):
            child.signal_all(sign)
            with suppress(TimeoutError):
                await asyncio.wait_for(self._exited.wait(), _ASKED_SECONDS)
            if self._exited.is_set():
                child.signal_all(signal.SIGKILL)
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
        self.starts += 1
        transport, protocol = await loop.connect_write_pipe(
            lambda: asyncio.streams.FlowControlMixin(loop), process.stdin
        )
        self._input = asyncio.StreamWriter(transport, protocol, None, loop)
        self._output = asyncio.StreamReader(limit=_PIECE_BYTES)
        reading = asyncio.StreamReaderProtocol(self._output)
        self._reading, _ = await loop.connect_read_pipe(lambda: reading, process.stdout)
        # Threads, because what we show it on may be a terminal or a file, which an event loop cannot wait for, and
        # because waiting for a process is done in as many ways as there are systems.
        for work in (self._overhear, self._wait):
            threading.Thread(
                target=work, args=(child, loop, self._exited), daemon=True, name=f"pagefold {self.name}"
            ).start()

    async def _run(self) -> None:
        pause = _FIRST_PAUSE_SECONDS
        loop = asyncio.get_running_loop()
        while True:
            if self._is_closing():
                return
            began = loop.time()
            why = await self._listen()
            self._ready = False
            if self._is_closing():
                return
            if not await self.owner.lost(self.name, why):
                self._gone = why
                return
            # One that did its work, or lived long, is not to blame for the one before it.
            pause = _FIRST_PAUSE_SECONDS if self._used or loop.time() - began > _STEADY_SECONDS else pause
            while not await self._replaced(pause):
                pause = min(2 * pause, _LONGEST_PAUSE_SECONDS)
                await self._give_up("cannot be started again")
            pause = min(2 * pause, _LONGEST_PAUSE_SECONDS)

    async def _replaced(self, pause: float) -> bool:
        """Whether there is a new process, or no need for one."""
        with suppress(TimeoutError):
            await asyncio.wait_for(self._closed(), pause)
        if self._is_closing():
            return True
        try:
            await self._spawn()
        except ConfigError:
            return False
        await self.owner.back(self.name)
        return True

    def _is_closing(self) -> bool:
        return self._closing

    async def _closed(self) -> None:
        while not self._closing:
            self._wake.clear()
            await self._wake.wait()

    async def _listen(self) -> str:
        """Until the process is at its end. How it ended."""
        child = self._child
        assert child is not None
        self._watching = asyncio.ensure_future(self._end_with(child))
        lines = LineSplitter(self._longest)
        while data := await self._read():
            for line in lines.feed(data):
                await self.owner.heard(self.name, line)
                self._heard += 1
        for line in lines.finish():
            await self.owner.heard(self.name, line)
        with suppress(TimeoutError):
            await asyncio.wait_for(self._exited.wait(), 1.0)
        why = child.ending if self._exited.is_set() else "closed its output"
        if not self._closing:
            child.signal_all(signal.SIGKILL)
            await self._exited.wait()
            self._reading.close()
            if self._input is not None:
                self._input.close()
            if not self._ready:
                # What waited for a process that ended before it was greeted does not wait for the next.
                await self._give_up(why)
        return why

    async def _read(self) -> bytes:
        self._idle = True
        data = await self._output.read(_PIECE_BYTES)
        self._idle = False
        return data

    async def _end_with(self, child: ChildProcess) -> None:
        """Where a server is gone, so is what it has started: it would keep the output open for ever."""
        output, reading, heard = self._output, self._reading, -1
        await self._exited.wait()
        await asyncio.sleep(_LAST_WORDS_SECONDS)
        child.signal_all(signal.SIGKILL)
        # What is left in the pipe is still to be heard; only a stranger who holds it open and says nothing is not.
        while not (self._idle and heard == self._heard):
            heard = self._heard
            await asyncio.sleep(_LAST_WORDS_SECONDS)
        reading.close()
        output.feed_eof()

    async def _give_up(self, why: str) -> None:
        waiting, self._waiting, self._waiting_bytes = self._waiting, deque(), 0
        for data in waiting:
            await self.owner.refused(self.name, data, why)

    async def _write(self, data: bytes) -> None:
        assert self._input is not None
        # A pipe that is broken says so to the reader, who answers for every open call.
        with suppress(ConnectionError, RuntimeError):
            self._input.write(data + b"\n")
            await self._input.drain()

    def _wait(self, child: ChildProcess, loop: asyncio.AbstractEventLoop, exited: asyncio.Event) -> None:
        child.process.wait()
        with suppress(RuntimeError):  # the loop may have ended first
            loop.call_soon_threadsafe(exited.set)

    def _overhear(self, child: ChildProcess, loop: asyncio.AbstractEventLoop, exited: asyncio.Event) -> None:
        lines = LineSplitter()
        assert child.process.stderr is not None
        with child.process.stderr as stream:
            while data := stream.read(_PIECE_BYTES):
                for line in lines.feed(data):
                    self._aside(line if isinstance(line, bytes) else line.head)
            for line in lines.finish():
                self._aside(line if isinstance(line, bytes) else line.head)

    def _aside(self, line: bytes) -> None:
        self.said.append(line)
        self._show(self._label + line + b"\n")


def _to_stderr(line: bytes) -> None:
    # Whoever reads our stderr may have gone; that is no reason to end.
    with suppress(OSError, ValueError):
        sys.stderr.buffer.write(line)
        sys.stderr.buffer.flush()
