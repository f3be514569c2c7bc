"""What git commands do to files, as far as their words and what they printed tell.

What git may have done to any file is in doubt, unless it says that it did nothing. Of a commit that it made, a listing
(`git show --stat`) tells later which files it changed.
"""

import re
from collections.abc import Iterator, Sequence

from pagefold.pages.files.changes import (
    CommitListed,
    Doubted,
    DoubtedByGit,
    FileChange,
    FileRemoved,
    PatchApplied,
)
from pagefold.pages.files.shell import ShellCommand, git_words
from pagefold.pages.files.shell_words import shell_words

_KNOWN = shell_words()
_NOT_APPLIED = re.compile(r"^error: .*patch|^error: .*(?:does not exist in index|No such file)|^fatal: ", re.MULTILINE)
_PATHS_UPDATED = re.compile(r"^Updated \d+ paths? from (?P<index>the index$)?", re.MULTILINE)
_MOVED = re.compile(r"^(?:Switched to |Already on |Note: switching to |HEAD is now at )", re.MULTILINE)
_CLEANED = re.compile(r"^Removing (.+)$", re.MULTILINE)
_DID_NOTHING = {
    "merge": re.compile(r"^Already up to date\.$", re.MULTILINE),
    "pull": re.compile(r"^(?:Already up to date\.|Current branch .+ is up to date\.)$", re.MULTILINE),
    "rebase": re.compile(r"^Current branch .+ is up to date\.$", re.MULTILINE),
    "stash": re.compile(r"^No local changes to save$", re.MULTILINE),
}
_DID_SOMETHING = re.compile(
    r"^(?:Updating |Fast-forward|Merge made|Successfully rebased|Saved working directory|Dropped |CONFLICT)",
    re.MULTILINE,
)
_COMMITTED = re.compile(r"^\[[^\]\n]+ ([0-9a-f]{7,40})\] ", re.MULTILINE)
_ONE_COMMIT = frozenset(("cherry-pick", "revert"))
_SHOWN = re.compile(r"^(?:commit )?([0-9a-f]{7,40})(?:$| )", re.MULTILINE)
_IS_HASH = re.compile(r"[0-9a-f]{7,40}\Z")
_LISTED = re.compile(r"^ (\S.*?) +\| +(?:\d+(?: [+-]+)?|Bin .*)$")
_COUNTED = re.compile(r"^ (\d+) files? changed")
_LISTS_ALL = frozenset(("--stat", "--oneline", "--no-color", "-1", "HEAD"))
_WITH_THE_ONE_BEFORE = frozenset(("HEAD~1", "HEAD~", "HEAD^"))


def by_git(command: ShellCommand, reason: str, printed: str) -> Iterator[FileChange]:
    """What a git command other than `git mv` did, in a script that printed this."""
    verb, rest = git_words(command)
    plain = [word for word in rest if not word.startswith("-")]
    if verb == "rm" and "--cached" not in rest:
        yield from (FileRemoved(path) for path in plain)
    elif verb == "clean" and (gone := _CLEANED.findall(printed)):
        yield from (FileRemoved(path) for path in gone)
    elif verb == "restore" or (verb == "checkout" and "--" in rest):
        if "--staged" in rest and "--worktree" not in rest:
            return
        named = rest[rest.index("--") + 1 :] if "--" in rest else plain
        if named == ["."]:
            yield DoubtedByGit("", reason)
        else:
            yield from (Doubted(path, reason, forgets=True) for path in named)
    elif verb == "apply":
        yield from _by_applying(command, reason, printed)
    elif verb == "checkout" and (paths := _checked_out(plain, printed)):
        yield from (Doubted(path, reason, forgets=True) for path in paths)
    elif _lists_a_commit(verb, rest):
        yield from _by_listing(_COMMITTED if verb == "diff" else _SHOWN, printed)
    elif verb in _KNOWN.git_changes_files and not _keeps_files(verb, rest) and not _did_nothing(verb, printed):
        made = _COMMITTED.findall(printed) if verb in _ONE_COMMIT else []
        yield DoubtedByGit("", reason, commit=made[0] if len(made) == 1 else "")


def _did_nothing(verb: str, printed: str) -> bool:
    """Whether git says that there was nothing to do, and nothing else in what was printed says otherwise."""
    said = _DID_NOTHING.get(verb)
    return said is not None and said.search(printed) is not None and not _DID_SOMETHING.search(printed)


def _lists_a_commit(verb: str, rest: Sequence[str]) -> bool:
    """Whether a command lists all files of one commit: one that it names, or the last one, behind the command that made
    it. Anything else that is asked for may leave some out."""
    if "--stat" not in rest:
        return False
    if verb == "diff":
        before, *others = [word for word in rest if word not in ("--stat", "--no-color")] or [""]
        return before in _WITH_THE_ONE_BEFORE and others in ([], ["HEAD"])
    return verb in ("log", "show") and all(word in _LISTS_ALL or _IS_HASH.match(word) for word in rest)


def _by_listing(tells_commit: re.Pattern[str], printed: str) -> Iterator[FileChange]:
    """The files that a commit changed, where all of them were listed: as many as git counted below the list. The commit
    is the last that was told above."""
    lines, found = printed.split("\n"), list[CommitListed]()
    for at, line in enumerate(lines):
        if (counted := _COUNTED.match(line)) is None:
            continue
        above = [_LISTED.match(listed) for listed in lines[max(0, at - int(counted[1])) : at]]
        paths = tuple([match[1] for match in above if match])
        commits = tells_commit.findall("\n".join(lines[:at]))
        if commits and len(paths) == int(counted[1]) and not any('"' in path or "=>" in path for path in paths):
            found.append(CommitListed("", commits[-1], paths))
    yield from found if len(found) == 1 else ()


def _checked_out(plain: Sequence[str], printed: str) -> Sequence[str]:
    """The paths that `git checkout` without `--` brought back, where git says that it was paths and no branch."""
    updated = _PATHS_UPDATED.search(printed)
    if updated is None or _MOVED.search(printed):
        return ()
    paths = plain if updated["index"] else plain[1:]
    return paths if all("." in path.rpartition("/")[2].strip(".") or "/" in path for path in paths) else ()


def _by_applying(command: ShellCommand, reason: str, printed: str) -> Iterator[FileChange]:
    """What `git apply` may have changed: nothing where all of a patch does not apply, unless it was told to go on."""
    rest = git_words(command)[1]
    partly = any(word in rest for word in ("--reject", "--3way", "-3"))
    if "--check" in rest or "--cached" in rest or (not partly and _NOT_APPLIED.search(printed)):
        return
    patches = [word for word in rest if not word.startswith("-")]
    yield from (PatchApplied(path, reason, command.document or "") for path in patches or [""])


def _keeps_files(verb: str, rest: Sequence[str]) -> bool:
    """Whether a git command leaves the working tree as it is."""
    if verb == "stash":
        return rest[:1] in (["list"], ["show"], ["drop"])
    if verb == "reset":
        return "--hard" not in rest
    if verb in ("checkout", "switch"):
        is_new = any(word in rest for word in ("-b", "-c", "-B", "-C"))
        return is_new and len([word for word in rest if not word.startswith("-")]) == 1
    return verb == "clean" and any(word == "--dry-run" or re.match(r"-[a-z]*n", word) for word in rest)
