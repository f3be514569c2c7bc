"""Learning from recorded sessions what the economic policy goes by: how likely a fact is needed again, and how long a
session still lasts.

At moments along every session, each fact that has not been mentioned for a few turns is asked one question: was its
next mention an answer of the assistant, or did it come back by itself, or never? A logistic regression on what was
known at that moment gives the weights. Few observations change little: weights are drawn towards those given.
"""

import math
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from statistics import median

from pagefold.derive.remaining import SHIPPED as LASTING
from pagefold.derive.remaining import TurnsLeft
from pagefold.derive.values import NEVER, SHIPPED, Mentions, Priors, features, mentioned
from pagefold.pages.facts import facts_of, opened
from pagefold.wire.message import Message, Role

_EVERY = 12  # turns between moments
_AFTER = 8_000 * 4  # characters of history before the first: earlier nothing is folded
_QUIET = 6  # turns without a mention before a fact can be folded
_STEPS = 8
_PULL = 50.0  # as if two hundred observations had already said what is given
_FEWEST = 8  # sessions that have to reach a length before it is told how many turns they had left

Row = tuple[float, ...]


@dataclass(frozen=True, slots=True)
class FittedValues:
    """What was learned, and from how much: `asked` questions, of which `needed` were answered by a need."""

    priors: Priors
    lasting: TurnsLeft
    sessions: int
    asked: int
    needed: int


Observed = Counter[tuple[Row, bool]]
"""How often what was known of a fact was answered by a need, and how often not."""


def fit(
    sessions: Iterable[Sequence[Message]], *, priors: Priors = SHIPPED, lasting: TurnsLeft = LASTING
) -> FittedValues:
    """The weights and the turns left that fit these sessions, drawn towards those given."""
    rows: Observed = Counter()
    turns: list[int] = []
    for messages in sessions:
        rows.update(observed(messages))
        turns.append(turns_of(messages))
    return fitted(rows, turns, priors=priors, lasting=lasting)


def fitted(
    rows: Observed, turns: Sequence[int], *, priors: Priors = SHIPPED, lasting: TurnsLeft = LASTING
) -> FittedValues:
    """The same from what was observed of each session and how many turns it had, wherever that was done."""
    needed = sum(number for (_, was), number in rows.items() if was)
    asked = rows.total()
    # In one order, so that sums over the same observations are the same wherever they were made.
    ordered: Observed = Counter(dict(sorted(rows.items())))
    weights = _regressed(ordered, (*priors.weights(), priors.bias)) if asked else (*priors.weights(), priors.bias)
    learned = Priors(*(round(weight, 3) for weight in weights))
    return FittedValues(learned, _lasting(turns, lasting), len(turns), asked, needed)


def observed(messages: Sequence[Message]) -> Observed:
    rows: Observed = Counter()
    _observe(messages, rows)
    return rows


def turns_of(messages: Sequence[Message]) -> int:
    return sum(message.role is Role.ASSISTANT for message in messages)


def _observe(messages: Sequence[Message], rows: Counter[tuple[Row, bool]]) -> None:
    said = [facts_of(opened(message.text)) for message in messages]
    own = [message.role is Role.ASSISTANT for message in messages]
    upcoming = _upcoming(said)
    known: dict[str, Mentions] = {}
    turn, last, characters = 0, -_EVERY, 0
    for place, message in enumerate(messages):
        if own[place] and characters > _AFTER and turn - last >= _EVERY:
            last = turn
            for fact, mentions in known.items():
                if turn - mentions[0] >= _QUIET:
                    comes = upcoming[fact]
                    at = bisect_right(comes, place - 1)
                    rows[features(fact, mentions, turn), at < len(comes) and own[comes[at]]] += 1
        user = message.role is Role.USER
        for fact in said[place]:
            known[fact] = mentioned(known.get(fact, NEVER), turn, place, own=own[place], user=user)
        characters += len(message.text)
        turn += own[place]


def _upcoming(said: Sequence[frozenset[str]]) -> dict[str, list[int]]:
    places: dict[str, list[int]] = {}
    for place, facts in enumerate(said):
        for fact in facts:
            places.setdefault(fact, []).append(place)
    return places


def _regressed(rows: Counter[tuple[Row, bool]], start: Sequence[float]) -> tuple[float, ...]:
    """Logistic regression by Newton's method, with a pull towards where it starts."""
    weights, size = list(start), len(start)
    for _ in range(_STEPS):
        slope = [_PULL * (given - weight) for given, weight in zip(start, weights, strict=True)]
        curve = [[_PULL if row == column else 0.0 for column in range(size)] for row in range(size)]
        for (row, needed), number in rows.items():
            values = (*row, 1.0)
            odds = sum([weight * value for weight, value in zip(weights, values, strict=True)])
            chance = 1.0 / (1.0 + math.exp(-max(-30.0, min(30.0, odds))))
            error, weight = number * (needed - chance), number * chance * (1.0 - chance)
            for at, value in enumerate(values):
                if value:
                    slope[at] += error * value
                    scaled, line = weight * value, curve[at]
                    for other in range(at + 1):
                        line[other] += scaled * values[other]
        for at in range(size):
            for other in range(at):
                curve[other][at] = curve[at][other]
        step = _solved(curve, slope)
        weights = [weight + change for weight, change in zip(weights, step, strict=True)]
        if max(map(abs, step)) < 1e-4:
            break
    return tuple(weights)


def _solved(matrix: Sequence[Sequence[float]], right: Sequence[float]) -> list[float]:
    """Gauss with pivots: nine unknowns need no library."""
    rows = [[*row, value] for row, value in zip(matrix, right, strict=True)]
    size = len(rows)
    for at in range(size):
        pivot = max(range(at, size), key=lambda row: abs(rows[row][at]))
        rows[at], rows[pivot] = rows[pivot], rows[at]
        for row in range(at + 1, size):
            factor = rows[row][at] / rows[at][at]
            rows[row] = [mine - factor * above for mine, above in zip(rows[row], rows[at], strict=True)]
    found = [0.0] * size
    for at in range(size - 1, -1, -1):
        known = sum(rows[at][column] * found[column] for column in range(at + 1, size))
        found[at] = (rows[at][size] - known) / rows[at][at]
    return found


def _lasting(turns: Sequence[int], given: TurnsLeft) -> TurnsLeft:
    """The median of the turns left at each length; where few sessions came so far, what is given counts for as many."""
    left: list[int] = []
    for so_far, before in zip(given.so_far, given.left, strict=True):
        seen = [total - so_far for total in turns if total > so_far]
        share = len(seen) / (len(seen) + _FEWEST)
        left.append(round(share * median(seen) + (1 - share) * before) if seen else before)
    return TurnsLeft(given.so_far, tuple(left))
