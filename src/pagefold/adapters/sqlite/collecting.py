"""Removes pages that nobody needs any more, and shrinks the file; each step as much as it is told to.

What is to go is planned on a snapshot, which locks nobody out; each page is looked at again when it is removed. A page
is as old as the last put of it, or as the last turn of a history that lists or holds it, whichever is later; a note as
the history it belongs to.
"""

from bisect import bisect_left
from collections.abc import Sequence
from itertools import accumulate
from typing import NamedTuple

from pagefold.adapters.columns import spelled
from pagefold.adapters.sqlite.database import Connection, transaction
from pagefold.pages.scope import NOTES

_INCREMENTAL = 2

_PLANNED = """
    SELECT pages.id, pages.key, pages.bytes, max(last_put, coalesce(used.last, last_put)) AS seen
    FROM pages LEFT JOIN (SELECT page, max(last) AS last FROM (
        SELECT page, last FROM listings JOIN turns USING (scope, history)
        UNION ALL SELECT page, last FROM holds JOIN turns USING (scope, history)
        UNION ALL SELECT page, last FROM listings JOIN scopes AS noted ON noted.number = listings.scope
            JOIN scopes AS own ON own.principal = noted.principal
            JOIN turns ON turns.scope = own.number AND turns.history = listings.name
            WHERE noted.project = :notes AND listings.name != x''
    ) GROUP BY page) AS used ON used.page = pages.id
    WHERE NOT EXISTS (SELECT 1 FROM holds WHERE holds.page = pages.id AND NOT EXISTS (
        SELECT 1 FROM turns WHERE turns.scope = holds.scope AND turns.history = holds.history))
    ORDER BY seen, pages.id
"""
# Unless it was put, or a history that has it went on, since that was planned.
_STAYING = """
    DELETE FROM temp.doomed WHERE NOT EXISTS (SELECT 1 FROM pages WHERE id = doomed.page AND last_put <= seen)
    OR EXISTS (SELECT 1 FROM listings JOIN turns USING (scope, history) WHERE page = doomed.page AND last > seen)
    OR EXISTS (SELECT 1 FROM holds LEFT JOIN turns USING (scope, history)
        WHERE page = doomed.page AND coalesce(last > seen, 1))
"""
_DOOMED = "CREATE TEMP TABLE IF NOT EXISTS doomed (page TEXT PRIMARY KEY, key INTEGER, bytes INTEGER, seen REAL)"
_AWAITING = """
    DELETE FROM awaiting WHERE place IN (SELECT place FROM listings WHERE page IN (SELECT page FROM temp.doomed))
"""
_NAMES = (
    "DELETE FROM pages WHERE id IN (SELECT page FROM temp.doomed)",
    "DELETE FROM contents WHERE key IN (SELECT key FROM temp.doomed)",
    "DELETE FROM listings WHERE page IN (SELECT page FROM temp.doomed)",
    "DELETE FROM shown WHERE page IN (SELECT page FROM temp.doomed)",
    "DELETE FROM redacted WHERE page IN (SELECT page FROM temp.doomed)",
    "UPDATE facts SET collections = collections + 1",
)
_OLDER = """
    SELECT place, page FROM listings WHERE scope = ? AND history = ? ORDER BY place DESC LIMIT -1 OFFSET ?
"""
_UNUSED = """
    SELECT id, key, bytes, 0 FROM pages WHERE id = :page AND NOT EXISTS (SELECT 1 FROM listings WHERE page = :page)
    AND NOT EXISTS (SELECT 1 FROM holds WHERE page = :page)
"""
_END = "DELETE FROM turns WHERE scope = ? AND history = ? AND last < ?"
_LET_GO = """
    DELETE FROM holds WHERE scope = ? AND history = ? AND NOT EXISTS (SELECT 1 FROM turns
        WHERE turns.scope = ? AND turns.history = ?)
"""


class Doomed(NamedTuple):
    """A page that is to go, and when it was last of use."""

    page: str
    key: int
    bytes: int
    seen: float


class Removed(NamedTuple):
    pages: int
    bytes: int
    unsent: int


def plan(db: Connection, before: float | None, max_bytes: int | None, leased: float | None) -> list[Doomed]:
    """The pages last of use before a time, and the oldest others that do not fit; of these none since `leased`."""
    if before is None and max_bytes is None:
        return []
    total = db.execute("SELECT coalesce(sum(bytes), 0) FROM pages").fetchone()[0]
    doomed: list[Doomed] = []
    for row in db.execute(_PLANNED, {"notes": spelled(NOTES)}):
        candidate = Doomed(*row)
        too_large = max_bytes is not None and total > max_bytes and (leased is None or candidate.seen < leased)
        if not too_large and (before is None or candidate.seen >= before):
            break
        total -= candidate.bytes
        doomed.append(candidate)
    return _in_order_of_removal(doomed, total)


def _in_order_of_removal(doomed: Sequence[Doomed], kept_bytes: int) -> list[Doomed]:
    """By keys, but last those that stand first in the file, as many as there is room wanted for what is kept.

    A file that shrinks moves what stands at its end to free places at its beginning. It looks for both among what was
    freed last, so that with any other order it reads the list of all free places for every one that it moves."""
    order = sorted(doomed, key=lambda page: page.key)
    first = bisect_left(list(accumulate(page.bytes for page in order)), kept_bytes)
    return order[first:] + order[:first]


def remove(db: Connection, batch: Sequence[Doomed]) -> Removed:
    """Removes pages with all that names them, in one transaction: a few statements however many pages it is, since a
    busy process may wait between any two of them, and others for the lock."""
    doom(db, batch)
    with transaction(db):
        db.execute(_STAYING)
        return remove_doomed(db)


def doom(db: Connection, batch: Sequence[Doomed]) -> None:
    """Notes for this connection alone what `remove_doomed` is to remove."""
    db.execute(_DOOMED)
    db.execute("DELETE FROM temp.doomed")
    db.executemany("INSERT INTO temp.doomed VALUES (?, ?, ?, ?)", batch)


def remove_doomed(db: Connection) -> Removed:
    """Removes what was doomed, within a transaction of the caller's."""
    pages, length = db.execute("SELECT count(*), coalesce(sum(bytes), 0) FROM temp.doomed").fetchone()
    unsent = db.execute(_AWAITING).rowcount
    for removal in _NAMES:
        db.execute(removal)
    return Removed(pages, length, unsent)


def trim(db: Connection, scope: int, history: bytes, count: int) -> None:
    """Removes all but the newest pages of a history, where there are twice as many, unless others have them."""
    older = db.execute(_OLDER, (scope, history, count)).fetchall()
    if len(older) < count:
        return
    with transaction(db):
        db.executemany("DELETE FROM awaiting WHERE place = ?", [(place,) for place, _ in older])
        db.executemany("DELETE FROM listings WHERE place = ?", [(place,) for place, _ in older])
        left = (db.execute(_UNUSED, {"page": page}).fetchone() for _, page in older)
        doom(db, [Doomed(*row) for row in left if row])
        remove_doomed(db)


def end_leases(db: Connection, before: float, most: int) -> bool:
    """Lets go of what histories held whose last turn was before a time, so many of them; False once none is left."""
    ended = db.execute("SELECT scope, history FROM turns WHERE last < ? LIMIT ?", (before, most)).fetchall()
    if not ended:
        return False
    with transaction(db):
        # Of one that went on since then, the turn stays, and so does what it holds.
        db.executemany(_END, [(*one, before) for one in ended])
        db.executemany(_LET_GO, [one * 2 for one in ended])
    return True


def can_shrink(db: Connection) -> bool:
    """Whether the file can give room back in steps: not where an earlier version made it."""
    return bool(db.execute("PRAGMA auto_vacuum").fetchone()[0] == _INCREMENTAL)


def overwrite_removed(db: Connection, *, wholly: bool) -> None:
    """Whether all that is removed from now on is overwritten, or only what is left of it in pages of the file that stay
    in use. Overwriting what the file gives back afterwards would write as much as is removed, twice."""
    db.execute(f"PRAGMA secure_delete = {'ON' if wholly else 'FAST'}").fetchall()


def shrink(db: Connection, most: int) -> bool:
    """Gives the room of so many removed file pages back to the disk; False once there is none."""
    before = db.execute("PRAGMA freelist_count").fetchone()[0]
    if not before or not can_shrink(db):
        return False
    db.executescript(f"PRAGMA incremental_vacuum({most})")
    return bool(db.execute("PRAGMA freelist_count").fetchone()[0] < before)
