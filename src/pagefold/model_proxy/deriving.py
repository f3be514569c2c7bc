"""Derives the request that goes upstream from the history that a client sends, by a policy.

Deriving is a function of the history alone: `derive.runner` shows the policy every message and asks it before every
answer. `Derivations` remembers the run of each history under its prefix hash, so that a new turn costs its new
messages; without that memory the same bytes come out. What a derivation needs saved is part of the derivation.

What a policy changed is kept as which block of which message says something else, not as bytes: clients move their
cache marks and respell messages from turn to turn, and everything but the changed texts goes on as it came this time.
"""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import partial
from operator import is_
from typing import NamedTuple

from pagefold import tokens
from pagefold.derive.policy import NOTHING, Decision, Notes, Policy
from pagefold.derive.runner import NOTHING_UNSAVED, Run, Unsaved, begin, replay_messages
from pagefold.frozen import frozen
from pagefold.log import Log
from pagefold.wire.message import Message

_CHARACTERS = 256 << 20
_LINE = 16  # what a message costs that is only listed once more


@frozen
class Sent:
    """One message as it goes upstream: where it stands in the client's history, and which of its blocks say something
    else there. A message that the policy made itself has no place. `source` is the client's, as it came this time."""

    place: int
    edits: tuple[tuple[int, str], ...]
    source: Message
    message: Message
    saved_tokens: int = 0

    def over(self, source: Message) -> "Sent":
        """The same changes, made to the message as it came this time."""
        message = source
        for index, text in self.edits:
            message = message.with_text(index, text)
        return Sent(self.place, self.edits, source, message, self.saved_tokens)


@frozen
class Derivation:
    """A request for one history: its messages, made over those of the client, and all that follows from it.

    `changed` says that it is not the client's request, `moves` that messages are not all in their places.
    `saved_tokens` is how many tokens fewer it has than the client's; `reason` says why it is a fold point. `decisions`
    are what the policy decided about single messages. `unsaved` has to be saved before the request leaves.
    """

    sent: Log[Sent]
    over: Log[Message] = field(repr=False)
    changed: bool
    moves: bool = False
    saved_tokens: int = 0
    reason: str = ""
    decisions: tuple[Decision, ...] = field(default=(), repr=False)
    unsaved: Unsaved = NOTHING_UNSAVED

    @property
    def messages(self) -> list[Message]:
        return [sent.message for sent in self.sent]


@dataclass(slots=True)
class _Cached:
    """The run of one history with this head, asked for its request, and the newest derivation of it."""

    head: int
    run: Run[Sent]
    derivation: Derivation
    characters: int


class Nearest(NamedTuple):
    """The longest beginning of a history whose run is cached: how many messages it has, and the characters after it."""

    hashes: Log[bytes]
    length: int
    cached: _Cached | None
    fresh: int = 0


class Derivations:
    """One policy for many histories. What it remembers is bounded by the characters of their requests.

    `noted` returns the notes stored under a prefix hash; a policy that never folds has none. `shown` turns a message
    into what the policy reads: one that makes pages of messages must not see how they happened to be spelled.
    """

    def __init__(
        self,
        policy: Policy,
        *,
        noted: Callable[[bytes], Notes] = lambda prefix_hash: NOTHING,
        shown: Callable[[Message], Message] = lambda message: message,
        most: int = _CHARACTERS,
    ) -> None:
        self.policy = policy
        self._noted, self._shown, self._most = noted, shown, most
        self._cached: dict[bytes, _Cached] = {}
        self._characters = 0

    def nearest(self, messages: Log[Message], hashes: Log[bytes], head: int | None = None, after: int = 0) -> Nearest:
        """What is known of a history. `after` is how long it was when it was read before: mostly the answer."""
        length, cached = after, self._cached.get(hashes[after - 1]) if after else None
        if cached is None or (head is not None and head != cached.head):
            length, cached = hashes.length, None
            for prefix_hash in reversed(hashes):
                found = self._cached.get(prefix_hash)
                if found is not None and (head is None or head == found.head):
                    cached = found
                    break
                length -= 1
        return Nearest(hashes, length, cached, sum([len(message.raw) for message in messages.since(length)]))

    def derive(
        self,
        messages: Log[Message],
        hashes: Log[bytes],
        head: int = 0,
        notes: Notes = NOTHING,
        *,
        characters: int = 0,
        nearest: Nearest | None = None,
    ) -> Derivation:
        """What goes upstream for this history, which has these prefix hashes. `head` is the tokens of what stands
        before it, `characters` how long the whole is, `nearest` what is known of it, if somebody looked already."""
        if (
            nearest is None
            or nearest.hashes is not hashes
            or (nearest.cached is not None and nearest.cached.head != head)
        ):
            nearest = self.nearest(messages, hashes, head)
        start, cached = nearest.length, nearest.cached
        if cached is not None and start == messages.length:
            before = cached.derivation
            return self._remember(
                hashes, cached, _derivation(before.sent, messages, reason=before.reason, unsaved=before.unsaved)
            )

        def ask(place: int, at: Run[Sent]) -> Run[Sent]:
            """Asks as it was asked when the history was no longer than this, and remembers that for forks."""
            made, upto = messages.upto(place), hashes.upto(place)
            asked = at.ask(self._noted(upto[-1]) if place else NOTHING, partial(_sent, messages=made))
            derivation = _derived(asked, made)
            entry = _Cached(head, asked, derivation, _LINE * derivation.sent.length)
            self._remember(upto, entry, derivation)
            return entry.run

        known = cached.run if cached is not None else begin(self.policy, head)
        shown = [self._placed(message, place) for place, message in enumerate(messages.since(start), start)]
        known = replay_messages(known, shown, start, ask)
        if notes is NOTHING and hashes.length:
            notes = self._noted(hashes[-1])
        asked = known.ask(notes, partial(_sent, messages=messages))
        derivation = _derived(asked, messages, cached.derivation if cached else None)
        if cached is not None:  # it shares nearly everything with its child, and is of use for a retry only
            self._characters -= cached.characters
            cached.characters = 0
        return self._remember(hashes, _Cached(head, asked, derivation, characters), derivation)

    def again(self, messages: Log[Message], hashes: Log[bytes], notes: Notes) -> Derivation | None:
        """The request derived last, derived anew with notes; None where that comes to the same."""
        cached = self._cached.get(hashes[-1]) if hashes else None
        if cached is None:
            return None
        asked = cached.run.ask(notes, partial(_sent, messages=messages))
        derivation = _derived(asked, messages)
        if [sent.message.raw for sent in derivation.sent] == [sent.message.raw for sent in cached.derivation.sent]:
            return None
        cached.run = asked
        return self._remember(hashes, cached, derivation)

    def saved(self, prefix_hash: bytes) -> None:
        """What was unsaved of this history is saved. Until then every derivation that goes on from it says it again."""
        if (cached := self._cached.get(prefix_hash)) is not None:
            cached.run = cached.run.saved()
            cached.derivation = replace(cached.derivation, unsaved=NOTHING_UNSAVED)

    def _placed(self, message: Message, place: int) -> Message:
        shown = self._shown(message)
        return shown if shown.place == place else Message(shown.role, shown.blocks, shown.raw, place)

    def _remember(self, hashes: Log[bytes], entry: _Cached, derivation: Derivation) -> Derivation:
        if not hashes.length:
            return derivation
        entry.derivation, asked = derivation, entry.run.asked
        if asked is not None and asked.request is not derivation.sent:  # what goes on extends it as it came this time
            entry.run = replace(entry.run, asked=replace(asked, request=derivation.sent))
        prefix_hash = hashes[-1]
        before = self._cached.pop(prefix_hash, None)
        if before is not entry:
            self._characters += entry.characters - (before.characters if before else 0)
        self._cached[prefix_hash] = entry
        while self._characters > self._most and len(self._cached) > 1:
            self._characters -= self._cached.pop(next(iter(self._cached))).characters
        return derivation


def _derived(run: Run[Sent], messages: Log[Message], before: Derivation | None = None) -> Derivation:
    """The derivation that a run makes which was asked for its request."""
    asked = run.asked
    assert asked is not None
    derived = asked.derived
    return _derivation(asked.request, messages, before, derived.reason, derived.decisions, asked.unsaved)


def _derivation(
    sent: Log[Sent],
    messages: Log[Message],
    before: Derivation | None = None,
    reason: str = "",
    decisions: tuple[Decision, ...] = (),
    unsaved: Unsaved = NOTHING_UNSAVED,
) -> Derivation:
    """The request that `sent` makes with the messages as they came this time. `before` is one that it may extend: what
    it has more than that was made of these very messages."""
    if before is not None and sent.extends(before.sent) and messages.extends(before.over):
        begun, changed, moves, saved = before.sent.length, before.changed, before.moves, before.saved_tokens
    else:
        begun, changed, moves, saved = 0, False, False, 0
        current = [_current(each, messages) for each in sent]
        sent = sent if all(map(is_, current, sent)) else Log(current)
    for place, each in enumerate(sent.since(begun), begun):
        if each.place != place:
            changed = moves = True
        elif each.edits:
            changed = True
        saved += each.saved_tokens
    if sent.length != messages.length:
        placed = {each.place for each in sent}
        changed, moves, saved = True, True, sum(each.saved_tokens for each in sent)
        saved += sum(_cost(message) for place, message in enumerate(messages) if place not in placed)
    return Derivation(sent, messages, changed, moves, saved if changed else 0, reason, decisions, unsaved)


def _current(sent: Sent, messages: Log[Message]) -> Sent:
    source = sent.source if sent.place < 0 else messages[sent.place]
    return sent if source is sent.source or source.raw == sent.source.raw else sent.over(source)


def _sent(message: Message, messages: Log[Message]) -> Sent:
    """What a policy made of a message. A change shows in its blocks: what else its JSON holds is the client's."""
    if message.place < 0:
        return Sent(-1, (), message, message, -_cost(message))
    source = messages[message.place]
    if message.blocks is source.blocks:
        return Sent(message.place, (), source, source)
    if len(source.blocks) != len(message.blocks):
        return Sent(-1, (), message, message, -_cost(message))
    count, saved = tokens.counter("o200k").count, 0
    edits: list[tuple[int, str]] = []
    for index, (old, new) in enumerate(zip(source.blocks, message.blocks, strict=True)):
        if (old.kind, old.call_id) != (new.kind, new.call_id):
            return Sent(-1, (), message, message, -_cost(message))
        if old.text != new.text:
            edits.append((index, new.text))
            saved += count(old.text) - count(new.text)
    sent = Sent(message.place, tuple(edits), source, source, saved)
    return sent.over(source) if edits else sent


def _cost(message: Message) -> int:
    count = tokens.counter("o200k").count
    return tokens.FRAME + sum(count(block.text) for block in message.blocks)
