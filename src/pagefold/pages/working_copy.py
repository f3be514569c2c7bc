"""What git last told of a working copy: its branch, the newest commit that was made, and what is not committed.

Each is kept with the message that told it, and only until something may have changed it; what is not committed also
behind that, with what may have changed it. What git says of another repository is kept apart, by the folder that it ran
in.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace

from pagefold.frozen import frozen
from pagefold.pages.copies_told import WorkingCopies, WorkingCopy
from pagefold.pages.copy_folders import copy_of, may_be_in_one_copy
from pagefold.pages.files.folders import START, Folders, folders_after, located
from pagefold.pages.files.frames import is_cut, opened
from pagefold.pages.files.printed import may_print
from pagefold.pages.files.shell import ShellCommand, commands_in, git_words, pipelines_of

_BRANCH = re.compile(
    r"^(?:On branch |Switched to (?:a new )?branch '|Already on '|## (?:No commits yet on )?)"
    r"(?P<name>[^\s'.]+(?:\.[^\s'.]+)*)"
    r"|^(?:HEAD detached at |Note: switching to ')(?P<detached>[^\s']+)"
    r"|Successfully rebased and updated refs/heads/(?P<rebased>\S+?)\.?$"
    r"|^\* (?P<listed>[^\s(]\S*)"
    r"|^\[(?:detached HEAD|(?P<committed>[^\s\]]+))(?: \(root-commit\))? (?P<commit>[0-9a-f]{7,40}\] .+)$",
    re.MULTILINE,
)
_STATUS = ("On branch ", "HEAD detached at ")
_SWITCH = ("Switched to ", "Already on ", "Note: switching to ")
_COMMIT = (*_STATUS, "[")
_REBASED = "Successfully rebased and updated "
_LEADS: dict[str, tuple[str, ...]] = {"switch": _SWITCH, "status": _STATUS, "pr": _SWITCH, "pull": (_REBASED,)}
_LEADS |= {
    "rebase": (*_STATUS, _REBASED),
    "branch": ("* ",),
    "checkout": _SWITCH,
    "cherry-pick": _COMMIT,
    "commit": _COMMIT,
    "merge": _COMMIT,
    "revert": _COMMIT,
}
"""How a line begins by which a command of git or gh tells the branch; other commands of a script may print any line."""
_PRINTS_BRANCH = (
    ("branch", ["--show-current"]),
    ("rev-parse", ["--abbrev-ref", "HEAD"]),
    ("symbolic-ref", ["--short", "HEAD"]),
)
_TRACKS = re.compile(r"## (\S+)\.\.\.\S+/\1(?: \[[^\]\n]*\])?$", re.MULTILINE)  # no heading of a text is like that
_IS_BRANCH = re.compile(r"(?!HEAD\Z)[^\s':~^?*\[\\]+\Z")
_ALWAYS_TELL = frozenset(("checkout", "cherry-pick", "commit", "revert", "status", "switch"))
_PASS_ON = ("cat", "head", "tail")
_LEAVES_FILES = frozenset(
    ("blame", "branch", "cat-file", "config", "describe", "diff", "fetch", "for-each-ref", "grep", "log", "ls-files")
) | {"ls-remote", "ls-tree", "merge-base", "push", "reflog", "remote", "rev-list", "rev-parse", "show", "show-ref"}
_LEAVES_FILES |= {"status", "symbolic-ref", "tag"}
_LOOKS_AT_STASH = (("stash", "list"), ("stash", "show"))
_MOVES_COMMITS = frozenset(("cherry-pick", "commit", "merge", "pull", "rebase", "reset", "revert"))
_ENTRY = re.compile(r"^([ MADRCUT?!]{2}) (.+)$")
_SECTION = re.compile(r"^(Changes to be committed|Changes not staged for commit|Unmerged paths|Untracked files):")
_MARKS = {"Changes to be committed": "staged: ", "Unmerged paths": "unmerged: ", "Untracked files": "untracked "}
_LISTED = re.compile(r"^\t(?:(new file|modified|deleted|renamed|copied|typechange|both \w+):\s+)?(.+)$")
_CLEAN = re.compile(r"nothing to commit, working tree clean")
_SHORT_FORMS = frozenset(("-s", "--short", "--porcelain", "-sb", "-bs"))
_WITH_BRANCH = frozenset(("-b", "--branch", "-sb", "-bs"))
_SAYS_NOTHING = ("", "(Bash completed with no output)", "(no output)")


@frozen
class ScriptSeen:
    """What a shell was given, nothing where it was none, with its result, where it may have begun, and whether it went
    well."""

    script: str
    result: str
    folders: Folders
    went_well: bool


def copies_after(copies: WorkingCopies, seen: ScriptSeen, place: int, *, changed: bool) -> WorkingCopies:
    """The working copies after a call that did, or may have done, something to files where it `changed` them."""
    copies = copies.after_a_change(place) if changed else copies
    for began in folders_after("", seen.result, ()) or _printed_folder(seen):
        copies = copies.beginning_in(began)
    if "git" not in seen.script and "gh " not in seen.script:
        return copies
    script = located(commands_in(seen.script), seen.folders, seen.result)[0]
    commands = [one for one in script if one.name == "git" or one.words[:3] == ("gh", "pr", "checkout")]
    if not commands:
        return copies
    where = {tuple(dict.fromkeys(_copy_of(name, copies) for name in one.folders)) for one in commands}
    changes = any(_may_switch(one) or _changes_files(one) for one in commands)
    choices = next(iter(where))
    if len(where) > 1 or not choices or (len(choices) > 1 and START[0] not in choices):
        return replace(copies, told={}) if changes else copies  # nobody can tell which of them told what
    folder = choices[0] if len(choices) == 1 else START[0]
    if changes and len(choices) > 1:
        copies = replace(copies, told={name: copy for name, copy in copies.told.items() if name in START})
    before = copies.told.get(folder, WorkingCopy())
    told = _told(_doubted(before, commands, place), commands, script, seen, place)
    if changed and told.changes_at == place and git_words(script[-1])[0] != "status":
        told = told.after_a_change(place)
    others = {
        name: _less_certain(copy, told, commands, place) if _may_be_one(name, folder, copies, commands) else copy
        for name, copy in copies.told.items()
        if name != folder
    }
    known = {name: copy for name, copy in {**others, folder: told}.items() if copy.told_at >= 0}
    return replace(copies, told=known)


def _copy_of(folder: str, copies: WorkingCopies) -> str:
    return copy_of(folder, copies.began, copies.told)


def _printed_folder(seen: ScriptSeen) -> Folders:
    """Where the shell began, where all that a script does there is to print it."""
    if seen.script.strip() != "pwd" or seen.folders != START or not seen.went_well:
        return ()
    return (opened(seen.result).strip(),)


def _may_be_one(name: str, folder: str, copies: WorkingCopies, commands: Sequence[ShellCommand]) -> bool:
    """Whether what is kept apart may be the working copy that these commands were about."""
    made = any(git_words(one)[0] in ("init", "clone") for one in commands)
    return not made and not copies.began and may_be_in_one_copy(name, folder)


def _less_certain(copy: WorkingCopy, told: WorkingCopy, commands: Sequence[ShellCommand], place: int) -> WorkingCopy:
    """A working copy without what may have changed, and without what was now told of another that may be the same."""
    copy = _doubted(copy, commands, place)
    if told.branch_at == place:
        copy = replace(copy, branch="", branch_at=-1)
    if told.commit_at == place:
        copy = replace(copy, commit="", commit_at=-1)
    return copy.without_changes() if told.changes_at == place else copy


def _doubted(copy: WorkingCopy, commands: Sequence[ShellCommand], place: int) -> WorkingCopy:
    """A working copy without what these commands may have changed."""
    changing = list(filter(_changes_files, commands))
    if changing and all(git_words(one)[0] == "add" for one in changing):
        copy = copy.after_a_change(place)  # what it lists is still not committed
    elif changing:
        copy = copy.without_changes(place)
    if any(git_words(one)[0] in _MOVES_COMMITS for one in commands):
        copy = replace(copy, commit="", commit_at=-1)
    return replace(copy, branch="", branch_at=-1) if any(map(_may_switch, commands)) else copy


def _told(
    copy: WorkingCopy, commands: Sequence[ShellCommand], script: Sequence[ShellCommand], seen: ScriptSeen, place: int
) -> WorkingCopy:
    """A working copy after what the git commands of a script told of it."""
    text = opened(seen.result)
    if printed := _branch_printed(script, text):
        copy = replace(copy, branch=printed, branch_at=place)
    for match in _surely_told(text, commands, script):
        name = _named(match)
        if name and name != "HEAD":
            copy = replace(copy, branch=name, branch_at=place)
        if match["commit"]:
            copy = replace(copy, commit=match["commit"].replace("]", "", 1), commit_at=place)
    changes = _changes_told(commands, script, text) if seen.went_well and not is_cut(text) else None
    if changes is None:
        return copy
    return replace(copy, changes=tuple(changes), changes_at=place, changed_at=-1, lost_at=-1)


def _branch_printed(script: Sequence[ShellCommand], text: str) -> str:
    """The name of the branch, alone on its line, where the first command of a script that prints asks for it and none
    behind it may switch."""
    printing = next((pipeline for pipeline in pipelines_of(script) if may_print(pipeline)), [])
    asks = len(printing) == 1 and not printing[0].conditional and git_words(printing[0]) in _PRINTS_BRANCH
    if not asks or any(map(_may_switch, script[script.index(printing[0]) :])):
        return ""
    name = text.lstrip("\n").partition("\n")[0].strip()
    return name if _IS_BRANCH.match(name) else ""


def _leads(command: ShellCommand) -> tuple[str, ...]:
    """How lines begin by which a command tells the branch."""
    verb = command.words[1] if command.name == "gh" else git_words(command)[0]
    if verb != "status" or _SHORT_FORMS.isdisjoint(command.words):
        return _LEADS.get(verb, ())
    return () if _WITH_BRANCH.isdisjoint(command.words) else ("## ",)


def _surely_told(text: str, commands: Sequence[ShellCommand], script: Sequence[ShellCommand]) -> list[re.Match[str]]:
    """Lines that tell the branch. Where other commands print too, any line may be theirs: then one is taken only if a
    command that always tells the branch was run, none says otherwise, and a switch is to a branch that it names; or if
    it is the first of the list of branches that was printed first."""
    telling = [one for one in commands if _leads(one)]
    printing = [pipeline for pipeline in pipelines_of(script) if may_print(pipeline)]
    if all(pipeline[0] in telling and all(map(_passes_on, pipeline[1:])) for pipeline in printing):
        return list(_branches_told(text, telling))
    if (first := printing[0][0]) in telling and git_words(first)[0] == "branch":
        return list(_branches_told(text, [first]))
    telling = [one for one in telling if git_words(one)[0] in _ALWAYS_TELL and not _is_quiet(one)]
    words = {word for one in telling for word in git_words(one)[1]}
    told = [
        match
        for match in _branches_told(text, telling, first=first in telling)
        if not match[0].startswith(_SWITCH) or {match["name"], match["detached"]} & words
    ]
    agreed = len(set(map(_named, told))) == 1 and len({match["commit"] for match in told} - {None}) < 2
    return told if agreed else []


def _named(match: re.Match[str]) -> str:
    """The branch that a line tells."""
    name = match["name"] or match["committed"] or match["rebased"] or match["listed"]
    return name or (f"none (at {match['detached']})" if match["detached"] else "")


def _passes_on(command: ShellCommand) -> bool:
    """Whether a command in a pipe prints nothing but what comes to it."""
    return command.name in _PASS_ON and all(word.startswith("-") or word.isdigit() for word in command.words[1:])


def _is_quiet(command: ShellCommand) -> bool:
    short = (word for word in command.words if word[:1] == "-" and word[:2] != "--")
    return "--quiet" in command.words or any("q" in word for word in short)


def _branches_told(text: str, commands: Sequence[ShellCommand], *, first: bool = True) -> Iterator[re.Match[str]]:
    """Lines that tell the branch as one of these commands does. Any text may have headings: of those that do not name
    the branch on a server too, the first one is taken, where what these commands print comes `first`."""
    leads = tuple(lead for one in commands for lead in _leads(one))
    taken = not first
    for match in _BRANCH.finditer(text):
        heading = match[0].startswith(("## ", "* "))
        if match[0].startswith(leads) and not (heading and taken and not _TRACKS.match(text, match.start())):
            yield match
        taken = taken or heading


def _changes_told(commands: Sequence[ShellCommand], script: Sequence[ShellCommand], text: str) -> list[str] | None:
    """What a script told of all that is not committed; None where it did not, or went on to change it."""
    asked = [at for at, one in enumerate(commands) if git_words(one)[0] == "status"]
    if not asked or any(map(_changes_files, commands[asked[-1] :])):
        return None
    status = commands[asked[-1]]
    pipeline = next(one for one in pipelines_of(script) if status in one)
    plain = all(word.startswith("-") for word in git_words(status)[1])  # not of some paths only
    if len(pipeline) > 1 or not plain or status.is_redirected:
        return None
    if sum(1 for one in pipelines_of(script) if may_print(one)) > 1:
        return None  # any text may list paths, or say that there is nothing to commit
    return _listed(text) if _SHORT_FORMS.isdisjoint(status.words) else _entries(text)


def _entries(text: str) -> list[str] | None:
    """The entries of a short status; None where something else stands among them."""
    lines = [line for line in text.split("\n") if line.strip() not in _SAYS_NOTHING and not line.startswith("## ")]
    matches = [_ENTRY.match(line) for line in lines]
    return [f"{match[1].strip()} {match[2]}" for match in matches if match] if all(matches) else None


def _listed(text: str) -> list[str] | None:
    """The paths that a long status lists, each with what became of it; None where it tells of none."""
    if _CLEAN.search(text):
        return []
    found, section = list[str](), ""
    for line in text.split("\n"):
        if (head := _SECTION.match(line)) is not None:
            section = head[1]
        elif section and (entry := _LISTED.match(line)) is not None:
            found.append(f"{_MARKS.get(section, '')}{f'{entry[1]} ' if entry[1] else ''}{entry[2]}")
    return found or None


def _may_switch(command: ShellCommand) -> bool:
    """Whether a command may have put another branch into the working copy."""
    verb, rest = git_words(command)
    if command.name != "git":
        return command.words[:3] == ("gh", "pr", "checkout")
    return verb in ("checkout", "switch") and "--" not in rest


def _changes_files(command: ShellCommand) -> bool:
    verb, rest = git_words(command)
    return verb not in _LEAVES_FILES and (verb, *rest[:1]) not in _LOOKS_AT_STASH
