"""What a digest holds of each message that it stands for: in which of its parts, and why; else why it holds nothing."""

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
    _left_out: dict[int, str] = field(default_factory=dict)

    def add(self, place: int, part: DigestPart, reason: str) -> None:
        """Notes that a part holds something of a message; the first reason stays."""
        self._reasons.setdefault(place, {}).setdefault(part, reason)

    def leave_out(self, place: int, reason: str) -> None:
        """Notes why a part does not hold something of a message; the last reason stays."""
        self._left_out[place] = reason

    def why_not(self, place: int) -> str:
        """Why nothing of a message stands, where no part holds it."""
        return self._left_out.get(place, "nothing in it that the work still needs")

    def of(self, place: int) -> list[tuple[DigestPart, str]]:
        """The parts that hold something of a message, each with the reason; none where only a handle leads to it."""
        reasons = self._reasons.get(place)
        return [(part, reasons[part]) for part in _IN_ORDER if part in reasons] if reasons else []
