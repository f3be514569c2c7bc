"""Counts the facts that recorded answers used, and how many of them the derived requests no longer held.

A fact is an identifier-like word. It is demanded at a turn where the recorded answer used it and the recorded history
before it held it outside the assistant's own words; it is missed where the derived request did not hold it. What is
missed has to be fetched again: the smallest recorded message that held it.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from functools import lru_cache
from typing import NamedTuple

from pagefold.derive.policy import Derived
from pagefold.pages.facts import facts_of, opened
from pagefold.wire.message import Message, Role
from pagefold.wire.transcripts import Session


class Needed(NamedTuple):
    """How many facts an answer demanded, how many of them the request did not hold, and what holds these, in tokens."""

    demanded: int
    missed: int
    again: int


def demands(session: Session, requests: Iterable[Derived], count: Callable[[Message], int]) -> Iterator[Needed]:
    """Yields what each answer of a session demanded of the request that was sent for it."""
    tracker, sent, waiting = DemandTracker(), list[Message](), iter(requests)
    for message in session.messages:
        if message.role is not Role.ASSISTANT:
            tracker.heard(message, count(message))
            continue
        derived = next(waiting)
        tracker.sent(sent[derived.keep :], derived.append)
        sent[derived.keep :] = derived.append
        yield tracker.answered(message)


@dataclass(slots=True)
class DemandTracker:
    """Follows one session, turn by turn."""

    _sources: dict[str, tuple[int, int]] = field(default_factory=dict)
    _resident: Counter[str] = field(default_factory=Counter)
    _heard: int = 0

    def heard(self, message: Message, tokens: int) -> None:
        """A recorded message that is not the assistant's came."""
        self._heard += 1
        here = (tokens, self._heard)
        for fact in _facts(message):
            if fact not in self._sources or tokens < self._sources[fact][0]:
                self._sources[fact] = here

    def sent(self, dropped: Iterable[Message], added: Iterable[Message]) -> None:
        """The request changed: these messages left it, these joined it."""
        for message in dropped:
            self._resident.subtract(_facts(message))
        for message in added:
            self._resident.update(_facts(message))

    def answered(self, answer: Message) -> Needed:
        demanded = facts_of(opened(answer.text)) & self._sources.keys()
        missing = [fact for fact in demanded if self._resident[fact] <= 0]
        again = sum(tokens for tokens, _ in {self._sources[fact] for fact in missing})
        return Needed(len(demanded), len(missing), again)


@lru_cache(maxsize=4096)
def _facts(message: Message) -> frozenset[str]:
    return facts_of(opened(message.text))
