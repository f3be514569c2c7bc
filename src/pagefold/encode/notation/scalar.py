"""Scalars as words: which strings need no quotes, and what a bare word says."""

import json
import re
from functools import lru_cache

from pagefold.encode.notation.json_value import Number, number

_NUMBER = re.compile(r"-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?")
_LIKE_A_NUMBER = re.compile(r"[-+]?[\d.]*\d(?:[eE][-+]?\d+)?|-?Infinity|NaN")
# No sign of ours at the start, none of JSON's anywhere, no space at the ends: the only white space that is printable.
_BARE = re.compile(r'[^ $&*#<!,{}\[\]"\\][^,{}\[\]"\\]*+(?<! )')
_KEY = re.compile(r"[A-Za-z_@][A-Za-z0-9_@/-]*")
_WORDS = {"true": True, "false": False, "null": None}
_NUMERIC = frozenset("0123456789+-.IN")  # what a number, or what looks like one, begins with
_ENDLESS = ("NaN", "Infinity", "-Infinity")
_quote, _quote_ascii = json.encoder.encode_basestring, json.encoder.encode_basestring_ascii
_SAID = {None: "null", True: "true", False: "false"}


def is_clear(text: str) -> bool:
    """Whether a text can stand without quotes where it is known to be a string, or part of one."""
    return text.isprintable() and _BARE.fullmatch(text) is not None


def is_bare(text: str) -> bool:
    """Whether a string can stand without quotes and still be seen to be one."""
    if not text.isprintable() or _BARE.fullmatch(text) is None or text in _WORDS:
        return False
    return text[0] not in _NUMERIC or _LIKE_A_NUMBER.fullmatch(text) is None


def quoted(text: str) -> str:
    # A control or format character is spelled out: nobody sees it otherwise.
    return _quote(text) if text.isprintable() else _quote_ascii(text)


@lru_cache(maxsize=4096)
def key_text(key: str) -> str:
    return key if _KEY.fullmatch(key) else quoted(key)


def scalar_text(value: "str | Number | bool | None") -> str:
    """Anything but a string as JSON spells it; a string bare where that is clear."""
    if isinstance(value, Number):
        return str.__str__(value)
    if isinstance(value, str):
        return value if is_bare(value) else quoted(value)
    return _SAID[value]


def word(text: str) -> "str | Number | bool | None":
    """What a bare word says."""
    if text[0] in _NUMERIC:
        return number(text) if _NUMBER.fullmatch(text) or text in _ENDLESS else text
    return _WORDS.get(text, text)
