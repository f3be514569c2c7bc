"""economic: lossless on arrival; folds when the window forces it, when it pays for itself, or when the cache is cold.

A token that is kept is written once and read at every turn until the next fold; a fact that is missed costs a round
trip and the page again. Lines stay as long as the second, by the probability that they are needed, outweighs the first.
A fold pays when the reads it saves over the turns that are still expected outweigh the rewrite, and it is due when as
much has been spent on reading what it would leave out as it costs: so a session that ends early loses little.
"""

from dataclasses import dataclass, field, replace

from pagefold.derive.arrival import Standings
from pagefold.derive.cost import TABLES, Prices
from pagefold.derive.entry import Entry, enter, text_message
from pagefold.derive.fold import Folded, Frame, fold
from pagefold.derive.learned import AS_IT_COMES, FOLDS, Folds, Forms
from pagefold.derive.log import Log
from pagefold.derive.pairing import Paired, Pairing, paired, settled
from pagefold.derive.policy import NOTHING, Decision, Derived, Notes
from pagefold.derive.remaining import SHIPPED as LASTING
from pagefold.derive.remaining import Lasting
from pagefold.derive.values import SHIPPED, Priors
from pagefold.pages import context_calls
from pagefold.pages.page import PageId
from pagefold.pages.pins import Pins
from pagefold.pages.producers import Held
from pagefold.tokens import Counter, counter
from pagefold.wire.message import Message, Role

_WORTH = 0.85  # a fold on a cold cache leaves at most this share
_GROWN = 1.1
_ANSWER = 4_096  # tokens kept free for the answer
_MARGIN, _MARGIN_ESTIMATED = 0.01, 0.07
_PREFIXES = ("", "mcp__pagefold__")
_SMALLER = 0.7  # of what stands, where the provider found it too long


@dataclass(frozen=True, slots=True)
class State:
    """`log` is the whole history; `front` stands for its first `folded` entries since the last fold."""

    log: Log[Entry] = field(default_factory=Log)
    pairing: Pairing = field(default_factory=Pairing)
    standings: Standings = field(default_factory=Standings)
    front: tuple[Message, ...] = ()
    folded: int = 0
    sent: int = 0  # entries of the log that have been sent
    tokens: int = 0  # of all that stands, waiting messages and the head included
    head: int = 0
    turn: int = 0
    rent: float = 0.0  # paid, since the last fold, for reading what a fold would have left out
    left: int = 0  # what the last fold left
    looked: int = 0  # the size at which a fold was last found not to pay
    pins: Pins = field(default_factory=Pins)
    recalled: frozenset[PageId] = frozenset()
    told: tuple[Decision, ...] = ()  # repairs that no request has told yet
    last: Folded | None = None


@dataclass(frozen=True, slots=True)
class Economic:
    window: int = 200_000
    prices: Prices = TABLES["anthropic"]
    priors: Priors = SHIPPED
    lasting: Lasting = LASTING
    tokens: str = "o200k"
    name: str = "economic"
    folds: Folds = FOLDS
    forms: Forms = AS_IT_COMES

    def begin(self, head: int = 0) -> State:
        return State(head=head, tokens=head)

    def step(self, state: State, message: Message) -> State:
        return self._entered(state, paired(state.pairing, message))

    def pin(self, state: State, held: Held) -> State:
        """The state in which this is held: it is said now, and stays whatever is folded."""
        pins = state.pins.holding(held)
        return state if pins == state.pins else replace(self.step(state, text_message(pins.block)), pins=pins)

    def request(self, state: State, notes: Notes = NOTHING) -> tuple[State, Derived]:
        if state.pairing.waits:
            state = self._entered(state, settled(state.pairing))
        state = replace(state, recalled=state.recalled | frozenset(notes.recalled)) if notes.recalled else state
        told, state = state.told, replace(state, told=()) if state.told else state
        looked, reason, made = self._fold(state, notes)
        if made is None:
            over = state.tokens - (state.left or state.tokens // 2)
            rent = state.rent + self.prices.read_ratio * max(0, over)
            waiting = tuple(entry.shown for entry in state.log.part(state.sent))
            sent = replace(state, sent=len(state.log), rent=rent, looked=looked)
            return sent, Derived(len(state.front) + state.sent - state.folded, waiting, decisions=told)
        after = self._after(state, made)
        before = [*state.front, *(entry.shown for entry in state.log.part(state.folded, state.sent))]
        now = [*after.front, *(entry.shown for entry in after.log.part(after.folded))]
        same = 0
        while same < min(len(before), len(now)) and before[same].raw == now[same].raw:
            same += 1
        return after, Derived(same, tuple(now[same:]), reason, made.pages, (*told, *made.decisions), made.short)

    def _entered(self, state: State, found: Paired) -> State:
        """The state after what the pairing lets through."""
        for message in found.messages:
            standings, entry = enter(state.standings, message, state.turn, self.tokens, self.forms)
            state = replace(
                state,
                log=state.log.with_item(entry),
                pairing=found.pairing,
                standings=standings,
                tokens=state.tokens + entry.tokens,
                turn=state.turn + (message.role is Role.ASSISTANT),
                pins=_pinned(state.pins, message),
            )
        if found.messages and not found.decisions:
            return state
        return replace(state, pairing=found.pairing, told=(*state.told, *found.decisions))

    def _fold(self, state: State, notes: Notes) -> tuple[int, str, Folded | None]:
        """Whether a fold is due, why, and what comes of it; and the size at which that was last looked at."""
        usable = usable_of(self.window, counter(self.tokens))
        if notes.smaller:
            usable = min(usable, int(state.tokens * _SMALLER))
        if state.tokens > usable:
            return 0, "the window is full", self._folded(state, usable)
        if notes.cold and state.tokens >= self.folds.cold:
            made = self._folded(state, usable)
            if made.tokens <= _WORTH * state.tokens:
                return 0, "the cache was cold", made
        elif self._due(state):
            made = self._folded(state, usable)
            if self._pays(state, made):
                return 0, "it pays for itself", made
            return state.tokens, "", None
        return state.looked, "", None

    def _folded(self, state: State, usable: int) -> Folded:
        frame = Frame(usable, state.head, self._rate(state), self.tokens, self.priors, state.pins.block, state.recalled)
        frame = replace(frame, forms=self.forms, foreseen=self._foreseen(state))
        return fold(state.log, state.turn, state.standings, frame, state.last)

    def _foreseen(self, state: State) -> frozenset[str]:
        """Facts that are known to be needed: none, unless a recording is looked ahead in."""
        return frozenset()

    def _after(self, state: State, made: Folded) -> State:
        return replace(
            state,
            log=made.log,
            standings=made.standings,
            front=made.front,
            folded=made.cut,
            sent=len(made.log),
            tokens=made.tokens,
            rent=0.0,
            left=made.tokens,
            looked=0,
            recalled=frozenset(),
            last=made,
        )

    def _due(self, state: State) -> bool:
        """Whether the rent paid since the last fold would have bought another one."""
        if state.tokens < max(self.folds.least, state.looked * _GROWN):
            return False
        left = state.left or state.tokens // 2
        return state.rent >= self.folds.rent * (self.prices.write_ratio - self.prices.read_ratio) * left

    def _pays(self, state: State, made: Folded) -> bool:
        turns = self.lasting.turns(state.turn)
        saved = self.prices.read_ratio * turns * (state.tokens - made.tokens)
        return saved > (self.prices.write_ratio - self.prices.read_ratio) * made.tokens

    def _rate(self, state: State) -> float:
        """The least worth of a token that is kept: what writing and reading it costs, in misses."""
        turns = min(self.folds.horizon, self.lasting.turns(state.turn))
        return (self.prices.write_ratio + self.prices.read_ratio * turns) / self.folds.miss


def usable_of(window: int, counts: Counter) -> int:
    """The input budget: the window without room for the answer, and without a margin where tokens are estimated."""
    return window - min(_ANSWER, window // 8) - int(window * (_MARGIN if counts.exact else _MARGIN_ESTIMATED))


def _pinned(pins: Pins, message: Message) -> Pins:
    """The pins after a message: the agent may hold something by its own tools, under their own name or by MCP."""
    for prefix in _PREFIXES:
        pins = context_calls.step(pins, message, prefix=prefix)
    return pins
