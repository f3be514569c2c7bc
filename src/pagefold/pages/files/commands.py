"""What a shell script did to files, from its text and its output, for commands that show or change files.

Only what is certain is told: output is taken for a file's lines where one command alone can have printed it, or where
every printed line carries its number. What may have changed files in ways that the output does not show makes them
uncertain.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace

from pagefold.pages.files.changes import Appended, Doubted, FileChange, FileCopied, FileRemoved, Moved, Ran, Written
from pagefold.pages.files.patch import patch_in, patched_files, targets_of
from pagefold.pages.files.paths import normal
from pagefold.pages.files.printed import may_print, said_by, shown_by_script
from pagefold.pages.files.programs import files_written_by
from pagefold.pages.files.shell import EXPANDED, ShellCommand, commands_in, pipelines_of
from pagefold.pages.files.shell_words import shell_words
from pagefold.pages.files.text import lines_of

_KNOWN = shell_words()
_LOOK = frozenset(("ag", "awk", "diff", "echo", "egrep", "fgrep", "find", "grep", "ls", "printf", "rg", "wc", "which"))


def changed_by_script(
    script: str, output: str, folder: str, *, failed: bool = False, printed: str = "", whole: bool = True
) -> Iterator[FileChange]:
    """What a script did, in order. `folder` is where it ran, as far as that is known; `output` is what may be lines of
    files, `whole` whether no empty lines were stripped from it, `printed` all that the script said. Of a script that
    failed nobody knows how far it came: what it may have changed is in doubt."""
    if patch := patch_in(script):
        yield from patched_files(patch)
        return
    commands = commands_in(script)
    where, reached = folder, True
    printing, late, complained = _first_that_prints(commands), list[str](), False
    for index, command in enumerate(commands):
        if command.name == "cd" and len(command.words) > 1:
            where = normal(command.words[1], where)
        writes = command.document is not None and command.name in ("cat", "tee")
        changes = [_as_certain(change, command) for change in _changes(command)]
        if changes:
            surely_ran = not failed or (writes and reached and index + 1 < len(commands))  # what failed is a later one
            complains = _complains(command, printed)
            complained = complained or complains
            if not surely_ran or command.before in _MAYBE or complains:
                changes = [doubt for change in changes for doubt in change.doubts(_short(command))]
            if index > printing:
                late += [path for change in changes for path in change.paths]
        yield from (change.placed(where) for change in changes)
        reached = reached and (writes or command.name in _KNOWN.silent) and not _complains(command, printed)
    where = folder
    if commands and commands[0].name == "cd" and len(commands[0].words) > 1:
        where = normal(commands[0].words[1], folder)
    if complained:
        return  # what it printed is not only what was to be shown
    for shown in shown_by_script(commands, output, whole=whole):
        if not any(_may_be_same(shown.path, path) for path in late):
            yield shown.placed(where)


def folder_after(script: str, printed: str, folder: str) -> str:
    """Where a shell stands after a script that began in this folder, as far as that is known."""
    if (reset := _RESET.search(printed)) is not None:
        return normal(reset.group(1))
    if re.search(r"^(?:\S*: )*(?:line \d+: )?cd: ", printed, re.MULTILINE):
        return folder
    for command in commands_in(script):
        if command.name == "cd" and command.before not in ("(", "|") and len(command.words) > 1:
            target = command.words[1]
            folder = "" if target == "-" or _PATTERN.search(target) else normal(target, folder)
    return folder


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


_MAYBE = frozenset(("||", "do", "then", "else", "elif", "if", "while", "until"))
_RESET = re.compile(r"Shell cwd was reset to ([^\n]+?)\s*\Z")
_PATTERN = re.compile(r"[*?$`{\[]")
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
    if _PATTERN.search(change.path) and not isinstance(change, Written):
        name = change.path.rpartition("/")[2]
        if isinstance(change, Doubted) and change.forgets and "." in name and not _PATTERN.search(name):
            return Doubted(name, _short(command))  # in a folder that only the shell knows
        return Doubted("", _short(command), mild=isinstance(change, Doubted) and change.mild)
    return change


def _changes(command: ShellCommand) -> Iterator[FileChange]:
    """What a command changes, whatever it prints."""
    yield from _by_redirects(command)
    command = _unwrapped(command)
    if command.name in _KNOWN.shells and len(command.words) > 2 and command.words[1] in ("-c", "-lc"):
        inner = commands_in(command.words[2])
        yield from (_as_certain(change, one) for one in inner for change in _changes(one))
        return
    name, words, reason = command.name, command.words, _short(command)
    plain = [word for word in words[1:] if not word.startswith("-")]
    if name == "tee":
        yield from _by_tee(command, plain)
    elif name == "find" and "sed" in words and "-i" in words:
        yield Doubted("", reason)
    elif name == "rm":
        yield from (FileRemoved(path) for path in plain)
    elif name in ("mv", "cp") and len(plain) == 2:
        target = _target(*plain)
        yield Moved(plain[0], target) if name == "mv" else FileCopied(plain[0], target)
    elif name in ("sed", "perl") and any(word.startswith(("-i", "--in-place", "-pi")) for word in words[1:]):
        yield from [Doubted(path, reason) for path in plain[1:]] or [Doubted("", reason)]
    elif name == "git":
        yield from _by_git(command)
    elif name in _KNOWN.interpreters or name.startswith("python"):
        yield from _by_program(command)
    elif name == "patch":
        named = plain[:1] or (targets_of(command.document) if command.document else [])
        yield from [Doubted(path, reason) for path in named] or [Doubted("", reason)]
    elif _is_formatter(command):
        named = [path for path in plain if "." in path.rpartition("/")[2] and "..." not in path and path != "."]
        yield from [Doubted(path, reason, mild=True) for path in named] or [Doubted("", reason, mild=True)]
    elif not _KNOWN.writing_words.isdisjoint(words[1:]) and name not in _LOOK:
        yield from (Doubted(path, reason) for path in plain if "." in path.rpartition("/")[2])


def _unwrapped(command: ShellCommand) -> ShellCommand:
    """The command that a runner runs, where that is a formatter."""
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


def _target(source: str, target: str) -> str:
    """Where a file goes that is moved or copied to a path, which may be a folder's."""
    base = source.rpartition("/")[2]
    is_folder = target.endswith("/") or ("." in base and "." not in target.rpartition("/")[2])
    return f"{target.rstrip('/')}/{base}" if is_folder else target


def _by_redirects(command: ShellCommand) -> Iterator[FileChange]:
    for redirect in command.redirects:
        if redirect.sign == ">>":
            if not redirect.target.startswith("/dev/") and not _PATTERN.search(redirect.target):
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


def _by_git(command: ShellCommand) -> Iterator[FileChange]:
    words = [word for word in command.words[1:] if word not in ("--no-pager", "-P")]
    while words[:1] in (["-C"], ["-c"]):
        words = words[2:]
    verb, rest = (words[0], words[1:]) if words else ("", [])
    if verb == "mv" and len(rest) == 2:
        yield Moved(*rest)
    elif verb == "rm":
        yield from (FileRemoved(path) for path in rest if not path.startswith("-"))
    elif verb == "restore" or (verb == "checkout" and "--" in rest):
        if "--staged" in rest and "--worktree" not in rest:
            return
        named = rest[rest.index("--") + 1 :] if "--" in rest else [word for word in rest if not word.startswith("-")]
        if named == ["."]:
            yield Doubted("", _short(command))
        else:
            yield from (Doubted(path, _short(command), forgets=True) for path in named)
    elif verb in _KNOWN.git_changes_files and not _keeps_files(verb, rest):
        yield Doubted("", _short(command))


def _keeps_files(verb: str, rest: Sequence[str]) -> bool:
    """Whether a git command leaves the working tree as it is."""
    if verb == "stash":
        return rest[:1] in (["list"], ["show"], ["drop"])
    if verb == "reset":
        return "--hard" not in rest
    if verb in ("checkout", "switch"):
        is_new = any(word in rest for word in ("-b", "-c", "-B", "-C"))
        return is_new and len([word for word in rest if not word.startswith("-")]) == 1
    return verb == "apply" and ("--check" in rest or "--cached" in rest)


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
