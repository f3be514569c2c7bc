"""Rates what showing each piece of a text is worth.

A piece is worth the facts (names, numbers, paths) that it is the first to hold. Facts that the text uses often, and
those that are keywords, are worth more. Earlier pieces are worth a little more, and where no keyword matches, clearly
more: order is then the only signal.
"""

import math
from collections import Counter
from collections.abc import Collection, Sequence

from pagefold.encode.trim.keywords import words_of
from pagefold.pages.facts import facts_of

_LEAST = 0.03  # of any piece: reading on from one line to the next is worth something
_NAMED = 3.0  # a fact that is itself a keyword
_RELATED = 0.5  # for each word it shares with the keywords
_ORDER, _ORDER_ALONE = 0.3, 0.7


def piece_values(pieces: Sequence[str], keywords: Collection[str], later: Collection[int] = ()) -> list[float]:
    """Returns one value for each piece. Pieces whose index is in `later` are credited only with what no other holds."""
    facts = [facts_of(piece) for piece in pieces]
    often = Counter(fact for held in facts for fact in held)
    weights = {fact: _weight(fact, times, keywords) for fact, times in often.items()}
    matched = any(weight > _plain(often[fact]) for fact, weight in weights.items())
    slope = (_ORDER if matched else _ORDER_ALONE) / max(1, len(pieces))
    seen: set[str] = set()
    values = [0.0] * len(pieces)
    for index in sorted(range(len(pieces)), key=lambda index: (index in later, index)):
        if pieces[index].strip():
            fresh = facts[index] - seen
            seen |= fresh
            values[index] = (_LEAST + math.fsum(weights[fact] for fact in sorted(fresh))) * (1 - slope * index)
    return values


def _weight(fact: str, times: int, keywords: Collection[str]) -> float:
    weight = _plain(times)
    if fact.lower() in keywords:
        return weight + _NAMED
    shared = sum(1 for word in words_of(fact) if word in keywords) if keywords else 0
    return weight + _RELATED * shared


def _plain(times: int) -> float:
    """Returns what a fact is worth that is no keyword."""
    return 1 + math.log(times) / 2
