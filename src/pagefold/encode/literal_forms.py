"""Reads what codecs wrote as somebody does who knows only the words of the header: hits, logs, listings, records,
repeated lines, terminal codes, opened lines, JSON, and what envelopes hold.

Part of the literal reader: a form is used only if this reader finds in it what the text says. It was written from
docs/codecs.md and shares no code with the codecs. Raises ValueError and the like where a form says what is not so.
"""

import json
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from pagefold.encode.literal_json import complete_of, values_of, with_escapes, written


@dataclass(frozen=True, slots=True)
class _JsonReading:
    """A value, `depth` brackets of which are open before the torn end. `bare` where quotes in strings stand bare."""

    value: Any
    depth: int = 0
    end: str = ""
    bare: bool = False

    def is_said_by(self, text: str) -> bool:
        if not text.endswith(self.end):
            return False
        whole = text[: len(text) - len(self.end)]
        whole = with_escapes(whole) if self.bare else whole
        return bool((complete_of(whole, self.depth) if self.depth else values_of(whole)) == self.value)


def agrees(form: str, text: str) -> bool:
    """Whether reading a form word by word gives what a text says: the same text, for JSON the same values."""
    header, _, body = form.partition("\n")
    if opened := _MCP.fullmatch(header):
        return _agrees_with_string(opened, body, text)
    if opened := _STRING.fullmatch(header):
        if not text.startswith(opened[1]) or not text.endswith(opened[2]):
            return False
        return agrees(body, json.loads(text[len(opened[1]) : len(text) - len(opened[2])], strict=False))
    if opened := _ENVELOPE.fullmatch(header):
        return _agrees_with_envelope(opened, body, text)
    reading = _read(form)
    return reading == text if isinstance(reading, str) else reading.is_said_by(text)


_MCP = re.compile(r"\[MCP text( spaced)?( ascii)?(?: …(.*)|, broken off before the last (\d+) lines)?\]")
_STRING = re.compile(r"\[text in JSON(?: ascii)?: ([^…]*)…([^…]*)\]")
_ENVELOPE = re.compile(r"\[(?:page|returncode|chunk|script completed,|exit|stdout; return code) .*\]")
_SAID = re.compile(r"[\w.]+")
_OWN_WORDS = frozenset(
    ("page", "of", "results", "returncode", "chunk", "exit", "tokens", "s", "script", "completed", "stdout", "code")
).union(("return", "still", "running", "with", "session", "ID"))
_LABELS = ("Address: ", "Title: ")
_DATA = re.compile(r"^\s*[\[{]", re.MULTILINE)
_END = re.compile(r"\n=== EXECUTION INFO ===|</output>\Z")
_AROUND = 400  # characters that an envelope may have besides what it holds


def _agrees_with_string(opened: re.Match[str], body: str, text: str) -> bool:
    """Compares what an MCP block holds, from the first quote of its text on."""
    start = re.match(r'\{"type": ?"text", ?"text": ?', text)
    if start is None:
        return False
    if opened[4] is None:
        inside, end = json.JSONDecoder(strict=False).raw_decode(text, start.end())
        return text[end:] == (opened[3] or "}") and agrees(body, inside)
    body, tail = _without_last(body, int(opened[4]))
    spelled = text[start.end() + 1 : len(text) - len(tail)]
    return text.endswith(tail) and agrees(body, json.loads(f'"{spelled}"', strict=False))


def _agrees_with_envelope(opened: re.Match[str], body: str, text: str) -> bool:
    """Compares what a command or a page returned; each figure of the header has to stand in the text."""
    said = set(_SAID.findall(opened[0])) - _OWN_WORDS
    if not all(word in text for word in said):
        return False
    while body.startswith(_LABELS):
        line, _, body = body.partition("\n")
        if line not in text:
            return False
    first = body.partition("\n")[0]
    if string := _STRING.fullmatch(first):
        start, end = text.find(string[1] or '"'), text.rfind(string[2] or '"') + (not string[2])
        return start >= 0 <= end and agrees(body, text[start : end + len(string[2])])
    if inside := _ENVELOPE.fullmatch(first):
        return _agrees_with_envelope(inside, body.partition("\n")[2], text)
    reading = _read(body)
    if isinstance(reading, str):
        return reading in text and len(text) - len(reading) < _AROUND + text.find(reading)
    data = _DATA.search(text)
    if data is None:
        return False
    closing = _END.search(text, data.end())
    return reading.is_said_by(text[data.start() : closing.start() if closing else len(text)])


def _read(form: str) -> "str | _JsonReading":
    header, _, body = form.partition("\n")
    if not header.startswith("["):
        return form
    if header == "[as it is]":
        return body
    if data := _JSON.fullmatch(header):
        body, tail = _without_last(body, int(data[2] or 0))
        return _JsonReading(written(body), int(data[1] or 0), tail, bool(data[3]))
    for pattern, reader in _READERS:
        words = pattern.fullmatch(header)
        if words is not None:
            return "\n".join(reader(words, body.split("\n")))
    return form


def _read_text(lines: list[str]) -> list[str]:
    """Reads what is below a header that says nothing about the lines' own form."""
    reading = _read("\n".join(lines))
    if not isinstance(reading, str):
        raise TypeError("JSON where lines are meant")
    return reading.split("\n")


def _without_last(text: str, lines: int) -> tuple[str, str]:
    parts = text.rsplit("\n", lines) if lines else [text]
    return parts[0], "\n".join(parts[1:])


_JSON = re.compile(
    r"\[(?:JSON|Python)[ a-z0-9]*(?:, the last line empty)?(?:, cut off (\d+) deep before the last (\d+) lines)?"
    r"(, quotes in strings bare)?\]"
)
_PLACE = re.compile(r"\d+([:-])")


def _hits(header: re.Match[str], lines: list[str]) -> list[str]:
    """A line `12:…` or `12-…` is in the file whose path stands above with a colon behind it."""
    text: list[str] = []
    path = ""
    for at, line in enumerate(lines):
        place = _PLACE.match(line)
        if place and path:
            text.append((header[1] if header[1] and ":" not in line else "") + path + place[1] + line)
        elif line.endswith(":") and at + 1 < len(lines) and _PLACE.match(lines[at + 1]):
            path = line[:-1]
        else:
            text.append(line)
    return text


_TIME = re.compile(r"\d\d:\d\d:\d\d(?!\d)")
_TIMED = re.compile(r"(.{1,120}?)(?<!\d)\d\d:\d\d:\d\d(?!\d)")


def _log(header: re.Match[str], lines: list[str]) -> list[str]:
    """A line that begins with a time begins like the last line with a time that does not."""
    text: list[str] = []
    before = ""
    for line in lines:
        if line[:1] == "|":
            text.append(line[1:])
        elif _TIME.match(line):
            text.append(before + line)
        else:
            timed = _TIMED.match(line)
            before = timed[1] if timed else before
            text.append(line)
    return text


_FILE = re.compile(
    r"(?:(?P<mode>[-dlcbps][-rwxsStT]{9}[@+.]?) (?P<links>\d+) )?(?P<size>\d+) "
    r"(?:(?P<date>(?:[A-Z][a-z]{2} [ \d]\d|[ \d]\d [A-Z][a-z]{2})  ?[\d:]{4,5}|\d{4}-\d\d-\d\d \d\d:\d\d) )?"
    r"(?P<name>.*)"
)


def _listing(header: re.Match[str], lines: list[str]) -> list[str]:
    text: list[str] = []
    date = ""
    for line in lines:
        file = None if line[:1] == "|" else _FILE.fullmatch(line)
        if file is None:
            text.append(line.removeprefix("|"))
            continue
        date = file["date"] or date
        links = (file["links"] or header["links"]).rjust(len(header["links"]))
        size = file["size"].rjust(int(header["wide"] or 0))
        text.append(f"{file['mode'] or header['mode']}{links} {header['who']}{size} {date} {file['name']}")
    return text


_ROWS = re.compile(r"\[(\d+) rows of (.*?)(, then an empty line)?\]")


def _records(header: re.Match[str], lines: list[str]) -> list[str]:
    """Each row has the values of the keys above, but for those that stand there with their value."""
    text: list[str] = []
    at = 0
    while at < len(lines):
        rows = _ROWS.fullmatch(lines[at])
        at += 1
        if rows is None:
            text.append(lines[at - 1])
            continue
        for row in lines[at : at + int(rows[1])]:
            cells = _cells(row)
            for column in rows[2].split(" | "):
                text.append(column if ": " in column else f"{column}: {cells.pop(0) if cells else ''}")
            text += [""] if rows[3] else []
        at += int(rows[1])
    return text


def _cells(row: str) -> list[str]:
    cells: list[str] = []
    at = 0
    while at <= len(row):
        if row[at : at + 1] == '"':
            cell, end = json.JSONDecoder(strict=False).raw_decode(row, at)
        else:
            end = row.find(" | ", at)
            end = len(row) if end < 0 else end
            cell = row[at:end]
        cells.append(cell)
        at = end + 3
    return cells


_MORE = re.compile(r"\[the (?:line above|last (\d) lines) (\d+) times? more\]")


def _repeats(header: re.Match[str], lines: list[str]) -> list[str]:
    text: list[str] = []
    for line in _read_text(lines):
        more = _MORE.fullmatch(line)
        if more is not None:
            text += text[-int(more[1] or 1) :] * int(more[2])
        else:
            text.append(line[1:] if line[:1] == "|" and _MORE.fullmatch(line.lstrip("|")) else line)
    return text


def _colours(header: re.Match[str], lines: list[str]) -> list[str]:
    codes = {ord(words[0]): "\x1b" + words[len("x is ESC") :] for words in header[1].split(", ")}
    return "\n".join(_read_text(lines)).translate(codes).split("\n")


def _opened_lines(header: re.Match[str], lines: list[str]) -> list[str]:
    """What stands between `<<` and `>>` is one line, joined by the sign behind `<<`."""
    text: list[str] = []
    at = 0
    while at < len(lines):
        if re.fullmatch(r"<<\\+n", lines[at]):
            end = lines.index(">>", at)
            text.append(lines[at][2:].join(lines[at + 1 : end]))
            at = end + 1
        else:
            text.append(lines[at])
            at += 1
    return text


_READERS: tuple[tuple[re.Pattern[str], Callable[[re.Match[str], list[str]], list[str]]], ...] = (
    (re.compile(r"\[hits by file(?:; (.+) stood before the path in lines without a colon)?\]"), _hits),
    (re.compile(r"\[log: what stands before the time is left out where it is as above\]"), _log),
    (
        re.compile(
            r'\[ls -l: owner and group "(?P<who>[^"]*)" left out, "(?P<mode>\S+)(?P<links> +\d+)" where no mode '
            r"stands, the date where as above(?:; sizes (?P<wide>\d+) wide)?\]"
        ),
        _listing,
    ),
    (re.compile(r"\[records as rows below their keys\]"), _records),
    (re.compile(r"\[repeated lines said once\]"), _repeats),
    (re.compile(r"\[terminal codes: (. is ESC\[[\d;?]*[A-Za-z](?:, . is ESC\[[\d;?]*[A-Za-z])*)\]"), _colours),
    (re.compile(r"\[long lines opened at their escaped line breaks\]"), _opened_lines),
)
