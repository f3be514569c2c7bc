"""What a fact is worth: how likely a later answer needs it again before it stands anew.

The estimate is a logistic sum of eight things that are known when it is made, each with one weight. The shipped weights
are fitted on half of the recorded sessions of three families (Claude Code, a bash agent, MCP servers); `analysis.fit`
learned them and learns others. Nothing here knows what comes later.
"""

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple

_LONG_AGO = 400
_LENGTHY = 14


@dataclass(frozen=True, slots=True)
class Priors:
    """Weights on the log-odds of being needed again. Turns are counted in answers of the assistant."""

    age: float = -0.474  # log of turns since it was last mentioned by anyone
    uses: float = 0.980  # log of the assistant's own messages that used it
    since_use: float = -0.335  # log of turns since the assistant used it; as if very long ago where it never has
    sources: float = -0.369  # log of the other messages that hold it: what is everywhere is also found again
    user: float = 0.540  # the user has said it
    digit: float = -1.137  # it has a digit: identifiers of one moment, sizes, hashes
    capital: float = -0.328  # it has an inner capital
    long: float = -0.284
    bias: float = 0.052

    def weights(self) -> tuple[float, ...]:
        return (self.age, self.uses, self.since_use, self.sources, self.user, self.digit, self.capital, self.long)


SHIPPED = Priors()


class Mentions(NamedTuple):
    """Where and how often a fact has been mentioned so far. `home` is the newest message that told it."""

    last: int = 0
    uses: int = 0
    used: int = 0
    sources: int = 0
    user: bool = False
    home: int = -1

    def mentioned(self, turn: int, place: int, *, own: bool, user: bool) -> "Mentions":
        if own:
            home = self.home if self.sources else place
            return Mentions(turn, self.uses + 1, turn, self.sources, self.user, home)
        return Mentions(turn, self.uses, self.used, self.sources + 1, self.user or user, place)


NEVER = Mentions()


def features(fact: str, mentions: Mentions, turn: int) -> tuple[float, ...]:
    """The eight things, in the order of the weights."""
    since = min(turn - mentions.used, _LONG_AGO) if mentions.uses else _LONG_AGO
    return (
        math.log1p(turn - mentions.last),
        math.log1p(mentions.uses),
        math.log1p(since),
        math.log1p(mentions.sources),
        float(mentions.user),
        float(any(map(str.isdigit, fact))),
        float(any(map(str.isupper, fact[1:]))),
        float(len(fact) >= _LENGTHY),
    )


def expected(facts: Iterable[tuple[str, Mentions]], turn: int, priors: Priors = SHIPPED) -> dict[str, float]:
    """For every fact the probability that it is needed again."""
    logs = [math.log1p(number) for number in range(_LONG_AGO + 2)]
    age, uses, since_use, sources, user, digit, capital, long = priors.weights()
    found: dict[str, float] = {}
    for fact, known in facts:
        since = min(turn - known.used, _LONG_AGO) if known.uses else _LONG_AGO
        odds = (
            priors.bias
            + age * logs[min(turn - known.last, _LONG_AGO)]
            + uses * logs[min(known.uses, _LONG_AGO)]
            + since_use * logs[since]
            + sources * logs[min(known.sources, _LONG_AGO)]
        )
        if known.user:
            odds += user
        if not fact.isalpha() and any(map(str.isdigit, fact)):
            odds += digit
        if not fact[1:].islower() and any(map(str.isupper, fact[1:])):
            odds += capital
        if len(fact) >= _LENGTHY:
            odds += long
        found[fact] = 1.0 / (1.0 + math.exp(-odds))
    return found
