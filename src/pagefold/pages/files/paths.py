"""One identity for a file, however its path is spelled."""

import re
from collections.abc import Iterable

_DRIVE = re.compile(r"^(?:/mnt)?/?([A-Za-z]):?/(?=.)")
_WINDOWS = re.compile(r"^[A-Za-z]:[\\/]")


def normal(path: str, folder: str = "") -> str:
    """A path with forward slashes and without `.` and `..`; relative paths stand in `folder`, where that is known."""
    path = path.strip().strip("\"'").replace("\\", "/")
    if _WINDOWS.match(path):
        path = path[0].lower() + path[1:]
    elif not path.startswith(("/", "~")) and folder:
        path = f"{normal(folder)}/{path}"
    parts: list[str] = []
    for part in path.split("/"):
        if part == ".." and parts and parts[-1] not in ("", ".."):
            parts.pop()
        elif part not in (".", "") or (part == "" and not parts):
            parts.append(part)
    return "/".join(parts) or "."


def is_absolute(path: str) -> bool:
    return path.startswith(("/", "~")) or bool(_WINDOWS.match(path))


def identity(path: str, known: Iterable[str]) -> str:
    """The known path that is meant by this one: the same, or the only one that ends like it or that it ends like.

    Where several could be meant the path stands for itself: two files of one name are never taken for one another.
    """
    names = set(known) if not isinstance(known, set | frozenset | dict) else known
    if path in names:
        return path
    if is_absolute(path):
        ends = [name for name in names if not is_absolute(name) and path.endswith("/" + name)]
    else:
        ends = [name for name in names if name.endswith("/" + path)]
    return ends[0] if len(ends) == 1 else path
