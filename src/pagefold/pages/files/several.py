"""What several commands printed of files one after another, where the borders between them are certain.

They are where a script or a tool prints titles that stand nowhere else, where lines carry their numbers, or where all
commands together printed just as many lines as they were asked for.
"""

import re
from collections.abc import Iterator, Sequence
from itertools import dropwhile, takewhile

from pagefold.pages.files.asked import file_of, files_of, said_by, span_of
from pagefold.pages.files.changes import FileChange, Shown
from pagefold.pages.files.folders import placed
from pagefold.pages.files.shell import ShellCommand, pipelines_of
from pagefold.pages.files.shell_words import shell_words
from pagefold.pages.files.text import lines_of

_KNOWN = shell_words()
_NUMBERED = re.compile(r"^\s*(\d+)(?:\t|→|[:|] ?)(.*)$")
_COMPLAINT = re.compile(r"^(?:\S+: )*(?:cat|head|nl|sed|tail): ")


def several(commands: Sequence[ShellCommand], output: str) -> Iterator[FileChange]:
    """The lines that several commands printed one after another; nothing where their borders are not certain."""
    pipelines, lines = pipelines_of(commands), lines_of(output)
    if not any(last := said_by(pipelines[-1][0]) or ["x"]):  # the empty lines that it says may have been stripped
        lines = lines_of(f"{output.rstrip(chr(10))}{chr(10) * (len(last) + 1)}")
    if any(_complains(line) for line in lines):
        return
    at, index, found = 0, 0, list[FileChange]()
    while index < len(pipelines):
        first, count = pipelines[index][0], 1
        if first.name == "pwd":
            at += 1
        elif first.name in _KNOWN.speaking:
            said = said_by(first)
            if said is None or lines[at : at + len(said)] != said:
                return
            at += len(said)
        elif first.name == "nl":
            shown = _numbered_part(pipelines[index], lines[at:])
            if shown is None:
                return
            found += placed([shown], first.folders, "")
            at += len(shown.lines)
        else:
            end = _next_title(lines, at, pipelines[index:])
            count = sum(1 for _ in takewhile(_shows_text, pipelines[index:]))
            if end is None:
                return
            told = _in_a_row(pipelines[index : index + count], lines[at:end]) or ()
            found += [one for shown, command in told for one in placed([shown], command.folders, "")]
            at = end
        index += count
    if at == len(lines):
        yield from found


def _complains(line: str) -> bool:
    """Whether a line may say that a command which prints files could not print one."""
    return _COMPLAINT.match(line) is not None


def _shows_text(pipeline: Sequence[ShellCommand]) -> bool:
    return pipeline[0].name not in ("nl", "pwd", *_KNOWN.speaking)


def _next_title(lines: Sequence[str], at: int, pipelines: Sequence[Sequence[ShellCommand]]) -> int | None:
    """Where the script's own words stand that it says behind the texts which it shows first: as often as it says them,
    so that no text holds them too. Where it says nothing more, at the end; None where nobody can tell."""
    rest = list(dropwhile(_shows_text, pipelines))
    title, times = _title(rest), 0
    if not rest or not title:
        return None if rest else len(lines)
    if all(pipeline[0].name in _KNOWN.speaking for pipeline in rest):
        return len(lines) - len(title) if lines[-len(title) :] == title else None
    while rest:
        times += _title(rest) == title
        rest = list(dropwhile(_shows_text, dropwhile(lambda one: not _shows_text(one), rest)))
    places = [place for place in range(at, len(lines)) if list(lines[place : place + len(title)]) == title]
    return places[0] if len(places) == times else None


def _title(pipelines: Sequence[Sequence[ShellCommand]]) -> list[str]:
    """What the first commands say one after another; nothing where that is not certain."""
    said = [said_by(pipeline[0]) for pipeline in takewhile(lambda one: one[0].name in _KNOWN.speaking, pipelines)]
    return [] if None in said else [line for lines in said for line in lines or ()]


def _in_a_row(
    pipelines: Sequence[Sequence[ShellCommand]], lines: Sequence[str]
) -> list[tuple[Shown, ShellCommand]] | None:
    """The lines that commands printed of which none says anything in between; None where the borders are not certain.
    They are where each printed as many lines as it was asked for: otherwise any of them may have printed fewer."""
    told: list[tuple[Shown, ShellCommand]] = []
    at = 0
    for pipeline in pipelines:
        command = pipeline[0]
        path, paths, span = file_of(command), files_of(command), span_of(command)
        if len(pipeline) == 1 and len(pipelines) == 1 and len(paths) > 1:
            behind_titles = titled(command, paths, lines)
            return None if behind_titles is None else [(shown, command) for shown in behind_titles]
        if not path or span is None or len(pipeline) > 1:
            return None
        begin, last = span
        if len(pipelines) > 1 and last is None:
            return None
        end = len(lines) if last is None or len(pipelines) == 1 else at + last - begin + 1
        if end > len(lines) or (last is not None and end - at > last - begin + 1):
            return None
        told += [(Shown(path, begin, tuple(lines[at:end])), command)] if end > at else []
        at = end
    return told if at == len(lines) else None


def titled(command: ShellCommand, paths: Sequence[str], lines: Sequence[str]) -> list[Shown] | None:
    """The files that `head` or `tail` printed, each behind its title; None where a title is missing or stands twice."""
    span = span_of(command)
    heads = [f"==> {path} <==" for path in paths]
    if span is None or any(lines.count(head) != 1 for head in heads):
        return None
    places = [lines.index(head) for head in heads]
    if places != sorted(places) or places[0] != 0:
        return None
    shown: list[Shown] = []
    for path, place, following in zip(paths, places, [*places[1:], len(lines) + 1], strict=True):
        text = lines[place + 1 : following]
        if following < len(lines) and text[-1:] == [""]:
            text = text[:-1]  # it stands before the next title
        if span[1] is not None and len(text) > span[1] - span[0] + 1:
            return None
        shown += [Shown(path, span[0], tuple(text))] if text else []
    return shown


def _numbered_part(pipeline: Sequence[ShellCommand], lines: Sequence[str]) -> Shown | None:
    """The lines that `nl` printed before what other commands did, by their numbers; None where it printed none. Where
    the numbers of the next command go on behind them, that one has none left, and nothing is told of either."""
    path, span = file_of(pipeline[0]), span_of(pipeline[1]) if len(pipeline) == 2 else (1, None)
    if not path or span is None or len(pipeline) > 2 or "-ba" not in pipeline[0].words:
        return None
    begin, end = span
    found: list[str] = []
    for line in lines:
        match, number = _NUMBERED.match(line), begin + len(found)
        if match is None or int(match.group(1)) != number or (end is not None and number > end):
            break
        found.append(match.group(2))
    return Shown(path, begin, tuple(found)) if found else None
