"""In which folder each command of a script runs, and where the shell stands after it.

Where that is not certain, several folders are told, or none: behind a `cd` that may not have been done, or that leads
where only the shell knows. A path from one of several folders means a known file, or says nothing.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TypeAlias

from pagefold.frozen import frozen
from pagefold.pages.files.changes import Act, Compared, FileChange
from pagefold.pages.files.known_file import KnownFile
from pagefold.pages.files.paths import is_absolute, normal
from pagefold.pages.files.shell import ShellCommand, commands_in

Folders: TypeAlias = tuple[str, ...]
"""Where something may stand: one folder where that is certain, none where it may be any. "" is where a shell began."""

START: Folders = ("",)
_MOST = 4  # folders that are worth being told apart
_RESET = re.compile(r"Shell cwd was reset to ([^\n]+?)\s*\Z")
_COMPLAINT = re.compile(r"^[^\n]*\bcd:(?:\d+:)? [^\n]*$", re.MULTILINE)
_ONLY_THE_SHELL_KNOWS = re.compile(r"[*?$`{\[]")
_STAYED = re.compile(r"\A\s*(?:(?:Error: )?Exit code:? [1-9]|Command running in background|\[Request interrupted)")
_SOMETIMES = frozenset(("||", "|", "&", "do", "then", "else", "elif", "if", "while", "until"))
_HOME = re.compile(r"\$(?:HOME|\{HOME\})(?=/|$)")


@frozen
class OneOf(FileChange):
    """A change of one of several files, by the folder that a path begins in. Only one of them that is known is meant,
    and that only by a path with a folder in it: most folders have a file of any common name."""

    choices: tuple[FileChange, ...] = ()

    @property
    def act(self) -> Act:
        return self.choices[0].act

    @property
    def paths(self) -> tuple[str, ...]:
        return tuple([path for choice in self.choices for path in choice.paths])

    def placed(self, folder: str) -> "OneOf":
        return self

    def doubts(self, reason: str) -> tuple[FileChange, ...]:
        return tuple([doubt for choice in self.choices for doubt in choice.doubts(reason)])

    def meant(self, files: Mapping[str, KnownFile]) -> FileChange | None:
        by_key = {key: choice for choice in self.choices if (key := choice.known(files)[0]) in files}
        return next(iter(by_key.values())) if len(by_key) == 1 and "/" in self.path else None

    def apply(self, files: dict[str, KnownFile], place: int) -> None:
        if (meant := self.meant(files)) is not None:
            meant.apply(files, place)
        elif self.act is not Act.SHOWED:
            for doubt in self.doubts("a change of one of several files"):
                doubt.apply(files, place)


def located(commands: Sequence[ShellCommand], folders: Folders, printed: str) -> tuple[list[ShellCommand], Folders]:
    """The commands of a script that began in a folder, each with its own, and the folder that it ends in. A subshell's
    `cd` ends with it."""
    complaints = _COMPLAINT.findall(printed)
    now: dict[tuple[int, ...], Folders] = {(): folders}
    found: list[ShellCommand] = []
    before: Folders = ()
    for command in commands:
        place = command.subshell
        if place not in now:
            now[place] = next(now[place[:size]] for size in range(len(place) - 1, -1, -1) if place[:size] in now)
        here = now[place]
        found.append(replace(command, folders=_own_folders(command, here)))
        target = _target(command)
        if target is None or any(target in complaint for complaint in complaints):
            continue
        to = before if target == "-" else _entered(target, here)
        if complaints or command.conditional or command.before in _SOMETIMES:
            to = _either(to, here)
        now[place], before = to, here
    return found, now[()]


def folders_after(script: str, printed: str, folders: Folders, *, failed: bool = False) -> Folders:
    """Where a shell that keeps its folder stands after a script that began in one of these. It stays where a script
    failed, was interrupted or went on in the background: then it is not asked where it stands."""
    if (reset := _RESET.search(printed)) is not None:
        return (normal(reset.group(1)),)
    if failed or _STAYED.search(printed):
        return folders
    return located(commands_in(script), folders, printed)[1]


def perhaps_put_back(folders: Folders) -> Folders:
    """Where a shell may stand that stood in one of these, and may have been put back to where it began."""
    return folders if START[0] in folders else _either(folders, START)


def placed(changes: Iterable[FileChange], folders: Folders, reason: str) -> Iterator[FileChange]:
    """Changes with their paths as they are from the folder that a command ran in. Where that may be any, a relative
    path is any file that ends like it: what was shown of it says nothing, and what was changed is in doubt. The paths
    of a diff begin at the root of its repository, which is taken for the same one: where a shell begins, if it may
    stand there."""
    for change in changes:
        choices = tuple(dict.fromkeys(change.placed(folder) for folder in folders))
        if len(choices) == 1 or (choices and isinstance(change, Compared)):
            yield change.placed(START[0]) if START[0] in folders else choices[0]
        elif choices:
            yield OneOf(change.path, choices)
        elif isinstance(change, Compared) or all(is_absolute(path) or not path for path in change.paths):
            yield change.placed("")
        elif change.act is not Act.SHOWED:
            yield from change.doubts(reason)


def _target(command: ShellCommand) -> str | None:
    """Where a command leads the shell; None where it does not."""
    if command.name in ("cd", "pushd"):
        return next((word for word in command.words[1:] if word == "-" or not word.startswith("-")), "~")
    return "$OLDPWD" if command.name == "popd" else None


def _entered(target: str, folders: Folders) -> Folders:
    """The folder that a `cd` leads to from another."""
    target = _HOME.sub("~", target)
    if _ONLY_THE_SHELL_KNOWS.search(target):
        return ()
    return (normal(target),) if is_absolute(target) else tuple([normal(target, folder) for folder in folders])


def _either(one: Folders, other: Folders) -> Folders:
    both = tuple(dict.fromkeys((*one, *other)))
    return both if one and other and len(both) <= _MOST else ()


def _own_folders(command: ShellCommand, folders: Folders) -> Folders:
    """Where a command works: git can be told to go elsewhere first."""
    words = command.words
    return _entered(words[words.index("-C") + 1], folders) if command.name == "git" and "-C" in words[:-1] else folders
