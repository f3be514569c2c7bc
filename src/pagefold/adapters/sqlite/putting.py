"""The statements by which a content is kept and a page listed under a history; within a transaction of the caller's."""

from typing import NamedTuple

from pagefold.adapters.columns import spelled
from pagefold.adapters.sqlite.database import Connection
from pagefold.adapters.sqlite.packing import Packing
from pagefold.pages.kinds import PageKind
from pagefold.pages.page import PageId, id_of
from pagefold.pages.redaction import Redactor, redacted_page

_LIST = "INSERT OR IGNORE INTO listings (scope, history, page, kind, name, first_put) VALUES (?, ?, ?, ?, ?, ?)"
_AWAIT = """
    INSERT OR IGNORE INTO awaiting (place, owner) SELECT place, ? FROM listings AS listing
    WHERE scope = ? AND history = ? AND page = ? AND NOT EXISTS (SELECT 1 FROM sunk
        WHERE sunk.scope = listing.scope AND sunk.page = listing.page AND sunk.history = listing.history)
"""


_REDACTED = "INSERT OR REPLACE INTO redacted (original, page, kinds) VALUES (?, ?, ?)"


class NewPage(NamedTuple):
    """A page to be put: the id of what came, and what is stored of it under which id. `kinds` are those of the secrets
    that were taken out, `stored` is how the content stands in its column, if that is known."""

    original: PageId
    page: PageId
    content: bytes
    kind: str
    name: str
    kinds: tuple[str, ...] = ()
    stored: bytes | None = None


def new_page(redactor: Redactor | None, content: bytes, kind: PageKind | None, name: str) -> NewPage:
    """A page as it is to be stored: without its secrets."""
    kept, name = redacted_page(redactor, content, name)
    return NewPage(id_of(content), id_of(kept.content), kept.content, kind or "", name, kept.kinds)


class Listing(NamedTuple):
    """A page under a history, with what it is called there."""

    history: str
    page: PageId
    kind: str
    name: str


def keep(db: Connection, packing: Packing, page: PageId, content: bytes, stored: bytes | None, now: float) -> None:
    """Keeps a content; `stored` is how it stands in its column, if that is known. One that is there was put now."""
    refreshed = db.execute("UPDATE pages SET last_put = max(last_put, ?) WHERE id = ?", (now, page))
    if not refreshed.rowcount:
        stored = packing.packed(content) if stored is None else stored
        key = db.execute("INSERT INTO contents (stored) VALUES (?)", (stored,)).lastrowid
        row = (page, key, len(content), len(stored), now)
        db.execute("INSERT INTO pages (id, key, bytes, stored_bytes, last_put) VALUES (?, ?, ?, ?, ?)", row)


def enlist(db: Connection, sender: str, scope: int, listing: Listing, now: float) -> None:
    """Lists a page in the scope of this number; for the `sender` it is noted to be sent, if there is one."""
    column = spelled(listing.history)
    db.execute(_LIST, (scope, column, listing.page, listing.kind, spelled(listing.name), now))
    if sender and listing.history:
        db.execute(_AWAIT, (sender, scope, column, listing.page))


def put(db: Connection, packing: Packing, sender: str, scope: int, new: NewPage, history: str, now: float) -> None:
    """Keeps a page and lists it under a history."""
    keep(db, packing, new.page, new.content, new.stored, now)
    enlist(db, sender, scope, Listing(history, new.page, new.kind, new.name), now)
    if new.kinds:
        db.execute(_REDACTED, (new.original, new.page, ",".join(new.kinds)))


def put_again(db: Connection, page: PageId, content: bytes, stored: bytes) -> None:
    """Puts the content of a damaged page in place of what is there."""
    db.execute("DELETE FROM contents WHERE key = (SELECT key FROM pages WHERE id = ?)", (page,))
    key = db.execute("INSERT INTO contents (stored) VALUES (?)", (stored,)).lastrowid
    row = (key, len(content), len(stored), page)
    db.execute("UPDATE pages SET key = ?, bytes = ?, stored_bytes = ? WHERE id = ?", row)
