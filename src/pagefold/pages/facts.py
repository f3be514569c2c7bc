"""Finds facts in a text: identifier-like words that a later answer may need.

A word is a fact if it is long, or has a digit, an underscore or an inner capital. Policies are measured by the facts
they keep, and lines without a fact are the first to go.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache

# A word of at least four characters, and not only small letters, at most nine, after the first letter.
_FACT = re.compile(r"\b(?![A-Za-z][a-z]{0,8}+\b)\w{4,}+", re.ASCII)

find_facts: Callable[[str], list[str]] = _FACT.findall
"""Returns the facts of a text in order, each as often as it is there."""


def facts_of(text: str) -> frozenset[str]:
    return frozenset(find_facts(text))


def is_identifier(fact: str) -> bool:
    """Whether a fact is more than a long plain word, which any text may hold: only such a name is asked for again."""
    return not (fact.isalpha() and fact[1:].islower())


@lru_cache(maxsize=1 << 10)
def lines_with_facts(lines: tuple[str, ...]) -> Mapping[str, Sequence[int]]:
    """By each fact of these lines, the indexes of those that hold it; remembered, as known runs of files stay."""
    places: dict[str, list[int]] = {}
    for index, line in enumerate(lines):
        for fact in set(find_facts(line)):
            places.setdefault(fact, []).append(index)
    return places


def opened(text: str) -> str:
    """Undoes one level of JSON string escapes, so that a text has the same facts inside and outside an envelope."""
    return text.replace("\\n", "\n").replace("\\t", "\t").replace('\\"', '"') if "\\" in text else text
