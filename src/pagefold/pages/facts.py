"""Finds facts in a text: identifier-like words that a later answer may need.

A word is a fact if it is long, or has a digit, an underscore or an inner capital. Policies are measured by the facts
they keep, and lines without a fact are the first to go.
"""

import re
from collections.abc import Callable

_WORD = re.compile(r"[A-Za-z0-9_]{4,}")
_MARKED = re.compile(r"[0-9_]|.[A-Z]")
_LONG = 10
_REMEMBERED = 1 << 16


class _FactCache(dict[str, bool]):
    """Remembers which words are facts. Unlike in an lru_cache, the garbage collector does not visit the entries."""

    def __missing__(self, word: str) -> bool:
        if len(self) >= _REMEMBERED:
            self.clear()
        is_one = self[word] = len(word) >= _LONG or _MARKED.search(word) is not None
        return is_one


words_of = _WORD.findall
is_fact: Callable[[str], bool] = _FactCache().__getitem__
"""Whether a word is a fact."""


def facts_of(text: str) -> frozenset[str]:
    return frozenset(filter(is_fact, words_of(text)))


def opened(text: str) -> str:
    """Undoes one level of JSON string escapes, so that a text has the same facts inside and outside an envelope."""
    return text.replace("\\n", "\n").replace("\\t", "\t").replace('\\"', '"') if "\\" in text else text
