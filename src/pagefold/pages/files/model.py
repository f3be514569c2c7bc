"""Every file that a session has touched, as it is now, kept up call by call."""

from collections.abc import Iterable, Mapping
from dataclasses import field, replace

from pagefold.frozen import frozen
from pagefold.pages.files.changes import (
    Compared,
    Copied,
    Doubted,
    Edited,
    FileChange,
    Moved,
    Patched,
    Ran,
    Removed,
    Shown,
    Written,
)
from pagefold.pages.files.commands import written_by_program
from pagefold.pages.files.paths import identity, normal
from pagefold.pages.files.text import FileText


@frozen
class KnownFile:
    """A file with its text as far as it is known. `name` is its path as a tool last spelled it.

    `reads` and `edits` count how often it was shown and changed; `touched` is the place of the last message about it.
    """

    name: str
    text: FileText = FileText()
    reads: int = 0
    edits: int = 0
    touched: int = -1


@frozen
class FileModel:
    """The files of one history by their identity. Every step returns a new model and leaves this one as it is."""

    files: Mapping[str, KnownFile] = field(default_factory=dict)

    def after(self, changes: Iterable[FileChange], place: int) -> "FileModel":
        """The model after what one call did, told at a place in the history."""
        files = dict(self.files)
        for change in changes:
            if isinstance(change, Doubted) and not change.path:
                for key, file in files.items():
                    files[key] = replace(file, text=file.text.doubted(change.reason, place, mild=change.mild))
                continue
            path = normal(change.path)
            key = identity(path, files)
            if isinstance(change, Ran):
                program = files.get(key)
                text = "\n".join(line for region in program.text.regions for line in region.lines) if program else ""
                folder = path.rpartition("/")[0]
                for doubt in written_by_program(text, change.reason):
                    for other in _meant(files, doubt.path, folder):
                        files[other] = replace(files[other], text=files[other].text.doubted(doubt.reason, place))
                continue
            _apply(files, key, change, place)
        return FileModel(files)


def _meant(files: Mapping[str, KnownFile], path: str, folder: str) -> list[str]:
    """The known files that a program means by a path; all of them where it names none."""
    if not path:
        return list(files)
    return [key for key in (identity(normal(path), files), identity(normal(path, folder), files)) if key in files]


def _is_below(name: str, folder: str) -> bool:
    return name.startswith(folder + "/") or (not folder.startswith("/") and f"/{folder}/" in name)


def _apply_to_folder(files: dict[str, KnownFile], key: str, change: FileChange, place: int) -> None:
    """Applies a change to the known files in a folder, where a path may be one."""
    if not isinstance(change, Removed | Moved | Doubted):
        return
    for name in [name for name in files if _is_below(name, key)]:
        if isinstance(change, Doubted):
            files[name] = replace(files[name], text=files[name].text.doubted(change.reason, place, mild=change.mild))
        else:
            del files[name]


def _apply(files: dict[str, KnownFile], key: str, change: FileChange, place: int) -> None:
    """Applies one change to the files in place."""
    if key not in files:
        _apply_to_folder(files, key, change, place)
    if isinstance(change, Removed):
        files.pop(key, None)
        return
    if isinstance(change, Moved | Copied):
        file = files.pop(key, None) if isinstance(change, Moved) else files.get(key)
        target = identity(normal(change.to), files)
        files.pop(target, None)
        if file is not None:
            files[normal(change.to)] = replace(file, name=change.to, touched=place)
        return
    file = files.get(key, KnownFile(change.path))
    text = file.text
    if isinstance(change, Doubted):
        if key in files:
            files[key] = replace(
                file,
                text=FileText(doubt=change.reason, doubted_at=place)
                if change.forgets
                else text.doubted(change.reason, place, mild=change.mild),
            )
        return
    if isinstance(change, Shown):
        text = text.shown(change.start, change.lines, place, ends=change.ends)
        files[key] = replace(file, name=change.path, text=text, reads=file.reads + 1, touched=place)
        return
    if isinstance(change, Compared):
        text = text.compared(change.hunks, place)
        files[key] = replace(file, name=change.path, text=text, reads=file.reads + 1, touched=place)
        return
    if isinstance(change, Written):
        text = text.written(change.text, place)
    elif isinstance(change, Edited):
        text = text.edited(change.old, change.new, place, every=change.every)
    elif isinstance(change, Patched):
        text = text.patched(change.hunks, place)
    files[key] = replace(file, name=change.path, text=text, edits=file.edits + 1, touched=place)
