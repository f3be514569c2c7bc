"""What a shell script printed of files, as far as its output can be told apart.

Output is taken for a file's lines where one command alone can have printed it, where every printed line carries its
number, or where each command tells how many lines it prints.
"""

import re
from collections.abc import Iterator, Sequence

from pagefold.pages.files.changes import FileChange, Shown
from pagefold.pages.files.folders import placed
from pagefold.pages.files.patch import compared_files
from pagefold.pages.files.shell import ShellCommand, pipelines_of
from pagefold.pages.files.shell_words import shell_words
from pagefold.pages.files.text import lines_of

_NUMBERED = re.compile(r"^\s*(\d+)(?:\t|→|[:|] ?)(.*)$")
_HIT = re.compile(r"^((?:[A-Za-z]:)?[^\s:][^:\n]*?):(\d+):(.*)$")
_BARE_HIT = re.compile(r"^(\d+)([:-])(.*)$")
_RANGE = re.compile(r"^(\d+)(?:,(\d+|\$))?p$")
_KNOWN = shell_words()
_STRIPPED = 3  # empty lines that a harness may have stripped at the end of an output


def shown_by_script(commands: Sequence[ShellCommand], output: str, *, whole: bool = True) -> Iterator[FileChange]:
    """Lines of files that a script printed, by their paths from where each command ran. Where its output is not
    `whole`, empty lines at its ends may be missing."""
    shows = [command for pipeline in pipelines_of(commands) if may_print(pipeline) for command in pipeline]
    if not shows or not output:
        return
    heads = [command for command in shows if command.before != "|"]
    if "\x00" in output or "\ufffd" in output:
        return  # no text, or not all of it
    if diffs := [command for command in heads if command.name == "git" and _shows_working_tree(command.words)]:
        if not any(map(_may_print_diffs, heads)) and all(one.folders == diffs[0].folders for one in diffs):
            yield from placed(compared_files(output), diffs[0].folders, "")
        return
    countable = ("sed", "cat", "nl", "head", "pwd", *_KNOWN.speaking)
    if len(heads) > 1 and not all(command.name in countable for command in heads):
        return
    if len(heads) > 1:
        yield from _several(shows, output)
        return
    yield from placed(_one(shows, output, whole=whole), shows[0].folders, "")


def may_print(pipeline: Sequence[ShellCommand]) -> bool:
    """Whether commands that are piped into one another print anything where they go well."""
    last = pipeline[-1]
    if last.is_redirected:
        return False
    if last.name == "sed" and any(word.startswith(("-i", "--in-place")) for word in last.words[1:]):
        return "-n" in last.words
    if last.name == "git" and last.words[1:2] == ("add",):
        return False
    if last.name in _KNOWN.quiet:
        return any(word == "--verbose" or (word[:1] == "-" and "v" in word and word[:2] != "--") for word in last.words)
    return last.name not in _KNOWN.silent


def _shows_working_tree(words: Sequence[str]) -> bool:
    """Whether a git command prints a diff whose new side is the working tree."""
    rest = [word for word in words[1:] if word not in ("--no-pager", "-P")]
    if rest[:1] == ["-C"]:
        rest = rest[2:]
    if rest[:1] != ["diff"]:
        return False
    named = rest[1 : rest.index("--")] if "--" in rest else rest[1:]
    revisions = [word for word in named if not word.startswith("-") and "/" not in word and "." not in word.strip(".")]
    ranged = any(".." in word for word in named)
    return not ranged and len(revisions) <= 1 and not any(word in ("--cached", "--staged") for word in named)


def _may_print_diffs(command: ShellCommand) -> bool:
    """Whether a command may print a diff that is not of the working tree: a saved one, or one between commits."""
    if command.name == "git":
        verbs = {word for word in command.words[1:3] if not word.startswith("-")}
        return not verbs.isdisjoint(_KNOWN.git_prints_diffs) or (
            "diff" in verbs and not _shows_working_tree(command.words)
        )
    return command.name in _KNOWN.prints_files


def _one(commands: Sequence[ShellCommand], output: str, *, whole: bool) -> Iterator[Shown]:
    """The lines that one command, or one pipeline, printed."""
    first, path = commands[0], _file_of(commands[0])
    if first.name in ("grep", "rg"):
        if all(command.name in ("head", "tail", "grep", "rg", "sort", "uniq") for command in commands[1:]):
            yield from _hits(first, output)
        return
    if not path:
        return
    lines = lines_of(output)
    if first.name == "nl" or (first.name == "cat" and "-n" in first.words):
        if shown := numbered(path, lines):
            yield shown
        return
    if any(command.name in ("cat", "nl") for command in commands[1:]):
        return  # they number or mark what came through, not the file
    begin, end = 1, None
    for command in commands:
        span = _span(command)
        if span is None:
            return
        last = None if span[1] is None else begin + span[1] - 1
        begin, end = begin + span[0] - 1, last if end is None or (last is not None and last < end) else end
    count = None if end is None else end - begin + 1
    if lines and (count is None or len(lines) <= count):
        fewer = count is None or len(lines) < count
        # Fewer lines than were asked for: the file ends there, or the empty lines before them were stripped.
        is_certain = whole or not fewer or begin == 1
        # A harness may have stripped some empty lines at the end.
        ends = fewer and is_certain and (count is None or count - len(lines) > _STRIPPED)
        yield Shown(path, begin if is_certain else None, tuple(lines), ends=ends)


def _several(commands: Sequence[ShellCommand], output: str) -> Iterator[FileChange]:
    """The lines that several commands printed one after another; nothing where their borders are not certain."""
    pipelines = pipelines_of(commands)
    lines, at = lines_of(output), 0
    found: list[FileChange] = []
    for index, pipeline in enumerate(pipelines):
        if pipeline[0].name == "pwd":
            at += 1
            continue
        if pipeline[0].name in _KNOWN.speaking:
            said = said_by(pipeline[0])
            if said is None or lines[at : at + len(said)] != said:
                return
            at += len(said)
            continue
        if pipeline[0].name == "nl":
            shown = _numbered_part(pipeline, lines[at:])
            if shown is None:
                return
            found += placed([shown], pipeline[0].folders, "")
            at += len(shown.lines)
            continue
        path, span = _file_of(pipeline[0]), _span(pipeline[0])
        if not path or span is None or len(pipeline) > 1:
            return
        following = pipelines[index + 1][0] if index + 1 < len(pipelines) else None
        end = _end_of_output(lines, at, span, following)
        if end is None:
            return
        found += placed([Shown(path, span[0], tuple(lines[at:end]))], pipeline[0].folders, "")
        at = end
    if at == len(lines):
        yield from found


def _numbered_part(pipeline: Sequence[ShellCommand], lines: Sequence[str]) -> Shown | None:
    """The lines that `nl` printed before what other commands did, by their numbers; None where it printed none. Where
    the numbers of the next command go on behind them, that one has none left, and nothing is told of either."""
    path, span = _file_of(pipeline[0]), _span(pipeline[1]) if len(pipeline) == 2 else (1, None)
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


def _end_of_output(
    lines: Sequence[str], at: int, span: tuple[int, int | None], following: ShellCommand | None
) -> int | None:
    """Where the output of a command ends that begins at a line: before what the next one says, or by its own count."""
    if following is None:
        return len(lines)
    if said := said_by(following):
        ends = [end for end in range(at, len(lines)) if list(lines[end : end + len(said)]) == said]
        return ends[0] if len(ends) == 1 else None
    end = None if span[1] is None else at + span[1] - span[0] + 1
    return end if end is not None and end <= len(lines) else None


def said_by(command: ShellCommand) -> list[str] | None:
    """The lines that an echo prints, where its words are plain."""
    words = command.words[1:]
    if command.name == "echo" and not command.redirects and not any("$" in word or "`" in word for word in words):
        return lines_of(" ".join(word for word in words if word not in ("-e", "-n")) + "\n")
    if command.name == "printf" and len(words) == 1 and "%" not in words[0]:
        return lines_of(words[0].replace("\\n", "\n"))
    return None


def _file_of(command: ShellCommand) -> str:
    """The one file whose lines a command prints, or ""."""
    plain = [word for word in command.words[1:] if not word.startswith("-")]
    if command.name == "sed":
        plain = plain[1:] if "-n" in command.words else []
    elif (command.name == "head" and len(plain) == 2 and plain[0].isdigit()) or (
        command.name == "tail" and len(plain) == 2 and plain[0].lstrip("+").isdigit()
    ):
        plain = plain[1:]
    if command.name not in ("cat", "sed", "head", "tail", "nl") or len(plain) != 1:
        return ""
    if command.name == "cat" and any(word.startswith("-") and word != "-n" for word in command.words[1:]):
        return ""
    return "" if any(char in plain[0] for char in "*?$`") else plain[0]


def _span(command: ShellCommand) -> tuple[int, int | None] | None:
    """Which lines of its input a command prints, as first and last; None where that is not plain."""
    words = command.words
    if command.name in ("cat", "nl"):
        return 1, None
    if command.name == "head":
        counts = [word.lstrip("-n=") for word in words[1:] if word.lstrip("-n=").isdigit()]
        return (1, int(counts[0])) if counts else (1, 10) if len(words) <= 2 else None
    if command.name == "tail":
        starts = [word.removeprefix("-n") for word in words[1:] if word.removeprefix("-n").startswith("+")]
        return (int(starts[0][1:]), None) if starts and starts[0][1:].isdigit() else None
    if command.name == "sed" and "-n" in words:
        ranges = [_RANGE.match(word) for word in words[1:] if word.endswith("p")]
        if len(ranges) == 1 and (span := ranges[0]):
            first, last = int(span.group(1)), span.group(2)
            return first, first if last is None else None if last == "$" else int(last)
    return None


def numbered(path: str, lines: Sequence[str]) -> Shown | None:
    """Lines of a file that carry their numbers, from the first of them up to where the numbers stop following."""
    start, found = None, list[str]()
    for line in lines:
        match = _NUMBERED.match(line)
        number = int(match.group(1)) if match else None
        if match is None or (start is not None and number != start + len(found)):
            if found:
                break
            continue
        start = number if start is None else start
        found.append(match.group(2))
    return Shown(path, start, tuple(found)) if found and start is not None else None


def _hits(command: ShellCommand, output: str) -> Iterator[Shown]:
    """Lines that a search found, with their numbers."""
    flags = [word for word in command.words[1:] if word.startswith("-")]
    if not any(word == "--line-number" or (word[:2] != "--" and "n" in word) for word in flags):
        return
    if any(word == "--only-matching" or (word[:2] != "--" and "o" in word) for word in flags):
        return  # parts of lines
    plain = [word for word in command.words[1:] if not word.startswith("-")]
    single = plain[1] if len(plain) == 2 and "." in plain[1].rpartition("/")[2] else ""
    yield from hits_in(output, single)


def hits_in(output: str, single: str = "") -> Iterator[Shown]:
    """Found lines in search output: `path:12:text`, or `12:text` where only one file was searched."""
    for line in output.split("\n"):
        if single and (bare := _BARE_HIT.match(line)):
            yield Shown(single, int(bare.group(1)), (bare.group(3),))
        elif not single and (hit := _HIT.match(line)):
            yield Shown(hit.group(1), int(hit.group(2)), (hit.group(3),))
