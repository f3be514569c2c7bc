"""Tells whether a path still names the file that was opened there: somebody may delete or replace it."""

from pathlib import Path

_SIDE_FILES = ("-wal", "-shm")


class FileIdentity:
    """The file at a path as it is now, with the files that SQLite keeps beside it."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._file = _file_at(path)
        self._side_files = self._beside()

    def is_current(self) -> bool:
        if _file_at(self._path) != self._file:
            return False
        self._side_files = self._beside()
        return True

    def let_go(self) -> None:
        """Takes away what is left at the path of a file that is no longer there: its side files. SQLite would take
        them for those of the file that comes in its place, and damage it."""
        if _file_at(self._path) == self._file:
            return
        for side, file in self._side_files.items():
            if file is not None and _file_at(side) == file:
                side.unlink(missing_ok=True)

    def _beside(self) -> dict[Path, tuple[int, int] | None]:
        sides = [self._path.with_name(self._path.name + ending) for ending in _SIDE_FILES]
        return {side: _file_at(side) for side in sides}


def _file_at(path: Path) -> tuple[int, int] | None:
    try:
        status = path.stat()
    except OSError:
        return None
    return status.st_dev, status.st_ino
