"""What a shell script printed of files, as far as its output can be told apart.

Output is taken for a file's lines where one command alone can have printed it, where every printed line carries its
number, where the commands together tell how many lines they print, or where a script or a tool prints titles between
files that stand nowhere else.
"""

import re
from collections.abc import Iterator, Sequence

from pagefold.pages.files.asked import file_of, files_of, span_of
from pagefold.pages.files.changes import FileChange, Shown
from pagefold.pages.files.folders import placed
from pagefold.pages.files.patch import compared_files
from pagefold.pages.files.several import several, titled
from pagefold.pages.files.shell import ShellCommand, pipelines_of
from pagefold.pages.files.shell_words import shell_words
from pagefold.pages.files.text import lines_of

_NUMBERED = re.compile(r"^\s*(\d+)(?:\t|→|[:|] ?)(.*)$")
_HIT = re.compile(r"^((?:[A-Za-z]:)?[^\s:][^:\n]*?):(\d+):(.*)$")
_BARE_HIT = re.compile(r"^(\d+)([:-])(.*)$")
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
    countable = ("sed", "cat", "nl", "head", "tail", "pwd", *_KNOWN.speaking)
    names = {command.name for command in heads}
    if len(heads) > 1 and names.isdisjoint(_KNOWN.speaking) and not names <= {*countable}:
        return  # nothing stands between what one and the other printed
    if len(heads) > 1:
        yield from several(shows, output)
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
    first, path = commands[0], file_of(commands[0])
    if first.name in ("grep", "rg"):
        if all(command.name in ("head", "tail", "grep", "rg", "sort", "uniq") for command in commands[1:]):
            yield from _hits(first, output)
        return
    lines = lines_of(output)
    if len(commands) == 1 and len(paths := files_of(first)) > 1:
        yield from titled(first, paths, lines) or ()
    if not path:
        return
    if first.name == "nl" or (first.name == "cat" and "-n" in first.words):
        if shown := numbered(path, lines):
            yield shown
        return
    if any(command.name in ("cat", "nl") for command in commands[1:]):
        return  # they number or mark what came through, not the file
    begin, end = 1, None
    for command in commands:
        span = span_of(command)
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
