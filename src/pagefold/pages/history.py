"""A history: the append-only log of what was shown. Appending gives a new history; the old one stays as it was.

Two histories with the same showings have the same id, wherever they were made. A fork is another history that shares
its beginning; nothing that happens to one can be seen in the other.
"""

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass, field

from pagefold.pages.kinds import PageKind, ResidencyLevel, refusal
from pagefold.pages.page import Page, PageId


@dataclass(frozen=True, slots=True)
class Showing:
    """One page as it was shown: at which level, and made by which codec where it was not shown as it is."""

    page: PageId
    kind: PageKind
    level: ResidencyLevel = ResidencyLevel.FULL
    codec: str = ""
    name: str = ""
    call_id: str = ""

    def __post_init__(self) -> None:
        if reason := refusal(self.kind, self.level):
            raise ValueError(reason)


@dataclass(frozen=True, slots=True, eq=False)
class History:
    id: str = hashlib.sha256(b"").hexdigest()
    length: int = 0
    newest: Showing | None = None
    before: "History | None" = field(default=None, repr=False)

    def shown(self, showing: Showing) -> "History":
        """This history with one showing more."""
        parts = (self.id, showing.page, showing.kind, showing.level, showing.codec, showing.name, showing.call_id)
        # Length-prefixed, so that no two lists of parts spell the same bytes.
        spelled = "".join(f"{len(part)}:{part}" for part in parts)
        chained = hashlib.sha256(spelled.encode("utf-8", "surrogatepass")).hexdigest()
        return History(chained, self.length + 1, showing, self)

    def shows(self, page: Page, *, level: ResidencyLevel = ResidencyLevel.FULL, call_id: str = "") -> "History":
        return self.shown(Showing(page.id, page.kind, level, name=page.name, call_id=call_id))

    def __iter__(self) -> Iterator[Showing]:
        """Oldest first."""
        found: list[Showing] = []
        at: History | None = self
        while at is not None and at.newest is not None:
            found.append(at.newest)
            at = at.before
        return reversed(found)

    def __len__(self) -> int:
        return self.length

    def __eq__(self, other: object) -> bool:
        return isinstance(other, History) and self.id == other.id

    def __hash__(self) -> int:
        return hash(self.id)
