"""The store in SQLite files: the pages with their notes and outbox, the search index and the journal beside them."""

import os
from functools import cached_property

from pagefold.adapters.sqlite.journal import SqliteJournal, beside
from pagefold.adapters.sqlite.outbox import SqliteOutbox
from pagefold.adapters.sqlite.pages import SqlitePages
from pagefold.adapters.sqlite.search import SqliteSearch
from pagefold.pages.journal import Rules
from pagefold.pages.store import NotesAsPages


class SqliteNotes(NotesAsPages):
    """Notes as pages, so that notes of earlier versions are read."""

    def __init__(self, pages: SqlitePages) -> None:
        super().__init__(pages)
        self._put_first = pages.put_first

    def put_if_absent(self, name: str, content: bytes, *, now: float = 0.0) -> bytes:
        return self._put_first(content, history=name, now=now)


class SqliteStore:
    """The store at `path`. Search index and outbox are opened when they are first used."""

    def __init__(self, path: str | os.PathLike[str], *, sender: str = "") -> None:
        self.sender = sender
        self.pages = SqlitePages(path, sender=sender)
        self.notes = SqliteNotes(self.pages)
        self.where = str(self.pages.path)

    @cached_property
    def outbox(self) -> SqliteOutbox:
        return SqliteOutbox(self.pages.path, self.sender)

    @cached_property
    def search_index(self) -> SqliteSearch:
        return SqliteSearch(self.pages)

    def open_journal(self, rules: Rules, owner: str = "") -> SqliteJournal:
        return SqliteJournal(beside(self.pages.path), rules, self.pages, owner=owner)

    def close(self) -> None:
        for part in (self.__dict__.get("search_index"), self.__dict__.get("outbox"), self.pages):
            if part is not None:
                part.close()
