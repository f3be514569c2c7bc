"""What may have changed a file unseen, in order, with what was seen of the file in between.

Two lines that were seen before and after one of these may never have stood next to one another.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import TypeAlias

from pagefold.frozen import frozen


@frozen
class Doubt:
    """What may have changed a file without a line of it being seen in between: the first, at the place `since`, the
    last, at `place`, and how many there were."""

    first: str
    last: str
    since: int
    place: int
    count: int = 1


Doubts: TypeAlias = tuple[Doubt, ...]


def with_doubt(doubts: Doubts, reason: str, place: int, oldest: int, newest: int) -> Doubts:
    """The doubts after one more, about lines that were seen between the `oldest` place and the `newest`."""
    kept = tuple([doubt for doubt in doubts if doubt.place > oldest])
    if not kept or newest >= kept[-1].place:
        return (*kept, Doubt(reason, reason, place, place))
    last = kept[-1]
    count = last.count + (reason != last.last)
    return (*kept[:-1], replace(last, last=reason, place=place, count=count))


def told(doubts: Sequence[Doubt]) -> str:
    """What may have changed the file, in short."""
    first, last, others = doubts[0].first, doubts[-1].last, sum([doubt.count for doubt in doubts]) - 2
    if others < 0 or (not others and first == last):
        return f"`{last}`"
    between = f"then {others} other{'s' if others > 1 else ''}, " if others else ""
    return f"`{first}`, {between}then `{last}`"
