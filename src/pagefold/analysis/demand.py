"""Demand: facts that a later answer used, and whether the request that led to it still held them.

A fact is an identifier-like word. It is demanded at a turn where the recorded answer used it and the recorded history
before it held it outside the assistant's own words; it is missed where the derived request did not hold it.
"""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import lru_cache

from pagefold.pages.facts import facts_of, opened
from pagefold.wire.message import Message, Role


@dataclass(slots=True)
class Demand:
    """Follows one session, turn by turn."""

    _sources: set[str] = field(default_factory=set)
    _resident: Counter[str] = field(default_factory=Counter)
    _facts: dict[int, frozenset[str]] = field(default_factory=dict)

    def heard(self, message: Message) -> None:
        """A recorded message that is not the assistant's came."""
        if message.role is not Role.ASSISTANT:
            self._sources |= facts_of(opened(message.text))

    def sent(self, dropped: Iterable[Message], added: Iterable[Message]) -> None:
        """The request changed: these messages left it, these joined it."""
        for message in dropped:
            self._resident.subtract(_facts(message))
        for message in added:
            self._resident.update(_facts(message))

    def answered(self, answer: Message) -> tuple[int, int]:
        """How many facts the answer demanded, and how many of them the request did not hold."""
        demanded = facts_of(opened(answer.text)) & self._sources
        return len(demanded), sum(1 for fact in demanded if self._resident[fact] <= 0)


@lru_cache(maxsize=4096)
def _facts(message: Message) -> frozenset[str]:
    return facts_of(opened(message.text))
