"""What a session holds, in the journal beside its store. It is opened when there is something to read or write.

Without a file there is none beside it: then what is held lives as long as the process. Raises StoreError.
"""

from pagefold.adapters.sqlite.journal import SqliteJournal, beside
from pagefold.adapters.sqlite.pages import SqlitePages
from pagefold.pages.faults import Boundary
from pagefold.pages.journal import Flushed, Journal, MemoryJournal, flush
from pagefold.pages.pins import NONE, Pins
from pagefold.pages.store import PageStore
from pagefold.pages.writeback import Scopes, durable, read_back, stage, stated, write_back


class Writeback:
    def __init__(self, store: PageStore, scopes: Scopes) -> None:
        self._store, self._scopes = store, scopes
        self._journal: Journal | None = None

    def read(self) -> Pins:
        """What was held when this session, or another of its project, wrote last. What a process noted down and was
        killed before it could commit is committed first."""
        if self._journal is None and isinstance(self._store, SqlitePages) and not beside(self._store.path).exists():
            return NONE
        flush(self._opened(), Boundary.SHUTDOWN)
        return read_back(self._opened(), self._scopes)

    def stage(self, pins: Pins, *, now: float = 0.0) -> None:
        """Notes down what is held, so that a kill cannot take it; plans come with the next flush."""
        if held := stated(pins):
            stage(self._opened(), self._store, self._scopes, held, now=now)

    def write(self, pins: Pins, boundary: Boundary, *, now: float = 0.0) -> Flushed:
        """Before context is destroyed: commits what is held."""
        if self._journal is None and not durable(pins):
            return Flushed(boundary)
        return write_back(self._opened(), self._store, self._scopes, pins, boundary, now=now)

    def close(self) -> None:
        if isinstance(self._journal, SqliteJournal):
            self._journal.close()
        self._journal = None

    def _opened(self) -> Journal:
        if self._journal is None:
            rules, owner = self._scopes.rules, self._scopes.session
            if isinstance(self._store, SqlitePages):
                self._journal = SqliteJournal(beside(self._store.path), rules, self._store, owner=owner)
            else:
                self._journal = MemoryJournal(rules, self._store.exists, owner)
        return self._journal
