"""A store in one append-only file of changes, which are replayed into memory when it is opened.

It shows all that a store of one's own needs: five parts, of which pages and outbox note each change before they make
it, notes are pages, search reads the pages, and the journal adds only how its lines are kept. A toy: it serves one
process at a time, and never makes its file smaller. `tests/examples/test_toy_store.py` runs the conformance suite.
"""

import pickle
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, cast

from pagefold.pages.journal import JournalEntry, JournalLine, Rules
from pagefold.pages.memory_store import MemoryJournal, MemoryStore
from pagefold.pages.store import NotesAsPages, Outbox, PageStore

_CHANGES = {
    "pages": ("put", "hold", "release", "collect"),
    "outbox": ("adopt", "enqueue", "mark_sent", "mark_tried", "note_in_sink"),
}


class ToyStore:
    def __init__(self, path: Path, *, sender: str = "") -> None:
        self.where, self.sender = str(path), sender
        self._memory = MemoryStore()
        self._memory.outbox.store_id = self.where
        self._file = path.open("a+b")
        self._replay()
        self.pages = cast(PageStore, _Part("pages", self._memory.pages, self._change))
        self.outbox = cast(Outbox, _Part("outbox", self._memory.outbox, self._change))
        self.notes = NotesAsPages(self.pages)
        self.search_index = self._memory.search_index

    def open_journal(self, rules: Rules, owner: str = "") -> "ToyJournal":
        return ToyJournal(rules, self.pages, owner, self._memory, self._write)

    def close(self) -> None:
        self._file.close()

    def _change(self, part: str, method: str, *arguments: Any, **options: Any) -> Any:
        self._write((part, method, self.sender, arguments, options))
        return self._apply(part, method, self.sender, arguments, options)

    def _apply(self, part: str, method: str, sender: str, arguments: Any, options: Any) -> Any:
        self._memory.pages.sender = sender
        return getattr(getattr(self._memory, part), method)(*arguments, **options)

    def _write(self, change: Any) -> None:
        pickle.dump(change, self._file)
        self._file.flush()

    def _replay(self) -> None:
        self._file.seek(0)
        while self._file.peek(1):
            change = pickle.load(self._file)
            if isinstance(change, JournalLine):
                self._memory.lines[change.number - 1 : change.number] = [change]
            elif len(change) == 2:
                self._memory.tokens.update([change])
            else:
                self._apply(*change)
        self._memory.pages.sender = self.sender


class _Part:
    """A part of the store in memory whose changes are written to the file first."""

    def __init__(self, name: str, part: object, change: Callable[..., Any]) -> None:
        self._name, self._part, self._change = name, part, change

    def __getattr__(self, method: str) -> Any:
        if method in _CHANGES[self._name]:
            return partial(self._change, self._name, method)
        return getattr(self._part, method)


class ToyJournal(MemoryJournal):
    def __init__(
        self, rules: Rules, pages: PageStore, owner: str, memory: MemoryStore, write: Callable[[Any], None]
    ) -> None:
        super().__init__(rules, pages, owner, memory.lines, memory.tokens)
        self._write = write

    def stage(self, entry: JournalEntry, *, token: str = "", now: float = 0.0) -> JournalLine:
        line = super().stage(entry, token=token, now=now)
        self._write(line)
        if token:
            self._write(((self.owner, token), line.number))
        return line

    def _replace(self, line: JournalLine) -> None:
        self._write(line)
        super()._replace(line)
