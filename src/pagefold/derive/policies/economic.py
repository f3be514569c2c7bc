"""economic: lossless on arrival; folds when the window forces it, when it pays for itself, or when the cache is cold.

A result so large that a fold would leave about as much as stands is not folded for: it is trimmed to the room there is,
and nothing moves.

A token that is kept is written once and read at every turn until the next fold; a fact that is missed costs a round
trip and the page again. Lines stay as long as the second, by the probability that they are needed, outweighs the first.
A fold pays when the reads it saves over the turns that are still expected outweigh the rewrite, and it is due when as
much has been spent on reading what it would leave out as it costs. Nobody knows when a session ends, and one that ends
right after a fold has paid for nothing: so a fold that does not save far more than it costs may cost no more than a
small share of what the session has cost, and what earlier folds have saved. Where every token of a longer prompt is
dearer, a fold that keeps below that length may be cheaper than this request alone.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import ClassVar

from pagefold.derive.entry import Entry, Standings, again, enter
from pagefold.derive.fold import Folded, Frame, Rule, fold, front_of
from pagefold.derive.learned import AS_IT_COMES, FOLDS, Folds, Forms
from pagefold.derive.levels import TRIMMED, place_in_history
from pagefold.derive.moment import Moment, moment_of
from pagefold.derive.policies import folding, saved_fold
from pagefold.derive.policy import NOTHING, Abilities, Decision, Derived, Notes
from pagefold.derive.remaining import SHIPPED as LASTING
from pagefold.derive.remaining import TurnsLeft
from pagefold.derive.trim_tail import squeezed
from pagefold.derive.values import SHIPPED, Priors
from pagefold.derive.working_set.reading import WorkReading
from pagefold.errors import WireError
from pagefold.frozen import frozen
from pagefold.pages.exchanges import Work
from pagefold.pages.files.file_tools import file_tools
from pagefold.pages.kinds import ResidencyLevel
from pagefold.pages.page import Page
from pagefold.tokens import counter
from pagefold.wire import json_text
from pagefold.wire.json_text import as_object
from pagefold.wire.message import Message

_WORTH = 0.85  # a fold on a cold cache leaves at most this share
_GROWN = 1.1
_ADMITTED = 0.25  # of what has arrived, what has to find room beside what stands
_BOUGHT = 0.85  # of what stands: a fold that leaves more has bought nothing
_BEHIND = 8  # messages that may wait to be read for the next fold
_READ = 64  # messages that are read for it in one turn, where many wait
_STAKE = 0.08  # of what a session has cost: so much more than without folds a fold may make it cost
_SURE = 3.0  # times its cost: a fold that is expected to save so much may cost more than that
_LEFT = "a fold would not pay yet"
_NUMBERS = ("rent", "left", "looked", "settled", "whole", "spent", "unfolded")  # of a state
_PATIENCE = {Moment.NEW_ASK: 1.0, Moment.AT_WORK: 1.5, Moment.READ: 2.5}  # times the rent that makes a fold due


@frozen
class State(folding.State):
    rent: float = 0.0  # paid, since the last fold, for reading what a fold would have left out
    left: int = 0  # what the last fold left
    looked: int = 0  # the size at which a fold was last found not to pay
    settled: int = 0  # the size of the last request; before the first, of the head
    whole: int = 0  # the size of the last request, had nothing been folded
    spent: float = 0.0  # on prompts
    unfolded: float = 0.0  # what would have been spent on them, had nothing been folded
    stood: Standings = field(default_factory=Standings)  # what stood in the last request
    reading: WorkReading | None = None  # of what came since the last fold


@dataclass(frozen=True, slots=True)
class Economic(folding.Folding):
    priors: Priors = SHIPPED
    lasting: TurnsLeft = LASTING
    folds: Folds = FOLDS
    forms: Forms = AS_IT_COMES

    abilities: ClassVar[Abilities] = Abilities(
        folds=True, encodes=True, pins=True, shows_files=True, unbinds=True, spares=True, resumes=True, foretells=True
    )
    lossless: ClassVar[bool] = True

    @property
    def name(self) -> str:
        return "economic"

    def begin(self, head: int = 0) -> folding.State:
        return State(head=head, tokens=head, settled=head, pins=folding.instructed(self.instructions))

    def entry(self, state: folding.State, message: Message) -> tuple[Standings, Entry]:
        return enter(state.standings, message, state.turn, self.tokens, self.forms)

    def admitted(self, state: folding.State, notes: Notes, usable: int) -> tuple[folding.State, tuple[Page, ...]]:
        assert isinstance(state, State)
        if state.tokens <= usable or notes.cold:  # nothing that is cold can move
            return state, ()
        arrived = state.tokens - state.settled
        standing, room = state.settled - state.head, usable - state.head
        left_by_fold = arrived + front_of(room - arrived)
        if room - standing < _ADMITTED * arrived or left_by_fold < _BOUGHT * standing:
            return state, ()
        made = squeezed(state.log, state.sent, room - standing, state.stood, self._encode, self.tokens)
        if made.short:
            return state, ()
        told, tokens = list(state.told), state.tokens - arrived
        for place, entry in enumerate(made.log[state.sent :], state.sent):
            tokens += entry.tokens
            if place in made.trimmed:
                told.append(Decision(place_in_history(entry, place), ResidencyLevel.COMPRESSED, TRIMMED))
        return replace(state, log=made.log, standings=made.standings, tokens=tokens, told=tuple(told)), made.pages

    def _encode(self, standings: Standings, entry: Entry) -> tuple[Standings, Entry]:
        return again(standings, entry, self.tokens, self.forms)

    def request(self, state: folding.State, notes: Notes = NOTHING) -> tuple[folding.State, Derived]:
        made, derived = folding.Folding.request(self, state, notes)  # super() does not find a class with slots
        assert isinstance(state, State)
        assert isinstance(made, State)
        return self._charged(state, made, cold=notes.cold or not state.sent, moved=bool(derived.reason)), derived

    def _charged(self, before: State, after: State, *, cold: bool, moved: bool) -> State:
        """The state after a request, with what it has cost, and what it would have cost had nothing been folded."""
        arrived = before.tokens - before.settled
        cached = 0 if cold else before.head if moved else before.settled
        known = before.whole if before.sent else before.head
        return replace(
            after,
            settled=after.tokens,
            whole=known + arrived,
            spent=before.spent + self.prices.cost(cached, after.tokens - cached),
            unfolded=before.unfolded + self.prices.cost(0 if cold else known, arrived + (known if cold else 0)),
        )

    def due(self, state: folding.State, notes: Notes, usable: int) -> tuple[str, Folded | None]:
        assert isinstance(state, State)
        if state.tokens > usable:
            return "the window is full", self.folded_by(state, usable, Rule(), state.last)
        if notes.cold and state.tokens >= self.folds.cold:
            made = self.folded_by(state, usable, Rule(), state.last)
            if made.tokens <= _WORTH * state.tokens:
                return "the cache was cold", made
        elif (dearer := self._dearer(state)) or self._late(state):
            made = self.folded_by(state, self._below_tier(state, usable), Rule(), state.last)
            return ("it pays for itself", made) if self._pays(state, made, at_once=dearer) else (_LEFT, None)
        return "", None

    def may_fold(self, state: folding.State, characters: int) -> bool:
        assert isinstance(state, State)
        large = self._is_large(state, folding.at_most(characters))
        late = large and self._paid(state) >= _PATIENCE[Moment.NEW_ASK]
        return late or self._dearer(state) or folding.Folding.may_fold(self, state, characters)

    def folded_by(self, state: folding.State, usable: int, rule: Rule, last: Folded | None = None) -> Folded:
        assert isinstance(state, State)
        rate, pins = self._rate(state), state.pins.block
        frame = Frame(usable, state.head, rate, self.tokens, self.priors, pins, state.recalled)
        frame = replace(frame, forms=self.forms, foreseen=self.foreseen(state), file_tools=self.file_tools)
        return fold(state.log, state.turn, state.standings, frame, last, rule, state.reading)

    def foreseen(self, state: folding.State) -> frozenset[str]:
        """Facts that are known to be needed: none, unless a recording is looked ahead in."""
        return frozenset()

    def grown(self, state: folding.State, reason: str) -> State:
        assert isinstance(state, State)
        left = state.left or state.tokens // 2
        rent = state.rent + max(0.0, self.prices.cost(state.tokens, 0) - self.prices.cost(left, 0))
        looked = state.tokens if reason == _LEFT else state.looked
        return replace(state, stood=state.standings, rent=rent, looked=looked, reading=self._read(state))

    def _read(self, state: State) -> WorkReading | None:
        """What was done so far, brought up every few messages once a fold may come: then it has little left to read."""
        reading = state.reading
        if state.tokens < min(self.folds.least, self.folds.cold):
            return reading
        if reading is None:
            reading = WorkReading(Work(tools=file_tools(self.file_tools)))
        waiting = state.log.length - reading.places
        return reading if waiting < _BEHIND else reading.through(state.log.upto(reading.places + _READ))

    def refolded(self, state: folding.State, made: Folded) -> State:
        assert isinstance(state, State)
        return replace(state, stood=state.standings, rent=0.0, left=made.tokens, looked=0, reading=made.reading)

    def saved(self, state: folding.State) -> str | None:
        """The state right after a fold, as text; None where it could not be read back."""
        said = saved_fold.said(state)
        return None if said is None else json_text.dumps(said | {name: getattr(state, name) for name in _NUMBERS})

    def resumed(self, text: str, messages: Sequence[Message], head: int = 0) -> State | None:
        """The state after the fold at the end of these messages, which was `saved` as this text; None where it was
        not."""
        try:
            known = as_object(json_text.parse(text))
            state = saved_fold.state_after(self, self.begin(head), known, messages, self._encode)
            numbers = {number: known[number] for number in _NUMBERS}
        except (WireError, LookupError, TypeError, ValueError):
            return None
        assert state is None or isinstance(state, State)
        return state and replace(state, stood=state.standings, **numbers)

    def _is_large(self, state: State, arriving: int = 0) -> bool:
        """Whether a fold may be worth it, by the size; again only when that has grown since one was looked at."""
        return state.tokens + arriving >= max(self.folds.least, state.looked * _GROWN)

    def _paid(self, state: State) -> float:
        """How many times what a fold is due for has been paid in rent since the last one."""
        return state.rent / max(1.0, self.folds.rent * self._rewrite(state.left or state.tokens // 2))

    def _late(self, state: State) -> bool:
        """Whether the rent paid since the last fold would have bought another one, and the moment is a good one: a bad
        one is let pass as long as that costs little."""
        if not self._is_large(state):
            return False
        paid = self._paid(state)
        return paid >= _PATIENCE[Moment.NEW_ASK] and (
            paid >= max(_PATIENCE.values()) or paid >= _PATIENCE[moment_of(state.log, file_tools(self.file_tools))]
        )

    def _dearer(self, state: State) -> bool:
        """Whether this request, at the rates of a longer prompt, costs as much as folding to a length below them."""
        tier = self.prices.at(state.tokens).over if self.prices.tiers else 0
        if not tier or state.tokens < state.looked * _GROWN:
            return False
        left = min(state.left or state.tokens // 2, tier)
        return self.prices.cost(state.settled, state.tokens - state.settled) >= self.prices.cost(0, left)

    def _below_tier(self, state: State, usable: int) -> int:
        """What a fold has to fit in: less than the length from which every token is dearer, where there is room."""
        tier = self.prices.at(state.tokens).over
        below = folding.usable_of(tier, counter(self.tokens)) if tier else usable
        return below if 2 * state.head < below < usable else usable

    def _pays(self, state: State, made: Folded, *, at_once: bool) -> bool:
        """Whether a fold saves more than it costs, in the turns that are expected. Where it does not `at_once` and does
        not save far more, it also has to be a loss that the session can bear, should it end now."""
        turns, costs = self.lasting.turns(state.turn), self._rewrite(made.tokens)
        saved = turns * (self.prices.cost(state.tokens, 0) - self.prices.cost(made.tokens, 0))
        bearable = _STAKE * state.spent + state.unfolded - state.spent
        return saved > costs and (at_once or saved >= _SURE * costs or costs <= bearable)

    def _rewrite(self, left: int) -> float:
        """What it costs to write what a fold leaves, beyond reading it."""
        return self.prices.cost(0, left) - self.prices.cost(left, 0)

    def _rate(self, state: folding.State) -> float:
        """The least worth of a token that is kept: what writing and reading it costs, in misses."""
        turns = min(self.folds.horizon, self.lasting.turns(state.turn))
        return (self.prices.write_ratio + self.prices.read_ratio * turns) / self.folds.miss
