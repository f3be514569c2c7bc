"""What a fold has to know of all messages, kept up message by message.

A fold that read the history again would take the longer the longer that is: 50 folds of 5,000 messages took two thirds
of the time in which they were seen for the first time.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field

from pagefold.derive.entry import Entry
from pagefold.derive.working_set.plan import Plan
from pagefold.derive.working_set.said import Saying, launches, spoken
from pagefold.log import Log
from pagefold.pages.exchanges import Work
from pagefold.pages.voices import Voice

_ANSWERS = 400  # of the agent, the newest: a digest has no room for more


@dataclass(frozen=True, slots=True)
class WorkReading:
    """The first `places` entries of a log: what was done, what was said by the agent (`answers`) and by others, the
    plan as it was last written, the turn of each entry, and the places of those that may not be folded."""

    work: Work = field(repr=False)
    places: int = 0
    answers: Log[Saying] = field(default_factory=Log, repr=False)
    others: Log[Saying] = field(default_factory=Log, repr=False)
    plan: Plan = field(default_factory=Plan, repr=False)
    turns: Log[int] = field(default_factory=Log, repr=False)
    fixed: tuple[int, ...] = ()

    def through(self, log: Log[Entry]) -> "WorkReading":
        """The reading of all of a log that goes on from here."""
        work, plan, fixed = self.work, self.plan, self.fixed
        answers, others, entries = list[Saying](), list[Saying](), log.since(self.places)
        last = self.places - 1
        launched = launches(log[last].message, work.answered_between(last, self.places)) if last >= 0 else ""
        for place, entry in enumerate(entries, self.places):
            message, known = entry.message, work.exchanges.length
            work, plan = work.after(message, place), plan.after(message, place, work.tools)
            answered = work.exchanges.since(known)
            for saying in spoken(message, place, answered, expanded=launched):
                (answers if saying.voice is Voice.YOU else others).append(saying)
            fixed = (*fixed, place) if entry.fixed else fixed
            launched = launches(message, answered)
        return WorkReading(
            work,
            log.length,
            self.answers.with_items(answers),
            self.others.with_items(others),
            plan,
            self.turns.with_items([entry.turn for entry in entries]),
            fixed,
        )

    @property
    def said(self) -> list[Saying]:
        """What was said, in order; of the agent's own words the newest."""
        newest = self.answers.since(max(0, self.answers.length - _ANSWERS))
        return sorted([*newest, *self.others], key=lambda saying: saying.place)


def reading_of(entries: Iterable[Entry]) -> WorkReading:
    """The reading of a whole history."""
    return WorkReading(Work()).through(Log(entries))
