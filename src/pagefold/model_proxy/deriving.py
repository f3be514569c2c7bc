"""Derives the request that goes upstream from the history that a client sends, by a policy.

Deriving is a function of the history alone: `derive.runner` shows the policy every message and asks it before every
answer. `Derivations` remembers the run of each history under its prefix hash, so that a new turn costs its new
messages; without that memory the same bytes come out. What a derivation needs saved is part of the derivation.

What a policy changed is kept as which block of which message says something else, not as bytes: clients move their
cache marks and respell messages from turn to turn, and everything but the changed texts goes on as it came this time.
Reasoning that the provider would refuse where it now stands is left out of every derivation (`derive.bound_reasoning`).
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from operator import is_
from typing import NamedTuple

from pagefold import tokens
from pagefold.derive.bound_reasoning import AS_IT_CAME, change_after, may_stand
from pagefold.derive.policy import NOTHING, Decision, Notes, Policy
from pagefold.derive.prefix_hashes import canonical
from pagefold.derive.runner import NOTHING_UNSAVED, Run, Unsaved, begin, replay_messages
from pagefold.frozen import frozen
from pagefold.log import Log
from pagefold.model_proxy.history_memory import HistoryMemory, RememberedHistory
from pagefold.pages.kinds import ResidencyLevel
from pagefold.wire import apis, json_text
from pagefold.wire.api import ReasoningFormat
from pagefold.wire.message import Message, Role

_FOLDING, _PLAIN = 18, 8  # bytes that a run takes for each character of its request, as measured
_BOUND_ELSEWHERE = "without its reasoning, which was made behind another request than this"


@frozen
class Sent:
    """One message as it goes upstream: where it stands in the client's history, and which of its blocks say something
    else there. A message that the policy made itself has no place. `source` is the client's, as it came this time.
    `bare`: its reasoning is left out, and edits count the blocks without it."""

    place: int
    edits: tuple[tuple[int, str], ...]
    source: Message
    message: Message
    saved_tokens: int = 0
    bare: bool = False

    def over(self, source: Message) -> "Sent":
        """The same changes, made to the message as it came this time."""
        message = apis.without_reasoning(source) if self.bare else source
        for index, text in self.edits:
            message = message.with_text(index, text)
        return Sent(self.place, self.edits, source, message, self.saved_tokens, self.bare)


@frozen
class Acceptance:
    """What decides which reasoning of a request its provider accepts. `made_under` returns the change under which a
    piece of reasoning was made, by its key. `base` is the change before the first message (tools that were added), and
    `written` are the places in the history that pagefold filled itself. Without a `reasoning` format nothing is bound.
    """

    reasoning: ReasoningFormat | None = None
    made_under: Callable[[str], bytes | None] = lambda key: None
    base: bytes = AS_IT_CAME
    written: frozenset[int] = frozenset()

    def accepts(self, message: Message, change: bytes) -> bool:
        """Whether a message may stand behind this change with its reasoning, if it has any."""
        if self.reasoning is None or message.role is not Role.ASSISTANT:
            return True
        return all(may_stand(self.made_under(key), change) for key in self.reasoning.keys(message))


NOTHING_BOUND = Acceptance()


@frozen
class Derivation:
    """A request for one history: its messages, made over those of the client, and all that follows from it.

    `changed` says that it is not the client's request, `moves` that messages are not all in their places.
    `saved_tokens` is how many tokens fewer it has than the client's; `reason` says why it is a fold point. `decisions`
    are what the policy decided about single messages. `unsaved` has to be saved before the request leaves. `change`
    names all that differs from the client's request: what the answer's reasoning is bound to. `base` is the change
    before the first message. `bare` messages go without their reasoning, `newly_bare` of them for the first time.
    `came_tokens` is what the client's messages cost as they came, or -1 while all of them are in the request.
    """

    sent: Log[Sent]
    over: Log[Message] = field(repr=False)
    changed: bool
    moves: bool = False
    saved_tokens: int = 0
    reason: str = ""
    decisions: Sequence[Decision] = field(default=(), repr=False)
    unsaved: Unsaved = NOTHING_UNSAVED
    change: bytes = AS_IT_CAME
    base: bytes = AS_IT_CAME
    bare: int = 0
    newly_bare: int = 0
    came_tokens: int = -1

    @property
    def messages(self) -> list[Message]:
        return [sent.message for sent in self.sent]


@dataclass(slots=True)
class _Cached:
    """The run of one history with this head, asked for its request, and the newest derivation of it."""

    head: int
    run: Run[Sent]
    derivation: Derivation
    history: RememberedHistory


class Nearest(NamedTuple):
    """The longest beginning of a history whose run is cached: how many messages it has, and the characters after it."""

    hashes: Log[bytes]
    length: int
    cached: _Cached | None
    fresh: int = 0


class Derivations:
    """One policy for many histories. What it remembers is bounded by `memory`, which several may share. Threads may
    derive side by side.

    `noted` returns the notes stored under a prefix hash; a policy that never folds has none. `shown` turns a message
    into what the policy reads: one that makes pages of messages must not see how they happened to be spelled.
    """

    def __init__(
        self,
        policy: Policy,
        *,
        noted: Callable[[bytes], Notes] = lambda prefix_hash: NOTHING,
        shown: Callable[[Message], Message] = lambda message: message,
        memory: HistoryMemory | None = None,
    ) -> None:
        self.policy = policy
        self._noted, self._shown, self._memory = noted, shown, HistoryMemory() if memory is None else memory
        self._cached: dict[bytes, _Cached] = {}
        self._growth = _FOLDING if policy.abilities.folds else _PLAIN

    def nearest(self, messages: Log[Message], hashes: Log[bytes], head: int | None = None, after: int = 0) -> Nearest:
        """What is known of a history. `after` is how long it was when it was read before: mostly the answer."""
        length, cached = after, self._cached.get(hashes[after - 1]) if after else None
        if cached is None or (head is not None and head != cached.head):
            length, cached = hashes.length, None
            for prefix_hash in reversed(hashes):
                candidate = self._cached.get(prefix_hash)
                if candidate is not None and (head is None or head == candidate.head):
                    cached = candidate
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
        acceptance: Acceptance = NOTHING_BOUND,
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
            last = cached.derivation
            again = _derivation(last.sent, messages, acceptance, reason=last.reason, unsaved=last.unsaved)
            return self._remember(hashes, cached, again)
        before = cached.derivation if cached else None
        history = RememberedHistory(self._cached)
        if cached is not None and cached.history.keys[-1:] == [hashes[start - 1]]:  # no fork of it
            history = cached.history

        def ask(place: int, at: Run[Sent]) -> Run[Sent]:
            """Asks as it was asked when the history was no longer than this, and remembers that for forks."""
            nonlocal before
            made, upto = messages.upto(place), hashes.upto(place)
            asked = at.ask(self._noted(upto[-1]) if place else NOTHING, partial(_sent, messages=made))
            before = derivation = _derived(asked, made, acceptance, before)
            entry = _Cached(head, asked, derivation, history)
            self._remember(upto, entry, derivation)
            return entry.run

        run = cached.run if cached is not None else begin(self.policy, head)
        shown = [self._placed(message, place) for place, message in enumerate(messages.since(start), start)]
        run = replay_messages(run, shown, start, ask)
        if notes is NOTHING and hashes.length:
            notes = self._noted(hashes[-1])
        asked = run.ask(notes, partial(_sent, messages=messages))
        derivation = _derived(asked, messages, acceptance, before)
        return self._remember(hashes, _Cached(head, asked, derivation, history), derivation, characters * self._growth)

    def again(
        self, messages: Log[Message], hashes: Log[bytes], notes: Notes, acceptance: Acceptance = NOTHING_BOUND
    ) -> Derivation | None:
        """The request derived last, derived anew with notes; None where that comes to the same."""
        cached = self._cached.get(hashes[-1]) if hashes else None
        if cached is None:
            return None
        asked = cached.run.ask(notes, partial(_sent, messages=messages))
        derivation = _derived(asked, messages, acceptance)
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

    def _remember(
        self, hashes: Log[bytes], entry: _Cached, derivation: Derivation, size: int | None = None
    ) -> Derivation:
        if not hashes.length:
            return derivation
        entry.derivation, asked = derivation, entry.run.asked
        if asked is not None and asked.request is not derivation.sent:  # what goes on extends it as it came this time
            entry.run = replace(entry.run, asked=replace(asked, request=derivation.sent))
        self._cached[hashes[-1]] = entry
        self._memory.use(entry.history, hashes[-1], size)
        return derivation


def last_folded(cached: Derivation, messages: Log[Message], acceptance: Acceptance) -> Derivation:
    """The last request of a history, followed by what has come since as it came: for where nothing can be derived."""
    since = messages.since(cached.over.length)
    sent = cached.sent.with_items(Sent(place, (), new, new) for place, new in enumerate(since, cached.over.length))
    return _derivation(sent, messages, acceptance)


def _derived(
    run: Run[Sent], messages: Log[Message], acceptance: Acceptance, before: Derivation | None = None
) -> Derivation:
    """The derivation that a run makes which was asked for its request."""
    asked = run.asked
    assert asked is not None
    derived = asked.derived
    return _derivation(asked.request, messages, acceptance, before, derived.reason, derived.decisions, asked.unsaved)


def _derivation(
    sent: Log[Sent],
    messages: Log[Message],
    acceptance: Acceptance = NOTHING_BOUND,
    before: Derivation | None = None,
    reason: str = "",
    decisions: Sequence[Decision] = (),
    unsaved: Unsaved = NOTHING_UNSAVED,
) -> Derivation:
    """The request that `sent` makes with the messages as they came this time. `before` is one that it may extend: what
    it has more than that was made of these very messages."""
    base = acceptance.base
    if before is not None and before.base == base and sent.extends(before.sent) and messages.extends(before.over):
        begun, changed, moves, saved = before.sent.length, before.changed, before.moves, before.saved_tokens
        change, bare = before.change, before.bare
    else:
        begun, changed, moves, saved, change, bare = 0, False, False, 0, base, 0
        current = [_current(each, messages) for each in sent]
        sent = sent if all(map(is_, current, sent)) else Log(current)
    fresh, left_out, bound = sent.since(begun), list[Decision](), acceptance.reasoning is not None
    following = sent[begun - 1].place + 1 if begun else 0
    for place, each in enumerate(fresh, begun):
        if bound and not each.bare and not acceptance.accepts(each.source, change):
            each = fresh[place - begun] = replace(each, bare=True).over(each.source)  # noqa: PLW2901
            left_out.append(Decision(each.place, ResidencyLevel.FULL, _BOUND_ELSEWHERE))
        if each.place != place:
            changed = moves = True
        elif each.edits or each.bare:
            changed = True
        written = each.place < 0 or each.place in acceptance.written
        if bound and (written or each.place != following or each.edits or each.bare):
            text = canonical(json_text.parse(each.message.raw)) if written else ""
            change = change_after(change, each.place, each.edits, each.bare, text)
        following = each.place + 1
        bare += each.bare
        saved += each.saved_tokens
    if left_out:
        sent, decisions = sent.with_items(fresh, begun), (*decisions, *left_out)
    came = -1
    if sent.length != messages.length:
        changed = moves = True
        came = _came_tokens(messages, before)
        if not begun or before is None or before.came_tokens < 0:
            gone, fresh = came, sent.since(0)
            saved = sum(each.saved_tokens for each in fresh)
        else:
            gone = came - before.came_tokens
        saved += gone - sum(_cost(messages[place]) for place in {each.place for each in fresh if each.place >= 0})
    saved = saved if changed else 0
    newly = bare - (before.bare if before is not None and begun else 0)
    if newly and before is not None and not begun:  # a fold: those that it moved once more are not counted again
        already = {each.place for each in before.sent if each.bare}
        newly -= sum(each.place in already for each in sent if each.bare)
    return Derivation(
        sent, messages, changed, moves, saved, reason, decisions, unsaved, change, base, bare, max(0, newly), came
    )


def _came_tokens(messages: Log[Message], before: Derivation | None) -> int:
    """What the client's messages cost as they came. Those that `before` has counted are not counted again."""
    counted, tokens = 0, 0
    if before is not None and before.came_tokens >= 0 and messages.extends(before.over):
        counted, tokens = before.over.length, before.came_tokens
    return tokens + sum(map(_cost, messages.since(counted)))


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
    old_blocks, bare = source.blocks, False
    if len(old_blocks) != len(message.blocks):
        old_blocks, bare = apis.without_reasoning(source).blocks, True
        if len(old_blocks) != len(message.blocks):
            return Sent(-1, (), message, message, -_cost(message))
    count, saved = tokens.counter("o200k").count, 0
    edits: list[tuple[int, str]] = []
    for index, (old, new) in enumerate(zip(old_blocks, message.blocks, strict=True)):
        if (old.kind, old.call_id) != (new.kind, new.call_id):
            return Sent(-1, (), message, message, -_cost(message))
        if old.text != new.text:
            edits.append((index, new.text))
            saved += count(old.text) - count(new.text)
    sent = Sent(message.place, tuple(edits), source, source, saved, bare)
    return sent.over(source) if edits or bare else sent


def _cost(message: Message) -> int:
    count = tokens.counter("o200k").count
    return tokens.FRAME + sum(count(block.text) for block in message.blocks)
