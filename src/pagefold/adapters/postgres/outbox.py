"""The outbox in the database of the pages: notes of what is to be sent to the history sink, and of what was sent.

A note is written by the statement of the put, so a kill forgets nothing. Instances never wait for each other: what
another one is just marking as sent is passed over.
"""

from collections.abc import Sequence
from copy import copy

from pagefold.adapters.columns import kind_of, read_back, spelled
from pagefold.adapters.postgres.scope import ScopeClause
from pagefold.adapters.postgres.server import Server
from pagefold.pages.manifest import ManifestEntry
from pagefold.pages.page import PageId, id_range
from pagefold.pages.scope import StoreScope
from pagefold.pages.store import UnsentPage

_ADOPT = """
    UPDATE awaiting SET owner = %(owner)s WHERE place IN (
        SELECT place FROM awaiting WHERE owner != %(owner)s ORDER BY place FOR UPDATE SKIP LOCKED) RETURNING 1
"""
_BATCH = """
    SELECT principal, project, history, page, kind, name, bytes, first_put, place
    FROM awaiting JOIN listings USING (place) JOIN pages ON pages.id = listings.page
        JOIN scopes ON number = listings.scope
    WHERE owner = %s ORDER BY tries, place LIMIT %s FOR UPDATE OF awaiting SKIP LOCKED
"""
_WAITING = """
    SELECT count(*), coalesce(sum(bytes), 0)::bigint
    FROM awaiting JOIN listings USING (place) JOIN pages ON pages.id = listings.page
"""
# By what they name and not by their places: a page may have been collected meanwhile, and put again.
_SENT = """
    WITH batch AS (SELECT number AS scope, history, page
        FROM unnest(%s::bytea[], %s::text[], %s::bytea[], %s::bytea[]) AS sent (history, page, principal, project)
        JOIN scopes USING (principal, project)
    ), done AS (DELETE FROM awaiting WHERE place IN (
        SELECT place FROM listings JOIN batch USING (scope, history, page)))
    INSERT INTO sunk (history, page, scope) SELECT history, page, scope FROM batch ON CONFLICT DO NOTHING RETURNING 1
"""
_TRIED = "UPDATE awaiting SET tries = tries + 1 WHERE place = ANY(%s) RETURNING 1"
_IN_SINK = """
    INSERT INTO sunk (scope, page, history) SELECT %s, page, %s FROM unnest(%s::text[]) AS pages (page)
    ON CONFLICT DO NOTHING RETURNING 1
"""
_FIND = "SELECT DISTINCT page, history FROM sunk WHERE page >= %(first)s AND page < %(end)s AND {scope}"
_ENQUEUE = """
    INSERT INTO awaiting (place, owner) SELECT place, %(owner)s FROM listings
    WHERE {scope} AND history = %(history)s AND history != '' AND NOT EXISTS (SELECT 1 FROM sunk
        WHERE sunk.scope = listings.scope AND sunk.page = listings.page AND sunk.history = listings.history)
    ON CONFLICT DO NOTHING RETURNING 1
"""


class PostgresOutbox:
    def __init__(self, server: Server, sender: str, scope: StoreScope) -> None:
        self._server, self._sender, self.clause = server, sender, ScopeClause(scope)
        self.store_id: str = server.ask("SELECT identity FROM facts")[0][0]

    def scoped(self, scope: StoreScope) -> "PostgresOutbox":
        outbox = copy(self)
        outbox.clause = ScopeClause(scope)
        return outbox

    def adopt(self) -> int:
        return len(self._server.ask(_ADOPT, {"owner": self._sender}))

    def enqueue(self, session: str) -> int:
        values = {**self.clause.values, "owner": self._sender, "history": spelled(session)}
        return len(self._server.ask(_ENQUEUE.format(scope=self.clause.text), values))

    def next_batch(self, pages: int, length: int) -> Sequence[UnsentPage]:
        batch: list[UnsentPage] = []
        for principal, project, history, page, kind, name, size, first_put, place in self._server.ask(
            _BATCH, (self._sender, pages)
        ):
            length -= size
            if batch and length < 0:
                break
            entry = ManifestEntry(PageId(page), kind_of(kind), read_back(name), size, first_put, place)
            batch.append(UnsentPage(read_back(history), entry, StoreScope(read_back(principal), read_back(project))))
        return batch

    def mark_sent(self, batch: Sequence[UnsentPage]) -> None:
        histories = [spelled(unsent.session) for unsent in batch]
        pages = [unsent.entry.page for unsent in batch]
        principals = [spelled(unsent.scope.principal) for unsent in batch]
        projects = [spelled(unsent.scope.written) for unsent in batch]
        self._server.ask(_SENT, (histories, pages, principals, projects))

    def mark_tried(self, batch: Sequence[UnsentPage]) -> None:
        self._server.ask(_TRIED, ([unsent.entry.place for unsent in batch],))

    def note_in_sink(self, session: str, pages: Sequence[PageId]) -> None:
        self._server.ask(_IN_SINK, (self.clause.number(self._server), spelled(session), list(pages)))

    def find_sent(self, handle: str) -> Sequence[tuple[PageId, str]]:
        span = id_range(handle)
        if span is None:
            return []
        values = {**self.clause.values, "first": span[0], "end": span[1]}
        rows = self._server.ask(_FIND.format(scope=self.clause.text), values)
        return [(PageId(page), read_back(history)) for page, history in rows]

    def backlog(self) -> tuple[int, int]:
        pages, length = self._server.ask(_WAITING)[0]
        return pages, length
