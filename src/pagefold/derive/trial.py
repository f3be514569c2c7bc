"""Which sessions of a trial go on untouched. A pure function of the session's name: any instance decides the same.

The first sessions to be held out at a share are held out at every larger one too.
"""

from enum import StrEnum
from hashlib import sha256


class Arm(StrEnum):
    """Of which group a session is; a history that began outside any trial has none."""

    HELD_OUT = "held out"
    TREATED = "treated"


def arm_of(session: str, share: float) -> Arm:
    """The arm of a session in a trial that leaves this share of sessions as they are."""
    drawn = int.from_bytes(sha256(f"trial\n{session}".encode()).digest()[:8], "big") / 2**64
    return Arm.HELD_OUT if drawn < share else Arm.TREATED
