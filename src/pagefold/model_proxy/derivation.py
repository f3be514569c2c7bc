"""A request as it was derived from a history: its messages over those of the client, and all that follows from them.

What a policy changed is kept as which block of which message says something else, not as bytes: clients move their
cache marks and respell messages from turn to turn, and everything but the changed texts goes on as it came this time.
Reasoning that the provider would refuse where it now stands is left out of every derivation (`derive.bound_reasoning`).
"""

from collections.abc import Callable, Sequence
from dataclasses import field, replace
from operator import is_

from pagefold import tokens
from pagefold.derive.bound_reasoning import AS_IT_CAME, change_after, may_stand
from pagefold.derive.policy import Decision
from pagefold.derive.prefix_hashes import canonical
from pagefold.derive.runner import NOTHING_UNSAVED, Run, Unsaved
from pagefold.frozen import frozen
from pagefold.log import Log
from pagefold.model_proxy.resuming import NewestFold
from pagefold.pages.kinds import ResidencyLevel
from pagefold.wire import apis, json_text
from pagefold.wire.api import ReasoningFormat
from pagefold.wire.message import Message, Role

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
    `saved_tokens` is how many tokens fewer it has than the client's; below nothing, what was added to mend it. `reason`
    says why it is a fold point; `begun_anew`, why it may be another than was sent of this history before, though
    nothing was folded. `decisions` are what the policy decided about single messages. `unsaved` has to be saved before
    the request leaves. `change` names all that differs from the client's request: what the answer's reasoning is bound
    to. `base` is the change before the first message. `bare` messages go without their reasoning, `newly_bare` of them
    for the first time.
    `edited` are the places of what says something else where all messages stand in their places.
    `came_tokens` is what the client's messages cost as they came, or -1 while each is in the request, in its place.
    `fold` is the newest fold of the history, where one was made for this request.
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
    begun_anew: str = ""
    edited: Log[int] = field(default_factory=Log, repr=False)
    fold: NewestFold | None = field(default=None, compare=False, repr=False)

    @property
    def moved(self) -> str:
        """Why its prefix may not be that of the request before it; "" where it has to be."""
        return self.reason or self.begun_anew

    @property
    def messages(self) -> list[Message]:
        return [sent.message for sent in self.sent]


def last_folded(cached: Derivation, messages: Log[Message], acceptance: Acceptance) -> Derivation:
    """The last request of a history, followed by what has come since as it came: for where nothing can be derived."""
    since = messages.since(cached.over.length)
    sent = cached.sent.with_items(Sent(place, (), new, new) for place, new in enumerate(since, cached.over.length))
    return derivation_of(sent, messages, acceptance)


def derived_by(
    run: Run[Sent], messages: Log[Message], acceptance: Acceptance, before: Derivation | None = None
) -> Derivation:
    """The derivation that a run makes which was asked for its request."""
    asked = run.asked
    assert asked is not None
    derived = asked.derived
    return derivation_of(asked.request, messages, acceptance, before, derived.reason, derived.decisions, asked.unsaved)


def derivation_of(
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
        change, bare, edited = before.change, before.bare, before.edited
    else:
        begun, changed, moves, saved, change, bare, edited = 0, False, False, 0, base, 0, Log()
        current = [_current(each, messages) for each in sent]
        sent = sent if all(map(is_, current, sent)) else Log(current)
    fresh, left_out, bound = sent.since(begun), list[Decision](), acceptance.reasoning is not None
    newly_edited: list[int] = []
    following = sent[begun - 1].place + 1 if begun else 0
    for place, each in enumerate(fresh, begun):
        if bound and not each.bare and not acceptance.accepts(each.source, change):
            each = fresh[place - begun] = replace(each, bare=True).over(each.source)  # noqa: PLW2901
            left_out.append(Decision(each.place, ResidencyLevel.FULL, _BOUND_ELSEWHERE))
        if each.place != place:
            changed = moves = True
        elif each.edits or each.bare:
            changed = True
            newly_edited.append(place)
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
    if moves or sent.length != messages.length:
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
        sent,
        messages,
        changed,
        moves,
        saved,
        reason,
        decisions,
        unsaved,
        change,
        base,
        bare,
        max(0, newly),
        came,
        edited=edited.with_items(newly_edited) if newly_edited else edited,
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


def sent_as(message: Message, messages: Log[Message]) -> Sent:
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
