"""Removes pages that nobody needs any more, in transactions so short that no put waits long.

What is to go is planned on a snapshot; each page is locked and looked at again before it is removed, so that one that
was put, held or listed by a live history since then stays. How old a page is, is as in `adapters.sqlite.collecting`.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from pagefold.adapters.columns import spelled
from pagefold.adapters.postgres.server import Connection, Server
from pagefold.pages.scope import NOTES
from pagefold.pages.store import Collected

_AT_ONCE = 50

_PLANNED = """
    SELECT pages.id, pages.bytes, greatest(last_put, used.last) AS seen
    FROM pages LEFT JOIN (SELECT page, max(last) AS last FROM (
        SELECT page, last FROM listings JOIN turns USING (scope, history)
        UNION ALL SELECT page, last FROM holds JOIN turns USING (scope, history)
        UNION ALL SELECT page, last FROM listings JOIN scopes AS noted ON noted.number = listings.scope
            JOIN scopes AS own ON own.principal = noted.principal
            JOIN turns ON turns.scope = own.number AND turns.history = listings.name
            WHERE noted.project = %(notes)s AND listings.name != ''
    ) AS uses GROUP BY page) AS used ON used.page = pages.id
    WHERE NOT EXISTS (SELECT 1 FROM holds WHERE holds.page = pages.id AND NOT EXISTS (
        SELECT 1 FROM turns WHERE turns.scope = holds.scope AND turns.history = holds.history))
    ORDER BY seen, pages.id
"""
_LOCK = "SELECT 1 FROM pages WHERE id = ANY(%(pages)s) ORDER BY id FOR UPDATE"
_UNSENT = "SELECT count(*) FROM awaiting JOIN listings USING (place) WHERE page = ANY(%(pages)s)"
# Unless it was put, or a history that has it went on, since that was planned.
_REMOVE = """
    DELETE FROM pages USING unnest(%(pages)s::text[], %(seen)s::float8[]) AS doomed (page, seen)
    WHERE id = doomed.page AND last_put <= doomed.seen
    AND NOT EXISTS (SELECT 1 FROM listings JOIN turns USING (scope, history)
        WHERE listings.page = id AND last > doomed.seen)
    AND NOT EXISTS (SELECT 1 FROM holds LEFT JOIN turns USING (scope, history)
        WHERE holds.page = id AND coalesce(last > doomed.seen, true))
    RETURNING bytes
"""
_ENDED = """
    WITH over AS (DELETE FROM turns WHERE last < %s RETURNING scope, history)
    DELETE FROM holds USING over WHERE over.scope = holds.scope AND over.history = holds.history
"""
_HELD = "SELECT count(*) FROM pages WHERE id IN (SELECT page FROM holds)"


class Doomed(NamedTuple):
    """A page that is to go, and when it was last of use."""

    page: str
    bytes: int
    seen: float


def collect(
    server: Server, before: float | None, max_bytes: int | None, leased: float | None, rest: Callable[[], object]
) -> Collected:
    doomed = _plan(server, before, max_bytes, leased)
    pages = length = unsent = 0
    for start in range(0, len(doomed), _AT_ONCE):
        removed, waiting = _remove(server, doomed[start : start + _AT_ONCE])
        pages, length, unsent = pages + len(removed), length + sum(removed), unsent + waiting
        rest()
    if before is not None:
        server.run(lambda db: db.execute(_ENDED, (before,)))
    return Collected(pages, length, server.ask(_HELD)[0][0], unsent)


def _plan(server: Server, before: float | None, max_bytes: int | None, leased: float | None) -> list[Doomed]:
    """The pages last of use before a time, and the oldest others that do not fit; of these none since `leased`."""
    if before is None and max_bytes is None:
        return []
    doomed: list[Doomed] = []
    with server.transaction() as db:
        total = _number(db, "SELECT coalesce(sum(bytes), 0)::bigint FROM pages")
        with db.cursor("planned") as rows:
            for row in rows.execute(_PLANNED, {"notes": spelled(NOTES)}):
                candidate = Doomed(*row)
                too_large = max_bytes is not None and total > max_bytes and (leased is None or candidate.seen < leased)
                if not too_large and (before is None or candidate.seen >= before):
                    break
                total -= candidate.bytes
                doomed.append(candidate)
    return doomed


def _remove(server: Server, batch: Sequence[Doomed]) -> tuple[list[int], int]:
    """The lengths of what was removed, and how often something of it still was to be sent."""
    values = {"pages": [row.page for row in batch], "seen": [row.seen for row in batch]}
    with server.transaction() as db:
        db.execute(_LOCK, values)  # whoever holds or puts one of them is waited for, and seen by what follows
        before = _number(db, _UNSENT, values)
        removed = [row[0] for row in db.execute(_REMOVE, values)]
        return removed, before - _number(db, _UNSENT, values)


def _number(db: Connection, statement: str, values: Mapping[str, Any] | None = None) -> int:
    row = db.execute(statement.encode(), values).fetchone()
    assert row is not None
    return int(row[0])
