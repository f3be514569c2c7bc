"""The store in a Postgres database."""

import threading
from collections.abc import Sequence
from copy import copy

from pagefold.adapters.postgres.bodies import Bodies, LargeBodies
from pagefold.adapters.postgres.forgetting import PostgresForgetting
from pagefold.adapters.postgres.journal import PostgresJournal
from pagefold.adapters.postgres.outbox import PostgresOutbox
from pagefold.adapters.postgres.pages import PostgresPages
from pagefold.adapters.postgres.schema import migrate
from pagefold.adapters.postgres.search import PostgresSearch
from pagefold.adapters.postgres.server import Server, read_url
from pagefold.errors import StoreError
from pagefold.pages.forgetting import Choice, Forgotten
from pagefold.pages.journal import Rules
from pagefold.pages.page import PageId
from pagefold.pages.redaction import Redactor
from pagefold.pages.scope import THIS_USER, StoreScope
from pagefold.pages.store import NewNote

_CHECK = "UPDATE facts SET checked = checked + 1 RETURNING 1"


class PostgresNotes:
    """Notes as pages. One with a secret in it is not stored: it lives as long as the process."""

    def __init__(self, pages: PostgresPages) -> None:
        self._pages, self._unstored = pages, pages.unstored

    def newest(self, name: str) -> bytes | None:
        return self._unstored[name] if name in self._unstored else self._pages.newest(name)

    def put(self, name: str, content: bytes, *, now: float = 0.0, history: str = "") -> None:
        if self._pages.has_secret(content):
            self._unstored[name] = content
        else:
            self._pages.put(content, history=name, now=now, name=history)

    def put_all(self, notes: Sequence[NewNote], *, now: float = 0.0) -> None:
        for note in notes:
            self.put(note.name, note.content, now=now, history=note.history)

    def put_if_absent(self, name: str, content: bytes, *, now: float = 0.0, history: str = "") -> bytes:
        if name in self._unstored or self._pages.has_secret(content):
            return self._unstored.setdefault(name, content)
        return self._pages.put_first(content, history=name, now=now, name=history)

    def put_if_possible(self, name: str, content: bytes, *, now: float = 0.0, history: str = "") -> None:
        if not self._pages.has_secret(content):
            self._pages.put_alone(content, history=name, now=now, name=history)


class PostgresStore:
    """The store at a `url`, whose tables are made where there are none; `remembered` as in `postgres.server`. Raises
    StoreError and ConfigError."""

    def __init__(
        self,
        url: str,
        *,
        sender: str = "",
        scope: StoreScope = THIS_USER,
        redactor: Redactor | None = None,
        large: LargeBodies | None = None,
        remembered: bool = False,
    ) -> None:
        self.sender, self.server = sender, Server(url, remembered=remembered)
        self.where = self.server.where
        self._shared = _Shared()
        try:
            migrate(self.server)
            self.bodies = Bodies(self.server, large) if large else None
            self.show(PostgresPages(self.server, scope, sender=sender, redactor=redactor, bodies=self.bodies))
            self.server.has_lost = self.pages.last_put.is_missing
            self.check()
        except BaseException:
            self.server.close()
            raise

    def scoped(self, scope: StoreScope) -> "PostgresStore":
        view = copy(self)
        view.show(self.pages.scoped(scope))
        return view

    @property
    def outbox(self) -> PostgresOutbox:
        with self._shared.lock:
            if self._shared.outbox is None:
                self._shared.outbox = PostgresOutbox(self.server, self.sender, self.scope)
            return self._shared.outbox.scoped(self.scope)

    @property
    def search_index(self) -> PostgresSearch:
        return PostgresSearch(self.pages)

    def open_journal(self, rules: Rules, owner: str = "", *, closes_store: bool = False) -> PostgresJournal:
        own, principal = self.pages.scoped(self.scope.own), self.scope.principal
        closed = self.close if closes_store else None
        return PostgresJournal(self.server, rules, own, owner=owner, principal=principal, closed=closed)

    def to_forget(self, choice: Choice) -> Forgotten:
        return PostgresForgetting(self.pages).plan(choice)

    def forget(self, choice: Choice) -> Forgotten:
        return PostgresForgetting(self.pages).carry_out(choice)

    def is_current(self) -> bool:
        """Whether the server still has what was put last, as every new connection finds out before it is used: not
        where another one took over that lacks it, or an older copy was started. What is older is there if it is."""
        return not self.server.lost

    def check(self) -> None:
        """Raises StoreError where a put would fail."""
        if not self.server.ask(_CHECK):
            raise StoreError(f"the store {self.where} was emptied", kind="gone")

    def wait_at_most(self, seconds: float) -> None:
        self.server.wait_at_most(seconds)
        if self.bodies is not None:
            self.bodies.hurry()

    def let_go(self) -> None:
        """Nothing is left behind by a server that was lost; what it still has can be read."""
        self.server.use_lost()

    def unreadable(self, pages: Sequence[PageId]) -> Sequence[PageId]:
        return self.pages.unreadable(pages)

    def mend_page(self, page: PageId, content: bytes) -> None:
        self.pages.mend_page(page, content)

    def close(self) -> None:
        self.server.close()

    def show(self, pages: PostgresPages) -> None:
        """Sets the scope to that of these pages."""
        self.pages, self.scope = pages, pages.scope
        self.notes = PostgresNotes(pages.scoped(pages.scope.notes))


def without_password(url: str) -> str:
    """An address as people may see it. Raises ConfigError."""
    return read_url(url)[1]


class _Shared:
    """What the views of one store on its scopes share."""

    def __init__(self) -> None:
        self.outbox: PostgresOutbox | None = None
        self.lock = threading.Lock()
