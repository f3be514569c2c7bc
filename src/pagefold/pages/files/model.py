"""Every file that a session has touched, as it is now, kept up call by call."""

from collections.abc import Iterable, Mapping
from dataclasses import field

from pagefold.frozen import frozen
from pagefold.pages.files.changes import FileChange
from pagefold.pages.files.known_file import KnownFile


@frozen
class FileModel:
    """The files of one history by their identity. Every step returns a new model and leaves this one as it is."""

    files: Mapping[str, KnownFile] = field(default_factory=dict)

    def after(self, changes: Iterable[FileChange], place: int) -> "FileModel":
        """The model after what one call did, told at a place in the history."""
        files = dict(self.files)
        for change in changes:
            change.apply(files, place)
        return FileModel(files)
