"""What a digest holds of each message that it stands for: in which of its parts, and why; else why it holds nothing."""

from collections.abc import Iterable
from dataclasses import field
from enum import StrEnum

from pagefold.frozen import frozen


class DigestPart(StrEnum):
    """The parts of a digest, in the order in which a message that is in several is said to be held by them."""

    RECALLED = "recalled"
    FILES = "files"
    SAID = "said"
    PLAN = "plan"
    DONE = "done"
    NAMES = "names"


_IN_ORDER = tuple(DigestPart)  # of an enumeration, iterating takes ten times as long


@frozen
class Held:
    """By the place of each message, the parts that hold something of it, each with the reason."""

    _reasons: dict[int, dict[DigestPart, str]] = field(default_factory=dict)
    _left_out: list[tuple[Iterable[int], str]] = field(default_factory=list)

    def add(self, place: int, part: DigestPart, reason: str) -> None:
        """Notes that a part holds something of a message; the first reason stays."""
        self._reasons.setdefault(place, {}).setdefault(part, reason)

    def leave_out(self, places: Iterable[int], reason: str) -> None:
        """Notes why a part does not hold something of these messages; the last reason stays. They may be many: they are
        looked at when somebody asks, and most folds are asked by nobody."""
        self._left_out.append((places, reason))

    def why_not(self) -> dict[int, str]:
        """By the place of a message, why nothing of it stands where no part holds it; to be asked once. Of those that
        are not here, there is nothing in them that the work still needs."""
        return {place: reason for places, reason in self._left_out for place in places}

    def of(self, place: int) -> list[tuple[DigestPart, str]]:
        """The parts that hold something of a message, each with the reason; none where only a handle leads to it."""
        reasons = self._reasons.get(place)
        return [(part, reasons[part]) for part in _IN_ORDER if part in reasons] if reasons else []

    def places_in(self, part: DigestPart) -> frozenset[int]:
        """The places of the messages of which this part holds something."""
        return frozenset(place for place, reasons in self._reasons.items() if part in reasons)
