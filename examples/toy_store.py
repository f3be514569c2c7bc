"""A store in one append-only file of changes, which are replayed into memory when it is opened.

It shows all that a store of one's own needs: five parts, of which pages and outbox note each change before they make
it, notes are pages, search reads the pages, and the journal adds only how its lines are kept. A toy: it serves one
process at a time, and never makes its file smaller. `tests/examples/test_toy_store.py` runs the conformance suite.
"""

import pickle
from collections.abc import Callable
from copy import copy
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple, cast

from pagefold.pages.journal import JournalEntry, JournalLine, Rules
from pagefold.pages.memory_store import MemoryJournal, MemoryLines, MemoryStore
from pagefold.pages.scope import THIS_USER, StoreScope
from pagefold.pages.store import NotesAsPages, Outbox, PageStore

_CHANGES = {
    "pages": ("put", "put_held", "hold", "release", "collect"),
    "outbox": ("adopt", "enqueue", "mark_sent", "mark_tried", "note_in_sink"),
}


class ToyStore:
    def __init__(self, path: Path, *, sender: str = "", scope: StoreScope = THIS_USER) -> None:
        self.where, self.sender = str(path), sender
        self._memory = MemoryStore()
        self._file = path.open("a+b")
        self._replay()
        self.show(scope)

    def scoped(self, scope: StoreScope) -> "ToyStore":
        view = copy(self)
        view.show(scope)
        return view

    def open_journal(self, rules: Rules, owner: str = "") -> "ToyJournal":
        pages, principal = self._part("pages", self.scope.own), self.scope.principal
        return ToyJournal(
            rules, cast(PageStore, pages), owner, self._memory.journals[principal], principal, self._write
        )

    def close(self) -> None:
        self._file.close()

    def show(self, scope: StoreScope) -> None:
        self.scope = scope
        self.pages = cast(PageStore, self._part("pages", scope))
        self.outbox = cast(Outbox, self._part("outbox", scope))
        self.notes = NotesAsPages(cast(PageStore, self._part("pages", scope.notes)))
        self.search_index = self._memory.scoped(scope).search_index

    def _part(self, name: str, scope: StoreScope) -> "_Part":
        memory = self._memory.scoped(scope)
        memory.outbox.store_id = self.where
        return _Part(name, getattr(memory, name), partial(self._change, scope, name))

    def _change(self, scope: StoreScope, part: str, method: str, *arguments: Any, **options: Any) -> Any:
        self._write((scope, part, method, self.sender, arguments, options))
        return self._apply(scope, part, method, self.sender, arguments, options)

    def _apply(self, scope: StoreScope, part: str, method: str, sender: str, arguments: Any, options: Any) -> Any:
        self._memory.pages.shared.sender = sender
        return getattr(getattr(self._memory.scoped(scope), part), method)(*arguments, **options)

    def _write(self, change: Any) -> None:
        pickle.dump(change, self._file)
        self._file.flush()

    def _replay(self) -> None:
        self._file.seek(0)
        while self._file.peek(1):
            change = pickle.load(self._file)
            if isinstance(change, JournalChange):
                change.apply(self._memory.journals[change.principal])
            else:
                self._apply(*change)
        self._memory.pages.shared.sender = self.sender


class JournalChange(NamedTuple):
    """A line of a principal's journal as it is now, and the token it was staged under, if it was staged now."""

    principal: str
    line: JournalLine
    token: str = ""

    def apply(self, journal: MemoryLines) -> None:
        journal.lines[self.line.number - 1 : self.line.number] = [self.line]
        if self.token:
            journal.tokens[self.line.owner, self.token] = self.line.number


class _Part:
    """A part of the store in memory whose changes are written to the file first."""

    def __init__(self, name: str, part: object, change: Callable[..., Any]) -> None:
        self._name, self._part, self._change = name, part, change

    def __getattr__(self, method: str) -> Any:
        if method in _CHANGES[self._name]:
            return partial(self._change, method)
        return getattr(self._part, method)


class ToyJournal(MemoryJournal):
    def __init__(
        self,
        rules: Rules,
        pages: PageStore,
        owner: str,
        lines: MemoryLines,
        principal: str,
        write: Callable[[Any], None],
    ) -> None:
        super().__init__(rules, pages, owner, lines)
        self._principal, self._write = principal, write

    def stage(self, entry: JournalEntry, *, token: str = "", now: float = 0.0) -> JournalLine:
        line = super().stage(entry, token=token, now=now)
        self._write(JournalChange(self._principal, line, token))
        return line

    def _replace(self, line: JournalLine) -> None:
        self._write(JournalChange(self._principal, line))
        super()._replace(line)
