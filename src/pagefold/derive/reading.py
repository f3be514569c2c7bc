"""What an agent has done so far, as a fold needs it, brought up between folds.

A fold that had to read everything since the last one would take a third longer.
"""

from dataclasses import dataclass, field

from pagefold.derive.entry import Entry
from pagefold.log import Log
from pagefold.pages.exchanges import Work


@dataclass(frozen=True, slots=True)
class WorkReading:
    """The work of the first `places` entries of a log."""

    work: Work = field(repr=False)
    places: int = 0

    def through(self, log: Log[Entry]) -> "WorkReading":
        """The work of all of a log that goes on from here."""
        work = self.work
        for place in range(self.places, len(log)):
            work = work.after(log[place].message, place)
        return WorkReading(work, len(log))
