"""Removes pages that nobody needs any more, in transactions so short that no put waits long, and shrinks the file.

What is to go is planned on a snapshot, which locks nobody out; each page is looked at again when it is removed. A page
is as old as the last put of it, or as the last turn of a history that lists or holds it, whichever is later; a note as
the history it belongs to.
"""

import time
from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from typing import NamedTuple

from pagefold.adapters.columns import spelled
from pagefold.adapters.sqlite.database import Connection, transaction
from pagefold.adapters.sqlite.rewriting import checkpoint
from pagefold.pages.scope import NOTES

_SHORT_SECONDS = 0.004  # what one transaction may take
_FEWEST, _MOST = 16, 2000
_CHECKPOINT_EVERY = 8  # transactions, so that no put finds the log so long that it has to be emptied first
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
_ENDED = """
    DELETE FROM holds WHERE EXISTS (SELECT 1 FROM turns
        WHERE turns.scope = holds.scope AND turns.history = holds.history AND last < ?)
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
    return doomed


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


def end_leases(db: Connection, before: float) -> None:
    """Lets go of what histories held whose last turn was before a time."""
    with transaction(db):
        db.execute(_ENDED, (before,))
        db.execute("DELETE FROM turns WHERE last < ?", (before,))


def in_short_steps(
    doomed: Sequence[Doomed],
    step: Callable[[Sequence[Doomed]], Removed],
    empty_log: Callable[[], object],
    rest: Callable[[], object],
) -> Removed:
    """Removes by batches that take as long as they may, and rests after each. Every few, `empty_log` moves the log
    into the file, which keeps nobody waiting; else a put would find it so long that it has to."""
    left: Iterator[Doomed] = iter(doomed)
    size, steps, done = _FEWEST, 0, Removed(0, 0, 0)
    while batch := list(islice(left, size)):
        began = time.perf_counter()
        removed = step(batch)
        size = _adapted(size, time.perf_counter() - began)
        done, steps = Removed(*map(sum, zip(done, removed, strict=True))), steps + 1
        if steps % _CHECKPOINT_EVERY == 0:
            empty_log()
        rest()
    return done


def can_shrink(db: Connection) -> bool:
    """Whether the file can give room back in steps: not where an earlier version made it."""
    return bool(db.execute("PRAGMA auto_vacuum").fetchone()[0] == _INCREMENTAL)


def shrink(db: Connection, run: Callable[[Callable[[], bool]], bool], rest: Callable[[], object]) -> None:
    """Gives the room of removed pages back to the disk, in short steps. `run` runs one, and returns what it returns.

    A file that cannot keeps its size and uses the room again.
    """
    size, steps = 64, 0

    def step() -> bool:
        before = db.execute("PRAGMA freelist_count").fetchone()[0]
        if not before or not can_shrink(db):
            return False
        db.execute(f"PRAGMA incremental_vacuum({size})").fetchall()
        return bool(db.execute("PRAGMA freelist_count").fetchone()[0] < before)

    while True:
        began = time.perf_counter()
        if not run(step):
            break
        size, steps = _adapted(size, time.perf_counter() - began), steps + 1
        if steps % _CHECKPOINT_EVERY == 0:
            run(lambda: checkpoint(db, "PASSIVE"))
        rest()
    run(lambda: checkpoint(db, "PASSIVE"))
    run(lambda: checkpoint(db, "TRUNCATE"))


def _adapted(size: int, seconds: float) -> int:
    if seconds > _SHORT_SECONDS:
        return max(_FEWEST, size // 2)
    return min(_MOST, size + max(1, size // 4)) if seconds < _SHORT_SECONDS / 2 else size
