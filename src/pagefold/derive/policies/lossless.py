"""lossless: every new tool result enters in its cheapest lossless form; nothing that was sent is touched again."""

from dataclasses import field
from typing import ClassVar

from pagefold.derive.entry import Standings, arrive
from pagefold.derive.learned import AS_IT_COMES, Forms
from pagefold.derive.policy import NOTHING, Abilities, Derived, Notes
from pagefold.frozen import frozen
from pagefold.log import Log
from pagefold.wire.message import Message


@frozen
class State:
    sent: int = 0
    waiting: Log[Message] = field(default_factory=Log)
    standings: Standings = field(default_factory=Standings)


@frozen
class Lossless:
    """`without` names codecs to leave out: how each one's worth is measured."""

    name: str = "lossless"
    without: frozenset[str] = frozenset()
    forms: Forms = AS_IT_COMES

    abilities: ClassVar[Abilities] = Abilities(encodes=True)

    def begin(self, head: int = 0) -> State:
        return State()

    def step(self, state: State, message: Message) -> State:
        arrived = arrive(state.standings, message, self.without, self.forms)
        return State(state.sent, state.waiting.with_items((arrived.message,)), arrived.standings)

    def request(self, state: State, notes: Notes = NOTHING) -> tuple[State, Derived]:
        sent = State(state.sent + state.waiting.length, Log(), state.standings)
        return sent, Derived(state.sent, tuple(state.waiting))
