"""Which folders are in one working copy of git, however they are spelled. "" is where the shell began."""

import re
from collections.abc import Iterable, Sequence

from pagefold.pages.files.folders import START
from pagefold.pages.files.paths import identity, is_absolute, is_temporary, normal

_HOLDS_COPIES = frozenset(("worktrees", ".worktrees"))  # folders in a working copy in which others stand

_STATED = re.compile(r"^\s*(?:- )?(?:Primary w|W)orking directory: (\S[^\n]*)$|<cwd>([^<\n]+)</cwd>", re.MULTILINE)
ENVIRONMENT = "<environment_context>"  # with which a client begins that states the folder in the user's place


def stated_folder(text: str) -> str:
    """The folder that a client's words about its surroundings give as the one in which a shell begins."""
    stated = _STATED.search(text)
    return (stated[1] or stated[2]).strip() if stated is not None else ""


def spelled(folder: str) -> str:
    """A folder without a slash at its end, `.` and `..`."""
    return normal(folder) if folder else folder


def is_in_one_copy(one: str, other: str) -> bool:
    """Whether two folders are surely the same, or one is below the other and no working copy of its own."""
    return _is_within(one, other) or _is_within(other, one)


def may_be_in_one_copy(one: str, other: str) -> bool:
    """Whether two folders may be in one working copy although nothing tells: where a shell began may be anywhere, but
    nobody begins in a folder for temporary files."""
    absolute = [folder for folder in (one, other) if is_absolute(folder)]
    return len(absolute) == 1 and not is_temporary(f"{absolute[0]}/")


def copy_of(folder: str, began: str, known: Iterable[str]) -> str:
    """The known working copy that a folder is in: the one where the shell `began`, the same, the nearest above it or
    the only one below it. Else it is one of its own."""
    folder = spelled(folder)
    if not folder or (began and is_in_one_copy(folder, began)):
        return START[0]
    above = [name for name in known if _is_within(folder, name)]
    below = [name for name in known if _is_within(name, folder)]
    if above:
        return max(above, key=len)
    return below[0] if len(below) == 1 else folder


def _is_within(folder: str, outer: str) -> bool:
    """Whether a folder is another one or below it."""
    parts = folder.split("/") if folder else []
    topmost = 2 if folder.startswith("/") else 1 if is_absolute(folder) else 0
    for count in range(len(parts), topmost - 1, -1):
        if count < len(parts) and parts[count] in _HOLDS_COPIES:
            return False
        if _is_same(parts[:count], outer):
            return True
    return False


def _is_same(parts: Sequence[str], other: str) -> bool:
    folder = "/".join(parts)
    if folder == other:
        return ".." not in parts or bool(other)
    both_absolute = is_absolute(folder) and is_absolute(other)
    return both_absolute and identity(folder, (other,)) == other
