"""What may have changed a file unseen, in order, with what was seen of the file in between.

Two lines that were seen before and after one of these may never have stood next to one another.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import TypeAlias

from pagefold.frozen import frozen
from pagefold.pages.files.region import Region


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


def with_doubt(doubts: Doubts, reason: str, place: int, regions: Sequence[Region]) -> Doubts:
    """The doubts about these lines after one more. Those that no line is older than are dropped."""
    if not doubts:
        return (Doubt(reason, reason, place, place),)
    last = doubts[-1]
    if max([max(region.seen) for region in regions], default=-1) < last.place:
        return (*doubts[:-1], replace(last, last=reason, place=place, count=last.count + (reason != last.last)))
    oldest = min([min(region.seen) for region in regions])
    return (*(doubt for doubt in doubts if doubt.place > oldest), Doubt(reason, reason, place, place))


def told(doubts: Sequence[Doubt]) -> str:
    """What may have changed the file, in short."""
    first, last, others = doubts[0].first, doubts[-1].last, sum([doubt.count for doubt in doubts]) - 2
    if others < 0 or (not others and first == last):
        return f"`{last}`"
    between = f"then {others} other{'s' if others > 1 else ''}, " if others else ""
    return f"`{first}`, {between}then `{last}`"
