"""What a shell script did to files, from its text and its output, for commands that show or change files.

Only what is certain is told: output is taken for a file's lines where one command alone can have printed it, or where
every printed line carries its number. What may have changed files in ways that the output does not show makes them
uncertain.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace

from pagefold.pages.files.asked import said_by
from pagefold.pages.files.changes import (
    Appended,
    Doubted,
    FileChange,
    FileCopied,
    FileRemoved,
    Moved,
    Ran,
    Written,
)
from pagefold.pages.files.folders import START, Folders, located, placed
from pagefold.pages.files.git_commands import by_git
from pagefold.pages.files.hunk import targets_of
from pagefold.pages.files.patch import patch_in, patched_files
from pagefold.pages.files.paths import is_pattern, is_wildcard
from pagefold.pages.files.printed import may_print, shown_by_script
from pagefold.pages.files.programs import files_written_by
from pagefold.pages.files.shell import EXPANDED, ShellCommand, commands_in, git_words, pipelines_of
from pagefold.pages.files.shell_words import shell_words
from pagefold.pages.files.text import lines_of

_KNOWN = shell_words()
_LOOK = frozenset(("ag", "awk", "diff", "echo", "egrep", "fgrep", "find", "grep", "ls", "printf", "rg", "wc", "which"))


def changed_by_script(
    script: str, output: str, folders: Folders, *, failed: bool = False, printed: str = "", whole: bool = True
) -> Iterator[FileChange]:
    """What a script did, in order. `folders` is where it may have begun; `output` is what may be lines
    of files, `whole` whether no empty lines were stripped from it, `printed` all that the script said. Of a script that
    failed nobody knows how far it came: what it may have changed is in doubt."""
    commands, _ = located(commands_in(script), folders, printed)
    if patch := patch_in(script):
        where = next((command.folders for command in commands if command.name == "apply_patch"), folders)
        yield from placed(patched_files(patch), where, "apply_patch")
        return
    ran = _surely_ran(commands, printed, failed=failed)
    printing, late, complained = _first_that_prints(commands), list[str](), False
    for index, command in enumerate(commands):
        changes = [_as_certain(change, command) for change in _changes(command, printed)]
        if changes:
            complains = _complains(command, printed)
            complained = complained or complains
            if not ran[index] or complains:
                changes = [doubt for change in changes for doubt in change.doubts(_short(command))]
            if index > printing:
                late += [path for change in changes for path in change.paths]
        yield from placed(changes, command.folders, _short(command))
    if complained:
        return  # what it printed is not only what was to be shown
    for shown in shown_by_script(commands, output, whole=whole):
        if not any(_may_be_same(shown.path, path) for path in late):
            yield shown


def _surely_ran(commands: Sequence[ShellCommand], printed: str, *, failed: bool) -> list[bool]:
    """For each command of a script whether it was surely run, and went well if it said nothing else. Behind `&&` that
    is so where what stands before it cannot fail unseen, or where the script would have failed with it."""
    last = max((at for at, command in enumerate(commands) if command.before not in _IN_A_LIST), default=0)
    ends_well = not failed and not any(command.before == "||" for command in commands[last:])
    ran: list[bool] = []
    reached = told = True  # reached: nothing before can have ended the script; told: nor the present list of `&&`
    for at, command in enumerate(commands):
        told = told or command.before not in _IN_A_LIST
        sure = told or (at >= last and ends_well)
        stands = not failed or (reached and at + 1 < len(commands) and (command.name == "rm" or _writes(command)))
        ran.append(sure and stands and not command.conditional and command.before not in _MAYBE)
        quiet = command.name in _KNOWN.silent or command.name in _KNOWN.quiet or _writes(command)
        quiet = quiet and not _complains(command, printed)
        reached, told = reached and quiet, told and quiet
    return ran


def _writes(command: ShellCommand) -> bool:
    return command.document is not None and command.name in ("cat", "tee")


def _first_that_prints(commands: Sequence[ShellCommand]) -> int:
    """The index of the first command that may print: what a later one changes was shown as it was before."""
    at = 0
    for pipeline in pipelines_of(commands):
        if may_print(pipeline):
            return at
        at += len(pipeline)
    return at


def _may_be_same(path: str, changed: str) -> bool:
    """Whether a file may be the one that was changed, or below a folder that was; "" stands for any."""
    return (
        not changed
        or path == changed
        or path.rpartition("/")[2] == changed.rstrip("/").rpartition("/")[2]
        or (f"{changed.rstrip('/')}/" in path)
    )


_FIND_CHANGES = frozenset(("-delete", "-i", "mv", "rm"))
_IN_A_LIST = frozenset(("&&", "||", "|", "|&"))
_MAYBE = frozenset(("||", "do", "then", "else", "elif", "if", "while", "until"))
_ERRORS = re.compile(
    r"No such file or directory|Permission denied|Is a directory|Not a directory|Read-only file system"
)


def _complains(command: ShellCommand, printed: str) -> bool:
    """Whether a script printed that this command, or its redirect, has failed."""
    if re.search(rf"^(?:\S*: )*{re.escape(command.name)}: ", printed, re.MULTILINE):
        return True
    targets = [redirect.target.rpartition("/")[2] for redirect in command.redirects]
    return any(target in line for line in printed.split("\n") if _ERRORS.search(line) for target in targets)


def _as_certain(change: FileChange, command: ShellCommand) -> FileChange:
    """The change, or a doubt where it is not certain what was written or which files were meant."""
    if isinstance(change, Written) and (change.text == EXPANDED or command.before in _MAYBE):
        return Doubted(change.path, _short(command), forgets=True)
    if is_pattern(change.path) and not isinstance(change, Written):
        if isinstance(change, FileRemoved | Moved) and is_wildcard(change.path):
            return FileRemoved(change.path)
        return Doubted(change.path, _short(command), mild=isinstance(change, Doubted) and change.mild)
    return change


def _changes(command: ShellCommand, printed: str) -> Iterator[FileChange]:
    """What a command changes, of a script that printed this."""
    yield from _by_redirects(command)
    command = _unwrapped(command)
    if command.name in _KNOWN.shells and len(command.words) > 2 and command.words[1] in ("-c", "-lc"):
        yield from _by_script_within(command.words[2], printed)
        return
    name, words, reason = command.name, command.words, _short(command)
    plain = [word for word in words[1:] if not word.startswith("-")]
    if name == "tee":
        yield from _by_tee(command, plain)
    elif name == "find" and not _FIND_CHANGES.isdisjoint(words):
        yield Doubted("", reason)
    elif name in _KNOWN.removes:
        yield from map(FileRemoved, plain)
        yield from [] if plain else [Doubted("", reason)]  # they come from a pipe
    elif name in ("mv", "cp") and len(plain) > 1:
        yield from _by_moving(command, plain)
    elif name in ("sed", "perl") and any(word.startswith(("-i", "--in-place", "-pi")) for word in words[1:]):
        yield from [Doubted(path, reason) for path in plain[1:]] or [Doubted("", reason)]
    elif name == "git":
        yield from by_git(command, reason, printed)
    elif name in _KNOWN.interpreters or name.startswith("python"):
        yield from _by_program(command)
    elif name == "patch":
        named = plain[:1] or (targets_of(command.document) if command.document else [])
        yield from [Doubted(path, reason) for path in named] or [Doubted("", reason)]
    elif _is_formatter(command):
        named = [path for path in plain if "." in path.rpartition("/")[2] and "..." not in path and path != "."]
        named = named or [f"**{end}" for end in _KNOWN.formatted.get(name, ())] or [""]
        yield from (Doubted(path, reason, mild=True) for path in named)
    elif not _KNOWN.writing_words.isdisjoint(words[1:]) and name not in _LOOK:
        yield from (Doubted(path, reason) for path in plain if "." in path.rpartition("/")[2])


def _by_script_within(script: str, printed: str) -> Iterator[FileChange]:
    for command in located(commands_in(script), START, printed)[0]:
        changes = [_as_certain(change, command) for change in _changes(command, printed)]
        yield from placed(changes, command.folders, _short(command))


def _unwrapped(command: ShellCommand) -> ShellCommand:
    """The command that a runner runs, where that is a formatter, and what `git mv` does."""
    if (git := git_words(command))[0] == "mv":
        return replace(command, words=("mv", *git[1]))
    words = command.words
    for wrapper in _KNOWN.wrappers:
        if (
            words[: len(wrapper)] == wrapper
            and words[len(wrapper) : len(wrapper) + 1]
            and words[len(wrapper)] in _KNOWN.formatters
        ):
            return replace(command, words=words[len(wrapper) :])
    if command.name.startswith("python") and words[1:2] == ("-m",) and words[2:3] and words[2] in _KNOWN.formatters:
        return replace(command, words=words[2:])
    return command


def _by_tee(command: ShellCommand, paths: Sequence[str]) -> Iterator[FileChange]:
    appends = "-a" in command.words
    for path in paths:
        if appends:
            yield Appended(path, _appended_lines(command))
        elif command.document is not None:
            yield Written(path, command.document)
        else:
            yield Doubted(path, _short(command), forgets=True)


def _by_moving(command: ShellCommand, paths: Sequence[str]) -> Iterator[FileChange]:
    """What `mv` and `cp` do; into a folder, where there are several sources."""
    *sources, target = paths
    if any(word.startswith(("-t", "--target")) for word in command.words):
        yield Doubted("", _short(command))
        return
    for source in sources:
        to = _target(source, target if len(sources) == 1 else f"{target}/")
        yield Moved(source, to) if command.name == "mv" else FileCopied(source, to)


def _target(source: str, target: str) -> str:
    """Where a file goes that is moved or copied to a path, which may be a folder's."""
    base = source.rpartition("/")[2]
    is_folder = target.endswith("/") or ("." in base and "." not in target.rpartition("/")[2])
    return f"{target.rstrip('/')}/{base}" if is_folder else target


def _by_redirects(command: ShellCommand) -> Iterator[FileChange]:
    for redirect in command.redirects:
        if redirect.sign == ">>":
            if not redirect.target.startswith("/dev/") and not is_pattern(redirect.target):
                yield Appended(redirect.target, _appended_lines(command))
        elif redirect.sign in (">", ">|") and not redirect.target.startswith(("/dev/", "&")):
            if command.name == "cat" and command.document is not None and len(command.words) == 1:
                yield Written(redirect.target, command.document)
            else:
                yield Doubted(redirect.target, _short(command), forgets=True)


def _appended_lines(command: ShellCommand) -> tuple[str, ...]:
    """What a command puts behind the last line of a file, as far as that is told by the script."""
    if command.name in ("cat", "tee") and command.document not in (None, EXPANDED):
        return tuple(lines_of(command.document or ""))
    if any(word.startswith("-") or "\\" in word for word in command.words[1:]):
        return ()  # options and escapes that shells understand differently
    return tuple(said_by(replace(command, redirects=())) or ())


def _by_program(command: ShellCommand) -> Iterator[FileChange]:
    """What an interpreter may do with the program it is given."""
    program = command.document
    if program is None:
        inline = [at for at, word in enumerate(command.words) if word in ("-c", "-e", "-p")]
        program = command.words[inline[0] + 1] if inline and inline[0] + 1 < len(command.words) else None
    if program is not None:
        yield from (Doubted(path, _short(command)) for path in files_written_by(program))
    elif (path := next((word for word in command.words[1:] if not word.startswith("-")), "")) and "." in path:
        yield Ran(path, _short(command))


def _is_formatter(command: ShellCommand) -> bool:
    name, rest = command.name, command.words[1:]
    if name in _KNOWN.formatters:
        return not _KNOWN.format_options.isdisjoint(rest) or name in _KNOWN.always_format or "format" in rest[:1]
    return (
        name in _KNOWN.runners
        and any(_KNOWN.formatting_scripts.search(word) for word in rest)
        and not any("check" in word for word in rest)
    )


def _short(command: ShellCommand) -> str:
    return " ".join(command.words)[:60]
