"""The parts of a steady store: each asks the store through its thread, and says what it does in an outage."""

from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from typing import Any, Protocol, TypeVar

from pagefold.adapters.acknowledged import Acknowledged
from pagefold.errors import StoreError
from pagefold.pages.page import Page, PageId
from pagefold.pages.scope import StoreScope
from pagefold.pages.search import LIMIT, SearchHit
from pagefold.pages.store import Collected, ListedPage, NewNote, Store, StoreStats, UnsentPage

T = TypeVar("T")
_PUT_AT_ONCE = 16  # pages


class MendableStore(Store, Protocol):
    """A store in a file that somebody may take away."""

    def scoped(self, scope: StoreScope) -> "MendableStore": ...

    def is_current(self) -> bool:
        """Whether the file that is open is still the one at its path."""

    def check(self) -> None:
        """Raises StoreError where a put would fail."""

    def wait_at_most(self, seconds: float) -> None: ...

    def let_go(self) -> None:
        """Takes away what is left at the path of a file that is no longer there."""

    def unreadable(self, pages: Sequence[PageId]) -> Sequence[PageId]:
        """Which of these pages are damaged in the file itself."""

    def mend_page(self, page: PageId, content: bytes) -> None:
        """Puts the content of a page that is damaged there once more."""


class AskedStore(Protocol):
    """What the parts use of a steady store, or of its view for another scope."""

    @property
    def scope(self) -> StoreScope: ...

    @property
    def acknowledged(self) -> Acknowledged: ...

    def ask(self, step: Callable[[MendableStore], T]) -> T: ...

    def direct(self) -> MendableStore: ...

    def note_later(
        self, principal: str, name: str, content: bytes, now: float, history: str, *, first: bool
    ) -> None: ...

    def unsaved_note(self, principal: str, name: str) -> bytes | None: ...


class SteadyPages:
    """Pages raise StoreError in an outage, except those that were put lately and are only read."""

    def __init__(self, store: AskedStore) -> None:
        self._store, self._acknowledged = store, store.acknowledged

    def put(self, content: bytes, **how: Any) -> PageId:
        page = self._store.ask(lambda inner: inner.pages.put(content, **how))
        self._acknowledged.put(self._store.scope, page, content, how)
        return page

    def put_held(self, pages: Sequence[Page], *, history: str, now: float = 0.0) -> None:
        """In slices: others ask the store between them."""
        for start in range(0, len(pages), _PUT_AT_ONCE):
            some = pages[start : start + _PUT_AT_ONCE]
            self._store.ask(partial(_put_held, pages=some, history=history, now=now))
            for page in some:
                how = {"history": history, "now": now, "kind": page.kind, "name": page.name}
                self._acknowledged.put(self._store.scope, page.id, page.content, how)
                self._acknowledged.held(self._store.scope, page.id, history)

    def get(self, page: PageId) -> bytes | None:
        try:
            return self._store.ask(lambda inner: inner.pages.get(page))
        except StoreError:
            if (content := self._acknowledged.get(self._store.scope, page)) is None:
                raise
            return content

    def original_of(self, text: PageId) -> bytes | None:
        """None in an outage: then the text is taken as it is."""
        try:
            return self._store.ask(lambda inner: inner.pages.original_of(text))
        except StoreError:
            return None

    def exists(self, page: PageId) -> bool:
        return self._store.ask(lambda inner: inner.pages.exists(page))

    def redactions(self, page: PageId) -> Sequence[str]:
        return self._store.ask(lambda inner: inner.pages.redactions(page))

    def find(self, handle: str) -> Sequence[PageId]:
        try:
            return self._store.ask(lambda inner: inner.pages.find(handle))
        except StoreError:
            if not (pages := self._acknowledged.find(self._store.scope, handle)):
                raise
            return pages

    def listed(self, history: str) -> Sequence[PageId]:
        return self._store.ask(lambda inner: inner.pages.listed(history))

    def listings(self, history: str) -> Sequence[ListedPage]:
        return self._store.ask(lambda inner: inner.pages.listings(history))

    def hold(self, page: PageId, history: str) -> bool:
        held = self._store.ask(lambda inner: inner.pages.hold(page, history))
        self._acknowledged.held(self._store.scope, page, history)
        return held

    def release(self, history: str) -> None:
        self._store.ask(lambda inner: inner.pages.release(history))
        self._acknowledged.released(self._store.scope, history)

    def renew(self, history: str, now: float) -> None:
        self._store.ask(lambda inner: inner.pages.renew(history, now))

    def collect(
        self, *, before: float | None = None, max_bytes: int | None = None, leased: float | None = None
    ) -> Collected:
        return self._store.direct().pages.collect(before=before, max_bytes=max_bytes, leased=leased)

    def stats(self) -> StoreStats:
        return self._store.direct().pages.stats()


def _put_held(inner: MendableStore, pages: Sequence[Page], history: str, now: float) -> None:
    inner.pages.put_held(pages, history=history, now=now)


class SteadyNotes:
    """Notes never raise. What was noted in an outage is found here, and stored when the store is back."""

    def __init__(self, store: AskedStore) -> None:
        self._store, self._principal = store, store.scope.principal

    def newest(self, name: str) -> bytes | None:
        if (unsaved := self._store.unsaved_note(self._principal, name)) is not None:
            return unsaved
        try:
            return self._store.ask(lambda inner: inner.notes.newest(name))
        except StoreError:
            known = self._store.acknowledged.notes.get((self._principal, name))
            return known[0] if known else None

    def put(self, name: str, content: bytes, *, now: float = 0.0, history: str = "") -> None:
        try:
            self._store.ask(lambda inner: inner.notes.put(name, content, now=now, history=history))
        except StoreError:
            self._store.note_later(self._principal, name, content, now, history, first=False)
        else:
            self._store.acknowledged.noted(self._principal, name, content, now, history)

    def put_all(self, notes: Sequence[NewNote], *, now: float = 0.0) -> None:
        try:
            self._store.ask(lambda inner: inner.notes.put_all(notes, now=now))
        except StoreError:
            for name, content, history in notes:
                self._store.note_later(self._principal, name, content, now, history, first=False)
        else:
            for name, content, history in notes:
                self._store.acknowledged.noted(self._principal, name, content, now, history)

    def put_if_absent(self, name: str, content: bytes, *, now: float = 0.0, history: str = "") -> bytes:
        if (unsaved := self._store.unsaved_note(self._principal, name)) is not None:
            return unsaved
        try:
            content = self._store.ask(lambda inner: inner.notes.put_if_absent(name, content, now=now, history=history))
        except StoreError:
            self._store.note_later(self._principal, name, content, now, history, first=True)
        else:
            self._store.acknowledged.noted(self._principal, name, content, now, history)
        return content

    def put_if_possible(self, name: str, content: bytes, *, now: float = 0.0, history: str = "") -> None:
        with suppress(StoreError):  # counted by the store, like every error of its own
            self._store.ask(lambda inner: inner.notes.put_if_possible(name, content, now=now, history=history))


class SteadyOutbox:
    """The outbox of the store that is open now; the sink's own thread waits for it."""

    def __init__(self, store: AskedStore) -> None:
        self._store = store

    @property
    def store_id(self) -> str:
        return self._store.direct().outbox.store_id

    def adopt(self) -> int:
        return self._store.direct().outbox.adopt()

    def enqueue(self, session: str) -> int:
        return self._store.direct().outbox.enqueue(session)

    def next_batch(self, pages: int, length: int) -> Sequence[UnsentPage]:
        return self._store.direct().outbox.next_batch(pages, length)

    def mark_sent(self, batch: Sequence[UnsentPage]) -> None:
        self._store.direct().outbox.mark_sent(batch)

    def mark_tried(self, batch: Sequence[UnsentPage]) -> None:
        self._store.direct().outbox.mark_tried(batch)

    def note_in_sink(self, session: str, pages: Sequence[PageId]) -> None:
        self._store.direct().outbox.note_in_sink(session, pages)

    def find_sent(self, handle: str) -> Sequence[tuple[PageId, str]]:
        return self._store.direct().outbox.find_sent(handle)

    def backlog(self) -> tuple[int, int]:
        return self._store.direct().outbox.backlog()


class SteadySearch:
    def __init__(self, store: AskedStore) -> None:
        self._store = store

    def search(self, query: str, *, history: str | None = None, limit: int = LIMIT) -> Sequence[SearchHit]:
        return self._store.direct().search_index.search(query, history=history, limit=limit)
