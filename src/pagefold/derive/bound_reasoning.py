"""Which reasoning of a history may be sent again: what a provider would refuse is left out.

A provider binds reasoning to all that stood before it when it was made, and refuses it behind anything else. What
stands there is the client's own, or what pagefold made of it. The client's own part is the client's to keep; for the
rest a *change* names what was done: `AS_IT_CAME` where nothing was, else a hash over every message that was edited,
moved, written or left without its reasoning, in order. Reasoning may stand where the change before it is the one under
which it was made. So a request that only grows keeps all of it, a fold or an exit loses what stands behind the place
that changed, and what is made afterwards is kept again.
"""

from collections.abc import Sequence
from dataclasses import replace
from hashlib import sha256

from pagefold.derive.entry import Entry, counted
from pagefold.derive.fold import Folded
from pagefold.derive.policy import Decisions
from pagefold.log import Log
from pagefold.wire import apis
from pagefold.wire.message import Message

AS_IT_CAME = b""
"""The change of a request in which nothing was changed."""
NOWHERE = b"nowhere"
"""In place of a change: reasoning that a provider refused, or that was left out because nothing was known of it."""


def change_after(before: bytes, *what: object) -> bytes:
    """The change behind one more message that is not as it came; `what` says how it differs. Of a message of the client
    it names only what was done to it: the rest is the client's, who may spell it anew."""
    return sha256(before + repr(what).encode("utf-8", "surrogatepass")).digest()


def may_stand(made_under: bytes | None, now: bytes) -> bool:
    """Whether reasoning may stand behind this change. Where it was made is not known (None) if no record of it is left
    or it was made without pagefold: then only the client's own bytes can be what stood before it."""
    return now == (AS_IT_CAME if made_under is None else made_under)


def common(before: Sequence[Message], now: Sequence[Message]) -> int:
    """How many leading messages of two requests are the same bytes."""
    same = 0
    for old, new in zip(before, now, strict=False):
        if old.raw != new.raw:
            break
        same += 1
    return same


def unbound(made: Folded, before: Sequence[Message], tokens: str) -> tuple[Folded, int]:
    """A fold without the reasoning that it would show behind something else than the request `before` it did. What is
    left out stays out: the same bytes come out of every later request. Also returns of how many messages that is."""
    now = [*made.front, *(entry.shown for entry in made.log[made.cut :])]
    same = common(before, now)
    if same == len(before):
        return made, 0
    front = (*made.front[:same], *map(apis.without_reasoning, made.front[same:]))
    first = made.cut + max(0, same - len(front))
    log = bared(made.log, first, tokens)
    places = {place for place, entry in enumerate(log.since(first), first) if entry is not made.log[place]}
    bare = len(places) + sum(old is not new for old, new in zip(made.front, front, strict=True))
    if not bare:
        return made, 0
    saved = sum(made.log[place].tokens - log[place].tokens for place in places)
    saved += sum(counted(old, tokens) - counted(new, tokens) for old, new in zip(made.front, front, strict=True))
    decisions = Decisions(
        lambda: tuple(
            one._replace(reason=f"{one.reason}, without its reasoning") if one.place in places else one
            for one in made.decisions
        )
    )
    tokens_left = made.tokens - saved
    return replace(made, front=front, log=log, tokens=tokens_left, decisions=decisions, bare_from=first), bare


def bared(log: Log[Entry], first: int, tokens: str) -> Log[Entry]:
    """The log without the reasoning from a place on."""
    return Log(log[:first]).with_items([_without_reasoning(entry, tokens) for entry in log.since(first)])


def _without_reasoning(entry: Entry, tokens: str) -> Entry:
    message = apis.without_reasoning(entry.message)
    if message is entry.message:
        return entry
    shown = apis.without_reasoning(entry.shown)
    return replace(entry, message=message, shown=shown, tokens=counted(shown, tokens))
