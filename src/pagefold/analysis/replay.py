"""Replays a recorded session under a policy: what it would have sent, the cost with prompt caching, and the misses.

The policy sees one message at a time, in order. Its own accounting is not used: tokens are counted here, and the cached
prefix is found here, by comparing each request with the one before.
"""

import re
from collections.abc import Iterator
from copy import deepcopy
from dataclasses import dataclass
from typing import Any, NamedTuple, Self

from pagefold.analysis.demand import demands
from pagefold.analysis.replay_figures import ReplayFigures, ToolFigures
from pagefold.derive.cost import Prices
from pagefold.derive.policy import Derived, Notes, Policy
from pagefold.derive.runner import Run, as_it_is, begin
from pagefold.log import Log
from pagefold.tokens import FRAME, Counter
from pagefold.wire import json_text
from pagefold.wire.message import BlockKind, Message, Role
from pagefold.wire.transcripts import Session

# Line numbers that agents put before the lines of a file; without them a line is the same wherever it stands.
_NUMBERING = re.compile(r"^[ \t]*\d+(?:→|\t|:|\|) ?", re.MULTILINE)


_HELD = ("history_tokens", "result_tokens", "result_chars", "repeated_chars")


class RequestSize(NamedTuple):
    """One request in counted tokens of its messages, without the head: all of it, what stands as it stood in the
    request before, and what would have to be fetched again: the answer used it and the request did not hold it.

    `edits_gone` of its edits replace a text that the request did not hold, and `written_again` is what would then have
    to be written again by the model."""

    turn: int
    prompt: int
    kept: int
    again: int = 0
    edits_gone: int = 0
    written_again: int = 0


@dataclass(frozen=True, slots=True)
class Terms:
    """The policy that a session is replayed under, and how its requests are counted and priced."""

    policy: Policy
    prices: Prices
    counter: Counter
    window: int = 0
    head: int = 0  # tokens before all messages that the recording lacks: system prompt and tool schemas


def replay(session: Session, terms: Terms, *, held: ReplayFigures | None = None) -> ReplayFigures:
    """Returns the figures of a whole session. For `held` see `SessionReplay`."""
    run = SessionReplay(session, terms, held=held)
    return run.whole().figures


class SessionReplay:
    """One session under one policy. Iterating gives every request as (turn, Derived); `figures` fill up meanwhile, by
    those that were asked in this session and not in one that it copies (`Session.since`)."""

    def __init__(self, session: Session, terms: Terms, *, held: ReplayFigures | None = None) -> None:
        """`held` are the figures of another replay of this session: what no policy changes is taken from them."""
        self.session, self.terms = session, terms
        self.figures = ReplayFigures(sessions=1, head_tokens=sum(map(terms.counter.count, session.head)))
        self._look = held is None
        if held is not None:
            self.figures.add(ReplayFigures(tools=deepcopy(held.tools), **{name: getattr(held, name) for name in _HELD}))
        # An oracle is shown the whole recording; every other policy sees it message by message.
        policy: Any = terms.policy
        self._policy: Policy = policy.foreseeing(session.messages) if policy.abilities.foresees else policy
        self._tokens: dict[int, tuple[Message, int]] = {}
        self._total = 0
        self._recorded = terms.head
        self._cold = frozenset(expired(session, terms.prices.life))
        self._exact = True
        self._requests: list[tuple[Derived, int]] = []
        self.sizes: list[RequestSize] = []
        self._results: set[str] = set()
        self._lines: set[str] = set()

    def whole(self) -> Self:
        """Replays the whole session, and returns itself."""
        for _ in self:
            pass
        return self

    def __iter__(self) -> Iterator[tuple[int, Derived]]:
        run: Run[Message] = begin(self._policy, self.terms.head, every_message_is_an_answer=True)
        for turn, message in enumerate(self.session.messages):
            if run.is_answered_by(message):
                if self._look:
                    self.figures.history_tokens = self._recorded
                run = run.ask(Notes(cold=turn in self._cold), as_it_is)
                assert run.asked is not None
                self._request(turn, run.sent, run.asked.derived)
                yield turn, run.asked.derived
            elif self._look:
                self._arrived(message, self.figures if turn >= self.session.since else ReplayFigures())
            if self._look:
                self._recorded += self.count(message)
            run = run.step(message)
        if not self._exact:
            self._misses()

    def _request(self, turn: int, sent: Log[Message], derived: Derived) -> None:
        """Counts one request. `sent` is the one before it."""
        figures, prices = self.figures, self.terms.prices
        old = sent.since(derived.keep)
        common = 0
        for before, now in zip(old, derived.append, strict=False):
            if before.raw != now.raw:
                break
            common += 1
        lost = sum(map(self.count, old[common:]))
        added = sum(map(self.count, derived.append[common:]))
        cached, self._total = self._total - lost, self._total - lost + added
        warm = bool(self._requests)
        self._requests.append((derived, self._total + self.terms.head))
        # A request that is the recorded history itself holds all it could be asked for.
        self._exact = self._exact and self._is_history(turn, derived)
        if turn < self.session.since:
            return
        self.sizes.append(RequestSize(turn, self._total, cached))
        cold = turn in self._cold
        figures.expired += cold
        figures.moved += not cold and common < len(old)
        head = self.terms.head
        total = self._total + head
        cached = 0 if cold else cached + (head if warm else 0)
        figures.new_tokens += added + (0 if warm else head)
        figures.requests += 1
        figures.tokens += total
        figures.cached_tokens += cached
        figures.written_tokens += total - cached
        figures.cost += prices.cost(cached, total - cached)
        figures.peak = max(figures.peak, total)
        figures.over += bool(self.terms.window) and total > self.terms.window
        if not figures.logged_windows:
            figures.logged_windows = self.session.windows
        if usage := self.session.usage.get(turn):
            figures.logged_requests += 1
            figures.add(ReplayFigures(logged=usage))
            prompt_usd, output_usd = prices.billed(usage)
            figures.logged_prompt_usd += prompt_usd
            figures.logged_output_usd += output_usd

    def _is_history(self, turn: int, derived: Derived) -> bool:
        if derived.keep + len(derived.append) != turn:
            return False
        return all(a is b for a, b in zip(self.session.messages[derived.keep : turn], derived.append, strict=True))

    @property
    def requests(self) -> list[Derived]:
        """All requests so far, those of a session that this one copies too."""
        return [derived for derived, _ in self._requests]

    @property
    def prompt(self) -> int:
        """Tokens of the last request."""
        return self._total + self.terms.head

    def count(self, message: Message) -> int:
        """Counted once. The message is held so that its id stays its own."""
        counted = self._tokens.get(id(message))
        if counted is None:
            counted = self._tokens[id(message)] = (message, self.terms.counter.count(message.text) + FRAME)
        return counted[1]

    def _arrived(self, message: Message, figures: ReplayFigures) -> None:
        """What a tool result adds to the figures, the first time it is there."""
        for block in message.blocks:
            if block.kind is not BlockKind.RESULT:
                continue
            whole = len(message.blocks) == 1
            tokens = self.count(message) - FRAME if whole else self.terms.counter.count(block.text)
            tool = figures.tools.setdefault(block.name or "unnamed", ToolFigures())
            tool.results += 1
            tool.tokens += tokens
            if block.text and block.text in self._results:
                tool.repeated_results += 1
                tool.repeated_tokens += tokens
            self._results.add(block.text)
            figures.result_tokens += tokens
            lines = _NUMBERING.sub("", block.text).split("\n")
            figures.result_chars += sum(map(len, lines))
            figures.repeated_chars += sum(len(line) for line in lines if line in self._lines)
            self._lines.update(lines)

    def _misses(self) -> None:
        """Looked for only where a request was not the history itself: finding facts takes long."""
        figures, requests = self.figures, self._requests
        needs = demands(self.session, (derived for derived, _ in requests), self.count)
        copied = len(requests) - len(self.sizes)
        for number, (needed, (_, total)) in enumerate(zip(needs, requests, strict=True), -copied):
            if number < 0:
                continue
            self.sizes[number] = self.sizes[number]._replace(again=needed.again)
            figures.demanded += needed.demanded
            figures.missed += needed.missed
            figures.missed_turns += needed.missed > 0
            if needed.missed:
                figures.penalty += self.terms.prices.cost(total, needed.again)


def expired(session: Session, life: float) -> Iterator[int]:
    """The turns at which the provider's cache had expired. Without recorded times it never has."""
    asked: float | None = None
    for turn, message in enumerate(session.messages):
        if message.role is Role.ASSISTANT and session.times and life:
            if asked is not None and session.times[turn] - asked > life:
                yield turn
            asked = session.times[turn]


def emitted(session: Session, turn: int, derived: Derived) -> str:
    """One request as the scorer reads it: what stands of the one before, and what follows, message by message."""
    append = ",".join(message.raw for message in derived.append)
    return f'{{"session":{json_text.dumps(session.id)},"turn":{turn},"keep":{derived.keep},"append":[{append}]}}\n'
