"""What a context tells of itself: what was sent and saved, and how each message stands in the last request."""

from dataclasses import dataclass, fields

from pagefold.pages.kinds import ResidencyLevel


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
