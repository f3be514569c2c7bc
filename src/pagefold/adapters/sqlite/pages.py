"""Pages in one SQLite file that many processes and threads share.

Promises: a page that `put` acknowledged is whole after any kill (a power failure may take the last few, never the
file); a held page is never collected, whoever collects; a content that does not match its id is never handed out.
Refuses a file that is damaged, another program's or a newer pagefold's, with a StoreError that names the file and what
to do. A collection takes many short transactions, between which others write, and then the file shrinks.

A content is stored once, and a listing says for whom: in which scope, under which history ("" is none). A page is there
for a scope that lists it.

With a `sender`, a put under a history notes in the same transaction that the page is to be sent to the history sink;
`adapters.sqlite.outbox` reads those notes. An object stays in the process that made it: SQLite does not survive a fork.
"""

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from copy import copy
from itertools import islice
from pathlib import Path

from pagefold import zstd
from pagefold.adapters.columns import kind_of, read_back, spelled
from pagefold.adapters.sqlite import collecting
from pagefold.adapters.sqlite.collecting import Doomed, Removed
from pagefold.adapters.sqlite.database import (
    DAMAGED_PAGE,
    Connection,
    Cursor,
    Guard,
    connect_to,
    open_database,
    refusal,
    transaction,
)
from pagefold.adapters.sqlite.file_identity import FileIdentity
from pagefold.adapters.sqlite.packing import Packing
from pagefold.adapters.sqlite.putting import Listing, NewPage, enlist, keep, new_page, put, put_again
from pagefold.adapters.sqlite.rewriting import checkpoint, empty_log, rewrite
from pagefold.adapters.sqlite.schema import APPLICATION_ID, MIGRATIONS
from pagefold.adapters.sqlite.scope import ScopeClause
from pagefold.adapters.sqlite.short_steps import in_short_steps
from pagefold.errors import StoreError
from pagefold.pages.kinds import PageKind
from pagefold.pages.page import Page, PageId, id_of, id_range
from pagefold.pages.redaction import Redactor
from pagefold.pages.scope import NOTES, THIS_USER, StoreScope
from pagefold.pages.store import Collected, ListedPage, NewNote, StoreStats

_STORED = "SELECT bytes, stored FROM pages LEFT JOIN contents USING (key) WHERE id = ?"
# {scope} stands for the condition on the scope of a row. A page is there for a scope that lists it.
_CONTENT = """
    SELECT bytes, stored FROM pages LEFT JOIN contents USING (key)
    WHERE id = :page AND EXISTS (SELECT 1 FROM listings WHERE page = :page AND {scope})
"""
_EXISTS = "SELECT 1 FROM pages WHERE id = :page AND EXISTS (SELECT 1 FROM listings WHERE page = :page AND {scope})"
_ORIGINAL = """
    SELECT id, bytes, stored FROM shown JOIN pages ON id = page LEFT JOIN contents USING (key)
    WHERE principal = :principal AND text = :text
"""
_BETWEEN = """
    SELECT id FROM pages WHERE id >= :first AND id < :end
    AND EXISTS (SELECT 1 FROM listings WHERE page = pages.id AND {scope}) ORDER BY id
"""
_NEWEST = """
    SELECT id, bytes, stored FROM listings JOIN pages ON id = page LEFT JOIN contents USING (key)
    WHERE {scope} AND history = :history ORDER BY place DESC LIMIT 1
"""
# Two projects may list one page under one history: then the first listing counts.
_LISTINGS = """
    SELECT page, kind, name, first_put, min(place) AS place FROM listings
    WHERE {scope} AND history = :history AND history != x'' GROUP BY page ORDER BY place
"""
_REDACTED_BETWEEN = """
    SELECT DISTINCT page FROM redacted WHERE original >= :first AND original < :end
    AND EXISTS (SELECT 1 FROM listings WHERE listings.page = redacted.page AND {scope}) ORDER BY page
"""
_RENEW = """
    INSERT INTO turns (scope, history, last) VALUES (?, ?, ?)
    ON CONFLICT DO UPDATE SET last = max(last, excluded.last)
"""
_HOLD = "INSERT OR IGNORE INTO holds (scope, history, page) VALUES (?, ?, ?)"
_HELD = "SELECT count(*) FROM pages WHERE id IN (SELECT page FROM holds)"
_STATS = """
    SELECT count(*), coalesce(sum(bytes), 0), coalesce(sum(stored_bytes), 0), count(*) FILTER (
        WHERE id IN (SELECT page FROM holds WHERE {scope})),
        (SELECT count(DISTINCT history) FROM listings WHERE {scope} AND history != x'')
    FROM pages WHERE id IN (SELECT page FROM listings WHERE {scope})
"""


class SqlitePages:
    """The pages in the SQLite file at `path`, which is made, with its directory, where there is none.

    `sender` names who sends to the history sink what is put here, if anybody does. With a `key` the file is encrypted.
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
        self.redactor = redactor
        self.unstored: dict[str, bytes] = {}
        self.path = Path(path).absolute()
        self._sender = sender
        self.key = key
        self._guard = Guard(self.path, "page store")
        self._packing = Packing()
        with self._guard:
            self._db = connect(self.path, key)
            self._identity = FileIdentity(self.path)
        self.clause = ScopeClause(scope)

    @property
    def scope(self) -> StoreScope:
        return self.clause.scope

    @property
    def _sending(self) -> str:
        """Who sends what is put in this scope; notes are sent by nobody."""
        return "" if self.scope.project == NOTES else self._sender

    def scoped(self, scope: StoreScope) -> "SqlitePages":
        """The pages of another scope over the same connection, which is closed once."""
        pages = copy(self)
        pages.clause = ScopeClause(scope)
        return pages

    def is_current(self) -> bool:
        """Whether the path still names the file that is open here: not after it was deleted or replaced."""
        return self._identity.is_current()

    def let_go(self) -> None:
        """Takes away what is left at the path of a file that is no longer there."""
        self._identity.let_go()

    def check(self) -> None:
        """Writes, without changing anything: raises StoreError where a put would fail."""
        with self._guard, transaction(self._db) as db:
            db.execute("UPDATE facts SET collections = collections")

    def wait_at_most(self, seconds: float) -> None:
        """How long a call waits for another process that has the file locked."""
        with self._guard:
            self._db.execute(f"PRAGMA busy_timeout = {int(seconds * 1000)}")

    def put(
        self,
        content: bytes,
        *,
        history: str = "",
        now: float = 0.0,
        kind: PageKind | None = None,
        name: str = "",
        shown_form: PageId | None = None,
    ) -> PageId:
        new = self._new(content, kind, name)
        with self._guard:
            new = self._packed(new)
            scope = self.clause.number(self._db)
            with transaction(self._db) as db:
                put(db, self._packing, self._sending, scope, new, history, now)
                if shown_form and not new.kinds:
                    row = (spelled(self.scope.principal), shown_form, new.page)
                    db.execute("INSERT OR IGNORE INTO shown (principal, text, page) VALUES (?, ?, ?)", row)
        return new.page

    def put_held(self, pages: Sequence[Page], *, history: str, now: float = 0.0) -> None:
        made = [self._new(page.content, page.kind, page.name) for page in pages]
        with self._guard:
            made = [self._packed(new) for new in made]
            scope = self.clause.number(self._db)
            with transaction(self._db) as db:
                for new in made:
                    put(db, self._packing, self._sending, scope, new, history, now)
                    db.execute(_HOLD, (scope, spelled(history), new.page))

    def _new(self, content: bytes, kind: PageKind | None, name: str) -> NewPage:
        return new_page(None if self.scope.project == NOTES else self.redactor, content, kind, name)

    def _packed(self, new: NewPage) -> NewPage:
        """With its content compressed, if that is not stored yet: before the write lock, for which others wait."""
        return new if self._is_stored(new.page) else new._replace(stored=self._packing.packed(new.content))

    def has_secret(self, content: bytes) -> bool:
        return self.redactor is not None and self.redactor.finds(content)

    def put_first(self, content: bytes, *, history: str, now: float = 0.0, name: str = "") -> bytes:
        """Puts a content under a history that lists nothing yet; returns what the history listed last, or lists now."""
        with self._guard:
            scope = self.clause.number(self._db)
            with transaction(self._db) as db:
                newest = self._ask(_NEWEST, history=spelled(history)).fetchone()
                if newest is not None:
                    return self._content(*newest)
                page = id_of(content)
                keep(db, self._packing, page, content, None, now)
                enlist(db, self._sending, scope, Listing(history, page, "", name), now)
        return content

    def put_notes(self, notes: Sequence[NewNote], kept: int, now: float) -> None:
        """Puts notes in one transaction. Where a name has twice as many as are `kept`, its older ones are removed."""
        with self._guard:
            packed = [self._packing.packed(note.content) for note in notes]
            scope = self.clause.number(self._db)
            with transaction(self._db) as db:
                for note, stored in zip(notes, packed, strict=True):
                    page = id_of(note.content)
                    keep(db, self._packing, page, note.content, stored, now)
                    enlist(db, self._sending, scope, Listing(note.name, page, "", note.history), now)
            for note in notes:
                collecting.trim(self._db, scope, spelled(note.name), kept)

    def get(self, page: PageId) -> bytes | None:
        with self._guard:
            page = self._kept_as(page)
            row = self._ask(_CONTENT, page=page).fetchone()
            return None if row is None else self._content(page, *row)

    def original_of(self, text: PageId) -> bytes | None:
        with self._guard:
            row = self._ask(_ORIGINAL, text=text).fetchone()
            return None if row is None else self._content(*row)

    def exists(self, page: PageId) -> bool:
        with self._guard:
            return self._exists(self._kept_as(page))

    def redactions(self, page: PageId) -> Sequence[str]:
        with self._guard:
            row = self._db.execute("SELECT kinds FROM redacted WHERE page = ?", (self._kept_as(page),)).fetchone()
        return row[0].split(",") if row else ()

    def find(self, handle: str) -> Sequence[PageId]:
        span = id_range(handle)
        if span is None:
            return []
        with self._guard:
            rows = self._ask(_BETWEEN, first=span[0], end=span[1]).fetchall()
            rows += self._ask(_REDACTED_BETWEEN, first=span[0], end=span[1]).fetchall()
            return [PageId(row[0]) for row in rows]

    def listed(self, history: str) -> Sequence[PageId]:
        with self._guard:
            return [PageId(row[0]) for row in self._ask(_LISTINGS, history=spelled(history))]

    def listings(self, history: str) -> Sequence[ListedPage]:
        with self._guard:
            rows = self._ask(_LISTINGS, history=spelled(history)).fetchall()
        return [ListedPage(PageId(page), kind_of(kind), read_back(name), put) for page, kind, name, put, _ in rows]

    def hold(self, page: PageId, history: str) -> bool:
        with self._guard:
            page = self._kept_as(page)  # held first, asked second: a page that is there then cannot be collected
            self._db.execute(_HOLD, (self.clause.number(self._db), spelled(history), page))
            return self._exists(page)

    def release(self, history: str) -> None:
        with self._guard:
            self._ask("DELETE FROM holds WHERE {scope} AND history = :history", history=spelled(history))

    def renew(self, history: str, now: float) -> None:
        if not history:
            return
        with self._guard:
            scope = self.clause.number(self._db)
            self._db.execute(_RENEW, (scope, spelled(history), now))

    def collect(
        self,
        *,
        before: float | None = None,
        max_bytes: int | None = None,
        leased: float | None = None,
        rest: Callable[[], object] = lambda: None,
    ) -> Collected:
        """`rest` is called between the short transactions that this takes. Where the file can, it shrinks."""
        with self._guard:
            doomed = iter(collecting.plan(self._db, before, max_bytes, leased))
            collecting.overwrite_removed(self._db, wholly=not collecting.can_shrink(self._db))
        try:
            gone = self._remove(doomed, rest)
            if before is not None:
                self._in_short_steps(lambda most: collecting.end_leases(self._db, before, most), rest)
            self._in_short_steps(lambda most: collecting.shrink(self._db, most), rest)
        finally:
            with self._guard:
                collecting.overwrite_removed(self._db, wholly=True)
        with self._guard:
            empty_log(self._db)
            held = self._db.execute(_HELD).fetchone()[0]
        return Collected(gone.pages, gone.bytes, held, gone.unsent)

    def _remove(self, doomed: Iterator[Doomed], rest: Callable[[], object]) -> Removed:
        gone = Removed(0, 0, 0)

        def step(most: int) -> bool:
            nonlocal gone
            batch = list(islice(doomed, most))
            if batch:
                gone = Removed(*map(sum, zip(gone, collecting.remove(self._db, batch), strict=True)))
            return bool(batch)

        self._in_short_steps(step, rest)
        return gone

    def _in_short_steps(self, step: Callable[[int], bool], rest: Callable[[], object]) -> None:
        def guarded(most: int) -> bool:
            with self._guard:
                return step(most)

        def moved() -> int:
            with self._guard:
                return checkpoint(self._db).frames

        in_short_steps(guarded, moved, rest)

    def make_shrinkable(self) -> None:
        """Writes a file anew, once, that an earlier version made and that therefore cannot shrink in steps. Others
        wait meanwhile."""
        with self._guard:
            can_shrink = collecting.can_shrink(self._db)
        if not can_shrink:
            self.rewrite()

    def claim_collection(self, now: float, seconds: float) -> bool:
        """Whether this process is to collect now: of all that ask within so many seconds, the first."""
        with self._guard:
            claim = "UPDATE facts SET collect_after = ? WHERE collect_after <= ? OR collect_after > ?"
            return bool(self._db.execute(claim, (now + seconds, now, now + seconds)).rowcount)

    @contextmanager
    def changing(self) -> Iterator[Connection]:
        """One transaction on the file, for those who change more of it than pages."""
        with self._guard, transaction(self._db) as db:
            yield db

    def rewrite(self) -> None:
        """Writes the file anew: nothing is left of what was removed, and from then on it shrinks."""
        with self._guard:
            rewrite(self._db, f"the page store {self.path}")

    def unreadable(self, pages: Sequence[PageId]) -> list[PageId]:
        """Which of these pages are damaged in the file itself. One that is not there was collected or forgotten."""
        found: list[PageId] = []
        with self._guard, closing(connect_to(self.path, self.key, 0.1)) as db:
            for page in pages:
                row = db.execute(_STORED, (page,)).fetchone()
                try:
                    if row is not None:
                        self._content(page, *row)
                except (StoreError, zstd.ZstdError):
                    found.append(page)
        return found

    def mend_page(self, page: PageId, content: bytes) -> None:
        """Stores the content of a damaged page once more."""
        content = self.redactor.redact(content).content if self.redactor is not None else content
        stored = self._packing.packed(content)
        with self._guard, transaction(self._db) as db:
            put_again(db, page, content, stored)

    def stats(self) -> StoreStats:
        with self._guard:
            return StoreStats(*self._ask(_STATS).fetchone())

    def close(self) -> None:
        with self._guard:
            self._db.close()

    def _ask(self, statement: str, **values: object) -> Cursor:
        """Executes a statement within the scope."""
        return self._db.execute(statement.format(scope=self.clause.text), {**self.clause.values, **values})

    def _kept_as(self, page: PageId) -> PageId:
        """The page that a content was stored as: another where secrets were taken out of it."""
        row = self._db.execute("SELECT page FROM redacted WHERE original = ?", (page,)).fetchone()
        return page if row is None else PageId(row[0])

    def _exists(self, page: PageId) -> bool:
        return self._ask(_EXISTS, page=page).fetchone() is not None

    def _is_stored(self, page: PageId) -> bool:
        """Whether the content is there, for whomever."""
        return self._db.execute("SELECT 1 FROM pages WHERE id = ?", (page,)).fetchone() is not None

    def _content(self, page: PageId, length: object, stored: object) -> bytes:
        content = self._packing.unpacked(page, length, stored)
        if content is None:
            raise refusal("page store", self.path, DAMAGED_PAGE, f"page {page} is not what was put there")
        return content


def connect(path: Path, key: str = "") -> Connection:
    """Opens the file of a store. Raises what sqlite3 raises."""
    return open_database(path, "page store", APPLICATION_ID, MIGRATIONS, synchronous="NORMAL", key=key)
