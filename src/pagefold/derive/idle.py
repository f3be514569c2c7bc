"""What to do while an agent is silent and the provider's cache is about to expire: chosen by expected cost.

A request costs little as long as its prefix is cached. Before that expires, one more cheap request keeps it for another
life; once it has expired, the next request writes everything anew, or folds first and writes less. Which is cheapest
depends on when the agent will go on, and nobody knows that: `Silences` says how long recorded ones lasted. Some never
end, and whoever keeps a cache alive for those pays for nothing.
"""

import math
from bisect import bisect_right
from dataclasses import dataclass
from enum import StrEnum

from pagefold.derive.cost import Prices
from pagefold.frozen import frozen

_AHEAD = 0.1  # of a cache's life: so much earlier a keep-alive is sent
_MOST_AHEAD = 60.0
_SURE = 1.5  # times its price, what a keep-alive has to save where a fold makes coming late cheap
_MOST = 48  # keep-alives that are looked ahead; the recorded silences say nothing about longer ones


@dataclass(frozen=True, slots=True)
class Silences:
    """Of recorded silences, the share that lasted longer than each of `seconds`, the shortest first.

    Between two times the share falls evenly with the logarithm of time, because that is how the chance to hear from
    somebody falls; after the last it stays: whoever is silent for longer may be for ever.
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
        return before + (after - before) * math.log(seconds / since) / math.log(until / since)

    @property
    def for_ever(self) -> float:
        return self.longer[-1]


_MINUTES = (0.5, 1, 2, 4, 5, 7, 10, 15, 20, 30, 45, 60, 90, 120, 180, 360, 720, 1440)
_SECONDS = tuple(60.0 * minutes for minutes in _MINUTES)
_ANSWER_SHORT = (0.918, 0.829, 0.670, 0.490, 0.439, 0.362, 0.315, 0.253, 0.215)
_ANSWER_LONG = (0.194, 0.168, 0.161, 0.144, 0.139, 0.132, 0.128, 0.120, 0.116)
_CALL_SHORT = (0.0891, 0.0413, 0.0185, 0.0101, 0.00814, 0.00536, 0.00332, 0.00193, 0.00121)
_CALL_LONG = (6.88e-4, 4.19e-4, 2.86e-4, 1.41e-4, 9.51e-5, 5.48e-5, 2.13e-5, 8.3e-6, 3.2e-6)
AFTER_ANSWER = Silences(_SECONDS, _ANSWER_SHORT + _ANSWER_LONG)
"""After an answer that calls no tool: a person has to say something. From half of the recorded sessions, by
`python -m bench.idle --fit`."""
AFTER_CALL = Silences(_SECONDS, _CALL_SHORT + _CALL_LONG)
"""After an answer that calls a tool: the tool runs, or a person has to allow it, and nearly all of them go on. From the
same half."""


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

    A keep-alive is sent where it saves more than its price in expectation, it alone or as the first of several, and
    never for more in one silence than coming late costs: so nobody pays more than twice what they would have. Where a
    fold would make coming late cheap there is little to save, and what is expected may be wrong by more than that: then
    it has to save half as much again. A cache that does not expire needs none.
    """
    folds = resume.folded is not None and resume.folded < resume.cold
    if life > 0 and resume.late > 0:
        spent = price * max(1.0, silent / keep_alive_after(life))  # this keep-alive and those before it
        if spent <= resume.late and _worth(resume.late, price * (_SURE if folds else 1.0), life, silent, silences):
            return Idle.KEEP
    return Idle.FOLD if folds else Idle.NOTHING


def _worth(late: float, price: float, life: float, silent: float, silences: Silences) -> bool:
    """Whether some number of keep-alives costs less in expectation than none. Silence itself tells nothing new, so the
    best number can be chosen now. Only somebody who comes back pays for coming late."""
    step, spent = keep_alive_after(life), 0.0
    nothing = late * (silences.longer_than(silent + life - step) - silences.for_ever)
    for number in range(_MOST):
        spent += price * silences.longer_than(silent + number * step)
        if spent >= nothing:
            return False
        if spent + late * (silences.longer_than(silent + number * step + life) - silences.for_ever) < nothing:
            return True
    return False
