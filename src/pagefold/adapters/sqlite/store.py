"""The store in SQLite files: the pages with their notes and outbox, the search index and the journal beside them."""

import os
import threading
import time
from collections.abc import Sequence
from contextlib import suppress
from copy import copy
from dataclasses import dataclass, field
from pathlib import Path

from pagefold.adapters.sqlite.forgetting import Forgetting
from pagefold.adapters.sqlite.journal import SqliteJournal, beside
from pagefold.adapters.sqlite.outbox import SqliteOutbox
from pagefold.adapters.sqlite.pages import SqlitePages
from pagefold.adapters.sqlite.search import SqliteSearch, index_beside
from pagefold.errors import StoreError
from pagefold.pages.forgetting import Choice, Forgotten
from pagefold.pages.journal import Rules
from pagefold.pages.page import PageId
from pagefold.pages.redaction import Redactor
from pagefold.pages.scope import THIS_USER, StoreScope
from pagefold.pages.store import NewNote, NotesAsPages

_DATABASES = frozenset((".sqlite3", ".sqlite", ".db"))
"""What a file that is moved away because it is damaged has to be called: another may be the user's."""


_KEPT = 8
"""How many contents of one note stay: the newest is read, and one that is put again counts at its first time."""


class SqliteNotes(NotesAsPages):
    """Notes as pages, so that notes of earlier versions are read.

    A note must come back byte for byte, so one with a secret in it is not stored: it lives as long as the process.
    """

    def __init__(self, pages: SqlitePages) -> None:
        super().__init__(pages)
        self._put_first, self._has_secret, self._unstored = pages.put_first, pages.has_secret, pages.unstored
        self._put_notes = pages.put_notes

    def newest(self, name: str) -> bytes | None:
        return self._unstored[name] if name in self._unstored else super().newest(name)

    def put(self, name: str, content: bytes, *, now: float = 0.0, history: str = "") -> None:
        self.put_all((NewNote(name, content, history),), now=now)

    def put_all(self, notes: Sequence[NewNote], *, now: float = 0.0) -> None:
        stored: list[NewNote] = []
        for note in notes:
            if self._has_secret(note.content):
                self._unstored[note.name] = note.content
            else:
                stored.append(note)
        self._put_notes(stored, _KEPT, now)

    def put_if_absent(self, name: str, content: bytes, *, now: float = 0.0, history: str = "") -> bytes:
        if name in self._unstored or self._has_secret(content):
            return self._unstored.setdefault(name, content)
        return self._put_first(content, history=name, now=now, name=history)

    def put_if_possible(self, name: str, content: bytes, *, now: float = 0.0, history: str = "") -> None:
        if not self._has_secret(content):
            self._put_notes((NewNote(name, content, history),), 1, now)


class SqliteStore:
    """The store at `path`; with a `key` all its files are encrypted.

    Search index and outbox are opened when they are first used.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        *,
        sender: str = "",
        key: str = "",
        scope: StoreScope = THIS_USER,
        redactor: Redactor | None = None,
    ) -> None:
        self.sender, self._opened = sender, _OpenedParts()
        self.show(SqlitePages(path, sender=sender, key=key, scope=scope, redactor=redactor))
        self.where = str(self.pages.path)

    def scoped(self, scope: StoreScope) -> "SqliteStore":
        view = copy(self)
        view.show(self.pages.scoped(scope))
        return view

    @property
    def outbox(self) -> SqliteOutbox:
        with self._opened.lock:
            if self._opened.outbox is None:
                self._opened.outbox = SqliteOutbox(self.pages.path, self.sender, self.pages.key)
            return self._opened.outbox.scoped(self.scope)

    @property
    def search_index(self) -> SqliteSearch:
        with self._opened.lock:
            if self._opened.search_index is None:
                self._opened.search_index = SqliteSearch(self.pages)
            return self._opened.search_index.scoped(self.pages)

    def open_journal(self, rules: Rules, owner: str = "") -> SqliteJournal:
        own, principal = self.pages.scoped(self.scope.own), self.scope.principal
        return SqliteJournal(
            beside(self.pages.path),
            rules,
            own,
            owner=owner,
            principal=principal,
            key=self.pages.key,
            redactor=self.pages.redactor,
        )

    def to_forget(self, choice: Choice) -> Forgotten:
        return Forgetting(self.pages).plan(choice)

    def forget(self, choice: Choice) -> Forgotten:
        forgotten = Forgetting(self.pages).carry_out(choice)
        if index_beside(self.pages.path).exists():
            self.search_index.forget()
        return forgotten

    def is_current(self) -> bool:
        return self.pages.is_current()

    def check(self) -> None:
        self.pages.check()

    def wait_at_most(self, seconds: float) -> None:
        self.pages.wait_at_most(seconds)

    def let_go(self) -> None:
        self.pages.let_go()

    def unreadable(self, pages: Sequence[PageId]) -> Sequence[PageId]:
        return self.pages.unreadable(pages)

    def mend_page(self, page: PageId, content: bytes) -> None:
        self.pages.mend_page(page, content)

    def close(self) -> None:
        for part in (self._opened.search_index, self._opened.outbox, self.pages):
            if part is not None:
                part.close()

    def show(self, pages: SqlitePages) -> None:
        """Sets the scope to that of these pages."""
        self.pages, self.scope = pages, pages.scope
        self.notes = SqliteNotes(pages.scoped(pages.scope.notes))


@dataclass(slots=True)
class _OpenedParts:
    """What the views of one store on its scopes share."""

    outbox: SqliteOutbox | None = None
    search_index: SqliteSearch | None = None
    lock: threading.Lock = field(default_factory=threading.Lock)


def moved_aside(path: Path) -> str:
    """Renames a database and its side files, so that a new one can be made at the path. Raises StoreError."""
    if path.suffix not in _DATABASES:
        raise StoreError(f"{path} is damaged, or no store at all: name another file", kind="damaged")
    aside = path.with_name(f"{path.name}.damaged-{time.strftime('%Y%m%d-%H%M%S')}")
    try:
        path.rename(aside)
    except FileNotFoundError:
        return ""
    except OSError as error:
        raise StoreError(f"{path} is damaged and cannot be moved away ({error.strerror})", kind="damaged") from error
    for ending in ("-wal", "-shm"):
        with suppress(OSError):
            path.with_name(path.name + ending).rename(aside.with_name(aside.name + ending))
    return str(aside)
