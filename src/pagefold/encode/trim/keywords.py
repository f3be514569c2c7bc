"""Extracts the keywords of texts: what the task and the recent turns are about.

A keyword is a whole name or a word in it (`WriteCommittedOptions` is also `write`, `committed`, `options`), in lower
case. Words that are common everywhere are left out.
"""

import re
from collections.abc import Iterable
from functools import lru_cache

_NAME = re.compile(r"[A-Za-z0-9_]{3,}")
_PART = re.compile(r"[A-Z]?[a-z]{2,}|[A-Z]{2,}(?![a-z])|\d{2,}")
_COMMON_WORDS = """
    the and for with that this from are was were has have had not but you your can will should would could
    please make into use using used what when where which how why all any one two new get set let our its out
    off than then them they there here also only just like need want does did done may must been being more most
    some such about after before file files line lines code true false null none type name value text data path
    string description command tool call function return import
"""
_COMMON = frozenset(_COMMON_WORDS.split())


def keywords_of(texts: Iterable[str]) -> frozenset[str]:
    """Returns the keywords of texts: whole names, and the words they are made of."""
    return frozenset(word for text in texts for word in words_of(text)) - _COMMON


def words_of(text: str) -> frozenset[str]:
    return frozenset(word for name in _NAME.findall(text) for word in _words(name))


@lru_cache(maxsize=65536)
def _words(name: str) -> tuple[str, ...]:
    parts = [part.lower() for part in _PART.findall(name) if len(part) >= 3]
    whole = name.lower()
    return (whole, *parts) if parts != [whole] else (whole,)
