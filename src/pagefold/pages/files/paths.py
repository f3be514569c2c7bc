"""One identity for a file, however its path is spelled."""

import re
from collections.abc import Iterable, Mapping
from functools import lru_cache

_DRIVE = re.compile(r"^/(?:mnt/|cygdrive/)?([A-Za-z])/(?=.)")
_WINDOWS = re.compile(r"^[A-Za-z]:[\\/]")
_TEMPORARY = re.compile(r"(?:/private)?(?:/var)?/te?mp/|(?:/|/mnt/)?[a-z]:?/(?:.*/)?te?mp/", re.IGNORECASE)
_PATTERN = re.compile(r"[*?$`{\[]")
_PARTS_OF_PATTERN = re.compile(r"\$\{[^}]*\}|\$\w*|`[^`]*`?|\{[^}]*\}?|\[[^]/]+\]|\*+|\?|[^*?$`{\[]+|.")
_HOME = re.compile(r"^(?:(?:[A-Za-z]:|/[A-Za-z]|/mnt/[A-Za-z])?/(?:[Uu]sers|home)/[^/]+|/root|~)/(?=.)")


def normal(path: str, folder: str = "") -> str:
    """A path with forward slashes and without `.` and `..`; relative paths stand in `folder`, where that is known."""
    if not path.startswith("/"):  # elsewhere a backslash is part of a name
        path = path.replace("\\", "/")
    if _WINDOWS.match(path):
        path = path[0].lower() + path[1:]
    elif not path.startswith(("/", "~", "$", "`")) and folder:
        path = f"{normal(folder)}/{path}"
    parts: list[str] = []
    for part in path.split("/"):
        if part == ".." and parts and parts[-1] not in ("", ".."):
            parts.pop()
        elif part not in (".", "") or (part == "" and not parts):
            parts.append(part)
    return "/".join(parts) or "."


def is_temporary(path: str) -> bool:
    """Whether a path is in a folder for temporary files."""
    return _TEMPORARY.match(path) is not None


def is_absolute(path: str) -> bool:
    return path.startswith(("/", "~")) or bool(_WINDOWS.match(path))


def identity(path: str, known: Iterable[str]) -> str:
    """The known path that is meant by this one: the same, or the only one that ends like it or that it ends like.

    Where several could be meant the path stands for itself: two files of one name are never taken for one another. On
    Windows the case of letters does not count, and `/c/a` or `/mnt/c/a` is `c:/a`. `~/a` is `a` in a home folder.
    """
    names = set(known) if not isinstance(known, set | frozenset | dict) else known
    if path in names:
        return path
    if is_absolute(path):
        ends = [name for name in names if not is_absolute(name) and path.endswith("/" + name)]
    else:
        ends = [name for name in names if name.endswith("/" + path)]
    if not ends:
        ends = _on_windows(path, names) or _at_home(path, names)
    return ends[0] if len(ends) == 1 else path


def is_pattern(path: str) -> bool:
    """Whether a shell makes other paths of this one: it holds a wildcard, a variable or a command."""
    return _PATTERN.search(path) is not None


def is_wildcard(path: str) -> bool:
    """Whether a path is a pattern for files that exist, which anybody can read: one without variables or commands."""
    return is_pattern(path) and not any(sign in path for sign in "$`")


def matching(pattern: str, names: Iterable[str]) -> list[str]:
    """The names that a pattern may stand for; a variable or a command may stand for anything."""
    meant = _expression(with_drive(pattern))
    return [name for name in names if meant.search(with_drive(name))]


@lru_cache(maxsize=1 << 8)
def _expression(pattern: str) -> re.Pattern[str]:
    begins = "^" if is_absolute(pattern) else "" if pattern.startswith(("$", "`")) else "(?:^|/)"
    return re.compile(begins + "".join(map(_part, _PARTS_OF_PATTERN.findall(pattern))) + "$", re.DOTALL)


def _part(part: str) -> str:
    if part[0] in "$`{" or part.startswith("**"):
        return ".*"
    if part == "?" or (part[0] == "[" and len(part) > 1):
        return "[^/]"
    return "[^/]*" if part == "*" else re.escape(part)


def in_repository(path: str, folder: str, known: Mapping[str, object]) -> str:
    """The file that git means by a path. It begins at the root of the repository that `folder` lies in: that folder,
    or one above it. Where no file there is known, the root is the folder that is known to hold the path's first part.
    """
    if is_absolute(path) or not folder:
        return identity(normal(path), known)
    roots = _with_parents(normal(folder))
    meant = (identity(normal(path, root), known) for root in roots)
    if (found := next((name for name in meant if name in known), None)) is not None:
        return found
    first = normal(path).partition("/")[0]
    inside = [with_drive(name) for name in (*known, f"{normal(folder)}/")]
    beside = (root for root in roots if any(name.startswith(with_drive(normal(first, root)) + "/") for name in inside))
    return normal(path, next(beside, roots[0]))


def _with_parents(folder: str) -> list[str]:
    """A folder and those above it; the last is nothing where it is not known what is above."""
    parts = folder.split("/")
    above = ["/".join(parts[:count]) for count in range(len(parts), 0, -1) if any(parts[:count])]
    return above if is_absolute(folder) else [*above, ""]


def _on_windows(path: str, names: Iterable[str]) -> list[str]:
    """The known paths that mean the same file where one of the two is a path of Windows."""
    spelled = with_drive(path)
    ends = [name for name in names if _WINDOWS.match(spelled) or _WINDOWS.match(name)]
    same = [name for name in ends if with_drive(name) == spelled]
    if same or is_absolute(path):
        return same or [name for name in ends if not is_absolute(name) and spelled.endswith("/" + name.lower())]
    return [name for name in ends if name.lower().endswith("/" + spelled)]


def _at_home(path: str, names: Iterable[str]) -> list[str]:
    """The known paths that mean the same file where one of the two begins with `~` and the other with a home folder."""
    if (home := _HOME.match(path)) is None:
        return []
    rest, is_short = path[home.end() :], path.startswith("~")
    return [
        name
        for name in names
        if name.startswith("~") is not is_short and (other := _HOME.match(name)) and name[other.end() :] == rest
    ]


def with_drive(path: str) -> str:
    """A path as Windows spells it where it begins with a drive, in small letters: one spelling for the same file."""
    return _DRIVE.sub(r"\1:/", path).lower()
