"""What a policy is: a pure reducer from a growing history to the next request.

`state = step(state, message)` takes one message; `request(state)` says what the model reads next, as a difference from
the request before. A policy reads no clock and no file, and never sees a message before its turn. Same messages, same
requests.
"""

from dataclasses import dataclass
from typing import Any, Protocol

from pagefold.wire.message import Message


@dataclass(frozen=True, slots=True)
class Derived:
    """One request: how many leading messages of the last one stand unchanged, and what follows them.

    `reason` says why, at a fold point, fewer stand than were sent.
    """

    keep: int
    append: tuple[Message, ...]
    reason: str = ""


class Policy(Protocol):
    """The state is the policy's own; callers only hand it back."""

    @property
    def name(self) -> str: ...

    def begin(self) -> Any: ...

    def step(self, state: Any, message: Message) -> Any: ...

    def request(self, state: Any) -> tuple[Any, Derived]: ...
