"""Counts tokens; nothing else in pagefold does.

OpenAI's encodings are counted by real BPE with a vocabulary from the wheel: nothing is ever downloaded. Claude's
tokenizer is not public: its families are estimated as o200k times a factor that depends on the content, and a counter
that estimates says so (`exact` is False, `label` says how). With the `claude` extra, `exact=True` counts them by a
reconstruction of the tokenizer instead, about a hundred times slower. A lone surrogate counts as U+FFFD. A word of
thousands of characters is counted from a part of it: `estimates_words` tells for which texts.

The factors are fitted on half of 1,540 messages of recorded agent sessions and checked on the other half against that
reconstruction: off by 5.4 % (Claude 3 to 4.6) and 6.8 % (4.7 and later) a message on average, where one factor for
everything is off by 6.6 and 7.8 %.
"""

import importlib
import json
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
    """Counts with one tokenizer, and caches counts by the length and hash of a text."""

    __slots__ = ("_cached", "_count", "exact", "label", "name")

    def __init__(self, name: str, count: Callable[[str], int], *, exact: bool, label: str) -> None:
        self.name, self.exact, self.label = name, exact, label
        self._count = count
        self._cached: dict[tuple[int, int], int] = {}

    def count(self, text: str) -> int:
        if len(text) < 512:  # cheaper to count than to look up
            return self._count(text)
        # Python's own hash is seeded, so nobody can aim at it, and strings keep it. Any other costs half a count.
        key = len(text), hash(text)
        tokens = self._cached.get(key)
        return self._remember(key, self._count(text)) if tokens is None else tokens

    def count_below(self, header: str, text: str, tokens: int) -> int:
        """Counts a text below a header, where the text alone is that many tokens: it is not counted once more.

        The header ends with a bracket and a line break. A token with a mark such as a bracket takes in the line breaks
        and slashes behind it and ends there, so the text has the same tokens below it as alone.
        """
        whole = header + text
        if self.name not in _ENCODINGS or len(whole) > _LONG or text.startswith(("\n", "\r", "/")):
            return self.count(whole)
        return self._remember((len(whole), hash(whole)), self._count(header) + tokens)

    def _remember(self, key: tuple[int, int], tokens: int) -> int:
        if len(self._cached) >= _CACHED:
            self._cached.clear()
        self._cached[key] = tokens
        return tokens


@cache
def counter(name: str, *, exact: bool = False) -> Counter:
    """Returns the counter of that name, always the same one: a text that one caller counted, another need not count.

    Raises ConfigError for an unknown name, or where `exact` needs an extra.
    """
    if name in _ENCODINGS:
        return Counter(name, _bpe(name), exact=True, label=f"{name}, exact for models of OpenAI only")
    if name not in _FAMILIES:
        raise ConfigError(f"tokens = {name!r}: expected one of {', '.join(NAMES)}")
    column, family, frame = _FAMILIES[name]
    if exact:
        return Counter(name, _reconstructed(family, frame), exact=True, label=f"{name}, by ctok")
    base, factors = counter("o200k").count, {content: columns[column] for content, columns in _FACTORS.items()}

    def estimate(text: str) -> int:
        return round(base(text) * factors[content_of(text)]) if text else 0

    return Counter(name, estimate, exact=False, label=f"{name}, estimated: o200k times a factor by content")


@lru_cache(maxsize=256)
def counter_for(model: str) -> Counter:
    """Returns the counter nearest to a model, by its name; o200k for an unknown one."""
    claude = re.search(r"claude-(?:[a-z]+-)?(\d+)(?:[-.](\d{1,2})(?!\d))?", model)
    if claude:
        version = (int(claude[1]), int(claude[2] or 0))
        return counter("claude-5" if version >= (4, 7) else "claude-3")
    return counter("cl100k" if re.search(r"gpt-(4-|4$|3\.5)", model) else "o200k")


def content_of(text: str) -> str:
    """Tells what a text is like for a tokenizer: data, code or prose, by its share of digits and of punctuation."""
    sample = text[:_SAMPLE]
    # Tables over bytes are fast; regular expressions took three times as long as counting.
    data = sample.encode("utf-8", "surrogatepass")
    if len(data) - len(data.translate(None, _DIGITS)) >= 0.08 * len(sample):
        return "data"
    marks = len(data.translate(None, _NO_PLAIN_MARKS))
    if not sample.isascii():
        marks += len(_NOT_MARK.sub("", data.translate(None, _PLAIN).decode("utf-8", "surrogatepass")))
    return "code" if marks >= 0.08 * len(sample) else "prose"


def estimates_words(text: str) -> bool:
    """Whether a text holds words so long that only a part of them is counted, because whole they take too long."""
    return len(text) > _LONG and any(_WORD.match(text, at) for at in range(0, len(text), _STRETCH))


@cache
def _bpe(name: str) -> Callable[[str], int]:
    # Loading a vocabulary takes 50 ms and 90 MB, so it waits for the first count.
    splintr: Any = importlib.import_module("splintr")
    tokenizer = splintr.Tokenizer.from_pretrained(_ENCODINGS[name])

    def count(text: str) -> int:
        if len(text) > _LONG and estimates_words(text):
            return by_parts(text)
        try:
            # Four bytes for each token instead of an object: a third of the time. But it reads `<|word|>` as special.
            return len(tokenizer.encode_ordinary(text)) if "<|" in text else len(tokenizer.encode_flat(text)) // 4
        except UnicodeEncodeError:
            # Two surrogates together are one character, which JSON puts together faster than any codec of Python's.
            return count(json.loads(json.dumps(_ALONE.sub("\ufffd", text))))

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
