"""A store that is never on the way: calls have a thread and a deadline of their own, and a broken store is mended.

Promises: a call returns or raises StoreError within the deadline; after a failure everybody is refused at once, until
the store was tried in the background and works again. A process that has just begun may wait longer: it remembers
nothing, so without the store it would derive other bytes than the process before it. A file that was deleted, replaced
or damaged is noticed within seconds and opened or made anew; what this process was acknowledged is put there again, and
a damaged file is kept beside it. Notes never raise: in an outage they are remembered here, and stored when the store is
back. Pages do raise, because a request must not name a page that is not stored; those put lately can be read in an
outage too. Every failure is counted by its kind and reported.
"""

import time
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import islice
from typing import TypeVar

from pagefold.adapters.acknowledged import Acknowledged
from pagefold.adapters.breaker import Breaker
from pagefold.adapters.steady_parts import MendableStore, SteadyNotes, SteadyOutbox, SteadyPages, SteadySearch
from pagefold.adapters.store_thread import ROUND_SECONDS, Pending, StoreThread, at_once
from pagefold.adapters.timings import Histogram
from pagefold.errors import StoreError
from pagefold.pages.journal import Journal, Rules
from pagefold.pages.page import PageId
from pagefold.pages.scope import THIS_USER, StoreScope
from pagefold.pages.store import Store

T = TypeVar("T")
DEADLINE_SECONDS = 0.25
SETTLING_SECONDS = 10.0  # of a new process, which is still importing what it needs
_OPEN_SECONDS = 2.0  # what a start waits for a store, and a call while it settles
_BUSY_SECONDS = 1.0  # what one call waits for a lock, in the thread
_CHECK_ROUNDS = 5
_UNSAVED_NOTES = 50_000
_VERIFIED_AT_ONCE = 200
_HARMLESS = frozenset(
    ("too large", "damaged page", "out", "objects out", "objects denied", "objects failing")
)  # what says nothing about the next call
_LOST = frozenset(("gone", "damaged", "closed"))  # after these, the file has to be opened anew


@dataclass(slots=True)
class StoreHealth:
    """`out` is why the store is not used now, "" where it is; `errors` counts failures by kind, `mended` how often it
    was opened anew, `lost_pages` acknowledged pages that could not be put there again."""

    out: str = ""
    since: float = 0.0
    errors: Counter[str] = field(default_factory=Counter)
    mended: int = 0
    lost_pages: int = 0
    unsaved_notes: int = 0
    dropped_notes: int = 0
    times: Histogram = field(default_factory=Histogram)


class SteadyStore:
    """The store that `opened` opens. It need not be there, or work, at the start. `set_aside` moves a damaged file out
    of the way and returns where it is then. `settling` is for how many seconds calls may take as long as the start
    does. `report` gets the kind of a problem and a sentence."""

    def __init__(
        self,
        opened: Callable[[], MendableStore],
        where: str,
        *,
        set_aside: Callable[[], str] = lambda: "",
        sender: str = "",
        scope: StoreScope = THIS_USER,
        deadline: float = DEADLINE_SECONDS,
        settling: float = 0.0,
        round_seconds: float = ROUND_SECONDS,
        report: Callable[[str, str], None] = lambda kind, sentence: None,
    ) -> None:
        self.where, self.sender, self.scope = where, sender, scope
        self._open, self._set_aside, self._report, self._deadline = opened, set_aside, report, deadline
        self._inner: MendableStore | None = None
        self._round_seconds = round_seconds
        self._settled = time.monotonic() + settling
        self._breaker = Breaker(deadline)
        self._health = StoreHealth()
        self._acknowledged = Acknowledged()
        self._unsaved: dict[tuple[str, str], tuple[bytes, float, str, bool]] = {}  # by principal and name
        self._asked, self._checked, self._verified, self._looked_at = False, time.monotonic(), 0, 0
        self.when_back: list[Callable[[], None]] = []
        self.pages, self.notes = SteadyPages(self), SteadyNotes(self)
        self.outbox, self.search_index = SteadyOutbox(self), SteadySearch(self)
        self._thread = StoreThread(self._look, round_seconds)
        try:
            self._thread.call(self._reopen, _OPEN_SECONDS)
        except StoreError as error:
            self._failed(error)

    @property
    def is_out(self) -> bool:
        return self._breaker.is_open

    def health(self) -> StoreHealth:
        health = self._health
        health.out, health.since, health.unsaved_notes = self._breaker.kind, self._breaker.since, len(self._unsaved)
        return health

    def scoped(self, scope: StoreScope) -> "SteadyView":
        return SteadyView(self, scope)

    def open_journal(self, rules: Rules, owner: str = "") -> Journal:
        return self.ask(lambda inner: inner.open_journal(rules, owner))

    def run(self, step: Callable[[], T]) -> T:
        """Does several calls as one, in the store's thread, within one deadline. Raises StoreError."""
        return self.ask(lambda inner: step())

    def ask(self, step: Callable[[MendableStore], T]) -> T:
        """What a step says of the store, within the deadline. Raises StoreError."""
        if self._breaker.is_open:
            raise StoreError(f"the store {self.where} is not used now ({self._breaker.kind})", kind="out")
        self._asked, began = True, time.monotonic()
        settled = began >= self._settled
        try:
            result = self._thread.call(lambda: step(self._opened()), self._patience)
        except StoreError as error:
            self._failed(error)
            raise
        now = time.monotonic()
        self._health.times.add(now - began)
        if settled and self._breaker.took(now - began, now):
            self._failed(StoreError(f"the store {self.where} is too slow to wait for", kind="slow"))
        return result

    def soon(self, step: Callable[[], object]) -> Pending:
        """Does a step that asks the store in its thread, for somebody who waits for it elsewhere. The step must go on
        without the store, as notes do: in an outage it is not waited for."""
        if self._breaker.is_open:
            return at_once(step)
        late = StoreError(f"no answer within {1000 * self._patience:.0f} ms", kind="late")
        return Pending(self._thread.submit(step), self._patience, lambda: self._failed(late))

    @property
    def _patience(self) -> float:
        """For how many seconds a call may take now."""
        return self._deadline if time.monotonic() >= self._settled else max(self._deadline, _OPEN_SECONDS)

    def direct(self) -> MendableStore:
        """The store itself, for threads that may wait. Raises StoreError in an outage."""
        if self._breaker.is_open:
            raise StoreError(f"the store {self.where} is not used now ({self._breaker.kind})", kind="out")
        return self._opened()

    def close(self) -> None:
        with suppress(StoreError):
            self._thread.call(self._look_again, _OPEN_SECONDS)
        if not self._breaker.is_open:
            with suppress(StoreError):
                self._thread.call(self._save_notes, _OPEN_SECONDS)
        self._thread.close()
        if self._inner is not None:
            with suppress(StoreError):
                self._inner.close()

    # ---- notes of an outage

    def note_later(self, principal: str, name: str, content: bytes, now: float, history: str, *, first: bool) -> None:
        self._unsaved[principal, name] = (content, now, history, first)
        if len(self._unsaved) > _UNSAVED_NOTES:
            del self._unsaved[next(iter(self._unsaved))]
            self._health.dropped_notes += 1

    def unsaved_note(self, principal: str, name: str) -> bytes | None:
        unsaved = self._unsaved.get((principal, name))
        return unsaved[0] if unsaved else None

    @property
    def acknowledged(self) -> Acknowledged:
        return self._acknowledged

    # ---- failing and mending

    def _opened(self) -> MendableStore:
        if self._inner is None:
            raise StoreError(f"the store {self.where} is not open", kind="gone")
        return self._inner

    def _failed(self, error: StoreError) -> None:
        self._health.errors[error.kind] += 1
        if error.kind in _HARMLESS:
            return
        if self._breaker.open(error.kind, time.monotonic()):
            self._report(f"store {error.kind}", f"going on without the store: {error}")

    def _look(self) -> None:
        """Looks after the store, once a second, in its thread. Never raises."""
        now = time.monotonic()
        try:
            if self._inner is not None and not self._inner.is_current():
                self._failed(StoreError(f"the file {self.where} was deleted or replaced", kind="gone"))
            if self._breaker.is_open:
                self._mend()
            elif now - self._checked >= _CHECK_ROUNDS * self._round_seconds:
                asked, self._asked, self._checked = self._asked, False, now
                if asked:
                    self._opened().check()
                    self._verify()
                more = self._acknowledged.forget_what_is_gone(self._opened(), self._looked_at, _VERIFIED_AT_ONCE)
                self._looked_at = self._looked_at + _VERIFIED_AT_ONCE if more else 0
        except StoreError as error:
            self._failed(error)
        except Exception as error:  # noqa: BLE001 - the thread must live; what is wrong is counted and told
            self._failed(StoreError(f"the store {self.where}: {type(error).__name__}", kind="failing"))

    def _look_again(self) -> None:
        """Looks after the store for the last time: who opens the file next must not find damage that nobody saw."""
        self._checked = time.monotonic() - _CHECK_ROUNDS * self._round_seconds
        self._look()
        if self._breaker.is_open and self._breaker.kind in _LOST:
            self._look()

    def forgotten(self, scope: StoreScope, history: str) -> None:
        """Is told that a history was forgotten, by whoever does that in this process. What another process forgets is
        noticed within seconds."""
        self._thread.later(lambda: self._acknowledged.forget(scope, history))

    def _verify(self) -> None:
        """Reads some of the newest pages from the file, in turn, and puts there once more what is damaged."""
        inner, contents = self._opened(), self._acknowledged.contents
        pages = list(islice(reversed(list(contents)), self._verified, self._verified + _VERIFIED_AT_ONCE))
        self._verified = self._verified + _VERIFIED_AT_ONCE if len(pages) == _VERIFIED_AT_ONCE else 0
        for page in inner.unreadable(pages):
            self._health.errors["damaged page"] += 1
            self._report("store damaged page", f"a page in {self.where} was damaged, and was stored once more")
            inner.mend_page(page, contents[page])

    def _mend(self) -> None:
        """Opens the store anew where it was lost, tries it, and saves what waits. Raises StoreError."""
        if self._breaker.kind in _LOST or self._inner is None:
            self._reopen()
        began = time.monotonic()
        self._opened().check()
        self._save_notes()
        took = time.monotonic() - began
        if took > self._deadline:
            raise StoreError(f"the store {self.where} is too slow to wait for", kind="slow")
        was, since = self._breaker.kind, self._breaker.since
        self._breaker.close(time.monotonic())
        self._report(
            "store back", f"the store {self.where} works again, after {time.monotonic() - since:.0f} s ({was})"
        )
        for back in self.when_back:
            back()

    def _reopen(self) -> None:
        """Opens the store anew, and puts there what it lacks. Raises StoreError, and is then to be done again."""
        lost, aside = self._inner, ""
        if self._breaker.kind == "damaged" and (lost is None or lost.is_current()):
            aside = self._set_aside()
        if lost is not None:
            lost.let_go()
        inner = self._open()
        if aside:
            self._report("store damaged", f"the damaged store was moved to {aside}, and a new one was made")
        try:
            inner.wait_at_most(_BUSY_SECONDS)
            inner.check()  # what writing makes beside the file is known from here on
            inner.is_current()
            if lost is not None:
                not_given = self._acknowledged.give(inner, lambda scope, page: _read(lost, scope, page))
        except BaseException:
            with suppress(StoreError):
                inner.close()
            raise
        self._inner = inner
        if lost is not None:
            self._health.mended += 1
            self._health.lost_pages += not_given
            with suppress(StoreError):
                lost.close()

    def _save_notes(self) -> None:
        inner = self._opened()
        for (principal, name), (content, now, history, first) in list(self._unsaved.items()):
            notes = inner.scoped(StoreScope(principal)).notes
            stands = content
            if first:
                stands = notes.put_if_absent(name, content, now=now, history=history)
            else:
                notes.put(name, content, now=now, history=history)
            self._acknowledged.noted(principal, name, stands, now, history)
            if self._unsaved.get((principal, name)) == (content, now, history, first):
                del self._unsaved[principal, name]


class SteadyView:
    """A steady store for another scope, with the same thread, file and outages."""

    def __init__(self, store: SteadyStore, scope: StoreScope) -> None:
        self._store, self.scope, self.acknowledged = store, scope, store.acknowledged
        self.where, self.sender = store.where, store.sender
        self._inner: tuple[MendableStore, MendableStore] | None = None  # what is open, and that within the scope
        self.note_later, self.unsaved_note = store.note_later, store.unsaved_note
        self.run, self.soon = store.run, store.soon
        self.health = store.health
        self.pages, self.notes = SteadyPages(self), SteadyNotes(self)
        self.outbox, self.search_index = SteadyOutbox(self), SteadySearch(self)

    def scoped(self, scope: StoreScope) -> "SteadyView":
        return SteadyView(self._store, scope)

    def open_journal(self, rules: Rules, owner: str = "") -> Journal:
        return self.ask(lambda inner: inner.open_journal(rules, owner))

    def ask(self, step: Callable[[MendableStore], T]) -> T:
        return self._store.ask(lambda inner: step(self._within(inner)))

    def direct(self) -> MendableStore:
        return self._within(self._store.direct())

    def close(self) -> None:
        self._store.close()

    def _within(self, inner: MendableStore) -> MendableStore:
        if self._inner is None or self._inner[0] is not inner:
            self._inner = inner, inner.scoped(self.scope)
        return self._inner[1]


def _read(store: Store, scope: StoreScope, page: PageId) -> bytes | None:
    try:
        return store.scoped(scope).pages.get(page)
    except StoreError:
        return None
