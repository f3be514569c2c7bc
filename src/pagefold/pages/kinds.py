"""Kinds of pages and levels of residency: what a page is, and how far it may degrade in the context.

No selection takes a page below the minimum fidelity of its kind; one that tries is refused with a reason. Constraint,
plan and preference come from explicit producers and are never guessed from a message.
"""

from collections.abc import Mapping
from enum import StrEnum
from typing import Any

from pagefold.wire.message import BlockKind, Message, Role


class ResidencyLevel(StrEnum):
    """How much of a page is in the context, from the whole text to a handle."""

    FULL = "full"
    COMPRESSED = "compressed"
    STRUCTURED = "structured"
    POINTER = "pointer"


class PageKind(StrEnum):
    BOOTSTRAP = "bootstrap"
    CONSTRAINT = "constraint"
    PLAN = "plan"
    PREFERENCE = "preference"
    EVIDENCE = "evidence"
    CONVERSATION = "conversation"

    def degradation_path(self) -> tuple[ResidencyLevel, ...]:
        """Returns the levels this kind may have, from full down to its minimum fidelity."""
        return _PATHS[self]

    def min_fidelity(self) -> ResidencyLevel:
        return _PATHS[self][-1]

    def allows(self, level: ResidencyLevel) -> bool:
        return level in _PATHS[self]


_SHORT = (ResidencyLevel.FULL, ResidencyLevel.STRUCTURED)
_WHOLE = tuple(ResidencyLevel)
_PATHS: Mapping[PageKind, tuple[ResidencyLevel, ...]] = {
    PageKind.BOOTSTRAP: _SHORT,
    PageKind.CONSTRAINT: _SHORT,
    PageKind.PLAN: (*_SHORT, ResidencyLevel.POINTER),
    PageKind.PREFERENCE: _WHOLE,
    PageKind.EVIDENCE: _WHOLE,
    PageKind.CONVERSATION: _WHOLE,
}


def refusal(kind: PageKind, level: ResidencyLevel) -> str | None:
    """Returns why a page of this kind may not have this level, or None where it may."""
    if kind.allows(level):
        return None
    path = ", ".join(kind.degradation_path())
    return f"a {kind} page may not stand at {level}: its levels are {path}"


def classify(message: Message | Mapping[str, Any]) -> PageKind:
    """Returns the kind of one message, or of a chat message as a plain mapping."""
    role = message.role if isinstance(message, Message) else message.get("role")
    if role in (Role.SYSTEM, Role.DEVELOPER):
        return PageKind.BOOTSTRAP
    if role == Role.TOOL or _holds_result(message):
        return PageKind.EVIDENCE
    return PageKind.CONVERSATION


def _holds_result(message: Message | Mapping[str, Any]) -> bool:
    if isinstance(message, Message):
        return any(block.kind is BlockKind.RESULT for block in message.blocks)
    content = message.get("content")
    parts = content if isinstance(content, list | tuple) else ()
    return any(isinstance(part, Mapping) and part.get("type") == "tool_result" for part in parts)
