"""One session in numbers: what it cost and how it went, without a word of it. Two rows of one session add up."""

from dataclasses import asdict, dataclass, fields
from typing import Any

from pagefold.errors import WireError
from pagefold.wire import json_text
from pagefold.wire.json_text import as_object

MIXED = "mixed"
"""The arm of a session that was in both: it says nothing about either."""


@dataclass(slots=True)
class SessionRow:
    """`usd` is the provider's usage at list prices, `usd_saved` what was saved of it. `turns` are answers of the model,
    `asks` messages of the user, `corrections` those that take something back. `rereads` are calls made again that
    returned the same. `seconds` is how long the agent worked: waiting for the user does not count. `windows` and
    `weeks` are the shares of a subscription's five-hour windows and of its weeks that the account used meanwhile, where
    that is said."""

    session: str
    arm: str = ""
    policy: str = ""
    model: str = ""
    project: str = ""
    began: float = 0.0
    ended: float = 0.0
    turns: int = 0
    usd: float = 0.0
    usd_saved: float = 0.0
    prompt: int = 0
    output: int = 0
    saved: int = 0
    folds: int = 0
    asks: int = 0
    corrections: int = 0
    results: int = 0
    errors: int = 0
    rereads: int = 0
    edits: int = 0
    failed_edits: int = 0
    seconds: float = 0.0
    windows: float = 0.0
    weeks: float = 0.0

    def add(self, other: "SessionRow") -> None:
        """Adds what was seen of the same session elsewhere, or later."""
        if other.arm != self.arm:
            self.arm = other.arm if not self.turns else self.arm if not other.turns else MIXED
        self.policy, self.model = other.policy or self.policy, other.model or self.model
        self.project = self.project or other.project
        self.began = min(self.began or other.began, other.began or self.began)
        self.ended = max(self.ended, other.ended)
        for name in _COUNTS:
            setattr(self, name, getattr(self, name) + getattr(other, name))

    def to_json(self) -> str:
        return json_text.dumps(asdict(self))


_COUNTS = tuple(item.name for item in fields(SessionRow))[7:]
_TYPES = {item.name: type(item.default) for item in fields(SessionRow) if item.name != "session"}


def parse_row(session: str, text: str) -> SessionRow:
    """Reads a row. What it does not hold, or holds otherwise, has its default. Raises WireError for other text."""
    said = as_object(json_text.parse(text))
    if not said:
        raise WireError("a row is an object")
    known: dict[str, Any] = {}
    for name, kind in _TYPES.items():
        value = said.get(name)
        if kind is float and type(value) is int:
            value = float(value)
        if type(value) is kind:
            known[name] = value
    return SessionRow(session, **known)
