"""Pages in a Postgres database that many instances share.

Promises: a page that `put` acknowledged survives any kill of this process, and of the server as `postgres.server` says;
a held page is never collected, whoever collects; a content that does not match its id is never handed out. A
put is one statement, so nothing of it is ever half there.

A content is stored once, and a listing says for whom, as in `adapters.sqlite`.
"""

import threading
from collections.abc import Callable, Sequence
from copy import copy
from typing import Any

from pagefold import zstd
from pagefold.adapters.columns import kind_of, read_back, spelled
from pagefold.adapters.postgres import bodies, collecting
from pagefold.adapters.postgres.bodies import KEY_OF, Bodies
from pagefold.adapters.postgres.scope import ScopeClause
from pagefold.adapters.postgres.server import Connection, Server
from pagefold.adapters.sqlite.packing import Packing
from pagefold.errors import StoreError
from pagefold.pages.kinds import PageKind
from pagefold.pages.page import Page, PageId, id_of, id_range
from pagefold.pages.redaction import Redactor, redacted_page
from pagefold.pages.scope import NOTES, StoreScope
from pagefold.pages.store import Collected, ListedPage, StoreStats

_SENT_AT_ONCE = 16_384  # bytes of a content that go along before it is known whether the server has it
_LONGEST_NAME = 2_000  # bytes of the name of a history, which stands in an index
_SAMPLE = 20

# {scope} stands for the condition on the scope of a row. A page is there for a scope that lists it.
_REACHED = "EXISTS (SELECT 1 FROM listings WHERE listings.page = pages.id AND {scope})"
_KEPT_AS = "coalesce((SELECT page FROM redacted WHERE original = %(page)s), %(page)s)"
_CONTENT = f"SELECT id, bytes, stored, {KEY_OF} FROM pages WHERE id = {_KEPT_AS} AND {_REACHED}"
_EXISTS = f"SELECT 1 FROM pages WHERE id = {_KEPT_AS} AND {_REACHED}"
_ORIGINAL = f"""
    SELECT id, bytes, stored, {KEY_OF} FROM shown JOIN pages ON id = page
    WHERE principal = %(principal)s AND text = %(text)s
"""
_BETWEEN = f"""
    SELECT id FROM pages WHERE id >= %(first)s AND id < %(end)s AND {_REACHED}
    UNION SELECT id FROM redacted JOIN pages ON id = page
    WHERE original >= %(first)s AND original < %(end)s AND {_REACHED} ORDER BY id
"""
_NEWEST = f"""
    SELECT id, bytes, stored, {KEY_OF} FROM listings JOIN pages ON id = page
    WHERE {{scope}} AND history = %(history)s ORDER BY place DESC LIMIT 1
"""
# Two projects may list one page under one history: then the first listing counts.
_LISTINGS = """
    SELECT page, kind, name, first_put FROM (SELECT DISTINCT ON (page) * FROM listings
        WHERE {scope} AND history = %(history)s AND history != '' ORDER BY page, place) AS first ORDER BY place
"""
# A put, in parts. The row of the page is locked by it, so that no collection takes it away meanwhile.
_TOUCH = "UPDATE pages SET last_put = greatest(last_put, %(now)s) WHERE id = %(page)s RETURNING id"
_STORE = """
    INSERT INTO pages (id, bytes, stored_bytes, last_put, stored)
    SELECT %(page)s, %(bytes)s, octet_length(%(stored)s::bytea), %(now)s, %(stored)s {unless}
    ON CONFLICT (id) DO UPDATE SET last_put = greatest(pages.last_put, excluded.last_put) RETURNING id
"""
_PUT = """
    WITH kept AS ({kept}), listed AS (
        INSERT INTO listings (scope, history, page, kind, name, first_put, decided)
        SELECT %(scope)s, %(history)s, id, %(kind)s, %(name)s, %(now)s, {decided} FROM kept
        ON CONFLICT DO NOTHING RETURNING place
    ){more} SELECT {answer}
"""
_INDEX = ", queued AS (INSERT INTO unindexed SELECT place FROM listed)"
_FORM = """, form AS (INSERT INTO shown (principal, text, page) SELECT %(principal)s, %(form)s, id FROM kept
    ON CONFLICT DO NOTHING)"""
_REDACTED = """, marked AS (INSERT INTO redacted (original, page, kinds) SELECT %(original)s, id, %(kinds)s FROM kept
    ON CONFLICT (original) DO UPDATE SET page = excluded.page, kinds = excluded.kinds)"""
_AWAIT = """, waiting AS (INSERT INTO awaiting (place, owner) SELECT place, %(sender)s FROM (
        SELECT place FROM listed UNION SELECT place FROM listings
        WHERE scope = %(scope)s AND history = %(history)s AND page = %(page)s) AS places
    WHERE NOT EXISTS (SELECT 1 FROM sunk
        WHERE sunk.scope = %(scope)s AND sunk.page = %(page)s AND sunk.history = %(history)s)
    ON CONFLICT DO NOTHING)"""
_UNLESS_NOTED = "WHERE NOT EXISTS (SELECT 1 FROM listings WHERE scope = %(scope)s AND history = %(history)s)"
# What a history listed before; locked, so that whoever puts or holds one of them is waited for.
_BEFORE = "SELECT page FROM listings WHERE scope = %(scope)s AND history = %(history)s AND page != %(page)s"
_LOCK_BEFORE = "SELECT 1 FROM pages WHERE id = ANY(%(before)s) ORDER BY id FOR UPDATE"
_UNLIST = "DELETE FROM listings WHERE scope = %(scope)s AND history = %(history)s AND page = ANY(%(before)s)"
_UNUSED = """
    DELETE FROM pages WHERE id = ANY(%(before)s)
    AND NOT EXISTS (SELECT 1 FROM listings WHERE page = id) AND NOT EXISTS (SELECT 1 FROM holds WHERE page = id)
"""
_RENEW = """
    INSERT INTO turns (scope, history, last) VALUES (%s, %s, %s)
    ON CONFLICT (scope, history) DO UPDATE SET last = greatest(turns.last, excluded.last) RETURNING 1
"""
# Held first, looked for second: the lock has a collection wait, which then sees the hold.
_HOLD = f"""
    INSERT INTO holds (scope, history, page) SELECT %(scope)s, %(history)s, {_KEPT_AS}
    ON CONFLICT DO NOTHING RETURNING 1
"""
_LOCKED = f"SELECT 1 FROM pages WHERE id = {_KEPT_AS} AND {_REACHED} FOR KEY SHARE OF pages"
_RELEASE = "DELETE FROM holds WHERE {scope} AND history = %(history)s RETURNING 1"
_STATS = """
    SELECT count(*), coalesce(sum(bytes), 0)::bigint, coalesce(sum(stored_bytes), 0)::bigint + coalesce(
        (SELECT sum(stored_bytes) FROM bodies WHERE {scope}), 0)::bigint, count(*) FILTER (
        WHERE id IN (SELECT page FROM holds WHERE {scope})),
        (SELECT count(DISTINCT history) FROM listings WHERE {scope} AND history != '')
    FROM pages WHERE id IN (SELECT page FROM listings WHERE {scope})
"""
_SAMPLED = "SELECT id, bytes, stored FROM pages WHERE id = ANY(%s) AND (stored != '' OR bytes = 0)"
_LISTED = "SELECT 1 FROM listings WHERE scope = %(scope)s AND history = %(history)s AND page = %(page)s"
_MEND = "UPDATE pages SET bytes = %s, stored_bytes = %s, stored = %s WHERE id = %s RETURNING 1"
_CLAIM = """
    UPDATE facts SET collect_after = %(until)s WHERE collect_after <= %(now)s OR collect_after > %(until)s RETURNING 1
"""


class LastPut:
    """The newest listing that this process has made, by which it is known whether a server has lost something. One that
    stood there before and was put again says nothing of what was put before it."""

    def __init__(self) -> None:
        self._row: dict[str, Any] = {}

    def note(self, row: dict[str, Any], *, is_new: bool) -> None:
        if is_new:
            self._row = {name: row[name] for name in ("scope", "history", "page")}

    def is_missing(self, db: Connection) -> bool:
        return bool(self._row) and db.execute(_LISTED, self._row).fetchone() is None


class PostgresPages:
    """The pages in a database. `sender` and `redactor` as in `adapters.sqlite`; `unstored` are the notes that have a
    secret in them, which only this process knows; `bodies` are where large contents are kept, if anywhere."""

    def __init__(
        self,
        server: Server,
        scope: StoreScope,
        *,
        sender: str = "",
        redactor: Redactor | None = None,
        bodies: Bodies | None = None,
    ) -> None:
        self.server, self.clause = server, ScopeClause(scope)
        self._sender, self._redactor, self.bodies = sender, redactor, bodies
        self._packing, self._packs = Packing(), threading.Lock()
        self.unstored: dict[str, bytes] = {}
        self.last_put = LastPut()

    @property
    def scope(self) -> StoreScope:
        return self.clause.scope

    def scoped(self, scope: StoreScope) -> "PostgresPages":
        pages = copy(self)
        pages.clause = ScopeClause(scope)
        return pages

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
        original = id_of(content)
        kept, name = redacted_page(None if self.scope.project == NOTES else self._redactor, content, name)
        content, kinds = kept.content, kept.kinds
        page = id_of(content) if kinds else original
        more = "" if self.scope.project == NOTES else _INDEX
        more += _REDACTED if kinds else _FORM if shown_form else ""
        more += _AWAIT if self._sender and history and self.scope.project != NOTES else ""
        values = self._row(page, content, history, now, kind or "", name)
        values |= {"original": original, "kinds": ",".join(kinds), "form": shown_form, "sender": self._sender}
        put = {"decided": "NULL::boolean", "more": more, "answer": "EXISTS (SELECT 1 FROM listed) FROM kept"}
        is_large = self.bodies is not None and self.scope.project != NOTES and len(content) > self.bodies.over
        touch = bodies.TOUCH if is_large else _TOUCH
        if is_large or len(content) > _SENT_AT_ONCE:
            touched = self.server.ask(_PUT.format(kept=touch, **put), values)
            if touched:
                self.last_put.note(values, is_new=touched[0][0])
                return page
        if self.bodies is not None and is_large:
            values |= {"stored": b"", "key": self.bodies.put(self.scope, page, content)}
            put["more"] += bodies.NAME
        else:
            values["stored"] = self._packed(content)
        [[is_new]] = self.server.ask(_PUT.format(kept=_STORE.format(unless=""), **put), values)
        self.last_put.note(values, is_new=is_new)
        return page

    def put_held(self, pages: Sequence[Page], *, history: str, now: float = 0.0) -> None:
        for page in pages:
            self.hold(self.put(page.content, history=history, now=now, kind=page.kind, name=page.name), history)

    def put_first(self, content: bytes, *, history: str, now: float = 0.0, name: str = "") -> bytes:
        """Puts a content under a history that lists nothing yet; returns what the history listed last, or lists now."""
        values = self._row(id_of(content), content, history, now, "", name) | {"stored": self._packed(content)}
        kept = _STORE.format(unless=_UNLESS_NOTED)
        statement = _PUT.format(kept=kept, decided="true", more="", answer="1 FROM listed")
        while not self.server.ask(statement, values):
            if (newest := self.newest(history)) is not None:
                return newest
        self.last_put.note(values, is_new=True)
        return content

    def put_alone(self, content: bytes, *, history: str, now: float = 0.0, name: str = "") -> None:
        """Puts a content under a history in place of all that it listed. Not as the `last_put`: another process may
        put one in place of this, and then nothing is lost."""
        values = self._row(id_of(content), content, history, now, "", name) | {"stored": self._packed(content)}
        kept = _STORE.format(unless="")
        statement = _PUT.format(kept=kept, decided="NULL::boolean", more="", answer="1 FROM kept")
        with self.server.transaction() as db:
            db.execute(statement.encode(), values)
            before = [row[0] for row in db.execute(_BEFORE.encode(), values)]
            for removal in (_LOCK_BEFORE, _UNLIST, _UNUSED) if before else ():
                db.execute(removal.encode(), values | {"before": before})

    def newest(self, history: str) -> bytes | None:
        """What a history listed last."""
        return self._read(_NEWEST, history=self._spelled(history))

    def has_secret(self, content: bytes) -> bool:
        return self._redactor is not None and self._redactor.finds(content)

    def get(self, page: PageId) -> bytes | None:
        return self._read(_CONTENT, page=page)

    def original_of(self, text: PageId) -> bytes | None:
        return self._read(_ORIGINAL, text=text)

    def exists(self, page: PageId) -> bool:
        return bool(self.ask(_EXISTS, page=page))

    def redactions(self, page: PageId) -> Sequence[str]:
        rows = self.server.ask(f"SELECT kinds FROM redacted WHERE page = {_KEPT_AS} LIMIT 1", {"page": page})
        return rows[0][0].split(",") if rows else ()

    def find(self, handle: str) -> Sequence[PageId]:
        span = id_range(handle)
        return [] if span is None else [PageId(row[0]) for row in self.ask(_BETWEEN, first=span[0], end=span[1])]

    def listed(self, history: str) -> Sequence[PageId]:
        return [listed.page for listed in self.listings(history)]

    def listings(self, history: str) -> Sequence[ListedPage]:
        rows = self.ask(_LISTINGS, history=self._spelled(history))
        return [ListedPage(PageId(page), kind_of(kind), read_back(name), put) for page, kind, name, put in rows]

    def hold(self, page: PageId, history: str) -> bool:
        values = {"scope": self.clause.number(self.server), "history": self._spelled(history), "page": page}
        self.server.ask(_HOLD, values)
        return bool(self.ask(_LOCKED, page=page))

    def release(self, history: str) -> None:
        self.ask(_RELEASE, history=self._spelled(history))

    def renew(self, history: str, now: float) -> None:
        if history:
            self.server.ask(_RENEW, (self.clause.number(self.server), self._spelled(history), float(now)))

    def collect(
        self,
        *,
        before: float | None = None,
        max_bytes: int | None = None,
        leased: float | None = None,
        rest: Callable[[], object] = lambda: None,
    ) -> Collected:
        """`rest` is called between the short transactions that this takes."""
        collected = collecting.collect(self.server, before, max_bytes, leased, rest)
        if self.bodies is not None:
            self.bodies.delete_removed()
        return collected

    def make_shrinkable(self) -> None:
        """Nothing: Postgres uses the room of removed pages again, by its own autovacuum."""

    def claim_collection(self, now: float, seconds: float) -> bool:
        """Whether this process is to collect now: of all that ask within so many seconds, the first."""
        return bool(self.server.ask(_CLAIM, {"now": now, "until": now + seconds}))

    def unreadable(self, pages: Sequence[PageId]) -> list[PageId]:
        """Which of these pages are damaged, of a small sample: server and object storage look after their own disks."""
        rows = self.server.ask(_SAMPLED, (list(pages[:_SAMPLE]),))
        return [PageId(row[0]) for row in rows if not self._is_whole(*row)]

    def mend_page(self, page: PageId, content: bytes) -> None:
        """Stores the content of a damaged page once more."""
        content = self._redactor.redact(content).content if self._redactor is not None else content
        if id_of(content) == page:
            stored = self._packed(content)
            self.server.ask(_MEND, (len(content), len(stored), stored, page))

    def stats(self) -> StoreStats:
        return StoreStats(*self.ask(_STATS)[0])

    def close(self) -> None:
        self.server.close()

    def read(self, page: PageId, start: int, end: int) -> bytes | None:
        """A part of a page: of one in object storage only that is read, and it cannot be checked against the id."""
        rows = self.ask(_CONTENT, page=page)
        if rows and self.bodies is not None and not rows[0][2] and rows[0][3] is not None:
            return self.bodies.read(rows[0][3], max(0, start), max(0, end))
        return self.content(*rows[0])[max(0, start) : max(0, end)] if rows else None

    def content(self, page: PageId, length: int, stored: bytes, key: str | None = None) -> bytes:
        """The content of a row, or of the object that it names. Raises StoreError where it is damaged."""
        if not stored and length and key is not None:
            stored = self._body(key)
        with self.server.telling(), self._packs:
            content = self._packing.unpacked(page, length, stored)
        if content is None:
            raise StoreError(
                f"the store {self.server.where}: page {page} is not what was put there: restore it from a backup",
                kind="damaged page",
            )
        return content

    def ask(self, statement: str, **values: object) -> list[tuple[Any, ...]]:
        """Executes a statement within the scope."""
        return self.server.ask(statement.format(scope=self.clause.text), {**self.clause.values, **values})

    def _body(self, key: str) -> bytes:
        if self.bodies is None:
            raise StoreError(
                f"the store {self.server.where}: a large page is in object storage: set store.objects_over and sink",
                kind="objects failing",
            )
        return self.bodies.get(key) or b""

    def _read(self, statement: str, **values: object) -> bytes | None:
        rows = self.ask(statement, **values)
        return self.content(*rows[0]) if rows else None

    def _row(self, page: PageId, content: bytes, history: str, now: float, kind: str, name: str) -> dict[str, Any]:
        return {
            "scope": self.clause.number(self.server),
            "principal": spelled(self.scope.principal),
            "history": self._spelled(history),
            "page": page,
            "bytes": len(content),
            "now": float(now),
            "kind": kind,
            "name": spelled(name),
        }

    def _spelled(self, history: str) -> bytes:
        column = spelled(history)
        if len(column) > _LONGEST_NAME:
            raise StoreError(
                f"the store {self.server.where}: a history's name of {len(column):,} bytes is too long: "
                f"use one of at most {_LONGEST_NAME:,}",
                kind="too large",
            )
        return column

    def _packed(self, content: bytes) -> bytes:
        with self._packs:
            return self._packing.packed(content)

    def _is_whole(self, page: PageId, length: int, stored: bytes) -> bool:
        try:
            self.content(page, length, stored)
        except (StoreError, zstd.ZstdError):
            return False
        return True
