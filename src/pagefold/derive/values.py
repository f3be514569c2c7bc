"""What a fact is worth: how likely a later answer needs it again before it stands anew.

The estimate is a logistic sum of eight things that are known when it is made, each with one weight. The shipped weights
are fitted on half of the recorded sessions of three families (Claude Code, a bash agent, MCP servers); `analysis.fit`
learned them and learns others. Nothing here knows what comes later.
"""

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import TypeAlias

from pagefold.frozen import frozen

_LONG_AGO = 400
_LENGTHY = 14
_NEWER = 8  # times as many facts are older ones as newer, at most: more would be copied at each fold


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


Mentions: TypeAlias = tuple[int, int, int, int, bool, int]
"""Where and how often a fact has been mentioned so far: the turn it was last mentioned in, how often the assistant used
it and in which turn last, in how many other messages it was told, whether the user has said it, and its home, which is
the newest message that told it. A bare tuple: there are very many, and the collector of garbage leaves those alone."""

NEVER: Mentions = (0, 0, 0, 0, False, -1)


def mentioned(known: Mentions, turn: int, place: int, *, own: bool, user: bool) -> Mentions:
    """What is known of a fact that is mentioned once more."""
    _, uses, used, sources, by_user, home = known
    if own:
        return turn, uses + 1, turn, sources, by_user, home if sources else place
    return turn, uses, used, sources + 1, by_user or user, place


@frozen
class KnownFacts:
    """Facts of the first `places` entries of a log, with their mentions so far. A fact that is in both is as it is
    among the newer ones: a long history has very many, and a fold tells of few of them."""

    older: Mapping[str, Mentions] = field(default_factory=dict)
    newer: Mapping[str, Mentions] = field(default_factory=dict)
    places: int = 0

    def with_newer(self, newer: Mapping[str, Mentions], places: int) -> "KnownFacts":
        """The facts of so many entries, with these in place of the newer ones."""
        if len(newer) * _NEWER < len(self.older):
            return KnownFacts(self.older, newer, places)
        return KnownFacts({**self.older, **newer}, places=places)

    def of(self, facts: Iterable[str]) -> dict[str, Mentions]:
        """Those of these facts that are known."""
        found = ((fact, self.newer.get(fact) or self.older.get(fact)) for fact in facts)
        return {fact: mentions for fact, mentions in found if mentions is not None}

    @property
    def all(self) -> dict[str, Mentions]:
        return {**self.older, **self.newer}


def features(fact: str, mentions: Mentions, turn: int) -> tuple[float, ...]:
    """The eight things, in the order of the weights."""
    last, uses, used, sources, user, _ = mentions
    since = min(turn - used, _LONG_AGO) if uses else _LONG_AGO
    return (
        math.log1p(turn - last),
        math.log1p(uses),
        math.log1p(since),
        math.log1p(sources),
        float(user),
        float(any(map(str.isdigit, fact))),
        float(any(map(str.isupper, fact[1:]))),
        float(len(fact) >= _LENGTHY),
    )


@lru_cache(maxsize=16)
def _odds(priors: Priors) -> tuple[list[float], ...]:
    """What age, uses, time since use and sources add to the odds, by their number."""
    logs = [math.log1p(number) for number in range(_LONG_AGO + 1)]
    return tuple([weight * log for log in logs] for weight in priors.weights()[:4])


_DIGIT, _CAPITAL, _IS_LONG = 1, 2, 4
_REMEMBERED = 1 << 16


class _Looks(dict[str, int]):
    """Whether a fact has a digit, an inner capital, and is long, as bits; what it has it keeps."""

    def __missing__(self, fact: str) -> int:
        if len(self) >= _REMEMBERED:
            self.clear()
        found = self[fact] = (
            _DIGIT * any(map(str.isdigit, fact))
            + _CAPITAL * any(map(str.isupper, fact[1:]))
            + _IS_LONG * (len(fact) >= _LENGTHY)
        )
        return found


_looked = _Looks()


def expected(facts: Iterable[tuple[str, Mentions]], turn: int, priors: Priors = SHIPPED) -> list[float]:
    """For every fact, in their order, the probability that it is needed again."""
    aged, used, unused, told = _odds(priors)
    *_, user, digit, capital, long = priors.weights()
    looks = [digit * bool(at & _DIGIT) + capital * bool(at & _CAPITAL) + long * bool(at & _IS_LONG) for at in range(8)]
    bias, exp, found, looks_of = priors.bias, math.exp, list[float](), _looked.__getitem__
    # What a message told for the first time was mentioned alike: few kinds of mentions, many facts.
    alike: dict[Mentions, float] = {}
    for fact, mentions in facts:
        odds = alike.get(mentions)
        if odds is None:
            last, uses, last_use, sources, by_user, _ = mentions
            age, since = turn - last, turn - last_use if uses else _LONG_AGO
            odds = alike[mentions] = (
                bias
                + aged[age if age < _LONG_AGO else _LONG_AGO]
                + used[uses if uses < _LONG_AGO else _LONG_AGO]
                + unused[since if since < _LONG_AGO else _LONG_AGO]
                + told[sources if sources < _LONG_AGO else _LONG_AGO]
                + by_user * user
            )
        found.append(1.0 / (1.0 + exp(-odds - looks[looks_of(fact)])))
    return found
