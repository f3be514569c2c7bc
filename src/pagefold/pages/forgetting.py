"""What is to be forgotten of a store, and what that took away.

To forget is more than to remove: afterwards no byte is left that no other session has, in no file of the store. Held
pages go too, unless another session, or an entry of the journal that stays, holds or lists them.
"""

from dataclasses import dataclass
from typing import Protocol, runtime_checkable


@dataclass(frozen=True, slots=True)
class Choice:
    """What to forget within the scope of a store: one session, or all; with `before`, those that ended before a time.

    What belongs to no session goes by its own time, where all are forgotten.
    """

    session: str | None = None
    before: float | None = None


@dataclass(frozen=True, slots=True)
class Forgotten:
    """What was forgotten, or would be. `kept` counts the pages that others have too; `names` are the histories and
    notes under which the history sink may have something."""

    sessions: tuple[str, ...] = ()
    pages: int = 0
    bytes: int = 0
    kept: int = 0
    notes: int = 0
    journal_lines: int = 0
    names: tuple[str, ...] = ()

    @property
    def is_nothing(self) -> bool:
        return not (self.sessions or self.pages or self.kept or self.notes or self.journal_lines or self.names)


@runtime_checkable
class ForgettingStore(Protocol):
    """A store that can forget. Both may raise StoreError."""

    def to_forget(self, choice: Choice) -> Forgotten:
        """What `forget` would take away. Changes nothing."""

    def forget(self, choice: Choice) -> Forgotten:
        """Takes it away, also from logs, the search index and the journal. Also where nothing is chosen it removes what
        an earlier call, that could not end, has left of what it removed."""
