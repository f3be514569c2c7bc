"""Checks a store in Postgres: every content against its id, the journal, and that rows name what is there.

Reads everything and changes nothing, while others read and write. The files of the server are its own affair
(`pg_amcheck`, data checksums).
"""

from collections.abc import Iterator, Sequence

from pagefold import zstd
from pagefold.adapters.columns import read_back
from pagefold.adapters.postgres.server import Server
from pagefold.adapters.postgres.store import PostgresStore
from pagefold.adapters.sqlite.packing import Packing
from pagefold.adapters.sqlite.verifying import Damage, Verified
from pagefold.errors import StoreError
from pagefold.pages.journal import Rules
from pagefold.pages.page import PageId
from pagefold.pages.scope import StoreScope

_AT_ONCE = 200
_PAGES = """
    SELECT id, bytes, stored_bytes, stored, ARRAY(SELECT key FROM bodies WHERE page = id ORDER BY key) FROM pages
"""
# What the foreign keys of the tables keep from happening, and what they do not know.
_LOOSE = {
    "a listing of a page that is not there": "SELECT page FROM listings WHERE page NOT IN (SELECT id FROM pages)",
    "a form of a page that is not there": "SELECT page FROM shown WHERE page NOT IN (SELECT id FROM pages)",
    "a redaction of a page that is not there": "SELECT page FROM redacted WHERE page NOT IN (SELECT id FROM pages)",
    "a listing of no scope": "SELECT page FROM listings WHERE scope NOT IN (SELECT number FROM scopes)",
    "a note to send what is not listed": "SELECT place FROM awaiting WHERE place NOT IN (SELECT place FROM listings)",
}


class _Check:
    def __init__(self, store: PostgresStore) -> None:
        self._store, self._server, self._packing = store, store.server, Packing()
        self.pages = self.bytes = self.lines = 0

    def run(self) -> Iterator[str]:
        yield from self._contents(self._server)
        for what, query in _LOOSE.items():
            for (name,) in self._server.ask(query):
                yield f"{what}: {name}"
        for (principal,) in self._server.ask("SELECT DISTINCT principal FROM journal_lines"):
            yield from self._journal(read_back(principal))

    def _contents(self, server: Server) -> Iterator[str]:
        with server.transaction() as db, db.cursor("verified") as rows:
            rows.itersize = _AT_ONCE
            for page, length, stored_length, stored, keys in rows.execute(_PAGES):
                self.pages += 1
                if keys and not stored:
                    yield from self._bodies(page, length, keys)
                    continue
                try:
                    content = self._packing.unpacked(page, length, stored)
                except zstd.ZstdError:
                    content = None
                if content is None:
                    yield f"page {page}: its content is not what was put there"
                    continue
                self.bytes += len(content)
                if len(stored) != stored_length:
                    yield f"page {page}: it says that {stored_length} bytes are stored, and {len(stored)} are"

    def _bodies(self, page: PageId, length: int, keys: Sequence[str]) -> Iterator[str]:
        """Every object of a page is read."""
        for key in keys:
            try:
                self._store.pages.content(page, length, b"", key)
            except StoreError as error:
                yield f"page {page}: its object {key} is not there, or not what was put there ({error.kind})"
        self.bytes += length

    def _journal(self, principal: str) -> Iterator[str]:
        """Every line is read, and every record is put together from its lines."""
        journal = self._store.scoped(StoreScope(principal)).open_journal(Rules({}, frozenset()))
        try:
            lines = journal.lines()
        except StoreError as error:
            yield str(error)
            return
        self.lines += len(lines)
        for scope, key in dict.fromkeys((line.entry.scope, line.entry.key) for line in lines):
            try:
                journal.record(scope, key)
            except StoreError as error:
                yield str(error)


def verify(store: PostgresStore) -> Verified:
    check = _Check(store)
    damages = tuple(Damage(store.where, what) for what in check.run())
    return Verified(check.pages, check.bytes, check.lines, damages)
