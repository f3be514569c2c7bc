"""Finds where a provider could not read its cache as far as it might have: when, who broke it, and what that cost.

Some clients log why, as the provider said it (`diagnostics.cache_miss_reason`: what differs first from the request
before). Where nothing is said, a loss shows in the reported usage: less was read than the request before had left in
the cache. What can be told of the reason then is told, and the rest is not known. A loss costs what its tokens cost
more in being written than in being read.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

from pagefold.analysis.replay import expired
from pagefold.derive.cost import Prices
from pagefold.wire.message import Usage
from pagefold.wire.transcripts import Session

_READ = 0.9  # of what is cached; providers round down to their blocks, and a client may mark less
_LEAST = 1_024  # tokens; less is not cached at all
_SHORTER = 0.9  # of the prompt before

IDLE, CLEARED, SHORTER, UNKNOWN = "idle", "cleared", "shorter", "unknown"
_NOT_TOLD = ("previous_message_not_found", "unavailable")
_FOLDS_TOO = ("messages_changed", SHORTER)

_WHO_AND_WHAT = {
    "model_changed": ("you, or the client", "another model, or another speed"),
    "system_changed": ("the client", "the system prompt"),
    "tools_changed": ("the client", "the tools: added, removed or in another order"),
    "messages_changed": ("the client", "earlier messages: a compaction, a rewind or an edit"),
    "previous_message_not_found": ("the provider", "it no longer had the request before"),
    "unavailable": ("not known", "nothing known, or a setting such as thinking or tool choice"),
    IDLE: ("nobody: a pause", "nothing was sent for longer than the cache lives"),
    CLEARED: ("the client", "results that the provider cleared, as the client asked"),
    SHORTER: ("the client", "a shorter history: a compaction or a rewind"),
    UNKNOWN: ("not known", "the provider dropped it, or something at the front had changed"),
}


class CacheLoss(NamedTuple):
    """One request. `when` is in seconds since 1970, or 0 where nobody recorded it; `cost` in fresh input tokens."""

    when: float
    session: str
    reason: str
    tokens: int
    cost: float


@dataclass(slots=True)
class CacheLosses:
    """How often, in how many sessions, and what it cost in fresh input tokens."""

    times: int = 0
    sessions: int = 0
    tokens: int = 0
    cost: float = 0.0

    def add(self, other: "CacheLosses") -> None:
        self.times += other.times
        self.sessions += other.sessions
        self.tokens += other.tokens
        self.cost += other.cost


def cache_losses_of(session: Session, prices: Prices) -> list[CacheLoss]:
    """Returns the losses of a session, in order."""
    return list(_losses(session, prices))


def by_reason(losses: list[CacheLoss]) -> dict[str, CacheLosses]:
    """The losses of one session, added up."""
    found: dict[str, CacheLosses] = {}
    for loss in losses:
        found.setdefault(loss.reason, CacheLosses(sessions=1)).add(CacheLosses(1, 0, loss.tokens, loss.cost))
    return found


def who_and_what(reason: str, *, behind: bool = False) -> tuple[str, str]:
    """Who broke the cache and what changed, in words; a provider's reason that is not known, as it is. `behind`: some
    sessions ran behind pagefold, which may have folded them."""
    who, what = _WHO_AND_WHAT.get(reason, ("not known", reason))
    return (f"{who}, or a fold", f"{what}, or a fold") if behind and reason in _FOLDS_TOO else (who, what)


def _losses(session: Session, prices: Prices) -> Iterator[CacheLoss]:
    cold, before = frozenset(expired(session, prices.life)), None
    for place in sorted({*session.usage, *session.cache_misses}):
        usage, told = session.usage.get(place), session.cache_misses.get(place)
        lost = _lost(before, usage, prices) if usage else 0
        reason = told.reason if told else ""
        if told and (not lost or reason not in _NOT_TOLD):
            lost = told.tokens if usage is None else min(told.tokens, usage.fresh + usage.cache_write)
        if lost and reason in ("", *_NOT_TOLD):
            reason = _seen(before, usage, idle=place in cold) or reason or UNKNOWN
        before = usage or before
        if reason:
            prompt = usage.prompt if usage else lost
            cost = prices.cost(prompt - lost, lost) - prices.cost(prompt, 0)
            when = session.began + session.times[place] if session.began and session.times else 0.0
            yield CacheLoss(when, session.id, reason, lost, cost)


def _lost(before: Usage | None, usage: Usage, prices: Prices) -> int:
    """The tokens that were in the cache after the request before and were not read; 0 where about all were."""
    if before is None:
        return 0
    cached = before.cache_read + before.cache_write
    if not before.cache_write and prices.write <= prices.fresh:
        cached = before.prompt  # all of it is cached, and no write is reported
    held = min(cached, usage.prompt)
    lost = held - usage.cache_read
    return lost if lost >= _LEAST and usage.cache_read < _READ * held else 0


def _seen(before: Usage | None, usage: Usage | None, *, idle: bool) -> str:
    """What the figures alone say of the reason, or ""."""
    if idle:
        return IDLE
    if usage is None or before is None:
        return ""
    if usage.cleared:
        return CLEARED
    return SHORTER if usage.prompt < _SHORTER * before.prompt else ""
