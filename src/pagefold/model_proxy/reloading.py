"""Serves an application that can be replaced while it serves: requests under way end where they began.

Promises: a new application takes the requests that come once it has started; the old one is closed when its last
request has ended, however long a stream takes. Where a new one cannot be opened, the old one goes on and it is told.
"""

import asyncio
from collections.abc import Callable, Coroutine
from contextlib import AbstractContextManager, ExitStack
from typing import Protocol

from pagefold.adapters.asgi import Event, Lifespan, Receive, Send
from pagefold.errors import PagefoldError
from pagefold.model_proxy.readiness import Readiness


class ServedApp(Protocol):
    """What is served, and replaced: a proxy, or the front of several."""

    readiness: Readiness

    async def __call__(self, scope: Event, receive: Receive, send: Send) -> None: ...

    def drain(self) -> None: ...


class _Generation:
    """An application with what was opened for it, and how many requests it has under way."""

    def __init__(self, app: ServedApp, stack: ExitStack) -> None:
        self.app, self.stack, self.lifespan = app, stack, Lifespan(app)
        self.requests, self.idle = 0, asyncio.Event()
        self.idle.set()

    async def serve(self, scope: Event, receive: Receive, send: Send) -> None:
        self.requests += 1
        self.idle.clear()
        try:
            await self.app(scope, receive, send)
        finally:
            self.requests -= 1
            if not self.requests:
                self.idle.set()


class ReloadingApp:
    """The ASGI application. `first` is what is served at the start, and closed by whoever opened it. `opened` opens
    another one from the settings as they are then. `report` gets the kind of what happened and a sentence; `replaced`
    gets an application that has served its last request."""

    def __init__(
        self,
        first: ServedApp,
        opened: Callable[[], AbstractContextManager[ServedApp]],
        *,
        report: Callable[[str, str], None],
        replaced: Callable[[ServedApp], None] = lambda app: None,
    ) -> None:
        self._first, self._open, self._report, self._replaced = first, opened, report, replaced
        self._current: _Generation | None = None
        self._limits = first.readiness.limits
        self._tasks: set[asyncio.Task[None]] = set()
        self._reloading = asyncio.Lock()
        self._draining = False

    @property
    def app(self) -> ServedApp:
        """What takes new requests."""
        return self._current.app if self._current else self._first

    def drain(self) -> None:
        self._draining = True
        self.app.drain()

    def reload(self) -> None:
        """Begins to replace the application. For the event loop's thread."""
        self._later(self._reload())

    async def __call__(self, scope: Event, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await receive()
            self._current = _Generation(self._first, ExitStack())
            await self._current.lifespan.start()
            await send({"type": "lifespan.startup.complete"})
            await receive()
            await asyncio.gather(*self._tasks)
            await self._end(self._current)
            await send({"type": "lifespan.shutdown.complete"})
            return
        assert self._current is not None, "the lifespan has begun"
        await self._current.serve(scope, receive, send)

    async def _reload(self) -> None:
        async with self._reloading:
            if self._draining:
                return
            try:
                opened = await asyncio.to_thread(self._opened)
                await opened.lifespan.start()
            except PagefoldError as error:
                self._report("reload refused", f"settings were not reloaded, those before stay: {error}")
                return
            opened.app.readiness.limits = self._limits
            old, self._current = self._current, opened
            self._report("reloaded", "settings were reloaded; requests under way end with those before")
            if old is not None:
                self._later(self._end_when_idle(old))

    def _opened(self) -> _Generation:
        with ExitStack() as stack:
            app = stack.enter_context(self._open())
            return _Generation(app, stack.pop_all())

    async def _end_when_idle(self, old: _Generation) -> None:
        await old.idle.wait()
        await self._end(old)
        self._replaced(old.app)

    async def _end(self, generation: _Generation) -> None:
        await generation.lifespan.stop()
        await asyncio.to_thread(generation.stack.close)

    def _later(self, step: Coroutine[None, None, None]) -> None:
        task = asyncio.get_running_loop().create_task(step)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
