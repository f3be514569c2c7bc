"""Derives the request that goes upstream from the history that a client sends, by a policy.

Deriving is a function of the history alone: `derive.runner` shows the policy every message and asks it before every
answer. `Derivations` remembers the run of each history under its prefix hash, so that a new turn costs its new
messages; without that memory the same bytes come out. What a derivation needs saved is part of the derivation.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, NamedTuple, cast

from pagefold.derive.notebook import SavedFold
from pagefold.derive.pinned_policy import PinnedPolicy
from pagefold.derive.policy import NOTHING, Notes, Policy
from pagefold.derive.runner import NOTHING_UNSAVED, Run, begin, replay_messages
from pagefold.log import Log
from pagefold.model_proxy.derivation import (
    NOTHING_BOUND,
    Acceptance,
    Derivation,
    Sent,
    derivation_of,
    derived_by,
    sent_as,
)
from pagefold.model_proxy.history_memory import HistoryMemory, RememberedHistory
from pagefold.model_proxy.resuming import NewestFold, first_answer, goes_on_from, run_after
from pagefold.pages.files.own_tools import OwnTools
from pagefold.wire.message import Message

_FOLDING, _PLAIN = 18, 8  # bytes that a run takes for each character of its request, as measured


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
    `saved_fold` returns the newest fold that was saved of a history, by the prefix hash of its first answer and what it
    began with.
    """

    def __init__(
        self,
        policy: Policy,
        *,
        noted: Callable[[bytes], Notes] = lambda prefix_hash: NOTHING,
        shown: Callable[[Message], Message] = lambda message: message,
        memory: HistoryMemory | None = None,
        saved_fold: Callable[[bytes, PinnedPolicy], SavedFold | None] = lambda answered, policy: None,
    ) -> None:
        self.policy = policy
        self._noted, self._shown, self._memory = noted, shown, HistoryMemory() if memory is None else memory
        self._saved_fold, self._resumes = saved_fold, policy.abilities.resumes
        self._cached: dict[bytes, _Cached] = {}
        self._growth = _FOLDING if policy.abilities.folds else _PLAIN

    @property
    def file_tools(self) -> OwnTools:
        """The user's own tools that show and change files, where the policy shows files."""
        policy: Any = self.policy
        return cast("OwnTools", policy.file_tools) if policy.abilities.shows_files else ()

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

    def may_fold(self, nearest: Nearest | None, decided: Callable[[bytes], Notes | None]) -> bool:
        """Whether the next request of a history that is known may be a fold, which takes long. `decided` says what was
        decided at a request."""
        policy: Any = self.policy
        if nearest is None or nearest.cached is None or not policy.abilities.foretells:
            return False
        run, notes = nearest.cached.run, decided(nearest.hashes[-1]) or NOTHING
        return notes.cold or policy.may_fold(run.asked.state if run.asked is not None else run.state, nearest.fresh)

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
            again = derivation_of(last.sent, messages, acceptance, reason=last.reason, unsaved=last.unsaved)
            return self._remember(hashes, cached, again)
        before, fold = cached.derivation if cached else None, None
        history = RememberedHistory(self._cached)
        if cached is not None and cached.history.keys[-1:] == [hashes[start - 1]]:  # no fork of it
            history = cached.history

        def ask(place: int, at: Run[Sent]) -> Run[Sent]:
            """Asks as it was asked when the history was no longer than this, and remembers that for forks."""
            nonlocal before, fold
            made, upto = messages.upto(place), hashes.upto(place)
            asked = at.ask(self._noted(upto[-1]) if place else NOTHING, partial(sent_as, messages=made))
            before = derivation = derived_by(asked, made, acceptance, before)
            fold = self._fold(asked, derivation, upto, head) or fold
            entry = _Cached(head, asked, derivation, history)
            self._remember(upto, entry, derivation)
            return entry.run

        run = cached.run if cached is not None else begin(self.policy, head)
        if cached is None and (resumed := self._resumed(messages, hashes, head, acceptance)) is not None:
            run, before = resumed
            start = before.over.length
        run = replay_messages(run, self._as_read(messages, start), start, ask)
        if notes is NOTHING and hashes.length:
            notes = self._noted(hashes[-1])
        asked = run.ask(notes, partial(sent_as, messages=messages))
        derivation = derived_by(asked, messages, acceptance, before)
        self._remember(hashes, _Cached(head, asked, derivation, history), derivation, characters * self._growth)
        fold = self._fold(asked, derivation, hashes, head) or fold
        return derivation if fold is None else replace(derivation, fold=fold)

    def _fold(self, run: Run[Sent], derivation: Derivation, hashes: Log[bytes], head: int) -> NewestFold | None:
        """The fold that a request is, if it is one that can be saved."""
        if not self._resumes or not derivation.reason or run.asked is None:
            return None
        answered, policy = first_answer(derivation.over, hashes), PinnedPolicy(self.policy, head)
        if answered is None:
            return None
        return NewestFold(answered, policy, hashes[-1], hashes.length, derivation.came_tokens, run.asked.state)

    def _resumed(
        self, messages: Log[Message], hashes: Log[bytes], head: int, acceptance: Acceptance
    ) -> tuple[Run[Sent], Derivation] | None:
        """The run of a history from its newest saved fold on, and the derivation of that."""
        answered = first_answer(messages, hashes) if self._resumes else None
        fold = self._saved_fold(answered, PinnedPolicy(self.policy, head)) if answered is not None else None
        if fold is None or not goes_on_from(fold, messages, hashes):
            return None
        made, base = messages.upto(fold.messages), acceptance.base
        run = run_after(fold, self.policy, head, self._as_read(made), partial(sent_as, messages=made))
        if run is None:
            return None
        before = Derivation(Log(), made, False, change=base, base=base, came_tokens=fold.came_tokens)
        return run, derivation_of(run.sent, made, acceptance, before)

    def _as_read(self, messages: Log[Message], start: int = 0) -> list[Message]:
        """The messages from a place on as the policy reads them."""
        return [self._placed(message, place) for place, message in enumerate(messages.since(start), start)]

    def again(
        self, messages: Log[Message], hashes: Log[bytes], notes: Notes, acceptance: Acceptance = NOTHING_BOUND
    ) -> Derivation | None:
        """The request derived last, derived anew with notes; None where that comes to the same."""
        cached = self._cached.get(hashes[-1]) if hashes else None
        if cached is None:
            return None
        asked = cached.run.ask(notes, partial(sent_as, messages=messages))
        derivation = derived_by(asked, messages, acceptance)
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
