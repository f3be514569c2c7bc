"""The condition that keeps a statement within a scope."""

from collections.abc import Mapping

from pagefold.adapters.columns import spelled
from pagefold.adapters.sqlite.database import Connection
from pagefold.pages.scope import NOTES, StoreScope


class ScopeClause:
    """The condition on the column `scope` of a row, with the values it takes, and the number that is written there."""

    def __init__(self, scope: StoreScope) -> None:
        self.scope = scope
        if scope.project is None:
            self.text = "scope IN (SELECT number FROM scopes WHERE principal = :principal AND project != :project)"
        else:
            self.text = "scope = (SELECT number FROM scopes WHERE principal = :principal AND project = :project)"
        project = NOTES if scope.project is None else scope.project
        self.values: Mapping[str, bytes] = {"principal": spelled(scope.principal), "project": spelled(project)}

    def number(self, db: Connection) -> int:
        """The number of the scope in this file. It is noted there where it is new; not within a transaction. Asked for
        anew every time: a project that was forgotten has another one when it comes back."""
        row = (self.values["principal"], spelled(self.scope.written))
        known = "SELECT number FROM scopes WHERE principal = ? AND project = ?"
        if (number := db.execute(known, row).fetchone()) is None:
            db.execute("INSERT OR IGNORE INTO scopes (principal, project) VALUES (?, ?)", row)
            number = db.execute(known, row).fetchone()
        return int(number[0])
