"""What a policy is: a pure reducer from a growing history to the next request.

`state = step(state, message)` takes one message; `request(state)` says what the model reads next, as a difference from
the request before. A policy reads no clock and no file, and never sees a message before its turn. Same messages and
same notes, same requests.
"""

from collections.abc import Mapping
from dataclasses import field
from typing import Any, NamedTuple, Protocol

from pagefold.errors import ConfigError
from pagefold.frozen import frozen
from pagefold.pages.faults import Boundary
from pagefold.pages.kinds import ResidencyLevel
from pagefold.pages.page import Page, PageId
from pagefold.pages.pins import NONE, Pins
from pagefold.wire.message import Message


@frozen
class Notes:
    """What is known at a request and cannot be recomputed from the history. Kept under the history's hash.

    `cold`: the provider's cache holds nothing of this history any more. `smaller`: the provider found the last request
    too long, so a fold is due whatever our own count says. `recalled`: pages that were asked for after they had left.
    `summaries`: what a model wrote, by the page that it summarises.
    """

    cold: bool = False
    smaller: bool = False
    recalled: tuple[PageId, ...] = ()
    summaries: tuple[tuple[PageId, str], ...] = ()


NOTHING = Notes()


class Decision(NamedTuple):
    """At which level one message of the history stands, and why."""

    place: int
    level: ResidencyLevel
    reason: str


@frozen
class Derived:
    """One request: how many leading messages of the last one stand unchanged, and what follows them.

    `reason` says why, at a fold point, fewer stand than were sent. `pages` are what its handles recall: they have to be
    in the store before the request leaves. `decisions` say at which level each message stands; `short` says what does
    not fit where the least that has to stay is more than the window holds. Where context is destroyed, `boundary` says
    how, and `pins` is what has to be written back before the request leaves.
    """

    keep: int
    append: tuple[Message, ...]
    reason: str = ""
    pages: tuple[Page, ...] = ()
    decisions: tuple[Decision, ...] = field(default=(), repr=False)
    short: str = ""
    boundary: Boundary | None = None
    pins: Pins = NONE


class Policy(Protocol):
    """The state is the policy's own; callers only hand it back."""

    @property
    def name(self) -> str: ...

    def begin(self, head: int = 0) -> Any:
        """The state before the first message. `head` is what stands before all messages, in tokens."""

    def step(self, state: Any, message: Message) -> Any: ...

    def request(self, state: Any, notes: Notes = NOTHING) -> tuple[Any, Derived]: ...


_PAYLOADS: Mapping[str, str] = {
    "legacy": "",
    "reset": "threshold_tokens",
    "incremental": "budget_tokens",
    "oracle_replay": "lookahead",
}


@frozen
class DerivePolicy:
    """One of the classic derivations with what it needs to know, as a value that can be written down and read back.

    Made by `legacy()`, `reset()`, `incremental()` or `oracle_replay()`; without anything it is legacy. The policy that
    does the work comes from `policies.policy_of`. Raises ConfigError for what is none of these.
    """

    kind: str = "legacy"
    threshold_tokens: int | None = None
    budget_tokens: int | None = None
    lookahead: int | None = None

    def __post_init__(self) -> None:
        if self.kind not in _PAYLOADS:
            raise ConfigError(f"policy = {self.kind!r}: expected one of {', '.join(_PAYLOADS)}")
        for name in filter(None, _PAYLOADS.values()):
            value: Any = getattr(self, name)
            if (value is None) == (name == _PAYLOADS[self.kind]):
                raise ConfigError(f"policy = {self.kind!r}: {_expected(self.kind)}, found {name} = {value!r}")
            if value is not None and (isinstance(value, bool) or not isinstance(value, int) or value < 0):
                raise ConfigError(f"policy = {self.kind!r}: {name} = {value!r}: expected a whole number from 0")

    @classmethod
    def legacy(cls) -> "DerivePolicy":
        return cls()

    @classmethod
    def reset(cls, threshold_tokens: int) -> "DerivePolicy":
        return cls("reset", threshold_tokens=threshold_tokens)

    @classmethod
    def incremental(cls, budget_tokens: int) -> "DerivePolicy":
        return cls("incremental", budget_tokens=budget_tokens)

    @classmethod
    def oracle_replay(cls, lookahead: int = 3) -> "DerivePolicy":
        return cls("oracle_replay", lookahead=lookahead)

    def to_dict(self) -> dict[str, Any]:
        name = _PAYLOADS[self.kind]
        return {"policy": self.kind} | ({name: getattr(self, name)} if name else {})

    @classmethod
    def from_dict(cls, value: Mapping[str, Any]) -> "DerivePolicy":
        kind = value.get("policy")
        if not isinstance(kind, str) or kind not in _PAYLOADS:
            raise ConfigError(f"policy = {kind!r}: expected one of {', '.join(_PAYLOADS)}")
        payload = {name: each for name, each in value.items() if name != "policy"}
        if odd := [name for name in payload if name != _PAYLOADS[kind]]:
            raise ConfigError(f"policy = {kind!r}: {_expected(kind)}, found {', '.join(map(str, odd))}")
        return cls(kind, **payload)


def _expected(kind: str) -> str:
    return f"it needs {name} alone" if (name := _PAYLOADS[kind]) else "it needs nothing else"
