"""Fits, on recorded sessions, what the economic policy estimates: whether a fact is needed again, and the turns left.

At moments along every session, each fact that has not been mentioned for a few turns is one observation: was its next
mention an answer of the assistant (a need), or did it come back by itself, or never? A logistic regression on what was
known at that moment gives the weights. With few observations the weights stay near those given.
"""

import math
from bisect import bisect_right
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median

from pagefold.derive.remaining import SHIPPED as LASTING
from pagefold.derive.remaining import TurnsLeft
from pagefold.derive.values import NEVER, SHIPPED, Mentions, Priors, features, mentioned
from pagefold.pages.facts import facts_of, opened
from pagefold.wire.message import Message, Role

_EVERY = 12  # turns between two moments
_AFTER = 8_000 * 4  # characters of history before the first moment: earlier nothing is folded
_QUIET = 6  # turns without a mention before a fact can be folded
_STEPS = 8
_PULL = 50.0  # weight of the given values, like two hundred observations that agree with them
_FEWEST = 8  # weight of the given turns left, in sessions


@dataclass(frozen=True, slots=True)
class FittedValues:
    """What was learned, from `asked` observations of which `needed` were a need."""

    priors: Priors
    lasting: TurnsLeft
    sessions: int
    asked: int
    needed: int


Observed = Counter[tuple[tuple[float, ...], bool]]
"""Counts of observations: the features of a fact at a moment, and whether it was needed."""


def fitted(
    rows: Observed, turns: Sequence[int], *, priors: Priors = SHIPPED, lasting: TurnsLeft = LASTING
) -> FittedValues:
    """Returns the weights and the turns left that fit these observations and lengths of sessions, near those given."""
    needed = sum(number for (_, was), number in rows.items() if was)
    asked = rows.total()
    # Sorted, so that floating-point sums do not depend on the order in which sessions were read.
    ordered: Observed = Counter(dict(sorted(rows.items())))
    weights = _regressed(ordered, (*priors.weights(), priors.bias)) if asked else (*priors.weights(), priors.bias)
    learned = Priors(*(round(weight, 3) for weight in weights))
    return FittedValues(learned, _turns_left(turns, lasting), len(turns), asked, needed)


def turns_of(messages: Sequence[Message]) -> int:
    return sum(message.role is Role.ASSISTANT for message in messages)


def observed(messages: Sequence[Message]) -> Observed:
    """Returns the observations of one session."""
    rows: Observed = Counter()
    facts = [facts_of(opened(message.text)) for message in messages]
    own = [message.role is Role.ASSISTANT for message in messages]
    places: dict[str, list[int]] = {}
    for place, here in enumerate(facts):
        for fact in here:
            places.setdefault(fact, []).append(place)
    mentions: dict[str, Mentions] = {}
    turn, last, characters = 0, -_EVERY, 0
    for place, message in enumerate(messages):
        if own[place] and characters > _AFTER and turn - last >= _EVERY:
            last = turn
            for fact, so_far in mentions.items():
                if turn - so_far[0] >= _QUIET:
                    following = bisect_right(places[fact], place - 1)
                    needed = following < len(places[fact]) and own[places[fact][following]]
                    rows[features(fact, so_far, turn), needed] += 1
        user = message.role is Role.USER
        for fact in facts[place]:
            mentions[fact] = mentioned(mentions.get(fact, NEVER), turn, place, own=own[place], user=user)
        characters += len(message.text)
        turn += own[place]
    return rows


def _regressed(rows: Observed, start: Sequence[float]) -> tuple[float, ...]:
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
            for index, value in enumerate(values):
                if value:
                    slope[index] += error * value
                    scaled, line = weight * value, curve[index]
                    for other in range(index + 1):
                        line[other] += scaled * values[other]
        for index in range(size):
            for other in range(index):
                curve[other][index] = curve[index][other]
        step = _solved(curve, slope)
        weights = [weight + change for weight, change in zip(weights, step, strict=True)]
        if max(map(abs, step)) < 1e-4:
            break
    return tuple(weights)


def _solved(matrix: Sequence[Sequence[float]], right: Sequence[float]) -> list[float]:
    """Solves linear equations by Gaussian elimination with pivots: nine unknowns need no library."""
    rows = [[*row, value] for row, value in zip(matrix, right, strict=True)]
    size = len(rows)
    for index in range(size):
        pivot = max(range(index, size), key=lambda row: abs(rows[row][index]))
        rows[index], rows[pivot] = rows[pivot], rows[index]
        for row in range(index + 1, size):
            factor = rows[row][index] / rows[index][index]
            rows[row] = [mine - factor * above for mine, above in zip(rows[row], rows[index], strict=True)]
    solution = [0.0] * size
    for index in range(size - 1, -1, -1):
        solved = sum(rows[index][column] * solution[column] for column in range(index + 1, size))
        solution[index] = (rows[index][size] - solved) / rows[index][index]
    return solution


def _turns_left(turns: Sequence[int], given: TurnsLeft) -> TurnsLeft:
    """The median of the turns left at each length. Where few sessions came so far, it stays near what is given."""
    left: list[int] = []
    for so_far, before in zip(given.so_far, given.left, strict=True):
        seen = [total - so_far for total in turns if total > so_far]
        share = len(seen) / (len(seen) + _FEWEST)
        left.append(round(share * median(seen) + (1 - share) * before) if seen else before)
    return TurnsLeft(given.so_far, tuple(left))
