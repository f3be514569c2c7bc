"""Facts: identifier-like words, the things a later answer may need to name.

A word is a fact if it is long, or has a digit, an underscore or an inner capital. A policy is measured by facts, and
they tell a line that says something from one that only closes a bracket.
"""

import re
from collections.abc import Callable

_WORD = re.compile(r"[A-Za-z0-9_]{4,}")
_MARKED = re.compile(r"[0-9_]|.[A-Z]")
_LONG = 10
_REMEMBERED = 1 << 16


class _FactCache(dict[str, bool]):
    """Which words are facts. The collector of garbage walks through every entry of an lru_cache, and none of these."""

    def __missing__(self, word: str) -> bool:
        if len(self) >= _REMEMBERED:
            self.clear()
        found = self[word] = len(word) >= _LONG or _MARKED.search(word) is not None
        return found


words_of = _WORD.findall
is_fact: Callable[[str], bool] = _FactCache().__getitem__
"""Whether a word is a fact."""


def facts_of(text: str) -> frozenset[str]:
    return frozenset(filter(is_fact, words_of(text)))


def opened(text: str) -> str:
    """Text inside a JSON string, opened one level, so that an opened envelope holds the same facts as a closed one."""
    return text.replace("\\n", "\n").replace("\\t", "\t").replace('\\"', '"') if "\\" in text else text
