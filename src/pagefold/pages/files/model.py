"""Every file that a session has touched, as it is now, kept up call by call."""

from collections.abc import Iterable, Mapping
from dataclasses import field

from pagefold.frozen import frozen
from pagefold.pages.files.changes import Act, CommitListed, Doubted, DoubtedByGit, FileChange, TextChange
from pagefold.pages.files.known_file import KnownFile


@frozen
class Committed:
    """The files before and after git made a commit that may have changed any of them."""

    commit: str
    before: Mapping[str, KnownFile]
    after: Mapping[str, KnownFile]

    def cleared(self, listing: CommitListed, files: Mapping[str, KnownFile]) -> dict[str, KnownFile]:
        """The files of which nothing was told since, as they were before the commit if it did not change them."""
        if not self.commit.startswith(listing.commit) and not listing.commit.startswith(self.commit):
            return {}
        same = (name for name, file in files.items() if file is self.after.get(name) and name in self.before)
        return {name: self.before[name] for name in same if not listing.lists(name)}


@frozen
class FileModel:
    """The files of one history by their identity, and the places at which known ones were `removed` or moved away, as
    far as nothing may have brought them back. `committed` is the last commit that put files in doubt. Every step
    returns a new model and leaves this one as it is."""

    files: Mapping[str, KnownFile] = field(default_factory=dict)
    removed: Mapping[str, int] = field(default_factory=dict)
    committed: Committed | None = None

    def after(self, changes: Iterable[FileChange], place: int) -> "FileModel":
        """The model after what one call did, told at a place in the history."""
        files, removed, committed = dict(self.files), dict(self.removed), self.committed
        for change in changes:
            takes_away = change.act is Act.CHANGED and not isinstance(change, TextChange)
            commits = isinstance(change, DoubtedByGit) and bool(change.commit)
            before = dict(files) if takes_away or commits else {}
            change.apply(files, place)
            if takes_away:
                removed.update((name, place) for name in before if name not in files)
            if isinstance(change, Doubted) and removed and not change.mild:
                removed = {name: at for name, at in removed.items() if name not in change.meant_among(removed)}
            if isinstance(change, DoubtedByGit) and change.commit:
                committed = Committed(change.commit, before, dict(files))
            elif isinstance(change, CommitListed) and committed is not None:
                files.update(committed.cleared(change, files))
        return FileModel(files, {name: at for name, at in removed.items() if name not in files}, committed)
