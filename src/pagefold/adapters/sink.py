"""Sends the pages that are put under a session to object storage (the history sink), in a thread of its own.

Promises: no put waits for the sink. It holds at most one batch in memory, because the backlog is in the store's outbox.
What fails is counted and tried again after growing pauses. Closing takes no longer than the caller allows; the next
process that starts sends the rest. A page is marked as sent only when it and the part of the manifest that names it
are in object storage.
"""

import asyncio
import threading
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import groupby
from typing import Protocol

from pagefold.errors import DeniedError, StoreError
from pagefold.pages.manifest import ManifestPart, folder_of, page_key, part_key, prefix_for, render_part
from pagefold.pages.scope import StoreScope
from pagefold.pages.store import Store, UnsentPage

_BATCH_PAGES = 32
_BATCH_BYTES = 8_000_000
_FIRST_PAUSE = 0.5
_LONGEST_PAUSE = 60.0
_LOOK_AGAIN = 30.0
_LINGER = 0.2
_LAST_TRIES = 3  # failures while closing, so that an unreachable sink does not delay exit
_LAST_PAUSE = 0.2


class ObjectStorage(Protocol):
    """Object storage as the sink needs it. Everything may raise StoreError, and DeniedError where it is refused."""

    @property
    def where(self) -> str:
        """The address, for people; without credentials."""

    async def put(self, key: str, content: bytes) -> None: ...

    def get(self, key: str) -> bytes | None: ...

    def read(self, key: str, start: int, end: int) -> bytes | None:
        """Returns the bytes from `start` up to `end`, or fewer where the object is shorter."""

    def keys(self, folder: str) -> Sequence[str]:
        """Returns the key of every object in a folder and below it."""

    def folders(self, folder: str) -> Sequence[str]: ...

    def delete(self, keys: Sequence[str]) -> None:
        """Deletes objects; of one that is not there, nothing is said."""


@dataclass(slots=True)
class SinkState:
    """How far sending has come. Counts cover this process only; `waiting` covers every process using the store."""

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
    """Sends the pages in the outbox, in a thread of its own, from `start` to `close`."""

    def __init__(self, store: Store, objects: ObjectStorage, prefix: str) -> None:
        self._store, self._outbox, self._objects, self._prefix = store, store.outbox, objects, prefix
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
        """Tells the thread that the outbox may have pages to send. Does nothing if the thread was told already."""
        if not self._is_woken and self._loop is not None:
            self._is_woken = True
            # The loop is closed if the sink ended meanwhile; the outbox keeps its rows for the next start.
            with suppress(RuntimeError):
                self._loop.call_soon_threadsafe(self._woken.set)

    def close(self, seconds: float) -> bool:
        """Sends the backlog for at most so many seconds. Returns whether all of it was sent."""
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
        tries_left = _LAST_TRIES
        while True:
            self._is_woken = False
            self._woken.clear()
            # Read before the batch: pages that were put before closing began are then in a batch.
            closing = self._closing
            try:
                if not adopted:
                    self._outbox.adopt()
                    adopted = True
                batch = self._outbox.next_batch(_BATCH_PAGES, _BATCH_BYTES)
                has_failed = not await self._send(batch)
            except StoreError as error:
                batch, has_failed = [], True
                self._count(error)
            if has_failed:
                if self._closing:
                    tries_left -= 1
                if not tries_left:
                    return
                await self._rest()
            elif batch:
                self._pause = 0.0
            elif closing:
                return
            else:
                # Other processes put pages without waking this thread, so it looks once in a while.
                with suppress(TimeoutError):
                    await asyncio.wait_for(self._woken.wait(), _LOOK_AGAIN)
                # The puts of one turn come close together; after a short wait they make one batch.
                await self._wait(_LINGER)

    async def _rest(self) -> None:
        """Pauses after a failure: longer with each in a row, and only shortly while closing."""
        self._pause = min(max(self._first_pause, 2 * self._pause), _LONGEST_PAUSE)
        if self._closing:
            await asyncio.sleep(_LAST_PAUSE)
        else:
            await self._wait(self._pause)

    async def _wait(self, seconds: float) -> None:
        """Waits, even if pages are put meanwhile; only closing ends the wait early."""
        loop = asyncio.get_running_loop()
        end = loop.time() + seconds
        while (left := end - loop.time()) > 0 and not self._closing:
            self._woken.clear()
            with suppress(TimeoutError):
                await asyncio.wait_for(self._woken.wait(), left)

    async def _send(self, batch: Sequence[UnsentPage]) -> bool:
        """Sends a batch, session by session. Returns whether nothing failed."""
        all_sent = True
        for (principal, project, session), group in groupby(sorted(batch, key=_session_of), key=_session_of):
            pages = self._store.scoped(StoreScope(principal, project)).pages
            # None: the page was garbage-collected after the batch was read, and its outbox row was deleted with it.
            contents = [(page, content) for page in group if (content := pages.get(page.entry.page)) is not None]
            folder = folder_of(prefix_for(self._prefix, principal), session)
            puts = (self._put(page_key(folder, page.entry.page), content) for page, content in contents)
            arrived = await asyncio.gather(*puts)
            sent = [page for (page, _), has_arrived in zip(contents, arrived, strict=True) if has_arrived]
            if sent:
                entries = tuple(sorted((page.entry for page in sent), key=lambda entry: entry.place))
                part = render_part(ManifestPart(session, self._outbox.store_id, entries))
                if not await self._put(part_key(folder, part), part):
                    sent = []
            if sent:
                self._outbox.mark_sent(sent)
                self._state.sent += len(sent)
                self._state.sent_bytes += sum(page.entry.bytes for page in sent)
            if failed := [page for page, _ in contents if page not in sent]:
                self._outbox.mark_tried(failed)
                all_sent = False
        return all_sent

    async def _put(self, key: str, content: bytes) -> bool:
        """Returns whether the object was stored; counts the failure where it was not."""
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


def _session_of(page: UnsentPage) -> tuple[str, str, str]:
    return page.scope.principal, page.scope.written, page.session
