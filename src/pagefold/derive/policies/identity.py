"""identity: the history as it is. What every other policy is compared with."""

from dataclasses import dataclass
from typing import ClassVar

from pagefold.derive.policy import NOTHING, Abilities, Derived, Notes
from pagefold.wire.message import Message


@dataclass(frozen=True, slots=True)
class State:
    sent: int = 0
    waiting: tuple[Message, ...] = ()


@dataclass(frozen=True, slots=True)
class Identity:
    name: str = "identity"

    abilities: ClassVar[Abilities] = Abilities()

    def begin(self, head: int = 0) -> State:
        return State()

    def step(self, state: State, message: Message) -> State:
        return State(state.sent, (*state.waiting, message))

    def request(self, state: State, notes: Notes = NOTHING) -> tuple[State, Derived]:
        return State(state.sent + len(state.waiting)), Derived(state.sent, state.waiting)
