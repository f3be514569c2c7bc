"""Writes scalars in the notation, quoting strings only where needed, and reads bare words."""

import json
import re
from functools import lru_cache

from pagefold.encode.notation.json_value import LITERALS, Number, number

_NUMBER = re.compile(r"-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?")
_LIKE_A_NUMBER = re.compile(r"[-+]?[\d.]*\d(?:[eE][-+]?\d+)?|-?Infinity|NaN")
# No sign of the notation at the start, none of JSON's anywhere, no space at the ends.
_BARE = re.compile(r'[^ $&*#<!,{}\[\]"\\][^,{}\[\]"\\]*+(?<! )')
_KEY = re.compile(r"[A-Za-z_@][A-Za-z0-9_@/-]*")
_WORDS = {"true": True, "false": False, "null": None}
_NUMERIC = frozenset("0123456789+-.IN")  # what a number, or what looks like one, begins with
_ENDLESS = ("NaN", "Infinity", "-Infinity")
_quote, _quote_ascii = json.encoder.encode_basestring, json.encoder.encode_basestring_ascii


def is_clear(text: str) -> bool:
    """Whether a text needs no quotes where only a string, or a part of one, can stand."""
    return text.isprintable() and _BARE.fullmatch(text) is not None


def is_bare(text: str) -> bool:
    """Whether a string needs no quotes to be told from a number or a literal."""
    if not text.isprintable() or _BARE.fullmatch(text) is None or text in _WORDS:
        return False
    return text[0] not in _NUMERIC or _LIKE_A_NUMBER.fullmatch(text) is None


def quoted(text: str) -> str:
    # Control and format characters are escaped, because they are invisible.
    return _quote(text) if text.isprintable() else _quote_ascii(text)


@lru_cache(maxsize=4096)
def key_text(key: str) -> str:
    return key if _KEY.fullmatch(key) else quoted(key)


def scalar_text(value: "str | Number | bool | None") -> str:
    """Writes a scalar as JSON does, a string without quotes where that is unambiguous."""
    if isinstance(value, Number):
        return str.__str__(value)
    if isinstance(value, str):
        return value if is_bare(value) else quoted(value)
    return LITERALS[value]


def word(text: str) -> "str | Number | bool | None":
    """Reads a bare word."""
    if text[0] in _NUMERIC:
        return number(text) if _NUMBER.fullmatch(text) or text in _ENDLESS else text
    return _WORDS.get(text, text)
