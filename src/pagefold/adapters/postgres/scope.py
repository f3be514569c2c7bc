"""The condition that keeps a statement within a scope."""

from collections.abc import Mapping

from pagefold.adapters.columns import spelled
from pagefold.adapters.postgres.server import Server
from pagefold.pages.scope import NOTES, StoreScope

_KNOWN = "SELECT number FROM scopes WHERE principal = %s AND project = %s"


class ScopeClause:
    """The condition on the column `scope` of a row, with the values it takes, and the number that is written there."""

    def __init__(self, scope: StoreScope) -> None:
        self.scope = scope
        if scope.project is None:
            self.text = (
                "scope IN (SELECT number FROM scopes WHERE principal = %(principal)s AND project != %(project)s)"
            )
        else:
            self.text = "scope = (SELECT number FROM scopes WHERE principal = %(principal)s AND project = %(project)s)"
        project = NOTES if scope.project is None else scope.project
        self.values: Mapping[str, bytes] = {"principal": spelled(scope.principal), "project": spelled(project)}
        self._number: int | None = None

    def number(self, server: Server) -> int:
        """The number of the scope in this database, where it is noted if it is new. A crash of the server must not
        forget it: another scope would get the same number."""
        if self._number is None:
            row = (self.values["principal"], spelled(self.scope.written))
            number = server.ask(_KNOWN, row)
            while not number:
                note = "INSERT INTO scopes (principal, project) VALUES (%s, %s) ON CONFLICT DO NOTHING RETURNING number"
                number = server.ask_and_wait(note, row) or server.ask(_KNOWN, row)
            self._number = int(number[0][0])
        return self._number
