"""Write-back: what is held goes through the journal before context is destroyed, and whoever goes on reads it there.

What holds for one session is written to a scope of its own, what holds for the project to the project's, where there is
one. Statements are appended, a plan replaces the version that was read. What a record says already is not written
again, so a flush of what was flushed before changes nothing. What a file says is not written at all: the file outlives
the window by itself, and what was taken out of it must not come back. The page that an entry came from is in the store
before the entry is staged.
"""

from collections.abc import Iterable
from dataclasses import dataclass

from pagefold.pages.faults import Boundary
from pagefold.pages.journal import SCHEMAS, Flushed, Journal, Rules, flush
from pagefold.pages.pins import Pins, entry_of, pins_in
from pagefold.pages.producers import Held, Producer, Scope, Statement
from pagefold.pages.store import PageStore

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

    def of(self, held: Held) -> str:
        for_project = isinstance(held, Statement) and held.scope is Scope.PROJECT
        return self.names[-1] if for_project else self.names[0]


def durable(pins: Pins) -> tuple[Held, ...]:
    """What has to outlive the window by way of the journal."""
    return tuple(held for held in pins.held if held.source.producer is not Producer.FILE)


def read_back(journal: Journal, scopes: Scopes) -> Pins:
    """What the journal holds for this session, the project's first. Raises StoreError."""
    return pins_in(journal.record(scope, key) for scope in reversed(scopes.names) for key in _KEYS)


def stage(journal: Journal, store: PageStore, scopes: Scopes, held: Iterable[Held], *, now: float = 0.0) -> None:
    """Note down what is held and no record says yet. Raises StoreError."""
    for one in held:
        page, scope = one.page, scopes.of(one)
        record = journal.record(scope, entry_of(one, scope).key)
        if one in pins_in([record]).held:
            continue
        version = record.version if record else 0
        store.put(page.content, history=scopes.session, now=now, kind=page.kind, name=page.name)
        # A version once rejected, or overtaken, is staged anew under the version that is there now.
        journal.stage(entry_of(one, scope, read=version), token=f"{page.id} {version}", now=now)


def stated(pins: Pins) -> tuple[Held, ...]:
    """What may be staged as soon as it is held. A plan waits for its flush: the next one would have read the same."""
    return tuple(held for held in durable(pins) if isinstance(held, Statement))


def write_back(
    journal: Journal, store: PageStore, scopes: Scopes, pins: Pins, boundary: Boundary, *, now: float = 0.0
) -> Flushed:
    """Commit what is held, and whatever else is pending. Raises StoreError."""
    stage(journal, store, scopes, durable(pins), now=now)
    return flush(journal, boundary)
