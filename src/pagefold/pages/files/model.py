"""Every file that a session has touched, as it is now, kept up call by call."""

from collections.abc import Iterable, Mapping
from dataclasses import field

from pagefold.frozen import frozen
from pagefold.pages.files.changes import Act, Doubted, FileChange, TextChange
from pagefold.pages.files.known_file import KnownFile


@frozen
class FileModel:
    """The files of one history by their identity, and the places at which known ones were `removed` or moved away, as
    far as nothing may have brought them back. Every step returns a new model and leaves this one as it is."""

    files: Mapping[str, KnownFile] = field(default_factory=dict)
    removed: Mapping[str, int] = field(default_factory=dict)

    def after(self, changes: Iterable[FileChange], place: int) -> "FileModel":
        """The model after what one call did, told at a place in the history."""
        files, removed = dict(self.files), dict(self.removed)
        for change in changes:
            takes_away = change.act is Act.CHANGED and not isinstance(change, TextChange)
            before = list(files) if takes_away else []
            change.apply(files, place)
            removed.update((name, place) for name in before if name not in files)
            if isinstance(change, Doubted) and removed and not change.mild:
                removed = {name: at for name, at in removed.items() if name not in change.meant_among(removed)}
        return FileModel(files, {name: at for name, at in removed.items() if name not in files})
