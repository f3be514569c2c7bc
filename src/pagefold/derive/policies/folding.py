"""What folding policies share: the log of a history, what stands for its beginning, and the request as a difference.

A policy says when something is to change and what then stands; everything here is the same for all of them. Histories
are repaired on their way in, so every request holds whole pairs. What is pinned is said once and stays.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field, replace
from typing import ClassVar

from pagefold.derive.bound_reasoning import common, unbound
from pagefold.derive.cost import ASSUMED, Prices
from pagefold.derive.entry import Entry, Standings, as_it_came, counted, enter, label_of, result_label, with_call
from pagefold.derive.fold import Folded, Frame, Rule, fold
from pagefold.derive.pairing import Paired, Pairing, add_message, settle_open_calls
from pagefold.derive.policy import NOTHING, Abilities, Decision, Decisions, Derived, Notes
from pagefold.derive.values import SHIPPED
from pagefold.frozen import frozen
from pagefold.log import Log
from pagefold.pages import context_calls
from pagefold.pages.context_tools import RESET, SERVERS, own_name
from pagefold.pages.files.own_tools import OwnTools
from pagefold.pages.journal import Boundary
from pagefold.pages.page import Page, PageId
from pagefold.pages.pins import Pins
from pagefold.pages.producers import PinnedItem, constraints_in
from pagefold.tokens import Counter, counter
from pagefold.wire.message import BlockKind, Message, Role, arguments_of, user_text

_RESET = "the agent reset its context"
_DENSE = 2  # characters of a token, at least
_SMALLER = 0.7  # of what stands, where the provider found it too long
_ANSWER = 4_096  # tokens kept free for the answer
_MARGIN, _MARGIN_ESTIMATED = 0.01, 0.07
_RATE = 1e-4  # the least worth of a token in a digest whose length is set by a budget


@frozen
class State:
    """`front` stands for the first `folded` entries of the log; `sent` of them have been sent."""

    log: Log[Entry] = field(default_factory=Log)
    pairing: Pairing = field(default_factory=Pairing)
    standings: Standings = field(default_factory=Standings)
    front: tuple[Message, ...] = ()
    folded: int = 0
    sent: int = 0
    tokens: int = 0  # of all that stands, waiting messages and the head included
    head: int = 0
    turn: int = 0
    pins: Pins = field(default_factory=Pins)
    recalled: frozenset[PageId] = frozenset()
    told: tuple[Decision, ...] = ()  # repairs that no request has told yet
    last: Folded | None = None


@dataclass(frozen=True, slots=True)
class Folding:
    """A policy says, by `due`, what is to stand now and why; None where the request only grows.

    `instructions` are files by name and text: each of their sections is a constraint, said in the first request.
    `file_tools` are the user's own tools that show and change files. `binds_reasoning`: the model refuses reasoning
    behind anything else than what it was made behind, so that a fold leaves out that of the messages it keeps.
    `context_servers` are the MCP servers that offer context tools, as clients name them.
    """

    window: int = 200_000
    prices: Prices = ASSUMED
    tokens: str = "o200k"
    instructions: tuple[tuple[str, str], ...] = field(default=(), kw_only=True)
    file_tools: OwnTools = field(default=(), kw_only=True)
    binds_reasoning: bool = field(default=True, kw_only=True)
    context_servers: tuple[str, ...] = field(default=SERVERS, kw_only=True)

    abilities: ClassVar[Abilities] = Abilities(
        folds=True, pins=True, shows_files=True, unbinds=True, spares=True, foretells=True
    )
    lossless: ClassVar[bool] = False
    """Whether results enter in their cheapest lossless form, or as they came."""
    destroys: ClassVar[Boundary] = Boundary.COMPACTION
    """What a fold of this policy is to whatever has to outlive the window."""

    @property
    def name(self) -> str:
        raise NotImplementedError

    def due(self, state: State, notes: Notes, usable: int) -> tuple[str, Folded | None]:
        """What is to stand now, and why; None where the request only grows. `usable` is what it may cost."""
        raise NotImplementedError

    def admitted(self, state: State, notes: Notes, usable: int) -> tuple[State, tuple[Page, ...]]:
        """The state with what has just arrived as it is let in, and pages that are recalled by it. As it came."""
        return state, ()

    def grown(self, state: State, reason: str) -> State:
        """The state after a request that only grew. `reason` is why a fold was looked at and left."""
        return state

    def refolded(self, state: State, made: Folded) -> State:
        """The state after a fold."""
        return state

    def begin(self, head: int = 0) -> State:
        return State(head=head, tokens=head, pins=instructed(self.instructions))

    def step(self, state: State, message: Message) -> State:
        return self._entered(state, add_message(state.pairing, message))

    def pin(self, state: State, *held: PinnedItem) -> State:
        """The state in which these are held: they are said now, once, and stay whatever is folded."""
        pins = state.pins.holding(*held)
        return state if pins == state.pins else replace(self.step(state, user_text(pins.block)), pins=pins)

    def request(self, state: State, notes: Notes = NOTHING) -> tuple[State, Derived]:
        if state.pairing.waits:
            state = self._entered(state, settle_open_calls(state.pairing))
        if self.instructions and not state.sent:
            state = self._said(state)
        if notes.recalled:
            state = replace(state, recalled=state.recalled | frozenset(notes.recalled))
        asked = reset_asked(state.log, state.sent, self.context_servers)
        pages, usable = tuple[Page, ...](), self.usable(state, notes)
        if asked is None and notes.unstored and state.tokens <= usable:
            reason, made = "", None
        elif asked is None:
            came = state
            state, pages = self.admitted(state, notes, usable)
            reason, made = self.due(state, notes, usable if state is came else self.usable(state, notes))
        else:
            reason, made = _RESET, self.folded_by(state, usable, Rule(asked, budget=0), state.last)
        told, state = state.told, replace(state, told=()) if state.told else state
        if made is None:
            waiting = tuple([entry.shown for entry in state.log.since(state.sent)])
            keep = len(state.front) + state.sent - state.folded
            sent = self.grown(replace(state, sent=state.log.length), reason)
            return sent, Derived(keep, waiting, pages=pages, decisions=told)
        before = [*state.front, *(entry.shown for entry in state.log[state.folded : state.sent])]
        made, bare = unbound(made, before, self.tokens) if self.binds_reasoning else (made, 0)
        after = replace(
            state,
            log=made.log,
            standings=made.standings,
            front=made.front,
            folded=made.cut,
            sent=len(made.log),
            tokens=made.tokens,
            recalled=frozenset(),
            last=replace(made, pages=(), decisions=()),  # nobody asks the last fold for them
        )
        now = [*after.front, *(entry.shown for entry in after.log[after.folded :])]
        same, unfolded = common(before, now), before or [entry.shown for entry in state.log]
        moved = reason if common(unfolded, now) < len(unfolded) else ""
        return self.refolded(after, made), Derived(
            same,
            tuple(now[same:]),
            moved,
            made.pages,
            Decisions(lambda: (*told, *made.decisions)),
            made.short,
            None if not moved else self.destroys if asked is None else Boundary.RESET,
            state.pins,
            bare,
        )

    def _said(self, state: State) -> State:
        """The state in which what is held is said, unless it was."""
        block = state.pins.block
        said = not block or any(entry.message.text == block for entry in state.log)
        return state if said else self.step(state, user_text(block))

    def may_fold(self, state: State, characters: int) -> bool:
        """Whether the request after so many more characters may be a fold; guessed, so that it can be made aside."""
        return state.tokens + at_most(characters) > usable_of(self.window, counter(self.tokens))

    def usable(self, state: State, notes: Notes) -> int:
        usable = usable_of(self.window, counter(self.tokens))
        return min(usable, int(state.tokens * _SMALLER)) if notes.smaller else usable

    def folded_by(self, state: State, usable: int, rule: Rule, last: Folded | None = None) -> Folded:
        """What stands after a fold by this rule."""
        frame = Frame(usable, state.head, _RATE, self.tokens, SHIPPED, state.pins.block, state.recalled)
        frame = replace(frame, file_tools=self.file_tools)
        return fold(state.log, state.turn, state.standings, frame, last, replace(rule, plain=not self.lossless))

    def _entered(self, state: State, found: Paired) -> State:
        if found.decisions or not found.messages:
            state = replace(state, pairing=found.pairing, told=(*state.told, *found.decisions))
        for message in found.messages:
            standings, entry = self.entry(state, message)
            state = replace(
                state,
                log=state.log.with_items((entry,)),
                pairing=found.pairing,
                standings=standings,
                tokens=state.tokens + entry.tokens,
                turn=state.turn + (message.role is Role.ASSISTANT),
                pins=context_calls.step(state.pins, message, self.context_servers),
            )
        return state

    def entry(self, state: State, message: Message) -> tuple[Standings, Entry]:
        if self.lossless:
            return enter(state.standings, message, state.turn, self.tokens)
        calls = _calls(state.standings.calls, message)
        labels = tuple([result_label(block, calls) for block in message.blocks if block.kind is BlockKind.RESULT])
        shown = as_it_came(message)
        entry = Entry(message, shown, counted(shown, self.tokens), state.turn, labels)
        return Standings(state.standings.ledger, calls), entry


def at_most(characters: int) -> int:
    """How many tokens so many characters are at the most, in most texts."""
    return characters // _DENSE


def usable_of(window: int, counts: Counter) -> int:
    """The input budget: the window without room for the answer, and without a margin where tokens are estimated."""
    return window - min(_ANSWER, window // 8) - int(window * (_MARGIN if counts.exact else _MARGIN_ESTIMATED))


def instructed(instructions: Sequence[tuple[str, str]]) -> Pins:
    """The pins before the first message: every section of every file."""
    return Pins().holding(*(section for file, text in instructions for section in constraints_in(text, file)))


def reset_asked(log: Log[Entry], since: int, servers: Collection[str] = SERVERS) -> int | None:
    """The place, from `since` on, of the last call of `context_reset` with a summary: the next request begins there.

    The call and its result stay where they are, so the summary stands for what came before it. Never a mark in a text.
    """
    for place in range(log.length - 1, max(since, 1) - 1, -1):
        for block in log[place].message.blocks:
            if block.kind is BlockKind.CALL and own_name(block.name, servers) == RESET.name:
                summary = arguments_of(block).get("summary")
                if isinstance(summary, str) and summary.strip():
                    while place > since and log[place].own and log[place - 1].own:
                        place -= 1  # noqa: PLW2901
                    return place
    return None


def boundary(log: Log[Entry], place: int) -> int:
    """The last place, up to this one, where a request may be cut: no pair is parted there."""
    while 0 < place < len(log) and not (log[place].opens and not (log[place].own and log[place - 1].own)):
        place -= 1
    return max(0, place)


def _calls(calls: tuple[tuple[str, str], ...], message: Message) -> tuple[tuple[str, str], ...]:
    for block in message.blocks:
        if block.kind is BlockKind.CALL:
            calls = with_call(calls, block.call_id, label_of(block))
    return calls
