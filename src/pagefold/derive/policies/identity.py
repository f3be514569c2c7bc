"""identity: the history as it is. What every other policy is compared with."""

from dataclasses import dataclass, field
from typing import ClassVar

from pagefold.derive.policy import NOTHING, Abilities, Derived, Notes
from pagefold.log import Log
from pagefold.wire.message import Message


@dataclass(frozen=True, slots=True)
class State:
    sent: int = 0
    waiting: Log[Message] = field(default_factory=Log)


@dataclass(frozen=True, slots=True)
class Identity:
    name: str = "identity"

    abilities: ClassVar[Abilities] = Abilities()

    def begin(self, head: int = 0) -> State:
        return State()

    def step(self, state: State, message: Message) -> State:
        return State(state.sent, state.waiting.with_items((message,)))

    def request(self, state: State, notes: Notes = NOTHING) -> tuple[State, Derived]:
        return State(state.sent + state.waiting.length), Derived(state.sent, tuple(state.waiting))
