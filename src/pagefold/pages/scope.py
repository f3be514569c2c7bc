"""Whose part of a store is read and written.

A store keeps each content once. Whose it is stands beside it: a page is there only for those under whose scope it was
put, so a handle that was guessed, or seen elsewhere, recalls nothing.
"""

from dataclasses import dataclass, replace

NOTES = "\0notes"
"""The project of notes: no project of anybody, so that no recall and no search reaches them."""


@dataclass(frozen=True, slots=True)
class StoreScope:
    """A principal and a project of that principal's.

    `principal` is "" for the user of this machine, otherwise what a verified token stands for. `project` None reads all
    projects of the principal, and writes to none of them.
    """

    principal: str = ""
    project: str | None = None

    @property
    def written(self) -> str:
        """The project under which something is put."""
        return self.project or ""

    @property
    def notes(self) -> "StoreScope":
        """The scope of the principal's notes. A note is asked for by the hash of its history, which says more."""
        return replace(self, project=NOTES)

    @property
    def own(self) -> "StoreScope":
        """All projects of the principal: for what the name of a history or the journal bounds already."""
        return replace(self, project=None)

    def reaches(self, principal: str, project: str) -> bool:
        """Whether something that was put under these is there for this scope."""
        if principal != self.principal:
            return False
        return project == self.project or (self.project is None and project != NOTES)


THIS_USER = StoreScope()
"""All that belongs to the user of this machine."""
