"""Forgets sessions in a Postgres database: pages, listings, notes, words of the search, lines of the journal, objects.

What goes is chosen and removed in one transaction. Then the tables are written anew (`VACUUM FULL`), so that nothing is
left in their files; others wait for seconds meanwhile. The server's own log, its replicas and its backups are not
pagefold's: they forget as the operator has set them to.
"""

from collections.abc import Sequence
from typing import Any

from pagefold.adapters.columns import read_back, spelled
from pagefold.adapters.postgres.pages import PostgresPages
from pagefold.adapters.postgres.server import Connection
from pagefold.pages.forgetting import Choice, Forgotten

_TABLES = (
    "CREATE TEMP TABLE going (scope int, history bytea, PRIMARY KEY (scope, history)) ON COMMIT DROP",
    "CREATE TEMP TABLE leaving (place bigint PRIMARY KEY) ON COMMIT DROP",
    'CREATE TEMP TABLE touched (page text COLLATE "C" PRIMARY KEY) ON COMMIT DROP',
    "CREATE TEMP TABLE lines (number bigint PRIMARY KEY, hold bytea) ON COMMIT DROP",
)
_HISTORIES = """
    INSERT INTO going SELECT scope, history FROM (
        SELECT scope, history, first_put AS at FROM listings UNION ALL SELECT scope, history, last FROM turns
        UNION ALL SELECT scope, history, NULL FROM holds UNION ALL SELECT scope, history, NULL FROM sunk) AS known
    WHERE {scope} AND history != '' AND (%(session)s::bytea IS NULL OR history = %(session)s)
        AND substr(history, 1, 8) != 'journal '::bytea
    GROUP BY scope, history HAVING %(before)s::float8 IS NULL OR max(at) < %(before)s
"""
# As in a file: notes go with their history, or by their own time where all projects are looked at.
_LEAVING = """
    INSERT INTO leaving
    SELECT place FROM listings JOIN going USING (scope, history)
    UNION SELECT place FROM listings WHERE scope = %(notes)s AND name IN (SELECT history FROM going)
    UNION SELECT place FROM listings WHERE %(session)s::bytea IS NULL
        AND (%(before)s::float8 IS NULL OR first_put < %(before)s)
        AND ((history = '' AND {scope}) OR (%(all_projects)s AND name = '' AND scope = %(notes)s))
"""
_LINES = """
    INSERT INTO lines SELECT number, convert_to(%(where)s || ' ' || number, 'UTF8') FROM journal_lines
    WHERE principal = %(principal)s AND (scope = ANY(%(scopes)s) OR (owner = ANY(%(owners)s) AND state != 'committed'))
"""
_ENDED = """
    SELECT scope FROM journal_lines WHERE principal = %(principal)s AND substr(scope, 1, 8) = 'session:'::bytea
    AND NOT EXISTS (SELECT 1 FROM listings WHERE history = substr(journal_lines.scope, 9))
    AND NOT EXISTS (SELECT 1 FROM turns WHERE history = substr(journal_lines.scope, 9))
    GROUP BY scope HAVING max(staged_at) < %(before)s
"""
_TOUCHED = """
    INSERT INTO touched SELECT page FROM listings JOIN leaving USING (place)
    UNION SELECT page FROM holds JOIN going USING (scope, history)
    UNION SELECT page FROM holds WHERE history IN (SELECT hold FROM lines)
"""
_LOCK = "SELECT 1 FROM pages WHERE id IN (SELECT page FROM touched) ORDER BY id FOR UPDATE"
_STAYS = """
    EXISTS (SELECT 1 FROM listings WHERE listings.page = touched.page AND place NOT IN (SELECT place FROM leaving))
    OR EXISTS (SELECT 1 FROM holds WHERE holds.page = touched.page AND NOT EXISTS (SELECT 1 FROM going
        WHERE going.scope = holds.scope AND going.history = holds.history)
        AND history NOT IN (SELECT hold FROM lines))
"""
_COUNTS = f"""
    SELECT count(*) FILTER (WHERE NOT stays), coalesce(sum(bytes) FILTER (WHERE NOT stays), 0)::bigint,
        count(*) FILTER (WHERE stays)
    FROM (SELECT bytes, ({_STAYS}) AS stays FROM touched JOIN pages ON id = touched.page) AS counted
"""
_NOTED = """
    SELECT history FROM listings JOIN leaving USING (place) WHERE history != ''
    AND NOT EXISTS (SELECT 1 FROM going WHERE going.scope = listings.scope AND going.history = listings.history)
"""
_REMOVALS = (
    # Who holds a page that only a forgotten session listed has to be able to read it still.
    """
    INSERT INTO listings (scope, history, page, first_put)
    SELECT DISTINCT holds.scope, ''::bytea, holds.page, last_put FROM holds JOIN touched USING (page)
        JOIN pages ON id = holds.page
    WHERE NOT EXISTS (SELECT 1 FROM going WHERE going.scope = holds.scope AND going.history = holds.history)
        AND holds.history NOT IN (SELECT hold FROM lines)
        AND NOT EXISTS (SELECT 1 FROM listings WHERE listings.page = holds.page AND listings.scope = holds.scope
            AND place NOT IN (SELECT place FROM leaving))
    ON CONFLICT DO NOTHING
    """,
    f"DELETE FROM pages WHERE id IN (SELECT page FROM touched WHERE NOT ({_STAYS}))",
    "DELETE FROM sunk USING going WHERE sunk.scope = going.scope AND sunk.history = going.history",
    """
    DELETE FROM sunk USING listings JOIN leaving USING (place)
        WHERE sunk.scope = listings.scope AND sunk.history = listings.history
    """,
    "DELETE FROM holds USING going WHERE holds.scope = going.scope AND holds.history = going.history",
    "DELETE FROM holds WHERE history IN (SELECT hold FROM lines)",
    "DELETE FROM turns USING going WHERE turns.scope = going.scope AND turns.history = going.history",
    "DELETE FROM documents WHERE place IN (SELECT place FROM leaving)",
    "DELETE FROM listings WHERE place IN (SELECT place FROM leaving)",
    "DELETE FROM journal_lines WHERE number IN (SELECT number FROM lines)",
    # The object of a scope that lists the page no more, where another has one or the database has the content.
    """
    DELETE FROM bodies USING touched, pages WHERE bodies.page = touched.page AND pages.id = touched.page
        AND NOT EXISTS (SELECT 1 FROM listings WHERE listings.page = bodies.page AND listings.scope = bodies.scope)
        AND (pages.stored != '' OR EXISTS (SELECT 1 FROM bodies AS other JOIN listings USING (page, scope)
            WHERE other.page = bodies.page))
    """,
)
# The number of a scope is never given to another one: a process may still write under it.
_RENAME_PROJECT = """
    UPDATE scopes SET project = decode('00', 'hex') || convert_to('forgotten ' || number, 'UTF8')
    WHERE principal = %(principal)s AND project = %(project)s AND project != ''
        AND number NOT IN (SELECT scope FROM listings) AND number NOT IN (SELECT scope FROM holds)
"""
_REWRITTEN = "pages listings holds turns shown redacted awaiting sunk unindexed documents journal_lines bodies scopes"
_OF_SESSION, _OF_PROJECT = "session:", "project:"


class PostgresForgetting:
    """Forgets within the scope of these pages."""

    def __init__(self, pages: PostgresPages) -> None:
        self._pages, self._server = pages, pages.server

    def plan(self, choice: Choice) -> Forgotten:
        with self._server.transaction() as db:
            return self._chosen(db, choice)

    def carry_out(self, choice: Choice) -> Forgotten:
        """The same, taken away. Raises StoreError where another process keeps a table locked: do it again."""
        with self._server.transaction() as db:
            forgotten = self._chosen(db, choice)
            for removal in _REMOVALS:
                db.execute(removal.encode())
            if self._pages.scope.project is not None and choice == Choice():
                db.execute(_RENAME_PROJECT, self._pages.clause.values)
        if self._pages.bodies is not None:
            self._pages.bodies.delete_removed()
        self._server.run(_rewrite)
        return forgotten

    def _chosen(self, db: Connection, choice: Choice) -> Forgotten:
        scope = self._pages.scope
        for table in _TABLES:
            db.execute(table.encode())
        notes = db.execute(
            "SELECT number FROM scopes WHERE principal = %s AND project = %s",
            (spelled(scope.principal), spelled(scope.notes.written)),
        ).fetchone()
        values: dict[str, Any] = {
            **self._pages.clause.values,
            "session": None if choice.session is None else spelled(choice.session),
            "before": choice.before,
            "all_projects": scope.project is None,
            "notes": notes[0] if notes else -1,
        }
        for statement in (_HISTORIES, _LEAVING):
            db.execute(statement.format(scope=self._pages.clause.text).encode(), values)
        sessions = _texts(db.execute("SELECT DISTINCT history FROM going ORDER BY history").fetchall())
        self._choose_lines(db, choice, sessions)
        db.execute(_TOUCHED)
        db.execute(_LOCK)
        return _counted(db, sessions)

    def _choose_lines(self, db: Connection, choice: Choice, sessions: Sequence[str]) -> None:
        scope = self._pages.scope
        principal = spelled(scope.principal)
        names = {*sessions, *([choice.session] if choice.session is not None else ())}
        if choice.before is not None and choice.session is None and scope.project is None:
            ended = db.execute(_ENDED, {"principal": principal, "before": choice.before}).fetchall()
            names.update(name.removeprefix(_OF_SESSION) for name in _texts(ended))
        scopes = [spelled(_OF_SESSION + name) for name in names]
        if scope.project and choice == Choice():
            scopes.append(spelled(_OF_PROJECT + scope.project))
        where = f"journal {self._server.where}"
        owners = [spelled(name) for name in names]
        db.execute(_LINES, {"principal": principal, "scopes": scopes, "owners": owners, "where": where})


def _rewrite(db: Connection) -> None:
    for table in _REWRITTEN.split():
        db.execute(f"VACUUM FULL {table}".encode())


def _counted(db: Connection, sessions: tuple[str, ...]) -> Forgotten:
    pages, length, kept = db.execute(_COUNTS.encode()).fetchall()[0]
    noted = db.execute(_NOTED).fetchall()
    [lines] = db.execute("SELECT count(*) FROM lines").fetchall()[0]
    names = dict.fromkeys((*sessions, *_texts(noted)))
    return Forgotten(sessions, pages, length, kept, len(noted), lines, tuple(names))


def _texts(rows: Sequence[tuple[Any, ...]]) -> tuple[str, ...]:
    return tuple(read_back(row[0]) for row in rows)
