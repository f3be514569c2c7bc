"""What a tool call did to files, as values: it showed, wrote, edited, removed or moved one, or made some uncertain."""

from typing import TypeAlias

from pagefold.frozen import frozen


@frozen
class Shown:
    """Lines of a file as they are. `start` is the number of the first, None where it is not known; `ends` says that the
    last is the file's last."""

    path: str
    start: int | None
    lines: tuple[str, ...]
    ends: bool = False


@frozen
class Written:
    """A file's whole new text."""

    path: str
    text: str


@frozen
class Edited:
    """A text in a file replaced by another, once or everywhere."""

    path: str
    old: str
    new: str
    every: bool = False


@frozen
class Patched:
    """Runs of whole lines in a file replaced by others."""

    path: str
    hunks: tuple[tuple[tuple[str, ...], tuple[str, ...]], ...]


@frozen
class Hunk:
    """One hunk of a diff: lines before and after it, and the number of the first line after it."""

    start: int
    old: tuple[str, ...]
    new: tuple[str, ...]


@frozen
class Compared:
    """A diff whose new side is the file as it is: its hunks show lines, and tell edits that nobody else told."""

    path: str
    hunks: tuple[Hunk, ...]


@frozen
class Removed:
    path: str


@frozen
class Moved:
    path: str
    to: str


@frozen
class Copied:
    path: str
    to: str


@frozen
class Doubted:
    """A file may have changed; an empty path stands for all files. `forgets` where its old text is surely gone, `mild`
    where only the form of its lines may have changed, as by a formatter."""

    path: str
    reason: str
    forgets: bool = False
    mild: bool = False


@frozen
class Ran:
    """A program in a file was run: whatever it may write is in doubt."""

    path: str
    reason: str


FileChange: TypeAlias = Shown | Written | Edited | Patched | Compared | Removed | Moved | Copied | Doubted | Ran
