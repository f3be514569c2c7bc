"""Finds the lines that tell most about a text: errors first, then signatures, headings, files and hunks.

A line is an alarm (an error, a failure, a fatal line), a sign (a signature, a heading, a file's first hit) or nothing.
Alarms are looked for where a text reports something; in source code the word "error" is only a name.
"""

import re
from collections.abc import Sequence
from enum import IntEnum

from pagefold.encode.shape import HEADING, NUMBERED, TextShape, shape_of_lines

HIT = re.compile(r"((?:[A-Za-z]:)?[^\s:][^:\n]{0,300}?)([:-])(\d+)\2")
_ALARM = re.compile(
    r"\b(?:ERROR|FATAL|CRITICAL|PANIC|SEVERE|EMERG|ALERT|FAILED|FAILURE|FAIL|Traceback|Exception|panic)\b"
    r"|Segmentation fault"
    r"|\b\w+(?:Error|Exception)\b:|\b(?:error|fatal|failed)\b(?:\[\w+\])?:|^E  |\berror TS\d+|✗|✘|✕"
    r"|\blevel\"?[=:]\s?\"?(?:error|fatal)",
)
_NO_ALARM = re.compile(r"\b0 (?:errors?|failed|failures?)\b|\b(?:no|without) (?:errors?|failures?)\b", re.IGNORECASE)
_SYMBOL = re.compile(
    r"\s*(?:(?:export|default|public|private|protected|internal|static|async|pub(?:\([^)]*\))?|abstract|final|override"
    r"|virtual|inline|extern|unsafe|declare)\s+)*"
    r"(?:(?:def|class|func|fn|function|interface|struct|enum|impl|trait|module|namespace|protocol|record|object|mod|macro_rules!)\b"
    r"|type\s+\w+|(?:const|let|var)\s+\w+\s*(?::[^=]+)?=\s*(?:async\s*)?(?:\(|function|\w+\s*=>))"
)
_C_SYMBOL = re.compile(r"(?:[A-Za-z_][\w:<>,*&~\[\]]*\s+)+[*&]?~?[A-Za-z_][\w:]*\s*\([^;]*$")
_NO_SYMBOL = re.compile(r"(?:return|else|if|for|while|switch|case|throw|new|delete|await|yield)\b")
_DIFF_SIGN = re.compile(r"diff --git |Index: |@@ ")
_TEST_SIGN = re.compile(
    r"=+ .*(?:FAILURES|ERRORS|summary|passed|failed)|_{3,} \S.* _{3,}|(?:--- )?FAIL\b|FAILED\b|Ran \d+ |\s*Tests?:"
    r"|# (?:pass|fail)|(?:not ok)\b|Exit code|exit status"
)


class Landmark(IntEnum):
    NONE = 0
    SIGN = 1
    ALARM = 2


def bare(line: str, shape: TextShape) -> str:
    """Returns a line of a text of this shape without the number before it, if it has one."""
    return NUMBERED.sub("", line, count=1) if shape is TextShape.NUMBERED else line


def without_numbers(lines: Sequence[str], shape: TextShape) -> tuple[Sequence[str], TextShape]:
    """Returns the lines of a numbered file without numbers, and what shape they have; other lines as they are."""
    if shape is not TextShape.NUMBERED:
        return lines, shape
    lines = [bare(line, shape) for line in lines]
    inner = shape_of_lines(lines)
    return lines, inner if inner in (TextShape.MARKDOWN, TextShape.LOG) else TextShape.SOURCE


def landmarks(lines: Sequence[str], shape: TextShape) -> list[Landmark]:
    """Returns one landmark for each line."""
    lines, shape = without_numbers(lines, shape)
    if shape is TextShape.SOURCE:
        return [Landmark.SIGN if is_symbol(line) else Landmark.NONE for line in lines]
    if shape is TextShape.HITS:
        return _first_hits(lines)
    sign = {TextShape.DIFF: _DIFF_SIGN, TextShape.TESTS: _TEST_SIGN, TextShape.MARKDOWN: HEADING}.get(shape)
    marks = [Landmark.SIGN if sign is not None and sign.match(line) else Landmark.NONE for line in lines]
    if shape in (TextShape.LOG, TextShape.TESTS, TextShape.TEXT):
        marks = [Landmark.ALARM if is_alarm(line) else mark for line, mark in zip(lines, marks, strict=True)]
    if lines and shape in (TextShape.LOG, TextShape.TEXT, TextShape.LISTING, TextShape.TESTS):
        marks[0] = max(marks[0], Landmark.SIGN)
        marks[-1] = max(marks[-1], Landmark.SIGN)
    return marks


def is_alarm(line: str) -> bool:
    """Whether a line reports an error, a failure or worse, and not their absence."""
    return _ALARM.search(line) is not None and not _NO_ALARM.search(line)


def is_symbol(line: str) -> bool:
    """Whether a line of source defines something with a name."""
    if _SYMBOL.match(line):
        return True
    return not line[:1].isspace() and _C_SYMBOL.match(line) is not None and not _NO_SYMBOL.match(line)


def _first_hits(lines: Sequence[str]) -> list[Landmark]:
    seen: set[str] = set()
    marks: list[Landmark] = []
    for line in lines:
        hit = HIT.match(line)
        fresh = hit is not None and hit[2] == ":" and hit[1] not in seen
        if hit is not None and fresh:
            seen.add(hit[1])
        marks.append(Landmark.SIGN if fresh else Landmark.NONE)
    return marks
