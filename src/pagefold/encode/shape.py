"""Recognises what kind of text a text is: JSON, log, diff, source code and so on.

That is enough to cut it along its structure and to name it in a few words. Only its lines count, never a file's name,
so the same text always has the same shape. What nothing else fits is plain text.
"""

import json
import re
from collections.abc import Sequence
from enum import StrEnum
from functools import lru_cache
from typing import Any

_SAMPLE = 400  # lines that are looked at
NUMBERED = re.compile(r" *(\d{1,15})(?:→|\t)")
"""Matches the number before a line of a numbered file."""
_HIT = re.compile(r"(?:[A-Za-z]:)?[^\s:][^:\n]{0,300}[:-]\d+[:-]")
_STAMP = re.compile(
    r"\W{0,2}(?:\d{4}[-/]\d\d[-/]\d\d[T ]|\w{3} [ \d]\d )?\d\d:\d\d:\d\d|.{0,40}\b(?:INFO|DEBUG|TRACE|WARN)"
)
_DIFF = re.compile(r"diff --git |@@ -\d+(?:,\d+)? \+\d+(?:,\d+)? @@|Index: ")
_TESTED = re.compile(
    r"=+ (?:FAILURES|ERRORS|test session starts|short test summary)|(?:--- )?(?:FAIL|PASS|ok|FAILED|PASSED)\b[ :\t]"
    r"|.*\b(?:PASSED|FAILED|XFAIL)\b *(?:\[ *\d+%\])?$|Ran \d+ tests? in |test \S+ \.\.\. (?:ok|FAILED)"
    r"|=== RUN |# (?:pass|fail) \d+"
)
_TEST_WORDS = (
    *("PASS", "FAIL", "\nok", "--- ok", "ERRORS", "test session starts", "short test summary"),
    *("\nRan ", "\ntest ", "=== RUN", "\n# pass ", "\n# fail "),
)  # one of them stands wherever _TESTED matches
_LEVELS = ("INFO", "DEBUG", "TRACE", "WARN")
HEADING = re.compile(r"(#{1,6}) \S")
_PATH = re.compile(r"(?:[-dlrwxs.@+]{10,11} .*|(?:\.{0,2}/)?[\w.@+-]+(?:/[\w.@+ -]+)*/?)$")
_CODE = re.compile(
    r"\s*(?:(?:export|public|private|protected|static|async|pub|abstract|final)\s+)*"
    r"(?:def|class|func|fn|function|interface|struct|enum|impl|module|namespace|trait|type|package|import|from|use|#include"
    r"|const|let|var|return|if|for|while)\b.*|.*[{};]\s*$"
)

_DEFINED = re.compile(
    r"\s*(?:async )?def \w+\(|\s*class \w+[:({ ]|from [\w.]+ import |import [\w.{\"]+|func [\w(]|package \w+$"
    r"|#include [<\"]|(?:export |pub |public |private )+\w"
)


class TextShape(StrEnum):
    JSON = "JSON"
    NUMBERED = "numbered file"
    DIFF = "diff"
    TESTS = "test output"
    LOG = "log"
    HITS = "search hits"
    MARKDOWN = "markdown"
    SOURCE = "source"
    LISTING = "listing"
    TEXT = "text"


def shape_of(text: str) -> TextShape:
    return TextShape.JSON if json_of(text) is not None else shape_of_lines(text.split("\n"))


@lru_cache(maxsize=2)
def json_of(text: str) -> dict[str, Any] | list[Any] | None:
    """Returns the object or list that a text is as strict JSON, or None. Cached: one text is asked about repeatedly."""
    if text.lstrip()[:1] not in ("{", "["):
        return None
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict | list) else None


def shape_of_lines(lines: Sequence[str]) -> TextShape:
    sample = [line for line in lines[:_SAMPLE] if line.strip()]
    least = max(3, len(sample) // 2)
    if _holds(NUMBERED, sample, least):
        return TextShape.NUMBERED
    if any(map(_DIFF.match, sample)):
        return TextShape.DIFF
    tested = [*sample, *(line for line in lines[-20:] if line.strip())]
    text = "\n".join(["", *tested])
    # Patterns that try each place of a line are asked only where the text holds what they look for.
    if any(map(text.__contains__, _TEST_WORDS)) and _holds(_TESTED, tested, 1 if len(sample) < 12 else 3):
        return TextShape.TESTS
    if text.count(":") // 2 + sum(map(text.count, _LEVELS)) >= least and _holds(_STAMP, sample, least):
        return TextShape.LOG
    if _holds(_HIT, sample, least):
        return TextShape.HITS
    if _holds(_PATH, sample, max(3, len(sample) * 4 // 5)):
        return TextShape.LISTING
    fenced = any(line.startswith("```") for line in sample)
    if not fenced and (_holds(_DEFINED, sample, 3) or _holds(_CODE, sample, max(3, len(sample) // 4))):
        return TextShape.SOURCE
    return TextShape.MARKDOWN if _holds(HEADING, sample, 2) else TextShape.TEXT


def _holds(pattern: re.Pattern[str], lines: Sequence[str], least: int) -> bool:
    """Whether a pattern matches so many lines; stops where that is clear."""
    match, lacking, left = pattern.match, least, len(lines)
    for line in lines:
        if lacking > left:
            return False
        left -= 1
        if match(line):
            lacking -= 1
            if not lacking:
                return True
    return False
