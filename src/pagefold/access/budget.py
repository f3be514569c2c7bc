"""What a team has used of its limits, and whether it may ask once more.

Use that this process has counted and not stored yet is added to what the store said last, so a team is refused as soon
as this instance knows of it; what other instances count is known half a second later. Requests under way are paid for
when they end, so a budget may be exceeded by those.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from math import ceil

from pagefold.access.team import MICRO, NO_USE, Attribution, Team, TeamUse


@dataclass(frozen=True, slots=True)
class Period:
    """The day, the month and the minute of a time, as use is summed by. The minute counts from 1970."""

    day: str
    month: str
    minute: int

    @classmethod
    def at(cls, now: float) -> "Period":
        moment = datetime.fromtimestamp(now, tz=UTC)
        return cls(f"{moment:%Y-%m-%d}", f"{moment:%Y-%m}", int(now // 60))


@dataclass(frozen=True, slots=True)
class Spent:
    """What a team has used in the day and the month, and how many requests it made in the minute, of a period."""

    day: TeamUse = NO_USE
    month: TeamUse = NO_USE
    minute: int = 0


NOTHING_SPENT = Spent()


@dataclass(frozen=True, slots=True)
class UsageReport:
    """What an instance has counted since its last report: use by attribution, and requests by team and minute.

    `instance` and `number` name it: a report that was stored already is not added again."""

    instance: str
    number: int
    uses: Mapping[Attribution, TeamUse] = field(default_factory=dict)
    minutes: Mapping[tuple[str, int], int] = field(default_factory=dict)

    @property
    def is_empty(self) -> bool:
        return not self.uses and not self.minutes


@dataclass(frozen=True, slots=True)
class OverLimit:
    """A team may not ask now: what to tell it, and after how many seconds it may again."""

    sentence: str
    retry_after: int


def spent_of(team: str, known: Spent, of: Period, unstored: UsageReport, now: Period) -> Spent:
    """What a team has used now: what the store said of an earlier period `of`, and what it has not been told yet."""
    day = known.day if of.day == now.day else NO_USE
    month = known.month if of.month == now.month else NO_USE
    minute = known.minute if of.minute == now.minute else 0
    for use, counts in unstored.uses.items():
        if use.team == team:
            day = day + counts if use.day == now.day else day
            month = month + counts if use.day.startswith(now.month) else month
    return Spent(day, month, minute + unstored.minutes.get((team, now.minute), 0))


def over_limit(team: Team, spent: Spent, now: float) -> OverLimit | None:
    """Why a team may not ask now, or None where it may."""
    limits = team.limits
    if limits.requests_minute and spent.minute >= limits.requests_minute:
        wait = max(1, ceil(60 - now % 60))
        return OverLimit(f"team {team.name} may make {limits.requests_minute:,} requests a minute", wait)
    moment = datetime.fromtimestamp(now, tz=UTC)
    midnight = moment.replace(hour=0, minute=0, second=0, microsecond=0)
    next_month = (midnight.replace(day=1) + timedelta(days=32)).replace(day=1)
    periods = (
        ("a day", spent.day, limits.usd_day, limits.tokens_day, midnight + timedelta(days=1)),
        ("a month", spent.month, limits.usd_month, limits.tokens_month, next_month),
    )
    for words, used, usd, tokens, ends in periods:
        if usd and used.microusd >= round(usd * MICRO):
            told = f"${usd:,.2f} {words} (${used.microusd / MICRO:,.2f} used)"
        elif tokens and used.tokens >= tokens:
            told = f"{tokens:,} tokens {words} ({used.tokens:,} used)"
        else:
            continue
        sentence = f"team {team.name} has used its budget of {told}; it begins anew at {ends:%Y-%m-%d %H:%M} UTC"
        return OverLimit(sentence, ceil((ends - moment).total_seconds()))
    return None
