"""The history sink: sends what is put under a session to object storage, in a thread of its own.

Promises: no put waits for it; it holds at most one batch in memory, because the backlog is in the store's outbox; what
fails is tried again with growing pauses and counted; closing takes no longer than it is given, and the next process
that starts sends the rest. A page is marked as sent only when it and the part of the manifest that names it are there.
"""

import asyncio
import threading
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import groupby
from typing import Protocol

from pagefold.errors import DeniedError, StoreError
from pagefold.pages.manifest import ManifestPart, folder_of, page_key, part_key, render_part
from pagefold.pages.store import Store, UnsentPage

_BATCH_PAGES = 32
_BATCH_BYTES = 8_000_000
_FIRST_PAUSE = 0.5
_LONGEST_PAUSE = 60.0
_LOOK_AGAIN = 30.0
_LINGER = 0.2
_LAST_TRIES = 3  # failures after which closing leaves the rest to the next start: a dead sink makes no long goodbye
_LAST_PAUSE = 0.2


class ObjectStorage(Protocol):
    """Object storage as the sink needs it. Everything may raise StoreError, and DeniedError where it is refused."""

    @property
    def where(self) -> str:
        """For people: the address, without any key."""

    async def put(self, key: str, content: bytes) -> None: ...

    def get(self, key: str) -> bytes | None: ...

    def read(self, key: str, start: int, end: int) -> bytes | None:
        """The bytes from `start` up to `end`; short where the object is shorter."""

    def keys(self, folder: str) -> Sequence[str]:
        """Every object in a folder and below it."""

    def folders(self, folder: str) -> Sequence[str]: ...


@dataclass(slots=True)
class SinkState:
    """How far sending has come. The counts are this process's; what waits is everybody's."""

    where: str
    waiting: int = 0
    waiting_bytes: int = 0
    sent: int = 0
    sent_bytes: int = 0
    failures: int = 0
    denials: int = 0
    last_error: str = ""
    pausing: bool = False


class HistorySink:
    """Sends what the outbox holds, in a thread of its own, from `start` to `close`."""

    def __init__(self, store: Store, objects: ObjectStorage, prefix: str) -> None:
        self._pages, self._outbox, self._objects, self._prefix = store.pages, store.outbox, objects, prefix
        self._state = SinkState(objects.where)
        self._pause = 0.0
        self._first_pause = _FIRST_PAUSE
        self._closing = False
        self._loop: asyncio.AbstractEventLoop | None = None
        self._task: asyncio.Task[None] | None = None
        self._woken = asyncio.Event()
        self._is_woken = False
        self._ready = threading.Event()
        self._thread = threading.Thread(target=self._live, name="pagefold-sink", daemon=True)

    def start(self) -> None:
        self._thread.start()
        self._ready.wait()

    def wake(self) -> None:
        """Tells the thread that something may wait to be sent; once it knows, telling it again costs nothing."""
        if not self._is_woken and self._loop is not None:
            self._is_woken = True
            # The loop is closed where the sink ended meanwhile: the note in the outbox stays.
            with suppress(RuntimeError):
                self._loop.call_soon_threadsafe(self._woken.set)

    def close(self, seconds: float) -> bool:
        """Sends what waits, for no longer than this; returns whether nothing was left."""
        if self._thread.is_alive():
            self._closing = True
            self._is_woken = False
            self.wake()
            self._thread.join(seconds)
            if self._thread.is_alive() and self._loop is not None and self._task is not None:
                with suppress(RuntimeError):
                    self._loop.call_soon_threadsafe(self._task.cancel)
                self._thread.join(1.0)
        return self._outbox.backlog()[0] == 0

    def state(self) -> SinkState:
        waiting, length = self._outbox.backlog()
        return replace(self._state, waiting=waiting, waiting_bytes=length, pausing=bool(self._pause))

    # ---- the thread ------------------------------------------------------------------------------------------

    def _live(self) -> None:
        try:
            with suppress(asyncio.CancelledError):
                asyncio.run(self._work())
        finally:
            self._ready.set()

    async def _work(self) -> None:
        self._loop, self._task = asyncio.get_running_loop(), asyncio.current_task()
        self._ready.set()
        adopted = False
        left = _LAST_TRIES
        while True:
            self._is_woken = False
            self._woken.clear()
            # Looked at before the batch is: what was put before closing is then in a batch before the end.
            closing = self._closing
            try:
                adopted = adopted or self._outbox.adopt() >= 0
                batch = self._outbox.next_batch(_BATCH_PAGES, _BATCH_BYTES)
                whole = await self._send(batch)
            except StoreError as error:
                batch, whole = [], False
                self._count(error)
            if not whole:
                left -= self._closing
                if not left:
                    return
                await self._rest()
            elif batch:
                self._pause = 0.0
            elif closing:
                return
            else:
                # Looks once in a while without being woken, too: other processes put as well.
                with suppress(TimeoutError):
                    await asyncio.wait_for(self._woken.wait(), _LOOK_AGAIN)
                # The puts of one turn come close together; waiting for all of them makes one batch.
                await self._wait(_LINGER)

    async def _rest(self) -> None:
        """Pauses longer with each failure in a row, and only shortly while closing."""
        self._pause = min(max(self._first_pause, 2 * self._pause), _LONGEST_PAUSE)
        if self._closing:
            await asyncio.sleep(_LAST_PAUSE)
        else:
            await self._wait(self._pause)

    async def _wait(self, seconds: float) -> None:
        """Waits whatever is put meanwhile; only closing ends it early."""
        loop = asyncio.get_running_loop()
        end = loop.time() + seconds
        while (left := end - loop.time()) > 0 and not self._closing:
            self._woken.clear()
            with suppress(TimeoutError):
                await asyncio.wait_for(self._woken.wait(), left)

    async def _send(self, batch: Sequence[UnsentPage]) -> bool:
        """Sends a batch, session by session; returns whether all of it was sent."""
        whole = True
        for session, group in groupby(sorted(batch, key=_session_of), key=_session_of):
            members = list(group)
            folder = folder_of(self._prefix, session)
            arrived = await self._put_pages(folder, members)
            sent = [page for page, has_arrived in zip(members, arrived, strict=True) if has_arrived]
            if sent:
                entries = tuple(sorted((page.entry for page in sent), key=lambda entry: entry.place))
                part = render_part(ManifestPart(session, self._outbox.store_id, entries))
                if not await self._put(part_key(folder, part), part):
                    sent = []
            if sent:
                self._outbox.mark_sent(sent)
                self._state.sent += len(sent)
                self._state.sent_bytes += sum(page.entry.bytes for page in sent)
            if failed := [page for page in members if page not in sent]:
                self._outbox.mark_tried(failed)
                whole = False
        return whole

    async def _put_pages(self, folder: str, members: Sequence[UnsentPage]) -> list[bool]:
        async def send(page: UnsentPage) -> bool:
            content = self._pages.get(page.entry.page)
            # Collected since the batch was made: its note went with it.
            return content is not None and await self._put(page_key(folder, page.entry.page), content)

        return list(await asyncio.gather(*map(send, members)))

    async def _put(self, key: str, content: bytes) -> bool:
        try:
            await self._objects.put(key, content)
        except StoreError as error:
            self._count(error)
            return False
        return True

    def _count(self, error: StoreError) -> None:
        if isinstance(error, DeniedError):
            self._state.denials += 1
        self._state.failures += 1
        self._state.last_error = str(error)


def _session_of(page: UnsentPage) -> str:
    return page.session
