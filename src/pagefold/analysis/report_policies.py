"""Two policies that a report replays to encode each session only once.

`WatchedEconomic` is the economic policy and records what it did; `LosslessFrom` is the lossless policy that starts from
what the economic one had encoded before its first fold.
"""

from dataclasses import dataclass, field
from typing import ClassVar

from pagefold.analysis.cost_shares import HEAD
from pagefold.derive.entry import Entry
from pagefold.derive.policies.economic import Economic
from pagefold.derive.policies.folding import State
from pagefold.derive.policies.lossless import Lossless
from pagefold.derive.policies.lossless import State as LosslessState
from pagefold.derive.policy import NOTHING, Abilities, Derived, Notes
from pagefold.wire.message import Message


@dataclass(slots=True)
class WatchedEconomic:
    """The economic policy, recording what it did. It sends what the economic policy sends."""

    policy: Economic
    heard: dict[int, int]  # the place of each message of the history, by its id
    entries: dict[int, Entry] = field(default_factory=dict)  # by place, as each first entered
    shown: dict[int, int] = field(default_factory=dict)  # the place of what is shown for each, by its id
    logged: list[int] = field(default_factory=list)  # the place of each entry of the policy's own log
    reasons: list[str] = field(default_factory=list)
    before_fold: State | None = None  # as it was before the first fold
    name: str = "economic"

    abilities: ClassVar[Abilities] = Economic.abilities

    @property
    def sound(self) -> bool:
        """Whether the history entered as it came, and nothing had to be repaired."""
        return self.logged == list(range(len(self.logged)))

    def begin(self, head: int = 0) -> State:
        return self.policy.begin(head)

    def step(self, state: State, message: Message) -> State:
        after = self.policy.step(state, message)
        self._note(after)
        return after

    def request(self, state: State, notes: Notes = NOTHING) -> tuple[State, Derived]:
        after, derived = self.policy.request(state, notes)
        self._note(after)
        if derived.reason:
            self.reasons.append(derived.reason)
            self.before_fold = self.before_fold or state
        return after, derived

    def _note(self, state: State) -> None:
        """What has entered the log since. A message that was repaired on its way in is nobody's own."""
        for entry in state.log[len(self.logged) :]:
            place = self.heard.get(id(entry.message), HEAD)
            self.logged.append(place)
            self.shown[id(entry.shown)] = place
            self.entries.setdefault(place, entry)


@dataclass(frozen=True, slots=True)
class LosslessFrom:
    """The lossless policy on a history whose beginning has been encoded already."""

    begun: State
    policy: Lossless
    name: str = "lossless"

    abilities: ClassVar[Abilities] = Lossless.abilities

    def begin(self, head: int = 0) -> LosslessState:
        return LosslessState(standings=self.begun.standings)

    def step(self, state: LosslessState, message: Message) -> LosslessState:
        heard = state.sent + len(state.waiting)
        if heard >= len(self.begun.log):
            return self.policy.step(state, message)
        waiting = state.waiting.with_items((self.begun.log[heard].shown,))
        return LosslessState(state.sent, waiting, state.standings)

    def request(self, state: LosslessState, notes: Notes = NOTHING) -> tuple[LosslessState, Derived]:
        return self.policy.request(state, notes)
