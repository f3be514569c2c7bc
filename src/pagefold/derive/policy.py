"""What a policy is: a pure reducer from a growing history to the next request.

`state = step(state, message)` takes one message; `request(state)` says what the model reads next, as a difference from
the request before. A policy reads no clock and no file, and never sees a message before its turn. Same messages and
same notes, same requests.
"""

from collections.abc import Callable, Sequence
from dataclasses import field, replace
from typing import Any, NamedTuple, Protocol, cast, overload

from pagefold.frozen import frozen
from pagefold.pages.journal import Boundary
from pagefold.pages.kinds import ResidencyLevel
from pagefold.pages.page import Page, PageId
from pagefold.pages.pins import NONE, Pins
from pagefold.wire.message import Message


@frozen
class Notes:
    """What is known at a request and cannot be recomputed from the history. Kept under the history's hash.

    `cold`: the provider's cache holds nothing of this history any more. `smaller`: the provider found the last request
    too long, so a fold is due whatever our own count says. `recalled`: pages that were asked for after they had left.
    `unstored`: nothing could be stored, so the request names no page that is new.
    """

    cold: bool = False
    smaller: bool = False
    recalled: tuple[PageId, ...] = ()
    unstored: bool = False


NOTHING = Notes()


LOSSLESS = "in its cheapest lossless form"
"""The reason of a decision that nothing was left out of."""


class Decision(NamedTuple):
    """At which level one message of the history stands, and why. `part` names the parts of the digest that hold it."""

    place: int
    level: ResidencyLevel
    reason: str
    part: str = ""


class Decisions(Sequence[Decision]):
    """Decisions that are made when somebody looks at them: a long history has very many, and of the folds that are
    derived again to see what stands after them nobody does."""

    __slots__ = ("_made", "_make")

    def __init__(self, make: Callable[[], tuple[Decision, ...]]) -> None:
        self._make: Callable[[], tuple[Decision, ...]] | None = make
        self._made: tuple[Decision, ...] = ()

    def _all(self) -> tuple[Decision, ...]:
        if self._make is not None:
            self._made, self._make = self._make(), None
        return self._made

    @overload
    def __getitem__(self, index: int) -> Decision: ...

    @overload
    def __getitem__(self, index: slice) -> Sequence[Decision]: ...

    def __getitem__(self, index: int | slice) -> Decision | Sequence[Decision]:
        return self._all()[index]

    def __len__(self) -> int:
        return len(self._all())

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Sequence) and self._all() == tuple(other)

    def __hash__(self) -> int:
        return hash(self._all())


@frozen
class Derived:
    """One request: how many leading messages of the last one stand unchanged, and what follows them.

    `reason` says why, at a fold point, fewer stand than were sent. `pages` are what its handles recall: they have to be
    in the store before the request leaves. `decisions` say at which level each message stands; `short` says what does
    not fit where the least that has to stay is more than the window holds. Where context is destroyed, `boundary` says
    how, and `pins` is what has to be written back before the request leaves. `bare` messages have just lost their
    reasoning, which the provider would refuse where they now stand.
    """

    keep: int
    append: tuple[Message, ...]
    reason: str = ""
    pages: tuple[Page, ...] = ()
    decisions: Sequence[Decision] = field(default=(), repr=False)
    short: str = ""
    boundary: Boundary | None = None
    pins: Pins = NONE
    bare: int = 0


@frozen
class Abilities:
    """What a policy can do. A policy declares it as a class variable; callers ask for nothing else.

    `folds`: it may change what was sent, and has `window`, `prices` and `tokens`. `encodes`: it puts results into
    lossless forms, by its `forms`. `pins`: it holds pins, has `instructions` and `pin(state, *held)`, and its states
    have `pins`. `shows_files`: it shows files as they are now, and has `file_tools`. `foresees`: it looks ahead in a
    recording, which `foreseeing(messages)` gives it. `unbinds`: it leaves out reasoning that a fold would show behind
    something else than it was made behind, by its `binds_reasoning`. `spares`: where nothing can be stored it only
    grows, and folds no sooner than the window forces it. `resumes`: it has `saved(state)`, which writes the state after
    a fold down as text, and `resumed(text, messages, head)`, which reads it back. `foretells`: it has `may_fold(state,
    characters)`, whether the request after so many more characters may be a fold, which takes long.
    """

    folds: bool = False
    encodes: bool = False
    pins: bool = False
    shows_files: bool = False
    foresees: bool = False
    unbinds: bool = False
    spares: bool = False
    resumes: bool = False
    foretells: bool = False


class Policy(Protocol):
    """The state is the policy's own; callers only hand it back."""

    @property
    def name(self) -> str: ...

    @property
    def abilities(self) -> Abilities: ...

    def begin(self, head: int = 0) -> Any:
        """The state before the first message. `head` is what stands before all messages, in tokens."""

    def step(self, state: Any, message: Message) -> Any: ...

    def request(self, state: Any, notes: Notes = NOTHING) -> tuple[Any, Derived]: ...


def configured(policy: Policy, **settings: Any) -> Policy:
    """The policy with these settings, which its abilities say it has."""
    changed: Any = policy
    return cast(Policy, replace(changed, **settings))


def window_of(policy: Policy) -> int:
    """How many tokens a policy folds at; 0 where it never folds."""
    folding: Any = policy
    return int(folding.window) if policy.abilities.folds else 0
