"""Runs a policy over one history: shows it every message, asks it before every answer, and splices what it changed.

A `Run` is a value: forks of a history go on from the same one, and what its requests need saved is part of it. The
library, the model proxy and replay all run policies through here. Pure.
"""

from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any, Generic, TypeVar

from pagefold.derive.policy import Derived, Notes, Policy
from pagefold.derive.without_handles import without_handles
from pagefold.frozen import frozen
from pagefold.log import Log
from pagefold.pages.journal import Boundary
from pagefold.pages.page import Page
from pagefold.pages.pins import NONE, Pins
from pagefold.wire.message import Message, Role

Item = TypeVar("Item")
"""What a caller keeps of each message of a request: the message itself, or more."""


@frozen
class Unsaved:
    """What has to be saved before a request leaves: the pages that its handles recall, and the pins to write back
    because context is destroyed at `boundary`."""

    pages: tuple[Page, ...] = ()
    pins: Pins = NONE
    boundary: Boundary | None = None

    @property
    def is_empty(self) -> bool:
        return not self.pages and self.boundary is None

    def plus(self, derived: Derived) -> "Unsaved":
        """Returns this and what one more request needs saved."""
        pages = (*self.pages, *derived.pages) if derived.pages else self.pages
        # A boundary without pins does not replace an earlier one whose pins are still to be written back.
        if derived.boundary is not None and (derived.pins.held or not self.pins.held):
            return Unsaved(pages, derived.pins, derived.boundary)
        return Unsaved(pages, self.pins, self.boundary) if derived.pages else self


NOTHING_UNSAVED = Unsaved()


@frozen
class Asked(Generic[Item]):
    """A request that a policy was asked for: its state once the request is answered, the whole request, what changed
    since the one before, and what has to be saved before it leaves."""

    state: Any
    request: Log[Item]
    derived: Derived
    unsaved: Unsaved


@frozen
class Run(Generic[Item]):
    """A policy part of the way through one history.

    `state` is the policy's after every message so far, `sent` the request that was answered last, `spoke` whether the
    last message is the model's. `asked` is the request after the last message, once the policy was asked for it.
    `unsaved` is what earlier requests needed saved and nobody has saved. Messages of the model in a row are one answer;
    with `every_message_is_an_answer`, as in a recording, every one of them answers a request of its own.
    """

    policy: Policy
    state: Any
    sent: Log[Item]
    spoke: bool = False
    asked: Asked[Item] | None = None
    unsaved: Unsaved = NOTHING_UNSAVED
    every_message_is_an_answer: bool = False

    def is_answered_by(self, message: Message) -> bool:
        """Whether a next message answers a request that was asked for here."""
        return message.role is Role.ASSISTANT and (self.every_message_is_an_answer or not self.spoke)

    def ask(self, notes: Notes, item: Callable[[Message], Item]) -> "Run[Item]":
        """Asks for the request after the last message; one that was asked for before is forgotten."""
        state, derived = self.policy.request(self.state, notes)
        append = without_handles(derived.append, derived.pages) if notes.unstored else derived.append
        request = self.sent.with_items(map(item, append), min(derived.keep, self.sent.length))
        asked = Asked(state, request, derived, self.unsaved.plus(derived))
        return Run(self.policy, self.state, self.sent, self.spoke, asked, self.unsaved, self.every_message_is_an_answer)

    def step(self, message: Message) -> "Run[Item]":
        """Shows the policy the next message. A request that led to no answer leaves no trace."""
        speaks, asked = message.role is Role.ASSISTANT, self.asked
        if asked is not None and self.is_answered_by(message):
            state = self.policy.step(asked.state, message)
            return Run(self.policy, state, asked.request, speaks, None, asked.unsaved, self.every_message_is_an_answer)
        state = self.policy.step(self.state, message)
        return Run(self.policy, state, self.sent, speaks, None, self.unsaved, self.every_message_is_an_answer)

    def saved(self) -> "Run[Item]":
        """Returns the run with nothing left to save."""
        asked = self.asked and replace(self.asked, unsaved=NOTHING_UNSAVED)
        return replace(self, asked=asked, unsaved=NOTHING_UNSAVED)

    def map_states(self, pin: Callable[[Any], Any]) -> "Run[Item]":
        """Applies `pin` to both states the run may continue from (with and without the pending request)."""
        asked = self.asked and replace(self.asked, state=pin(self.asked.state))
        return replace(self, state=pin(self.state), asked=asked)


def begin(policy: Policy, head: int = 0, *, spoke: bool = False, every_message_is_an_answer: bool = False) -> Run[Any]:
    """Returns a run before the first message. `spoke=True`: a leading assistant message is not treated as the answer to
    a request."""
    return Run(policy, policy.begin(head), Log(), spoke, every_message_is_an_answer=every_message_is_an_answer)


def replay_messages(
    run: Run[Item], messages: Iterable[Message], start: int, ask: Callable[[int, Run[Item]], Run[Item]]
) -> Run[Item]:
    """Continues a run over the messages that follow, the first of which has the index `start`.

    When an assistant message answers a request this run has not asked for, ask(index, run) is called first to recreate
    that request.
    """
    for place, message in enumerate(messages, start):
        if run.asked is None and run.is_answered_by(message):
            run = ask(place, run)
        run = run.step(message)
    return run


def as_it_is(message: Message) -> Message:
    """Returns the message, for runs whose items are the messages themselves."""
    return message
