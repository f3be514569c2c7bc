"""Questions about logs, search hits, listings and outcomes."""

import random
import re
from collections.abc import Iterator, Sequence

from pagefold.analysis.reading.question import Kind, Question, question, quotable, unique
from pagefold.pages.outcome import Outcome, ending_of

_LOGGED = re.compile(
    r"\[?((?:\d{4}[-/]\d\d[-/]\d\d[T ])?\d\d:\d\d:\d\d(?:[.,]\d{1,9})?(?: ?[+-]\d\d:?\d\d|Z)?)\]?[ \t]+(?!-->)(\S.*)"
)
_HIT = re.compile(r"((?:[\w.@+-]*/)*[\w.@+-]+\.\w{1,8}):(\d+):(.*)")
_BESIDE = re.compile(r"((?:[\w.@+-]*/)*[\w.@+-]+\.\w{1,8})-(\d+)-(.*)")
_PATH = re.compile(r"\s*((?:\.{0,2}/)?(?:[\w.@+-]+/)+([\w.@+-]+\.\w{1,8}))\s*")
_LISTED = re.compile(r"[-dl][rwxsStT-]{9}[.+@]?\s+\d+\s+\S+\s+\S+\s+(\d+)\s+\w{3}\s+\d+\s+[\d:]+\s+(\S+)")
_LEAST = 5
_SAYS_OK = re.compile(
    r"<returncode>0</returncode>|Process exited with code 0\b|[Ee]xit code:? 0\b|has been (?:updated|created)"
    r"|\ASuccess\b",
)
_ASKED_OUTCOME = "Did this call succeed, by its exit code or by what the tool says of it? Answer yes or no."


def text_questions(text: str, dice: random.Random) -> Iterator[Question | None]:
    lines = [line.removesuffix("\r") for line in text.split("\n")]
    yield _time_of_line(lines, dice)
    yield _file_of_hit(lines, dice)
    yield _path_by_name(lines, dice)
    yield _size_of_file(lines, dice)


def outcome_question(text: str, *, failed: bool, script: str) -> Question | None:
    """Asks whether a call went well, where its result leaves no doubt: a code, or the tool's own words."""
    ending = ending_of(text, failed=failed, script=script)
    if ending.outcome is Outcome.FAILED:
        return Question(Kind.OUTCOME, _ASKED_OUTCOME, "no", ("yes",))
    if ending.outcome is Outcome.OK and not ending.line and _SAYS_OK.search(text[:400]):
        return Question(Kind.OUTCOME, _ASKED_OUTCOME, "yes", ("no",))
    return None


def _time_of_line(lines: Sequence[str], dice: random.Random) -> Question | None:
    logged = [match for line in lines if (match := _LOGGED.fullmatch(line))]
    once = unique(match[2] for match in logged)
    asked = [match for match in logged if quotable(match[2]) and match[2] in once]
    if len(logged) < _LEAST or not asked:
        return None
    chosen = dice.choice(asked)
    parts = "date and time" if len(chosen[1]) > len("00:00:00.000000000") or "-" in chosen[1] else "time"
    text = f"Which {parts} does the line have that says `{chosen[2].strip()}`?"
    return question(Kind.TIME_OF_LINE, text, chosen[1], [match[1] for match in logged], dice)


def _file_of_hit(lines: Sequence[str], dice: random.Random) -> Question | None:
    hits = [match for line in lines if (match := _HIT.fullmatch(line))]
    paths = {match[1] for match in hits}
    shown = [(match[3], match[1]) for match in hits]
    beside = [match for line in lines if (match := _BESIDE.fullmatch(line)) and match[1] in paths]
    shown += [(match[3], match[1]) for match in beside]
    names = paths | {match[1] for line in lines if (match := _BESIDE.fullmatch(line))}
    once = unique(text for text, _ in shown)
    asked = [(text, path) for text, path in shown if quotable(text) and text in once]
    twice = any(other != path and other.endswith(f"/{path}") for path in paths for other in names)
    if len(hits) < _LEAST or len(paths) < 2 or twice or not asked:
        return None
    text, path = dice.choice(asked)
    asking = f"Which file, with its whole path, has the line `{text.strip()}`?"
    return question(Kind.FILE_OF_HIT, asking, path, paths, dice)


def _path_by_name(lines: Sequence[str], dice: random.Random) -> Question | None:
    paths = [match for line in lines if (match := _PATH.fullmatch(line))]
    once = unique(match[2] for match in paths)
    asked = [match for match in paths if match[2] in once]
    if len(paths) < _LEAST or 2 * len(paths) < len(lines) or not asked:
        return None
    chosen = dice.choice(asked)
    text = f"What is the whole path of `{chosen[2]}`, as it is listed?"
    return question(Kind.PATH_BY_NAME, text, chosen[1], [match[1] for match in paths], dice)


def _size_of_file(lines: Sequence[str], dice: random.Random) -> Question | None:
    listed = [match for line in lines if (match := _LISTED.fullmatch(line))]
    once = unique(match[2] for match in listed)
    asked = [match for match in listed if match[2] in once and match[2] not in (".", "..")]
    if len(listed) < _LEAST or not asked:
        return None
    chosen = dice.choice(asked)
    text = f"How many bytes does `{chosen[2]}` have?"
    return question(Kind.VALUE_BY_KEY, text, chosen[1], [match[1] for match in listed], dice)
