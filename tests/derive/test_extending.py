"""The policy that docs/extending.md adds works wherever policies do, and is written there as it is here."""

import inspect
from dataclasses import dataclass
from pathlib import Path

from pagefold import Context
from pagefold.analysis.replay import Terms, replay
from pagefold.derive.cost import ASSUMED
from pagefold.derive.fold import Folded, Rule
from pagefold.derive.policies.folding import Folding, State, boundary
from pagefold.derive.policy import Notes
from pagefold.model_proxy.conversations import Conversations
from pagefold.tokens import counter
from pagefold.wire.transcripts import Session
from tests.derive.loops import TASK, exchange, loop, read
from tests.model_proxy.conversation import body, history, sent

DOCS = Path(__file__).parents[2] / "docs" / "extending.md"


@dataclass(frozen=True, slots=True)
class Newest(Folding):
    """When the window is full, only the newest half of the messages stands; the rest can be recalled."""

    @property
    def name(self) -> str:
        return "newest"

    def due(self, state: State, notes: Notes, usable: int) -> tuple[str, Folded | None]:
        if state.tokens <= usable:
            return "", None
        cut = boundary(state.log, len(state.log) // 2)
        return "the window is full", self.folded_by(state, usable, Rule(cut, budget=0))


def test_the_policy_of_the_documentation_is_this_one() -> None:
    assert inspect.getsource(Newest) in DOCS.read_text(encoding="utf-8")


def test_it_folds_in_the_library_the_model_proxy_and_replay() -> None:
    context = Context(policy=Newest(6_000))
    context.add({"role": "user", "content": TASK})
    for number in range(12):
        context.request()
        context.add(*exchange(number))
    assert context.report().folds

    conversations, long = Conversations(Newest(6_000), window=6_000), body(history(12))
    assert len(sent(conversations, long)) < len(long)

    session = Session("long", "test", tuple(read(loop(12))))
    terms = Terms(Newest(6_000), ASSUMED, counter("o200k"), window=6_000)
    assert replay(session, terms).over == 0
