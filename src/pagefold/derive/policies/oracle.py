"""oracle_replay: economic, with some turns of foresight on a recording; clairvoyant: with all of them.

What the next answers will use is worth a certainty, the rest what economic expects. It bounds what better values could
gain at the same fold points. It needs the future handed over by a replay, and refuses to begin without it: it is never
used for a live request.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import ClassVar

from pagefold.derive.policies import folding
from pagefold.derive.policies.economic import Economic, State
from pagefold.derive.policy import Abilities
from pagefold.errors import ConfigError
from pagefold.pages.facts import facts_of, opened
from pagefold.wire.message import Message, Role

LOOKAHEAD = 3


@dataclass(frozen=True, slots=True)
class OracleReplay(Economic):
    """`lookahead` is in answers; None is all that follow. `future` has the facts that each answer uses."""

    lookahead: int | None = LOOKAHEAD
    future: tuple[frozenset[str], ...] | None = field(default=None, repr=False, compare=False)

    abilities: ClassVar[Abilities] = Abilities(folds=True, encodes=True, pins=True, shows_files=True, foresees=True)

    @property
    def name(self) -> str:
        return "clairvoyant" if self.lookahead is None else "oracle_replay"

    def foreseeing(self, messages: Iterable[Message]) -> "OracleReplay":
        """The oracle for one recording."""
        answers = (message for message in messages if message.role is Role.ASSISTANT)
        return replace(self, future=tuple(facts_of(opened(answer.text)) for answer in answers))

    def begin(self, head: int = 0) -> folding.State:
        if self.future is None:
            raise ConfigError(f"policy = {self.name!r}: it needs the recording that it looks ahead in")
        return State(head=head, tokens=head, pins=folding.instructed(self.instructions))

    def foreseen(self, state: folding.State) -> frozenset[str]:
        future = self.future or ()
        end = len(future) if self.lookahead is None else state.turn + self.lookahead + 1
        return frozenset[str]().union(*future[state.turn : end])
