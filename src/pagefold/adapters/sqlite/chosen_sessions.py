"""Chooses sessions in the file of the pages, and removes their listings, holds and notes, and what only they have.

What goes is chosen into tables of this connection alone, so that a plan and the removal cannot differ.
"""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager

from pagefold.adapters.columns import read_back, spelled
from pagefold.adapters.sqlite.collecting import Doomed, doom, remove_doomed
from pagefold.adapters.sqlite.database import Connection
from pagefold.adapters.sqlite.scope import ScopeClause
from pagefold.pages.forgetting import Choice, Forgotten

_TABLES = {
    "going": "(scope INTEGER, history BLOB, PRIMARY KEY (scope, history))",
    "leaving": "(place INTEGER PRIMARY KEY)",
    "touched": "(page TEXT PRIMARY KEY)",
    "lines": "(history BLOB PRIMARY KEY)",
}
_HISTORIES = """
    SELECT scope, history FROM (
        SELECT scope, history, first_put AS at FROM listings UNION ALL SELECT scope, history, last FROM turns
        UNION ALL SELECT scope, history, NULL FROM holds UNION ALL SELECT scope, history, NULL FROM sunk)
    WHERE {scope} AND history != x'' AND (:session IS NULL OR history = :session)
        AND substr(history, 1, 8) != CAST('journal ' AS BLOB)
    GROUP BY scope, history HAVING :before IS NULL OR max(at) < :before
"""
# Pages of no history, and notes that were linked to none, where no session was named. Notes are of the principal: they
# go with their history, or by their own time where all projects are looked at.
_UNNAMED = """
    SELECT place FROM listings WHERE :session IS NULL AND (:before IS NULL OR first_put < :before) AND (
        (history = x'' AND {scope}) OR (:all_projects AND name = x'' AND scope = :notes))
"""
_NOTES = """
    SELECT place FROM listings WHERE scope = :notes AND name IN (SELECT history FROM going)
"""
_TOUCHED = """
    SELECT page FROM listings JOIN leaving USING (place)
    UNION SELECT page FROM holds WHERE (scope, history) IN (SELECT scope, history FROM going)
    UNION SELECT page FROM holds WHERE history IN (SELECT history FROM temp.lines)
"""
_LEFT = """
    EXISTS (SELECT 1 FROM listings WHERE listings.page = touched.page AND place NOT IN (SELECT place FROM leaving))
    OR EXISTS (SELECT 1 FROM holds WHERE holds.page = touched.page AND NOT EXISTS (SELECT 1 FROM going
        WHERE going.scope = holds.scope AND going.history = holds.history)
        AND history NOT IN (SELECT history FROM temp.lines))
"""
_COUNTS = f"""
    SELECT count(*) FILTER (WHERE NOT left_over), coalesce(sum(bytes) FILTER (WHERE NOT left_over), 0),
        count(*) FILTER (WHERE left_over)
    FROM (SELECT bytes, ({_LEFT}) AS left_over FROM touched JOIN pages ON id = touched.page)
"""  # noqa: S608  no text of anybody's
_GONE = f"SELECT id, key, bytes, 0 FROM touched JOIN pages ON id = touched.page WHERE NOT ({_LEFT})"  # noqa: S608
# Who holds a page that only a forgotten session listed has to be able to read it still.
_LISTED_FOR_HOLDERS = """
    INSERT OR IGNORE INTO listings (scope, history, page, first_put)
    SELECT holds.scope, x'', holds.page, last_put FROM holds JOIN touched USING (page) JOIN pages ON id = holds.page
    WHERE NOT EXISTS (SELECT 1 FROM going WHERE going.scope = holds.scope AND going.history = holds.history)
        AND holds.history NOT IN (SELECT history FROM temp.lines)
        AND NOT EXISTS (SELECT 1 FROM listings WHERE listings.page = holds.page AND listings.scope = holds.scope
            AND place NOT IN (SELECT place FROM leaving))
"""
_REMOVALS = (
    "DELETE FROM sunk WHERE (scope, history) IN (SELECT scope, history FROM going)",
    "DELETE FROM sunk WHERE (scope, history) IN (SELECT scope, history FROM listings JOIN leaving USING (place))",
    "DELETE FROM awaiting WHERE place IN (SELECT place FROM leaving)",
    "DELETE FROM holds WHERE (scope, history) IN (SELECT scope, history FROM going)",
    "DELETE FROM holds WHERE history IN (SELECT history FROM temp.lines)",
    "DELETE FROM turns WHERE (scope, history) IN (SELECT scope, history FROM going)",
    "DELETE FROM listings WHERE place IN (SELECT place FROM leaving)",
)
# The number of a scope is never given to another one: a process may still write under it.
_RENAME_PROJECT = """
    UPDATE scopes SET project = CAST(char(0) || 'forgotten ' || number AS BLOB)
    WHERE principal = :principal AND project = :project AND project != x''
        AND number NOT IN (SELECT scope FROM listings) AND number NOT IN (SELECT scope FROM holds)
"""


@contextmanager
def chosen(db: Connection, clause: ScopeClause, choice: Choice) -> Iterator[tuple[str, ...]]:
    """Chooses what is to go, for as long as the block runs, and yields the sessions. Within a transaction."""
    _drop(db)
    for table, columns in _TABLES.items():
        db.execute(f"CREATE TEMP TABLE {table} {columns}")
    try:
        notes = db.execute(
            "SELECT number FROM scopes WHERE principal = ? AND project = ?",
            (spelled(clause.scope.principal), spelled(clause.scope.notes.written)),
        ).fetchone()
        values = {
            **clause.values,
            "session": None if choice.session is None else spelled(choice.session),
            "before": choice.before,
            "all_projects": clause.scope.project is None,
            "notes": notes[0] if notes else -1,
        }
        _fill(db, "going", _HISTORIES, clause, values)
        _fill(db, "leaving", "SELECT place FROM listings JOIN going USING (scope, history)", clause, {})
        _fill(db, "leaving", _NOTES, clause, values)
        _fill(db, "leaving", _UNNAMED, clause, values)
        histories = db.execute("SELECT DISTINCT history FROM going ORDER BY history").fetchall()
        yield tuple(read_back(history) for (history,) in histories)
    finally:
        _drop(db)


def counted(db: Connection, sessions: tuple[str, ...], held_by_lines: Iterable[str]) -> Forgotten:
    """How much of what is chosen goes, with what these lines of the journal hold."""
    rows = [(spelled(hold),) for hold in held_by_lines]
    db.executemany("INSERT OR IGNORE INTO temp.lines VALUES (?)", rows)
    db.execute(f"INSERT OR IGNORE INTO touched {_TOUCHED}")
    pages, length, kept = db.execute(_COUNTS).fetchone()
    noted = "FROM listings JOIN leaving USING (place) WHERE (scope, history) NOT IN (SELECT scope, history FROM going)"
    notes = db.execute(f"SELECT count(*) {noted} AND history != x''").fetchone()[0]
    names = db.execute(f"SELECT DISTINCT history {noted} AND history != x''").fetchall()
    return Forgotten(
        sessions, pages, length, kept, notes, len(rows), (*sessions, *(read_back(name) for (name,) in names))
    )


def remove(db: Connection, clause: ScopeClause, whole_project: bool) -> None:
    """Removes what is chosen and counted."""
    db.execute(_LISTED_FOR_HOLDERS)
    doom(db, [Doomed(*row) for row in db.execute(_GONE).fetchall()])
    remove_doomed(db)
    for removal in _REMOVALS:
        db.execute(removal)
    if whole_project:
        db.execute(_RENAME_PROJECT, clause.values)


def _fill(db: Connection, table: str, query: str, clause: ScopeClause, values: dict[str, object]) -> None:
    db.execute(f"INSERT OR IGNORE INTO temp.{table} {query.format(scope=clause.text)}", values)


def _drop(db: Connection) -> None:
    for table in _TABLES:
        db.execute(f"DROP TABLE IF EXISTS temp.{table}")
