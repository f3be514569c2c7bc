"""The types of an ASGI application, which starlette and others spell alike, the event loop that serves it, and how one
application starts and ends another."""

import asyncio
from collections.abc import Awaitable, Callable, MutableMapping
from contextlib import suppress
from typing import Any, TypeAlias

Event: TypeAlias = MutableMapping[str, Any]
Receive: TypeAlias = Callable[[], Awaitable[Event]]
Send: TypeAlias = Callable[[Event], Awaitable[None]]
App: TypeAlias = Callable[[Event, Receive, Send], Awaitable[None]]

new_event_loop: Callable[[], asyncio.AbstractEventLoop] = asyncio.new_event_loop
with suppress(ImportError):  # an extra, `speed`, that is not to be had on Windows
    import uvloop

    new_event_loop = uvloop.new_event_loop


async def end(mounted: App) -> None:
    """Sends a mounted application the shutdown event, the only part of a lifespan that it waits for."""

    async def receive() -> Event:
        return {"type": "lifespan.shutdown"}

    async def send(event: Event) -> None:
        pass

    await mounted({"type": "lifespan"}, receive, send)


class Lifespan:
    """The lifespan of an application within another one's: `start` returns when it has started, `stop` when it has
    ended."""

    def __init__(self, app: App) -> None:
        self._app = app
        self._told: asyncio.Queue[Event] = asyncio.Queue()
        self._started = asyncio.Event()
        self._task: asyncio.Task[None] | None = None

    async def start(self) -> None:
        """Raises what the application raises while it starts."""
        self._told.put_nowait({"type": "lifespan.startup"})
        self._task = asyncio.get_running_loop().create_task(self._live())
        started = asyncio.get_running_loop().create_task(self._started.wait())
        await asyncio.wait([self._task, started], return_when=asyncio.FIRST_COMPLETED)
        started.cancel()
        if self._task.done():
            self._task.result()

    async def stop(self) -> None:
        self._told.put_nowait({"type": "lifespan.shutdown"})
        if self._task is not None:
            await self._task

    async def _live(self) -> None:
        async def send(event: Event) -> None:
            self._started.set()

        await self._app({"type": "lifespan"}, self._told.get, send)
