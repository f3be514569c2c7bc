"""A question with one exact answer, and what the makers of questions share."""

import random
from collections import Counter
from collections.abc import Iterable, Sequence
from enum import StrEnum

from pagefold.frozen import frozen

MOST_WRONG = 3
"""Wrong answers that a question is offered with."""

_SHORTEST, _LONGEST = 8, 120


class Kind(StrEnum):
    LINE_BY_NUMBER = "line by number"
    NUMBER_BY_LINE = "number by line"
    NEXT_LINE = "line after a line"
    SPAN = "span across references"
    VALUE_BY_KEY = "value by key"
    ROW_BY_CONDITION = "row by condition"
    TIME_OF_LINE = "time of a log line"
    FILE_OF_HIT = "file of a hit"
    PATH_BY_NAME = "path by name"
    OUTCOME = "did the action succeed"


@frozen
class Question:
    """`wrong` are other answers of the same sort, for a choice: they stand in the same result, or would if it had ended
    otherwise."""

    kind: Kind
    text: str
    answer: str
    wrong: tuple[str, ...]


def question(kind: Kind, text: str, answer: str, others: Iterable[str], dice: random.Random) -> Question | None:
    """Returns a question with some of the other answers, or None where there is no other answer to tell it from."""
    wrong = sorted({other for other in others if plain(other) and plain(other) != plain(answer)})
    if not wrong or not plain(answer):
        return None
    return Question(kind, text, answer, tuple(dice.sample(wrong, min(MOST_WRONG, len(wrong)))))


def plain(text: str) -> str:
    """Returns a text with white space told apart from other signs only: answers are compared like this."""
    return " ".join(text.split())


def quotable(line: str) -> bool:
    """Whether a line says enough to be asked for, and can be put between backticks without being changed."""
    said = line.strip()
    fits = _SHORTEST <= len(said) <= _LONGEST and "`" not in said
    return fits and said.replace("\t", " ").isprintable() and any(map(str.isalnum, said))


def unique(texts: Iterable[str]) -> set[str]:
    """Returns those texts that are there once, white space aside."""
    texts = list(texts)
    counts = Counter(map(plain, texts))
    return {text for text in texts if counts[plain(text)] == 1}


def shuffled(items: Sequence[int], dice: random.Random) -> list[int]:
    return dice.sample(items, len(items))
