"""One message of a history as the fold knows it: as it came, as it is shown, and what of it may be kept."""

from dataclasses import replace

from pagefold.derive.arrival import Standings, arrive
from pagefold.derive.learned import AS_IT_COMES, Forms
from pagefold.derive.quotable import Passage, passages
from pagefold.frozen import frozen
from pagefold.pages.facts import find_facts
from pagefold.tokens import FRAME, counter
from pagefold.wire.message import BlockKind, Message, Role


@frozen
class Entry:
    """`tokens` is what it costs as it is shown, `codecs` what made it so; `turn` how many answers came before it."""

    message: Message
    shown: Message
    tokens: int
    turn: int
    passages: tuple[Passage, ...]
    facts: frozenset[str]
    codecs: tuple[str, ...] = ()

    @property
    def fixed(self) -> bool:
        """Whether it may not be folded: what the system says, in mid-conversation too."""
        return self.message.role in (Role.SYSTEM, Role.DEVELOPER)

    @property
    def opens(self) -> bool:
        """Whether a request can begin here: it answers nothing that came before."""
        return not any(block.kind is BlockKind.RESULT for block in self.message.blocks)

    @property
    def own(self) -> bool:
        return self.message.role is Role.ASSISTANT


def enter(
    standings: Standings, message: Message, turn: int, tokens: str, forms: Forms = AS_IT_COMES
) -> tuple[Standings, Entry]:
    """The next message of a history."""
    arrived = arrive(standings, message, forms=forms)
    found = passages(message, arrived.standings)
    facts = frozenset[str]().union(*[passage.where for passage in found])
    if keys := [key for passage in found for key in passage.keys]:
        facts = facts.union(find_facts(" ".join(keys)))
    shown = arrived.message
    return arrived.standings, Entry(message, shown, counted(shown, tokens), turn, found, facts, arrived.codecs)


def again(standings: Standings, entry: Entry, tokens: str, forms: Forms = AS_IT_COMES) -> tuple[Standings, Entry]:
    """The same message where something else stands above it."""
    arrived = arrive(standings, entry.message, forms=forms)
    if arrived.message.raw == entry.shown.raw:
        return arrived.standings, entry
    return arrived.standings, replace(entry, shown=arrived.message, tokens=counted(arrived.message, tokens))


def counted(message: Message, tokens: str) -> int:
    return counter(tokens).count(message.text) + FRAME
