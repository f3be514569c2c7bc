"""Opens files of the user's alone: a store, a key or a count that somebody else owns or may write is refused.

Whoever can write a store says what a tool answered, and whoever made a key knows it. What is the user's own but open to
others is closed to them first. On systems without owners and modes (Windows) the folders of a user's profile do that.
"""

import os
import stat
import sys
from pathlib import Path

from pagefold.errors import StoreError

_OTHERS = stat.S_IRWXG | stat.S_IRWXO
_SIDE_FILES = ("", "-wal", "-shm", "-journal")


def make_private(path: Path) -> None:
    """Closes a file, and those that SQLite keeps beside it, to everybody else. Raises StoreError where one belongs to
    another user, or cannot be closed, and where others may put one in its place; OSError where it cannot be asked."""
    if sys.platform == "win32":
        return
    for ending in _SIDE_FILES:
        _make_private(path.with_name(path.name + ending))
    folder = path.parent.stat()
    if folder.st_mode & stat.S_IWOTH and not folder.st_mode & stat.S_ISVTX:
        raise StoreError(f"everybody may replace files in {path.parent}: name a file in a folder of your own")


def _make_private(path: Path) -> None:
    try:
        found = path.stat()
    except FileNotFoundError:
        return
    if sys.platform != "win32" and found.st_uid != os.geteuid():
        raise StoreError(f"{path} belongs to another user, who may know or change what is in it: name another file")
    if stat.S_ISREG(found.st_mode) and found.st_mode & _OTHERS:
        try:
            path.chmod(stat.S_IMODE(found.st_mode) & ~_OTHERS)
        except OSError as error:
            raise StoreError(f"{path} cannot be closed to other users ({error.strerror})") from error
