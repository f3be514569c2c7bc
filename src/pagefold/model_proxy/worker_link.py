"""A link between a worker and the process that started it: either asks the other, and answers what it is asked.

Values are pickled over a pipe that only these two processes hold. Nothing here blocks an event loop: a thread reads and
another writes. A question that is not answered in time, or whose asker's link has ended, raises LinkError.
"""

import asyncio
import sys
import threading
from collections.abc import Awaitable, Callable
from contextlib import suppress
from itertools import count
from queue import SimpleQueue
from typing import TYPE_CHECKING, Any, TypeAlias

if sys.platform == "win32":
    from multiprocessing.connection import PipeConnection as _Connection
else:
    from multiprocessing.connection import Connection as _Connection

if TYPE_CHECKING:  # at run time the classes take no parameters
    WorkerConnection: TypeAlias = _Connection[Any, Any]
else:
    WorkerConnection: TypeAlias = _Connection

_SECONDS = 2.0
_END_SECONDS = 2.0


class LinkError(Exception):
    """The process at the other end does not answer."""


class WorkerLink:
    """`answer` gets what was asked, and its value; it runs on the event loop. `lost` is called there when the other
    process has ended. `tell` may be used before `start`."""

    def __init__(self, connection: WorkerConnection) -> None:
        self._connection = connection
        self._numbers = count(1)
        self._asked: dict[int, asyncio.Future[Any]] = {}
        self._unsent: SimpleQueue[tuple[Any, ...] | None] = SimpleQueue()
        self._tasks: set[asyncio.Task[None]] = set()
        self._writer = threading.Thread(target=self._write, name="pagefold-link-out", daemon=True)
        self._writer.start()

    def start(self, answer: Callable[[str, Any], Awaitable[Any]], lost: Callable[[], None]) -> None:
        """For the event loop's thread, once."""
        self._answer, self._lost, self._loop = answer, lost, asyncio.get_running_loop()
        threading.Thread(target=self._read, name="pagefold-link-in", daemon=True).start()

    def tell(self, what: str, value: Any = None) -> None:
        """Sends something that needs no answer."""
        self._unsent.put((0, what, value))

    async def ask(self, what: str, value: Any = None, seconds: float = _SECONDS) -> Any:
        """Returns the answer. Raises LinkError."""
        number = next(self._numbers)
        answer = self._asked[number] = self._loop.create_future()
        self._unsent.put((number, what, value))
        try:
            return await asyncio.wait_for(answer, seconds)
        except TimeoutError as error:
            raise LinkError(f"no answer to {what!r} within {seconds:.0f} s") from error
        finally:
            del self._asked[number]

    def close(self) -> None:
        """Sends what waits, for as long as two seconds, and ends the link."""
        self._unsent.put(None)
        self._writer.join(_END_SECONDS)
        self._connection.close()

    def _write(self) -> None:
        with suppress(OSError):  # the other process has ended: who reads notices
            while (message := self._unsent.get()) is not None:
                self._connection.send(message)

    def _read(self) -> None:
        try:
            while True:
                self._loop.call_soon_threadsafe(self._take, *self._connection.recv())
        except (EOFError, OSError):  # the other process has ended, or this link was closed
            self._soon(self._end)
        except RuntimeError:  # the event loop has ended
            return

    def _soon(self, call: Callable[[], None]) -> None:
        with suppress(RuntimeError):  # the event loop has ended
            self._loop.call_soon_threadsafe(call)

    def _take(self, number: int, what: str, value: Any) -> None:
        if number < 0:
            waiting = self._asked.get(-number)
            if waiting is not None and not waiting.done():
                waiting.set_result(value)
            return
        task = asyncio.ensure_future(self._answered(number, what, value))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _answered(self, number: int, what: str, value: Any) -> None:
        answer = await self._answer(what, value)
        if number:
            self._unsent.put((-number, what, answer))

    def _end(self) -> None:
        for waiting in self._asked.values():
            if not waiting.done():
                waiting.set_exception(LinkError("the process at the other end has ended"))
        self._lost()
