"""One hunk of a diff."""

import re

from pagefold.frozen import frozen

_SIDE = re.compile(r'^(?:\+\+\+|---) "?(?:[ab]/)?([^"\t\n]+?)"?(?:\t.*)?$')


@frozen
class Hunk:
    """Lines before and after a change, and the number of the first line after it."""

    start: int
    old: tuple[str, ...]
    new: tuple[str, ...]


def targets_of(diff: str) -> list[str]:
    """The files that a diff names, on its old and its new side."""
    sides = (_SIDE.match(line) for line in diff.split("\n"))
    return list(dict.fromkeys(side.group(1) for side in sides if side and side.group(1) != "/dev/null"))
