"""What a tool call did to files, as values: it showed, wrote, edited, removed or moved one, or made some uncertain.

Each change knows what becomes of the known files by it: `apply` puts that into a table of them by their identity.
"""

from collections.abc import Collection, Iterator, Mapping
from dataclasses import replace
from enum import StrEnum
from typing import ClassVar

from pagefold.frozen import frozen
from pagefold.pages.files.hunk import Hunk, targets_of
from pagefold.pages.files.known_file import KnownFile
from pagefold.pages.files.paths import identity, in_repository, is_pattern, is_temporary, matching, normal
from pagefold.pages.files.programs import files_written_by
from pagefold.pages.files.text import FileText


class Act(StrEnum):
    """What a call did, as far as files go."""

    SHOWED = "showed"
    CHANGED = "changed"
    OTHER = "other"


@frozen
class FileChange:
    """`path` is the file as a tool spelled it; only a doubt may have none and then means every file."""

    path: str

    usual_act: ClassVar[Act] = Act.CHANGED

    @property
    def act(self) -> Act:
        return self.usual_act

    def apply(self, files: dict[str, KnownFile], place: int) -> None:
        """Puts what a call did into the files, told at a place in the history."""
        raise NotImplementedError

    @property
    def paths(self) -> tuple[str, ...]:
        """The files that may be others after it."""
        return (self.path,)

    def placed(self, folder: str) -> "FileChange":
        """The change with its path as it is from the folder that a command ran in."""
        return replace(self, path=normal(self.path, folder) if self.path else "")

    def doubts(self, reason: str) -> "tuple[FileChange, ...]":
        """What is left of the change where it is not certain that it was made."""
        return (Doubted(self.path, reason),)

    def known(self, files: Mapping[str, KnownFile]) -> tuple[str, KnownFile]:
        """The identity of the file that is meant, and what is known of it."""
        key = identity(normal(self.path), files)
        return key, files.get(key, KnownFile(self.path))

    def meant(self, files: Mapping[str, KnownFile]) -> "FileChange | None":
        """The change itself, of the file that is meant; None where nobody can tell which that is."""
        return self

    def below(self, files: Collection[str]) -> list[str]:
        """The known files in the folder that the path may name; none where it names a known file."""
        key = identity(normal(self.path), files)
        return [] if key in files else [name for name in files if _is_below(name, key)]

    def meant_among(self, files: Collection[str]) -> list[str]:
        """Which of these files the path may mean: the one that it names, those that fit where it is a pattern, or those
        in a folder; all where there is no path."""
        if not self.path:
            return list(files)
        key = identity(normal(self.path), files)
        if key in files:
            return [key]
        return matching(normal(self.path), files) if is_pattern(self.path) else self.below(files)


@frozen
class Shown(FileChange):
    """Lines of a file as they are. `start` is the number of the first, None where it is not known; `ends` says that the
    last is the file's last."""

    start: int | None
    lines: tuple[str, ...]
    ends: bool = False

    usual_act: ClassVar[Act] = Act.SHOWED

    def apply(self, files: dict[str, KnownFile], place: int) -> None:
        key, file = self.known(files)
        text = file.text.shown(self.start, self.lines, place, ends=self.ends)
        files[key] = replace(file, name=self.path, text=text, reads=file.reads + 1, touched=place)


@frozen
class Compared(FileChange):
    """A diff whose new side is the file as it is: its hunks show lines, and tell edits that nobody else told. Its path
    begins at the root of the repository in which `folder` lies, where git ran."""

    hunks: tuple[Hunk, ...]
    folder: str = ""

    usual_act: ClassVar[Act] = Act.SHOWED

    def apply(self, files: dict[str, KnownFile], place: int) -> None:
        key, file = self.known(files)
        text = file.text.compared(self.hunks, place)
        files[key] = replace(file, text=text, reads=file.reads + 1, touched=place)

    def placed(self, folder: str) -> "Compared":
        return replace(self, folder=normal(self.folder, folder) if self.folder else folder)

    def known(self, files: Mapping[str, KnownFile]) -> tuple[str, KnownFile]:
        key = in_repository(self.path, self.folder, files)
        return key, files.get(key, KnownFile(key))


@frozen
class TextChange(FileChange):
    """A change of a file's text."""

    def changed(self, text: FileText, place: int) -> FileText:
        """The text after the change."""
        raise NotImplementedError

    def apply(self, files: dict[str, KnownFile], place: int) -> None:
        key, file = self.known(files)
        text = self.changed(file.text, place)
        files[key] = replace(file, name=self.path, text=text, edits=file.edits + 1, touched=place)


@frozen
class Written(TextChange):
    """A file's whole new text."""

    text: str

    def changed(self, text: FileText, place: int) -> FileText:
        return text.written(self.text, place)


@frozen
class Edited(TextChange):
    """A text in a file replaced by another, once or everywhere."""

    old: str
    new: str
    every: bool = False

    def changed(self, text: FileText, place: int) -> FileText:
        return text.edited(self.old, self.new, place, every=self.every)


@frozen
class Patched(TextChange):
    """Runs of whole lines in a file replaced by others."""

    hunks: tuple[tuple[tuple[str, ...], tuple[str, ...]], ...]

    def changed(self, text: FileText, place: int) -> FileText:
        return text.patched(self.hunks, place)


@frozen
class Appended(TextChange):
    """Lines put behind the last one of a file; none where they are not known."""

    lines: tuple[str, ...] = ()

    def changed(self, text: FileText, place: int) -> FileText:
        return text.appended(self.lines, place)

    def doubts(self, reason: str) -> tuple[FileChange, ...]:
        return (Appended(self.path),)

    def apply(self, files: dict[str, KnownFile], place: int) -> None:
        if self.lines or self.known(files)[0] in files:
            TextChange.apply(self, files, place)


@frozen
class FileRemoved(FileChange):
    """A file, a folder with all its files, or what fits a pattern is gone."""

    def apply(self, files: dict[str, KnownFile], place: int) -> None:
        for name in self.meant_among(files):
            del files[name]


@frozen
class Moved(FileChange):
    """A file is known under another path now; of a moved folder nothing is known any more."""

    to: str

    @property
    def paths(self) -> tuple[str, ...]:
        return self.path, self.to

    def apply(self, files: dict[str, KnownFile], place: int) -> None:
        for name in self.below(files):
            del files[name]
        _put(files, self.to, files.pop(identity(normal(self.path), files), None), place)

    def doubts(self, reason: str) -> tuple[FileChange, ...]:
        return Doubted(self.path, reason), Doubted(self.to, reason)

    def placed(self, folder: str) -> "Moved":
        return Moved(normal(self.path, folder), normal(self.to, folder))


@frozen
class FileCopied(FileChange):
    """A file has the text of another."""

    to: str

    @property
    def paths(self) -> tuple[str, ...]:
        return (self.to,)

    def apply(self, files: dict[str, KnownFile], place: int) -> None:
        _put(files, self.to, files.get(identity(normal(self.path), files)), place)

    def doubts(self, reason: str) -> tuple[FileChange, ...]:
        return (Doubted(self.to, reason),)

    def placed(self, folder: str) -> "FileCopied":
        return FileCopied(normal(self.path, folder), normal(self.to, folder))


@frozen
class Doubted(FileChange):
    """A file may have changed; an empty path stands for all files. `forgets` where its old text is surely gone, `mild`
    where only the form of its lines may have changed, as by a formatter."""

    reason: str
    forgets: bool = False
    mild: bool = False

    usual_act: ClassVar[Act] = Act.OTHER

    def doubts(self, reason: str) -> tuple[FileChange, ...]:
        return (replace(self, forgets=False),)

    def apply(self, files: dict[str, KnownFile], place: int) -> None:
        forgets = self.forgets and identity(normal(self.path), files) in files
        for name in self.meant_among(files):
            text = files[name].text.doubted(self.reason, place, mild=self.mild)
            files[name] = replace(files[name], text=FileText().doubted(self.reason, place) if forgets else text)


@frozen
class DoubtedByGit(Doubted):
    """Git may have changed all files of a working copy in `folder`; temporary files belong to none that is not itself
    one. `commit` is the one that it made by that, where that is known: a later listing tells what it changed."""

    folder: str = ""
    commit: str = ""

    def placed(self, folder: str) -> "DoubtedByGit":
        return replace(self, path=normal(self.path, folder) if self.path else "", folder=folder)

    def meant_among(self, files: Collection[str]) -> list[str]:
        spared = not is_temporary(f"{normal(self.folder)}/") if self.folder else True
        return [name for name in Doubted.meant_among(self, files) if not (spared and is_temporary(name))]


@frozen
class CommitListed(FileChange):
    """All files that a commit changed were listed, each from the root of its repository: the commit changed no other.
    The model looks for the doubt that this clears. It may begin with `...` where git cut it."""

    commit: str
    listed: tuple[str, ...]

    usual_act: ClassVar[Act] = Act.OTHER

    @property
    def paths(self) -> tuple[str, ...]:
        return ()

    def placed(self, folder: str) -> "CommitListed":
        return self

    def doubts(self, reason: str) -> tuple[FileChange, ...]:
        return ()

    def apply(self, files: dict[str, KnownFile], place: int) -> None:
        """It shows and changes no file."""

    def lists(self, name: str) -> bool:
        """Whether a known file may be among the listed ones."""
        known = f"/{name}".lower()
        listed = [f"/{path.removeprefix('...').lstrip('/')}".lower() for path in self.listed]
        return any(known.endswith(path) or path.endswith(known) for path in listed)


@frozen
class PatchApplied(FileChange):
    """The patch in a file, or this one, was applied: what it names is in doubt, or every file where its text is not
    known."""

    reason: str
    patch: str = ""

    usual_act: ClassVar[Act] = Act.OTHER

    @property
    def paths(self) -> tuple[str, ...]:
        return ("",)

    def doubts(self, reason: str) -> tuple[FileChange, ...]:
        return (self,)

    def apply(self, files: dict[str, KnownFile], place: int) -> None:
        file = files.get(identity(normal(self.path), files))
        known = [line for region in file.text.regions for line in region.lines] if file else []
        whole = file is not None and file.text.length == len(known)
        named = targets_of(self.patch or ("\n".join(known) if whole else ""))
        for name in [name for name in files if any(f"/{name}".endswith(f"/{path}") for path in named or [name])]:
            files[name] = replace(files[name], text=files[name].text.doubted(self.reason, place))


@frozen
class Ran(FileChange):
    """A program in a file was run: whatever it may write is in doubt."""

    reason: str

    usual_act: ClassVar[Act] = Act.OTHER

    @property
    def paths(self) -> tuple[str, ...]:
        return ("",)

    def doubts(self, reason: str) -> tuple[FileChange, ...]:
        return (self,)

    def apply(self, files: dict[str, KnownFile], place: int) -> None:
        path = normal(self.path)
        program = files.get(identity(path, files))
        text = "\n".join(line for region in program.text.regions for line in region.lines) if program else ""
        for written in files_written_by(text):
            for name in _meant(files, written, path.rpartition("/")[0]):
                files[name] = replace(files[name], text=files[name].text.doubted(self.reason, place))


def _put(files: dict[str, KnownFile], path: str, file: KnownFile | None, place: int) -> None:
    """Puts a file under a path, in place of the one that is known there."""
    files.pop(identity(normal(path), files), None)
    if file is not None:
        files[normal(path)] = replace(file, name=path, touched=place)


def _meant(files: Mapping[str, KnownFile], path: str, folder: str) -> Iterator[str]:
    """The known files that a program in a folder means by a path; all of them where it names none."""
    names = (identity(normal(path), files), identity(normal(path, folder), files)) if path else tuple(files)
    yield from (name for name in names if name in files)


def _is_below(name: str, folder: str) -> bool:
    return name.startswith(folder + "/") or (not folder.startswith("/") and f"/{folder}/" in name)
