"""What is known of the working copies of git, and how a digest tells it, each with the message that told it.

Of what is not committed it is said since when it may be otherwise, or that it is not known: silence about it would be
taken for a clean working copy.
"""

from collections.abc import Iterator, Mapping
from dataclasses import field, replace

from pagefold.frozen import frozen
from pagefold.pages.copy_folders import copy_of, spelled
from pagefold.pages.files.paths import is_absolute
from pagefold.printable import printable


@frozen
class WorkingCopy:
    """`branch`, `commit` and `changes` with the places that told them; a place of -1 stands for what is not known.
    `changes` is each path that is not committed with what became of it, `changed_at` the first place behind it that may
    have changed more, and `lost_at` the first one from which on it is not known what is committed."""

    branch: str = ""
    branch_at: int = -1
    commit: str = ""
    commit_at: int = -1
    changes: tuple[str, ...] = ()
    changes_at: int = -1
    changed_at: int = -1
    lost_at: int = -1

    @property
    def told_at(self) -> int:
        """The newest place that told of it."""
        return max(self.branch_at, self.commit_at, self.changes_at)

    def after_a_change(self, place: int) -> "WorkingCopy":
        """It after something that may have changed files."""
        return replace(self, changed_at=place) if self.changes_at >= 0 > self.changed_at else self

    def without_changes(self, place: int = -1) -> "WorkingCopy":
        """It without what is not committed; the place is that of what made an end of it."""
        lost = place if self.changes_at >= 0 else self.lost_at
        return replace(self, changes=(), changes_at=-1, changed_at=-1, lost_at=lost)

    def line(self, most: int) -> str:
        """What is known of it, with at most so many paths."""
        said = list[str]()
        if self.branch_at >= 0:
            said.append(f"on branch {_as_one_word(self.branch)} (message {self.branch_at + 1})")
        if self.commit_at >= 0:
            said.append(f"last commit made: {_as_one_word(self.commit)} (message {self.commit_at + 1})")
        if said or self.changes_at >= 0:
            said.append(self._not_committed(most))
        return "; ".join(said)

    def _not_committed(self, most: int) -> str:
        """What is not committed: silence about it would be taken for a clean working copy."""
        if self.changes_at < 0:
            return f"what is not committed is not known{_since(self.lost_at)}"
        more = f" and {len(self.changes) - most} more" if len(self.changes) > most else ""
        paths = ", ".join(map(_as_one_word, self.changes[:most])) or "nothing"
        told = f"not committed: {paths}{more} (message {self.changes_at + 1})"
        return f"{told}, and what may have changed{_since(self.changed_at)}" if self.changed_at >= 0 else told


def _since(place: int) -> str:
    return f" since message {place + 1}" if place >= 0 else ""


@frozen
class WorkingCopies:
    """What git told, by the folder that it ran in; "" is where the shell began, and `began` that folder where it is
    known."""

    told: Mapping[str, WorkingCopy] = field(default_factory=dict)
    began: str = ""

    def after_a_change(self, place: int) -> "WorkingCopies":
        """They after something that may have changed any file."""
        return replace(self, told={folder: copy.after_a_change(place) for folder, copy in self.told.items()})

    def beginning_in(self, folder: str) -> "WorkingCopies":
        """They, once it is known where the shell began: what was told of that folder and of none is of one copy."""
        if not is_absolute(folder) or self.began:
            return self
        began, told = spelled(folder), dict[str, WorkingCopy]()
        for name, copy in self.told.items():
            key = copy_of(name, began, ())
            told[key] = _joined(told[key], copy) if key in told else copy
        return WorkingCopies(told, began)


def newest_lines(copies: WorkingCopies, count: int, most: int) -> Iterator[str]:
    """The newest working copies, each on one line with at most so many paths, the newest last."""
    newest = sorted(copies.told, key=lambda name: copies.told[name].told_at)[-count:]
    for folder in newest:
        name = folder or (copies.began or "where the shell began" if len(newest) > 1 else "")
        if line := copies.told[folder].line(most):
            yield f"{name}: {line}" if name else line


def _joined(one: WorkingCopy, other: WorkingCopy) -> WorkingCopy:
    """What was told of one working copy under two names: the newest of each."""
    branch = max(one, other, key=lambda copy: copy.branch_at)
    commit = max(one, other, key=lambda copy: copy.commit_at)
    changes = max(one, other, key=lambda copy: copy.changes_at)
    newest = replace(changes, branch=branch.branch, branch_at=branch.branch_at)
    newest = replace(newest, commit=commit.commit, commit_at=commit.commit_at)
    since = max(one.lost_at, other.lost_at)
    return newest.without_changes(since) if since > newest.changes_at >= 0 else newest


def _as_one_word(name: str) -> str:
    """A name on one line, in quotes where it could be taken for what stands beside it."""
    shown = printable(name, keep="")
    return f'"{shown}"' if "; " in shown or " (message " in shown or ", " in shown else shown
