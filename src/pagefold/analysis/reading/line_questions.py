"""Questions about lines: which one has a number, which number one has, and what follows across a reference.

Answers come from the original. The form only says where its references begin and end.
"""

import json
import random
import re
from collections import Counter
from collections.abc import Iterator, Mapping

from pagefold.analysis.reading.question import Kind, Question, plain, question, quotable, shuffled, unique

_NUMBERED = re.compile(r" *(\d+)(\t|→|: |:|\|)(.*)")
_REFERENCE = re.compile(r"= lines? (\d+)(?:-(\d+))?\b.* of (?:R[\d.]+|the \w+ you wrote for R[\d.]+|file .+)")
_LEAST_LINES = 8
_SPAN = 3
_NEAR = 12
_FIRST_TITLE = re.compile(r"\[R\d+ lines (\d+)-(\d+)")


def numbered_lines(text: str) -> dict[int, str]:
    """Returns the lines of a file that a result shows with their numbers, by number.

    Empty where there are few, where they do not count up by one, or where a number is there twice.
    """
    lines: dict[int, str] = {}
    sign, last = "", 0
    for line in text.split("\n"):
        numbered = _NUMBERED.fullmatch(line)
        if numbered is None or (sign and numbered[2] != sign):
            continue
        number = int(numbered[1])
        if number in lines or (lines and number != last + 1):
            return {}
        lines[number], sign, last = numbered[3].removesuffix("\r"), numbered[2], number
    return lines if len(lines) >= _LEAST_LINES else {}


def line_questions(original: str, form: str, dice: random.Random) -> Iterator[Question | None]:
    lines = numbered_lines(original)
    if lines:
        yield _line_by_number(lines, dice)
        yield _number_by_line(lines, dice)
        yield _numbered_span(lines, form, dice)
    elif not _is_data(original):
        yield _following_lines(original, form, dice)
        yield _next_line(original, dice)


def _line_by_number(lines: Mapping[int, str], dice: random.Random) -> Question | None:
    asked = [number for number, line in lines.items() if quotable(line)]
    if not asked:
        return None
    number = dice.choice(asked)
    near = [lines[at] for at in asked if 0 < abs(at - number) <= _NEAR]
    return question(
        Kind.LINE_BY_NUMBER, f"What does the line with the number {number} say?", lines[number].strip(), near, dice
    )


def _number_by_line(lines: Mapping[int, str], dice: random.Random) -> Question | None:
    once = unique(lines.values())
    asked = [number for number, line in lines.items() if quotable(line) and line in once]
    if not asked:
        return None
    number = dice.choice(asked)
    near = [str(at) for at in lines if 0 < abs(at - number) <= _NEAR]
    text = f"Which number does the line `{lines[number].strip()}` have?"
    return question(Kind.NUMBER_BY_LINE, text, str(number), near, dice)


def _numbered_span(lines: Mapping[int, str], form: str, dice: random.Random) -> Question | None:
    """Three lines, at least one of which a reference stands for and one not."""
    title = _FIRST_TITLE.search(form)
    if title is None or int(title[1]) not in lines:
        return None  # the references of this form do not count the file's own lines
    for edge in shuffled(_edges(form), dice):
        span = range(edge - 1, edge - 1 + _SPAN)
        if all(number in lines for number in span) and all(lines[number].strip() for number in span):
            said = "\n".join(lines[number] for number in span)
            shifts = [range(at, at + _SPAN) for at in range(edge - _NEAR, edge + _NEAR)]
            others = ["\n".join(lines[n] for n in shift) for shift in shifts if all(n in lines for n in shift)]
            text = f"What do the lines with the numbers {span[0]} to {span[-1]} say, in order?"
            return question(Kind.SPAN, text, said, others, dice)
    return None


def _following_lines(original: str, form: str, dice: random.Random) -> Question | None:
    """The two lines after one that stands before a reference, where lines have no numbers."""
    shown = form.split("\n")
    lines = [line.removesuffix("\r") for line in original.split("\n") if line.strip()]
    counts = Counter(map(plain, lines))
    before = [at - 1 for at, line in enumerate(shown) if at and _REFERENCE.fullmatch(line)]
    for at in shuffled(before, dice):
        anchor = shown[at]
        if not quotable(anchor) or counts[plain(anchor)] != 1 or anchor not in lines:
            continue
        place = lines.index(anchor)
        said = lines[place + 1 : place + _SPAN]
        if len(said) < _SPAN - 1 or not all(line.isprintable() or "\t" in line for line in said):
            continue
        others = ["\n".join(lines[it : it + _SPAN - 1]) for it in range(max(0, place - _NEAR), place + _NEAR)]
        text = f"Which two lines that are not blank come next after the line `{anchor.strip()}`?"
        return question(Kind.SPAN, text, "\n".join(said), others, dice)
    return None


def _next_line(original: str, dice: random.Random) -> Question | None:
    """The line after another one, where lines have no numbers."""
    lines = [line.removesuffix("\r") for line in original.split("\n") if line.strip()]
    once = unique(lines)
    asked = [
        at for at in range(len(lines) - 1) if quotable(lines[at]) and lines[at] in once and quotable(lines[at + 1])
    ]
    if len(lines) < _LEAST_LINES or not asked:
        return None
    at = dice.choice(asked)
    text = f"Which line that is not blank comes next after the line `{lines[at].strip()}`?"
    near = [line for line in lines[max(0, at - _NEAR) : at + _NEAR] if quotable(line) and line != lines[at]]
    return question(Kind.NEXT_LINE, text, lines[at + 1].strip(), near, dice)


def _is_data(text: str) -> bool:
    """Whether a text is JSON, whose lines mean nothing: a form may set them otherwise."""
    if text[:1] not in ("{", "["):
        return False
    try:
        json.loads(text)
    except (ValueError, RecursionError):
        return text.startswith(('{"', "[{", "{\n", "[\n"))  # cut off, perhaps
    return True


def _edges(form: str) -> list[int]:
    """Returns the numbers of lines at which a reference begins or what follows one begins."""
    edges: list[int] = []
    for line in form.split("\n"):
        if reference := _REFERENCE.fullmatch(line):
            first = int(reference[1])
            edges += [first, int(reference[2] or first) + 1]
    return edges
