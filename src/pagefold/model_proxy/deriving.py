"""From the history that a client sends to the request that goes upstream, by a policy.

Deriving is a function of the history alone. A policy is shown every message in order and asked for a request before
each answer that stands in the history, as it was asked then, and once more at the end. What was worked out for a
history is remembered under its link, so that a new turn costs its new messages; without it the same bytes come out.

What a policy changes is kept as *what* it changed (which block of which message says something else), not as bytes:
the client moves its cache marks and respells its messages from turn to turn, and everything but the changed texts goes
on as it came this time.
"""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from operator import is_
from typing import Any, TypeAlias

from pagefold import tokens
from pagefold.derive.policy import NOTHING, Decision, Notes, Policy
from pagefold.frozen import frozen
from pagefold.log import Log
from pagefold.model_proxy.request_cache import ParsedRequest
from pagefold.pages.journal import Boundary
from pagefold.pages.page import Page, PageId
from pagefold.pages.pins import Pins
from pagefold.wire.message import Message, Role

_CHARACTERS = 256 << 20
_LINE = 16  # what a message costs that is only listed once more


@frozen
class Sent:
    """One message as it goes upstream: where it stands in the client's history and which of its blocks say something
    else there. A message that the policy made itself has no place. `source` is the client's, as it came this time."""

    place: int
    edits: tuple[tuple[int, str], ...]
    source: Message
    message: Message
    saved: int = 0

    def over(self, source: Message) -> "Sent":
        """The same changes, made to the message as it came this time."""
        message = source
        for index, text in self.edits:
            message = message.with_text(index, text)
        return replace(self, source=source, message=message)


@frozen
class Derivation:
    """A request to be sent, made over these messages of the client: the tokens it holds fewer than they do, and why it
    is a fold point."""

    sent: Log[Sent]
    over: Log[Message] = field(repr=False)
    changed: bool
    saved: int = 0
    reason: str = ""

    @property
    def messages(self) -> list[Message]:
        return [one.message for one in self.sent]


@dataclass(slots=True)
class _Turn:
    """What is known of a history with this head that was asked about: the state and what stood, before asking and
    after."""

    head: int
    stepped: Any
    stood: Log[Sent]
    asked: Any
    derivation: Derivation
    characters: int


_Near: TypeAlias = tuple[Log[bytes] | None, int, _Turn | None]
_NOWHERE: _Near = (None, 0, None)


class Derivations:
    """One policy at work on many histories. What it remembers is bounded by the characters of their requests.

    `noted` returns the notes stored under a prefix hash; a policy that never folds has none. `shown` turns a message
    into what the policy reads: one that makes pages of messages must not see how they happened to be spelled.
    `unsaved_pages` are recalled by handles in derived requests and are not in the store yet, `unsaved_pins` were not
    written back before a fold: no such request may leave before they are.
    """

    def __init__(
        self,
        policy: Policy,
        *,
        noted: Callable[[bytes], Notes] = lambda link: NOTHING,
        shown: Callable[[Message], Message] = lambda message: message,
        most: int = _CHARACTERS,
    ) -> None:
        self.policy, self.folds = policy, folds(policy)
        self.unsaved_pages: dict[PageId, Page] = {}
        self.unsaved_pins: tuple[Pins, Boundary] | None = None
        self.decided: tuple[Decision, ...] = ()  # in the last request that was asked for; the trace tells it
        self._noted, self._shown = noted, shown
        self._most = most
        self._turns: dict[bytes, _Turn] = {}
        self._near = _NOWHERE  # for the hashes that were asked about last, while nothing was remembered since
        self._characters = 0

    def fresh(self, reading: ParsedRequest, head: int | None = None) -> int:
        """How many characters of a request would have to be worked on."""
        hashes, known = reading.prefix_hashes, reading.after
        turn = self._turns.get(hashes[known - 1]) if known else None  # mostly that is the nearest
        if turn is None or (head is not None and head != turn.head):
            known, turn = self._nearest(hashes, head)
        self._near = hashes, known, turn
        characters = 0
        for message in reading.request.messages.since(known):
            characters += len(message.raw)
        return characters

    def derive(
        self, messages: Log[Message], hashes: Log[bytes], head: int = 0, notes: Notes = NOTHING, characters: int = 0
    ) -> Derivation:
        """What goes upstream for this history, whose hashes these are. `head` is the tokens of what stands before it,
        `characters` how long the whole is."""
        self.decided = ()
        of, at, turn = self._near
        if of is not hashes or turn is None or turn.head != head:
            at, turn = self._nearest(hashes, head)
        if turn is not None and at == messages.length:
            return self._remember(hashes, turn, _derivation(turn.derivation.sent, messages, turn.derivation.reason))
        new = messages.since(at)
        spoke = at > 0 and messages[at - 1].role is Role.ASSISTANT  # whether the model did, in the message before
        state: Any
        sent: Log[Sent]
        if turn is None:
            state, sent, asked = self.policy.begin(head), Log(), False
        elif new[0].role is Role.ASSISTANT and not spoke:
            state, sent, asked = turn.asked, turn.derivation.sent, True
        else:
            state, sent, asked = turn.stepped, turn.stood, False
        for place, message in enumerate(new, at):
            speaks = message.role is Role.ASSISTANT
            if speaks and not spoke and not asked:
                state, sent = self._pass(state, sent, messages.upto(place), hashes.upto(place), head)
            shown = self._shown(message)
            if shown.place != place:
                shown = Message(shown.role, shown.blocks, shown.raw, place)
            state = self.policy.step(state, shown)
            spoke, asked = speaks, False
        if self.folds and notes is NOTHING and hashes.length:
            notes = self._noted(hashes[-1])
        after, asked_for, reason = self._ask(state, sent, messages, notes)
        derivation = _derivation(asked_for, messages, reason, turn.derivation if turn else None)
        if turn is not None:  # it shares nearly everything with its child, and is of use for a retry only
            self._characters -= turn.characters
            turn.characters = 0
        return self._remember(hashes, _Turn(head, state, sent, after, derivation, characters), derivation)

    def _pass(
        self, state: Any, sent: Log[Sent], messages: Log[Message], hashes: Log[bytes], head: int
    ) -> tuple[Any, Log[Sent]]:
        """Asks as it was asked when the history was no longer than this, and remembers it for whoever forks here."""
        after, stands, reason = self._ask(state, sent, messages, self._noted(hashes[-1]) if hashes else NOTHING)
        derivation = _derivation(stands, messages, reason)
        self._remember(hashes, _Turn(head, state, sent, after, derivation, _LINE * len(stands)), derivation)
        return after, derivation.sent

    def again(self, messages: Log[Message], hashes: Log[bytes], notes: Notes) -> Derivation | None:
        """The request derived last, derived anew with notes; None where that comes to the same."""
        turn = self._turns.get(hashes[-1]) if hashes else None
        if turn is None:
            return None
        after, sent, reason = self._ask(turn.stepped, turn.stood, messages, notes)
        derivation = _derivation(sent, messages, reason)
        if [one.message.raw for one in derivation.sent] == [one.message.raw for one in turn.derivation.sent]:
            return None
        turn.asked = after
        return self._remember(hashes, turn, derivation)

    def _nearest(self, hashes: Log[bytes], head: int | None) -> tuple[int, _Turn | None]:
        turns, known = self._turns, hashes.length
        for link in reversed(hashes):
            turn = turns.get(link)
            if turn is not None and (head is None or head == turn.head):
                return known, turn
            known -= 1
        return 0, None

    def _ask(self, state: Any, sent: Log[Sent], messages: Log[Message], notes: Notes) -> tuple[Any, Log[Sent], str]:
        state, derived = self.policy.request(state, notes)
        self.decided = derived.decisions
        for page in derived.pages:
            self.unsaved_pages[page.id] = page
        if derived.boundary and derived.pins.held:
            self.unsaved_pins = derived.pins, derived.boundary
        made = [_sent(message, messages) for message in derived.append]
        return state, sent.with_items(made, min(derived.keep, sent.length)), derived.reason

    def _remember(self, hashes: Log[bytes], turn: _Turn, derivation: Derivation) -> Derivation:
        if not hashes.length:
            return derivation
        self._near = _NOWHERE
        turn.derivation = derivation
        link = hashes[-1]
        known = self._turns.pop(link, None)
        if known is not turn:
            self._characters += turn.characters - (known.characters if known else 0)
        self._turns[link] = turn
        while self._characters > self._most and len(self._turns) > 1:
            self._characters -= self._turns.pop(next(iter(self._turns))).characters
        return derivation


def folds(policy: Policy) -> bool:
    """Whether a policy ever changes what was sent: those that do know how much fits."""
    return hasattr(policy, "window")


def _derivation(sent: Log[Sent], messages: Log[Message], reason: str, before: Derivation | None = None) -> Derivation:
    """The request that `sent` makes with the messages as they came this time. `before` is one that it may extend: what
    it has more than that was made of these very messages."""
    if before is not None and sent.extends(before.sent) and messages.extends(before.over):
        begun, changed, saved = before.sent.length, before.changed, before.saved
    else:
        begun, changed, saved = 0, False, 0
        fresh = [_current(one, messages) for one in sent]
        sent = sent if all(map(is_, fresh, sent)) else Log(fresh)
    for at, one in enumerate(sent.since(begun), begun):
        if one.edits or one.place != at:
            changed = True
        saved += one.saved
    if sent.length != messages.length:
        placed = {one.place for one in sent}
        changed, saved = True, sum(one.saved for one in sent)
        saved += sum(_cost(message) for place, message in enumerate(messages) if place not in placed)
    return Derivation(sent, messages, changed, saved if changed else 0, reason)


def _current(one: Sent, messages: Log[Message]) -> Sent:
    source = one.source if one.place < 0 else messages[one.place]
    return one if source is one.source or source.raw == one.source.raw else one.over(source)


def _sent(message: Message, messages: Log[Message]) -> Sent:
    """What a policy made of a message. A change shows in its blocks: what else its JSON holds is the client's."""
    if message.place < 0:
        return Sent(-1, (), message, message, -_cost(message))
    source = messages[message.place]
    if message.blocks is source.blocks:
        return Sent(message.place, (), source, source)
    pairs = list(zip(source.blocks, message.blocks, strict=False))
    if len(source.blocks) != len(message.blocks) or any(
        (old.kind, old.call_id) != (new.kind, new.call_id) for old, new in pairs
    ):
        return Sent(-1, (), message, message, -_cost(message))
    edits = tuple((index, new.text) for index, (old, new) in enumerate(pairs) if old.text != new.text)
    count = tokens.counter().count
    saved = sum(count(source.blocks[index].text) - count(text) for index, text in edits)
    one = Sent(message.place, edits, source, source, saved)
    return one.over(source) if edits else one


def _cost(message: Message) -> int:
    count = tokens.counter().count
    return tokens.FRAME + sum(count(block.text) for block in message.blocks)
