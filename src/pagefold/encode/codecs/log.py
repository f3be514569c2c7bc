"""log: shortens lines that begin with a time to what differs from the line before.

    [log: date, hour and minute left out where as above; "TIME * * …" is short for "TIME * [worker-*] …"]
    2026-11-01T09:00:59.482 INFO 0 http.access: GET /items/18 200
    59.818 DEBUG 1 cache: hit key=items:20
    09:01:01.690 INFO 2 queue: heartbeat ok
    |a line in no such form

Date, hour and minute are written where they change, and the characters around a column's words once, in the header.
Seconds stay as they were, so that a moment can be found without adding up. Refuses texts in which fewer than half of
the lines have a time with seconds near their start. Decoded line by line.
"""

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from pagefold.encode.codec import Codec, Inner

_SAYS = "log: date, hour and minute left out where as above"
_STAMP = re.compile(r"(.{0,48}?)(?<!\d)(\d\d:\d\d):(\d\d(?:[.,]\d{1,9})?)(?!\d)")
_TIME = re.compile(r":\d\d:\d\d")  # what every such line holds
_SHORT = re.compile(r"(\d\d:\d\d:)?(\d\d(?:[.,]\d{1,9})?)(?!\d)")
_SPACES = re.compile(r"( +)")
_WORD = re.compile(r"\w*")
_NO_WORD = re.compile(r"\W*")
_LEAST = 4
_SHARE = 0.5
_MOST = 0.9
_WORDS = 6
_LENGTH = 60
_ROWS = 4_000


@dataclass(frozen=True, slots=True)
class Affix:
    """Holds what stands around the part of a word that changes; no part changes in a fixed word."""

    before: str = ""
    after: str = ""
    fixed: bool = False

    def __str__(self) -> str:
        return self.before if self.fixed else f"{self.before}*{self.after}"


def _affix_of(template: str) -> Affix:
    before, star, after = template.partition("*")
    return Affix(before, after, fixed=not star)


class LogColumns:
    """Removes and restores the affixes of the words after a time; the first word follows the time without a space."""

    def __init__(self, affixes: Sequence[Affix] = ()) -> None:
        self.affixes = affixes
        self._long = re.compile(_long_pattern(affixes), re.DOTALL)
        short, self._template = _short_pattern(affixes)
        self._short = re.compile(short, re.DOTALL)

    def __str__(self) -> str:
        return " ".join(str(affix) for affix in self.affixes)

    def short(self, rest: str) -> str | None:
        words = self._long.fullmatch(rest)
        return None if words is None else "".join(words.groups())

    def whole(self, rest: str) -> str | None:
        words = self._short.fullmatch(rest)
        return None if words is None else self._template % words.groups()


def _long_pattern(affixes: Sequence[Affix]) -> str:
    """Returns the pattern of lines with all affixes; its groups are what is left without them."""
    parts: list[str] = []
    for index, affix in enumerate(affixes):
        if affix.fixed:
            parts.append(f"{' ' if index else ''}{re.escape(affix.before)}")
        else:
            gap = "( +)" if index else ""
            parts.append(f"{gap}{re.escape(affix.before)}([^ ]+){re.escape(affix.after)}")
    return "".join(parts) + ("((?: .*)?)" if parts else "(.*)")


def _short_pattern(affixes: Sequence[Affix]) -> tuple[str, str]:
    """Returns the pattern of lines without affixes, and the template that puts the affixes back."""
    parts, frames = list[str](), list[str]()
    for index, affix in enumerate(affixes):
        before, after = (text.replace("%", "%%") for text in (affix.before, affix.after))
        if affix.fixed:
            frames.append(f"{' ' if index else ''}{before}")
        else:
            parts.append("( +)([^ ]+)" if index else "([^ ]+)")
            frames.append(f"{'%s' if index else ''}{before}%s{after}")
    return "".join(parts) + ("((?: .*)?)" if frames else "(.*)"), "".join([*frames, "%s"])


class LogCodec(Codec):
    name = "log"
    header = re.compile(rf'\[{_SAYS}(?:; "TIME[^"]*" is short for "TIME(.*) …")?\]')
    least_saving = 0.25

    def encode(self, text: str, inner: Inner) -> str | None:
        breaks = text.count("\n")
        if text.count(":") < max(2 * _LEAST, breaks) or len(_TIME.findall(text)) < _SHARE * breaks:
            return None
        lines = text.split("\n")
        stamps = [_STAMP.match(line) for line in lines]
        stamped = sum(stamp is not None for stamp in stamps)
        if stamped < _LEAST or stamped < _SHARE * len(lines):
            return None
        columns = _columns([line[stamp.end() :] for line, stamp in zip(lines, stamps, strict=True) if stamp])
        shown = [_header(columns)]
        date = minute = ""
        for line, stamp in zip(lines, stamps, strict=True):
            made = _short(line, stamp, columns, date, minute)
            back, *after = _whole(made, columns, date, minute)
            if back == line:
                date, minute = after
            shown.append(made if back == line else f"|{line}")
        return "\n".join(shown)

    def decode(self, form: str, inner: Inner) -> str:
        header, body = self.opened(form)
        columns = LogColumns() if header[1] is None else LogColumns([_affix_of(word) for word in header[1].split(" ")])
        text: list[str] = []
        date = minute = ""
        for line in body.split("\n"):
            whole, date, minute = _whole(line, columns, date, minute)
            if whole is None:
                raise ValueError(f"not a line of this log: {line[:40]!r}")
            text.append(whole)
        return "\n".join(text)


def _header(columns: LogColumns) -> str:
    if not columns.affixes:
        return f"[{_SAYS}]"
    bare = "".join(f"{' ' if index else ''}*" for index, affix in enumerate(columns.affixes) if not affix.fixed)
    return f'[{_SAYS}; "TIME{bare} …" is short for "TIME{columns} …"]'


def _short(line: str, stamp: re.Match[str] | None, columns: LogColumns, date: str, minute: str) -> str:
    if stamp is None:
        return line
    rest = columns.short(line[stamp.end() :])
    if rest is None:
        return f"|{line}"
    if stamp[1] != date or not minute:
        return f"{line[: stamp.end()]}{rest}"
    return f"{stamp[3]}{rest}" if stamp[2] == minute else f"{stamp[2]}:{stamp[3]}{rest}"


def _whole(shown: str, columns: LogColumns, date: str, minute: str) -> tuple[str | None, str, str]:
    """Restores a line, None where that fails, and returns the date and minute that the next line may leave out."""
    if shown.startswith("|"):
        return shown[1:], date, minute
    if minute and (short := _SHORT.match(shown)):
        minute = short[1][:-1] if short[1] else minute
        head, end = f"{date}{minute}:{short[2]}", short.end()
    elif stamp := _STAMP.match(shown):
        head, end = stamp[0], stamp.end()
        date, minute = stamp[1], stamp[2]
    else:
        return shown, date, minute
    rest = columns.whole(shown[end:])
    return None if rest is None else f"{head}{rest}", date, minute


def _columns(rests: Sequence[str]) -> LogColumns:
    """Finds what most lines share around each of their first words, from a sample of very many lines."""
    rests = rests[:: len(rests) // _ROWS + 1]
    rows = [[word for index, word in enumerate(rest[:400].split(" ")) if word or not index] for rest in rests]
    affixes: list[Affix] = []
    for column in range(_WORDS):
        words = [row[column] for row in rows if len(row) > column]
        if len(words) < _MOST * len(rows):
            break
        affixes.append(_affix(words))
    while affixes and affixes[-1] in (Affix(), Affix(fixed=True)):
        affixes.pop()
    columns = LogColumns(affixes)
    template = str(columns)
    ambiguous = '"' in template or "…" in template or template.count("*") > sum(not it.fixed for it in affixes)
    return LogColumns() if ambiguous else columns


def _affix(words: Sequence[str]) -> Affix:
    least = _MOST * len(words)
    word, times = Counter(words).most_common(1)[0]
    if times >= least:
        return Affix(word, fixed=True) if "*" not in word else Affix()
    around = [_around(word) for word in words]
    before, times = Counter(before for before, _ in around).most_common(1)[0]
    before = before if times >= least else ""
    after, times = Counter(after for _, after in around).most_common(1)[0]
    return Affix(before, after if times >= least else "")


def _around(word: str) -> tuple[str, str]:
    """Returns what stands before and after the last name or number of a word."""
    if len(word) > _LENGTH:
        return "", ""
    backwards = word[::-1]
    after = _NO_WORD.match(backwards)
    core = _WORD.match(backwards, after.end() if after else 0)
    assert after is not None
    assert core is not None
    return backwards[core.end() :][::-1], after[0][::-1]
