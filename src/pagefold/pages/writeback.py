"""Write-back: what a session holds goes through the journal before context is destroyed, and is read back from there.

What holds for one session is written to a scope of its own, what holds for the project to the project's, if there is
one. Statements are appended; a plan replaces the version that was read. What a record says already is not written
again. What came from an instruction file is not written at all: the file outlives the window by itself, and what is
taken out of it must not come back. The page of an entry is in the store before the entry is staged.
"""

from collections.abc import Iterable
from dataclasses import dataclass

from pagefold.pages.journal import SCHEMAS, Boundary, Flushed, Journal, Rules, flush
from pagefold.pages.pins import Pins, entry_of, pins_in
from pagefold.pages.producers import PinnedItem, Producer, Scope, Statement
from pagefold.pages.store import Store

_KEYS = ("constraints", "plan", "preferences")


@dataclass(frozen=True, slots=True)
class Scopes:
    """Where a session may write. Without a project, what holds for the project is kept with the session."""

    session: str
    project: str = ""

    @property
    def names(self) -> tuple[str, ...]:
        return (f"session:{self.session}", *((f"project:{self.project}",) if self.project else ()))

    @property
    def rules(self) -> Rules:
        return Rules(SCHEMAS, frozenset(self.names))

    def of(self, held: PinnedItem) -> str:
        for_project = isinstance(held, Statement) and held.scope is Scope.PROJECT
        return self.names[-1] if for_project else self.names[0]


def durable(pins: Pins) -> tuple[PinnedItem, ...]:
    """What has to outlive the window by way of the journal."""
    return tuple(held for held in pins.held if held.source.producer is not Producer.FILE)


def stated(pins: Pins) -> tuple[PinnedItem, ...]:
    """What may be staged as soon as it is held. A plan waits for its flush: the next one would have read the same."""
    return tuple(held for held in durable(pins) if isinstance(held, Statement))


class Writeback:
    """Writes what one session holds to the journal of a store, and reads it back. Raises StoreError."""

    def __init__(self, store: Store, scopes: Scopes) -> None:
        self._store, self._scopes = store, scopes
        self._opened: Journal | None = None

    def read(self) -> Pins:
        """Returns what this session, or another of its project, held when it wrote last, the project's first.

        What a process staged before it was killed is committed first.
        """
        flush(self._journal, Boundary.SHUTDOWN)
        scopes = reversed(self._scopes.names)
        return pins_in(self._journal.record(scope, key) for scope in scopes for key in _KEYS)

    def stage(self, pins: Pins, *, now: float = 0.0) -> None:
        """Stages statements that no record has yet, so that a kill cannot take them; plans come with the next flush."""
        self._stage(stated(pins), now)

    def write(self, pins: Pins, boundary: Boundary, *, now: float = 0.0) -> Flushed:
        """Commits what is held, and whatever else is pending, before context is destroyed."""
        if self._opened is None and not durable(pins):
            return Flushed(boundary)
        self._stage(durable(pins), now)
        return flush(self._journal, boundary)

    def close(self) -> None:
        if self._opened is not None:
            self._opened.close()
        self._opened = None

    @property
    def _journal(self) -> Journal:
        if self._opened is None:
            self._opened = self._store.open_journal(self._scopes.rules, self._scopes.session)
        return self._opened

    def _stage(self, pins: Iterable[PinnedItem], now: float) -> None:
        for held in pins:
            page, scope = held.page, self._scopes.of(held)
            record = self._journal.record(scope, entry_of(held, scope).key)
            if held in pins_in([record]).held:
                continue
            version = record.version if record else 0
            self._store.pages.put(page.content, history=self._scopes.session, now=now, kind=page.kind, name=page.name)
            # A version once rejected, or overtaken, is staged anew under the version that is there now.
            self._journal.stage(entry_of(held, scope, read_version=version), token=f"{page.id} {version}", now=now)
