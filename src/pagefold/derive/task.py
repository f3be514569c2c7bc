"""The task: what the user wants now. A short nudge ("continue") never takes its place."""

from collections.abc import Sequence

from pagefold.derive.entry import Entry
from pagefold.wire.message import BlockKind, Message, Role

# What a harness, or the pins, say in the user's place.
_NOT_THE_USER = ("<system-reminder>", "[held by pagefold")
_NUDGE = 80
_NUDGES = frozenset(
    ("continue", "status", "resume", "go", "go on", "keep going", "hey", "ok", "okay", "yes", "y", "proceed", "next")
)


def is_substantive(message: Message) -> bool:
    """Whether a user's message says what to do, rather than to go on."""
    return any(_asks(block.text.strip()) for block in message.blocks if block.kind is BlockKind.TEXT)


def _asks(text: str) -> bool:
    if not text or text.startswith(_NOT_THE_USER):
        return False
    return len(text.encode("utf-8", "replace")) > _NUDGE or text.lower().strip(" \t\n.,;:!?…\"'`") not in _NUDGES


def active_task(entries: Sequence[Entry]) -> frozenset[int]:
    """The places of the first thing the user asked and of the latest; what stays whatever is folded."""
    asked = [
        place
        for place, entry in enumerate(entries)
        if entry.message.role is Role.USER and is_substantive(entry.message)
    ]
    if not asked:
        users = [place for place, entry in enumerate(entries) if entry.message.role is Role.USER]
        return frozenset(users[-1:])
    return frozenset((asked[0], asked[-1]))
