"""What a context tells of itself: what was sent and saved, and how each message stands in the last request."""

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace

from pagefold.derive.cost import Prices
from pagefold.derive.policy import LOSSLESS, Decision, Derived
from pagefold.pages.kinds import ResidencyLevel
from pagefold.tokens import FRAME, Counter
from pagefold.wire.message import Message

_NAMED = 60


@dataclass(frozen=True, slots=True)
class Report:
    """What was sent so far, and what the history as it is would have been. Costs are in fresh input tokens.
    `reasoning_dropped` is how many answers have lost their reasoning at a fold: the provider would refuse it there."""

    requests: int = 0
    tokens: int = 0
    plain_tokens: int = 0
    cost: float = 0.0
    plain_cost: float = 0.0
    folds: int = 0
    recalls: int = 0
    reasoning_dropped: int = 0

    def __add__(self, other: "Report") -> "Report":
        return Report(*(getattr(self, item.name) + getattr(other, item.name) for item in fields(self)))

    @property
    def saved(self) -> float:
        return 1 - self.cost / self.plain_cost if self.plain_cost else 0.0


@dataclass(frozen=True, slots=True)
class MessageStanding:
    """How one message of the history stands in the last request, and why. `part` names the parts of the digest that
    hold it: recalled, files, said, plan, done, names."""

    place: int
    name: str
    level: ResidencyLevel
    reason: str
    part: str = ""


class Account:
    """Adds up what a context sends beside what its history as it is would have cost. Each text is counted once."""

    def __init__(self, counter: Counter, prices: Prices) -> None:
        self._counter, self._prices = counter, prices
        self._counted: dict[str, int] = {}
        self._plain = self._plain_sent = 0
        self.report = Report()

    def added(self, message: Message) -> None:
        self._plain += self._counter.count(message.text) + FRAME

    def recalled(self) -> None:
        self.report = replace(self.report, recalls=self.report.recalls + 1)

    def asked(
        self, head: int, before: Sequence[Message], sent: Sequence[Message], derived: Derived, *, cold: bool
    ) -> None:
        """A request was sent behind a head of so many tokens, after the one before it."""
        total, plain = head + self._tokens(sent), head + self._plain
        asked_before = self.report.requests > 0 and not cold
        cached = head + self._tokens(before[: derived.keep]) if asked_before else 0
        plain_cached = head + self._plain_sent if asked_before else 0
        was = self.report
        self.report = replace(
            was,
            requests=was.requests + 1,
            tokens=was.tokens + total,
            plain_tokens=was.plain_tokens + plain,
            cost=was.cost + self._prices.cost(cached, total - cached),
            plain_cost=was.plain_cost + self._prices.cost(plain_cached, plain - plain_cached),
            folds=was.folds + bool(derived.reason),
            reasoning_dropped=was.reasoning_dropped + derived.bare,
        )
        self._plain_sent = self._plain

    def _tokens(self, messages: Sequence[Message]) -> int:
        for message in messages:
            if message.raw not in self._counted:
                self._counted[message.raw] = self._counter.count(message.text) + FRAME
        return sum(self._counted[message.raw] for message in messages)


def standing(place: int, message: Message, decision: Decision | None, sent: Message | None) -> MessageStanding:
    """How a message stands: as a fold decided, or else as the request holds it."""
    why = decision or _as_sent(place, message, sent)
    said = " ".join(message.text.split())
    name = f"{message.role}: {said[:_NAMED]}{'…' if len(said) > _NAMED else ''}"
    return MessageStanding(place, name, why.level, why.reason, why.part)


def _as_sent(place: int, message: Message, sent: Message | None) -> Decision:
    if sent is None:
        return Decision(place, ResidencyLevel.FULL, "as it came; no request holds it yet")
    if sent.raw == message.raw:
        return Decision(place, ResidencyLevel.FULL, "as it came")
    return Decision(place, ResidencyLevel.COMPRESSED, LOSSLESS)
