"""What to do while an agent is silent and the provider's cache is about to expire: chosen by expected cost.

A request costs little as long as its prefix is cached. Before that expires, one more cheap request keeps it for another
life; once it has expired, the next request writes everything anew, or folds first and writes less. Which is cheapest
depends on when the agent will go on, and nobody knows that: `Silences` says how long recorded ones lasted. Some never
end, and whoever keeps a cache alive for those pays for nothing.
"""

from bisect import bisect_right
from dataclasses import dataclass
from enum import StrEnum

from pagefold.derive.cost import Prices
from pagefold.frozen import frozen

_AHEAD = 0.1  # of a cache's life: so much earlier a keep-alive is sent
_MOST_AHEAD = 60.0
_SAVES = 2.0  # times its price that a keep-alive has to save in expectation: nobody's silences are like the recorded
_MOST = 24  # keep-alives that are looked ahead; the recorded silences say nothing about longer ones


@dataclass(frozen=True, slots=True)
class Silences:
    """Of recorded silences, the share that lasted longer than each of `seconds`, the shortest first.

    Between two times the share falls evenly, and after the last it stays: whoever is silent for longer may be for ever.
    """

    seconds: tuple[float, ...]
    longer: tuple[float, ...]

    def longer_than(self, seconds: float) -> float:
        at = bisect_right(self.seconds, seconds)
        if at == 0:
            first = self.seconds[0]
            return 1.0 - (1.0 - self.longer[0]) * max(0.0, seconds) / first
        if at == len(self.seconds):
            return self.longer[-1]
        since, until = self.seconds[at - 1], self.seconds[at]
        before, after = self.longer[at - 1], self.longer[at]
        return before + (after - before) * (seconds - since) / (until - since)


_SECONDS = (60.0, 120.0, 300.0, 600.0, 900.0, 1200.0, 1800.0, 2700.0, 3600.0, 5400.0, 7200.0, 10800.0, 21600.0, 86400.0)
AFTER_ANSWER = Silences(
    _SECONDS, (0.828, 0.668, 0.438, 0.313, 0.249, 0.211, 0.190, 0.165, 0.159, 0.142, 0.138, 0.132, 0.129, 0.120)
)
"""After an answer that calls no tool: a person has to say something. From half of the recorded sessions."""
AFTER_CALL = Silences(
    _SECONDS,
    (0.042, 0.019, 0.0083, 0.0034, 0.0019, 0.0011, 0.0006, 0.0005, 0.0003, 0.0001, 0.0001, 0.0001, 0.0001, 0.0001),
)
"""After an answer that calls a tool: the tool runs, or a person has to allow it. From the same half."""


class Idle(StrEnum):
    KEEP = "keep the cache alive"
    FOLD = "fold when it goes on"
    NOTHING = "nothing"


@frozen
class Resume:
    """What the next request costs for what is cached now, in fresh input tokens: `warm` while it is cached, `cold`
    afterwards as it stands, `folded` afterwards where a policy folds first; None where none does."""

    warm: float
    cold: float
    folded: float | None = None

    @property
    def late(self) -> float:
        """What it costs too much to go on when the cache has expired, done in the cheapest way."""
        return max(0.0, min(self.cold, self.cold if self.folded is None else self.folded) - self.warm)


def resume_of(prices: Prices, tokens: int, left_by_fold: int | None = None) -> Resume:
    """What it costs to go on from a prompt of so many tokens, of which a fold leaves so many."""
    folded = None if left_by_fold is None else prices.cost(0, left_by_fold)
    return Resume(prices.cost(tokens, 0), prices.cost(0, tokens), folded)


def keep_alive_after(life: float) -> float:
    """How many seconds after its last use a cache of this life is used again to keep it."""
    return life - min(_MOST_AHEAD, _AHEAD * life)


def chosen(resume: Resume, price: float, life: float, silent: float, silences: Silences) -> Idle:
    """What to do now, where the cache was last used `keep_alive_after(life)` seconds ago and nobody has spoken for
    `silent` seconds. `price` is what one keep-alive costs.

    A keep-alive is sent where it saves twice its price in expectation, it alone or as the first of several. A cache
    that does not expire needs none.
    """
    if life > 0 and resume.late > 0 and _worth(resume.late, _SAVES * price, life, silent, silences):
        return Idle.KEEP
    return Idle.FOLD if resume.folded is not None and resume.folded < resume.cold else Idle.NOTHING


def _worth(late: float, price: float, life: float, silent: float, silences: Silences) -> bool:
    """Whether some number of keep-alives costs less in expectation than going on late at whatever time."""
    step, spent = keep_alive_after(life), 0.0
    nothing = late * silences.longer_than(silent)
    for number in range(_MOST):
        still = silences.longer_than(silent + number * step)
        spent += price * still
        if spent >= nothing:
            return False
        if spent + late * silences.longer_than(silent + number * step + life) < nothing:
            return True
    return False
