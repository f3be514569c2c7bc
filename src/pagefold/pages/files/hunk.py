"""One hunk of a diff."""

from pagefold.frozen import frozen


@frozen
class Hunk:
    """Lines before and after a change, and the number of the first line after it."""

    start: int
    old: tuple[str, ...]
    new: tuple[str, ...]
