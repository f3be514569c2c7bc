"""The only place that counts tokens.

OpenAI's encodings are counted by real BPE whose vocabulary lies in the wheel: nothing is ever downloaded. Claude's
tokenizer is not public: its families are estimated as o200k times a factor by content, and a counter that estimates
says so (`exact` is False, `label` says how). With the `claude` extra installed, `exact=True` counts them by a
reconstruction of the tokenizer instead, about a hundred times slower. A lone surrogate is no text and counts as U+FFFD.
A word of thousands of characters is counted by a part of it: `estimates_words` tells where.

The factors are fitted on half of 1,540 messages of recorded agent sessions and checked on the other half against that
reconstruction: off by 5.4 % (Claude 3 to 4.6) and 6.8 % (4.7 and later) a message on average, where one factor for
everything is off by 6.6 and 7.8 %.
"""

import importlib
import re
from collections.abc import Callable, Mapping
from functools import cache, lru_cache
from typing import Any

from pagefold.errors import ConfigError

FRAME = 4
"""Tokens that a message costs besides its text: role and separators."""

_ENCODINGS = {"o200k": "o200k_base", "cl100k": "cl100k_base"}
_CACHED = 50_000
_SAMPLE = 4_000

# content -> (Claude 3 to 4.6, Claude 4.7 and later), relative to o200k
_FACTORS: Mapping[str, tuple[float, float]] = {
    "data": (1.159, 1.449),
    "code": (1.208, 1.607),
    "prose": (1.113, 1.525),
}
_FAMILIES = {"claude-3": (0, "3.0", 7), "claude-5": (1, "5.0", 6)}  # factor column, ctok's name, its frame

NAMES = (*_ENCODINGS, *_FAMILIES)

_LONG = 40_000  # shorter texts are counted in time whatever they hold
_SLICE = 16_384
_STRETCH = _SLICE // 2  # a word as long as a slice fills one of these
_WORD = re.compile(rf"[^\W\d_]{{{_STRETCH}}}|[^\w\s]{{{_STRETCH}}}|\s{{{_STRETCH}}}")
_NOT_MARK = re.compile(r"[\w\s]+")
_DIGITS, _PLAIN = b"0123456789", bytes(range(128))
_NO_PLAIN_MARKS = bytes(byte for byte in range(256) if byte > 127 or _NOT_MARK.match(chr(byte)))

_ALONE = re.compile("[\ud800-\udbff](?![\udc00-\udfff])|(?<![\ud800-\udbff])[\udc00-\udfff]")


class Counter:
    """Counts by one tokenizer and remembers, by length and hash, what it has counted."""

    __slots__ = ("_count", "_known", "exact", "label", "name")

    def __init__(self, name: str, count: Callable[[str], int], *, exact: bool, label: str) -> None:
        self.name, self.exact, self.label = name, exact, label
        self._count = count
        self._known: dict[tuple[int, int], int] = {}

    def count(self, text: str) -> int:
        if len(text) < 512:  # cheaper to count than to look up
            return self._count(text)
        # Python's own hash: seeded, so nobody can aim at it, and a string keeps it. A slower one costs half a counting.
        key = len(text), hash(text)
        found = self._known.get(key)
        if found is None:
            if len(self._known) >= _CACHED:
                self._known.clear()
            found = self._known[key] = self._count(text)
        return found


@cache
def counter(name: str = "o200k", *, exact: bool = False) -> Counter:
    """The counter of that name. Raises ConfigError for an unknown name, or where `exact` needs an extra."""
    if name in _ENCODINGS:
        return Counter(name, _bpe(name), exact=True, label=f"{name}, exact")
    if name not in _FAMILIES:
        raise ConfigError(f"tokens = {name!r}: expected one of {', '.join(NAMES)}")
    column, family, frame = _FAMILIES[name]
    if exact:
        return Counter(name, _reconstructed(family, frame), exact=True, label=f"{name}, by ctok")
    base, factors = _bpe("o200k"), {content: columns[column] for content, columns in _FACTORS.items()}

    def estimate(text: str) -> int:
        return round(base(text) * factors[content_of(text)]) if text else 0

    return Counter(name, estimate, exact=False, label=f"{name}, estimated: o200k times a factor by content")


@lru_cache(maxsize=256)
def counter_for(model: str) -> Counter:
    """The counter nearest to a model, by its name; where nothing is known about it, o200k."""
    found = re.search(r"claude-(?:[a-z]+-)?(\d+)(?:[-.](\d{1,2})(?!\d))?", model)
    if found:
        version = (int(found[1]), int(found[2] or 0))
        return counter("claude-5" if version >= (4, 7) else "claude-3")
    return counter("cl100k" if re.search(r"gpt-(4-|4$|3\.5)", model) else "o200k")


def content_of(text: str) -> str:
    """What a text is like for a tokenizer: data, code or prose, by its share of digits and of marks."""
    sample = text[:_SAMPLE]
    # As bytes, of which a table leaves some out at once: by patterns this took three times as long as counting.
    data = sample.encode("utf-8", "surrogatepass")
    if len(data) - len(data.translate(None, _DIGITS)) >= 0.08 * len(sample):
        return "data"
    marks = len(data.translate(None, _NO_PLAIN_MARKS))
    if not sample.isascii():
        marks += len(_NOT_MARK.sub("", data.translate(None, _PLAIN).decode("utf-8", "surrogatepass")))
    return "code" if marks >= 0.08 * len(sample) else "prose"


def estimates_words(text: str) -> bool:
    """Whether words of a text are so long that they are counted by a part: whole they would take far longer."""
    return len(text) > _LONG and any(_WORD.match(text, at) for at in range(0, len(text), _STRETCH))


@cache
def _bpe(name: str) -> Callable[[str], int]:
    # Loading a vocabulary takes 50 ms and 90 MB: only who counts pays for it.
    splintr: Any = importlib.import_module("splintr")
    tokenizer = splintr.Tokenizer.from_pretrained(_ENCODINGS[name])

    def count(text: str) -> int:
        if len(text) > _LONG and estimates_words(text):
            return by_parts(text)
        try:
            # Four bytes a token, without an object for each: a third of the time. But it takes `<|word|>` for a sign.
            return len(tokenizer.encode_ordinary(text)) if "<|" in text else len(tokenizer.encode_flat(text)) // 4
        except UnicodeEncodeError:
            # Two halves together are one character. Those alone go first: decoding calls back for each of them.
            return count(_ALONE.sub("\ufffd", text).encode("utf-16", "surrogatepass").decode("utf-16"))

    def by_parts(text: str) -> int:
        tokens = 0.0
        for at in range(0, len(text), _SLICE):
            part = text[at : at + _SLICE]
            sample = part[: _SLICE // 4] if _WORD.match(part) else part
            tokens += count(sample) * len(part) / len(sample)
        return round(tokens)

    return count


def _reconstructed(family: str, frame: int) -> Callable[[str], int]:
    try:
        ctok: Any = importlib.import_module("ctok")
    except ImportError as error:
        raise ConfigError("exact Claude counts need the extra: pip install 'pagefold[claude]'") from error
    return lambda text: int(ctok.token_count(text, family)) - frame if text else 0
