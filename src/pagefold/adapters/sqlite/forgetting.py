"""Forgets sessions in the files of a store: the pages and their log, and the journal beside them.

A line of the journal goes with its session; one that a session wrote for its project stays with the project, and goes
with that. Both files change in transactions of which one ends right after the other.
"""

from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager

from pagefold.adapters.columns import read_back, spelled
from pagefold.adapters.sqlite import chosen_sessions
from pagefold.adapters.sqlite.database import Connection, Guard
from pagefold.adapters.sqlite.journal import beside, connect
from pagefold.adapters.sqlite.pages import SqlitePages
from pagefold.adapters.sqlite.rewriting import rewrite
from pagefold.pages.forgetting import Choice, Forgotten
from pagefold.pages.scope import StoreScope

_OF_SESSION, _OF_PROJECT = "session:", "project:"
_LINES = """
    SELECT number FROM lines WHERE principal = :principal AND (scope = :scope
        OR (owner = :owner AND state != 'committed'))
"""
# Sessions that wrote to the journal and have nothing else any more.
_ENDED = """
    SELECT scope FROM lines WHERE principal = ? AND substr(scope, 1, 8) = CAST('session:' AS BLOB)
    GROUP BY scope HAVING max(staged_at) < ?
"""
_LIVES = "SELECT 1 FROM listings WHERE history = ? UNION ALL SELECT 1 FROM turns WHERE history = ? LIMIT 1"


class Forgetting:
    """Forgets within the scope of these pages."""

    def __init__(self, pages: SqlitePages) -> None:
        self._pages, self._journal = pages, beside(pages.path)

    def plan(self, choice: Choice) -> Forgotten:
        with self._opened() as journal, self._pages.changing() as db, self._chosen(db, journal, choice) as planned:
            return planned

    def carry_out(self, choice: Choice) -> Forgotten:
        whole_project = self._pages.scope.project is not None and choice == Choice()
        with self._opened() as journal:
            with self._pages.changing() as db, self._chosen(db, journal, choice) as forgotten:
                chosen_sessions.remove(db, self._pages.clause, whole_project)
            if journal is not None:
                journal.execute("COMMIT")
                rewrite(journal, f"the journal {self._journal}")
        self._pages.rewrite()
        return forgotten

    @contextmanager
    def _opened(self) -> Iterator[Connection | None]:
        """The journal, where there is one, in a transaction that ends undone unless it is committed."""
        if not self._journal.exists():
            yield None
            return
        with Guard(self._journal, "journal"), closing(connect(self._journal, self._pages.key)) as journal:
            journal.execute("BEGIN IMMEDIATE")
            yield journal

    @contextmanager
    def _chosen(self, db: Connection, journal: Connection | None, choice: Choice) -> Iterator[Forgotten]:
        with chosen_sessions.chosen(db, self._pages.clause, choice) as sessions:
            gone = _remove_lines(journal, db, self._pages.scope, choice, sessions) if journal is not None else []
            yield chosen_sessions.counted(db, sessions, [f"journal {self._journal} {number}" for number in gone])


def _remove_lines(
    journal: Connection, db: Connection, scope: StoreScope, choice: Choice, sessions: Sequence[str]
) -> list[int]:
    """Removes the lines of the sessions from the journal, and returns their numbers."""
    principal = spelled(scope.principal)
    names = {*sessions, *([choice.session] if choice.session is not None else ())}
    if choice.before is not None and choice.session is None and scope.project is None:
        for (written,) in journal.execute(_ENDED, (principal, choice.before)).fetchall():
            name = read_back(written).removeprefix(_OF_SESSION)
            if db.execute(_LIVES, (spelled(name),) * 2).fetchone() is None:
                names.add(name)
    scopes: list[tuple[str, bytes | None]] = [(_OF_SESSION + name, spelled(name)) for name in names]
    if scope.project and choice == Choice():
        scopes.append((_OF_PROJECT + scope.project, None))
    numbers: set[int] = set()
    for written, owner in scopes:
        values = {"principal": principal, "scope": spelled(written), "owner": owner}
        numbers.update(number for (number,) in journal.execute(_LINES, values).fetchall())
    journal.executemany("DELETE FROM lines WHERE number = ?", [(number,) for number in numbers])
    return sorted(numbers)
