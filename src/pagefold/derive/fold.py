"""A fold: what stands afterwards in place of everything before the last exchanges, and what it costs.

System messages, pins, the first task and the latest one stay as they are. Everything else before the cut becomes
digests of the lines that are worth their tokens. What follows the cut is encoded anew, in order, against what then
stands; where even that is too much, its largest results are trimmed. Nothing here decides when to fold.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from pagefold.derive.arrival import Standings
from pagefold.derive.digest import Digest, Kept, Record, digest
from pagefold.derive.entry import Entry, again, counted
from pagefold.derive.learned import AS_IT_COMES, Forms
from pagefold.derive.line_selection import Settled, keep, settle
from pagefold.derive.policy import Decision
from pagefold.derive.quotable import Passage
from pagefold.derive.task import active_task
from pagefold.derive.trim_tail import squeezed
from pagefold.derive.values import NEVER, Mentions, Priors, expected, mentioned
from pagefold.log import Log
from pagefold.pages.kinds import ResidencyLevel
from pagefold.pages.page import Page, PageId
from pagefold.wire.message import Message, Role, user_text

TAIL_TURNS = 3
_TAIL_SHARE = 0.15
_LEAST_SHARE = 0.15
FRONT_SHARE = 0.5  # of the room that the last exchanges leave, for the front: the next fold should not come at once
_FREE = 6_500  # tokens that a fold leaves free at least, where the window is small: some turns have to fit
_ELSEWHERE = 0.3  # the worth of a fact's line where the fact itself stands elsewhere
_STRETCH = 110  # tokens of a digest besides its lines
_TIGHTER = 0.8
_TRIES = 4


@dataclass(frozen=True, slots=True)
class Frame:
    """In what a fold has to fit, and what a token has to be worth to stay."""

    usable: int
    head: int
    rate: float
    tokens: str
    priors: Priors
    pins: str = ""
    recalled: frozenset[PageId] = frozenset()
    foreseen: frozenset[str] = frozenset()  # facts known to be needed: on recordings alone, never live
    forms: Forms = AS_IT_COMES

    @property
    def room(self) -> int:
        return self.usable - self.head

    def encode(self, standings: Standings, entry: Entry) -> tuple[Standings, Entry]:
        """An entry in its cheapest form where this stands above it, and what stands then."""
        return again(standings, entry, self.tokens, self.forms)


@dataclass(frozen=True, slots=True)
class Folded:
    """`front` stands for the first `cut` entries of the log. `short` is what does not fit, where the least does not."""

    front: tuple[Message, ...]
    cut: int
    log: Log[Entry]
    standings: Standings
    tokens: int
    pages: tuple[Page, ...]
    decisions: tuple[Decision, ...] = field(default=(), repr=False)
    short: str = ""
    known: Mapping[str, Mentions] = field(default_factory=dict, repr=False)
    alive: frozenset[str] = field(default=frozenset(), repr=False)  # facts that stand: what was let go stays so
    records: Mapping[int, Record] = field(default_factory=dict, repr=False)  # by where the stretch begins
    settled: Mapping[int, Settled] = field(default_factory=dict, repr=False)  # where facts are at home, by message


@dataclass(frozen=True, slots=True)
class Rule:
    """What a policy says of its own about a fold: where the tail begins, what else stays, how long digests may be."""

    cut: int | None = None
    stays: frozenset[int] = frozenset()
    budget: int | None = None
    plain: bool = False  # the tail stands as it came, not in lossless forms


def fold(
    log: Log[Entry], turn: int, calls: Standings, frame: Frame, last: Folded | None = None, rule: Rule | None = None
) -> Folded:
    """What stands after a fold before this turn. `last` is the fold before it, where there was one."""
    rule = rule or Rule()
    cut = tail_of(log, turn, int(frame.room * _TAIL_SHARE)) if rule.cut is None else rule.cut
    task = whole(log, active_task(log[:]) | rule.stays)
    stays = [place for place in range(cut) if log[place].fixed or place in task]
    known, fresh = _known(log, last.known if last else {}, len(last.log) if last else 0)
    asked = known.keys() if last is None or frame.foreseen else last.alive | fresh
    worth = _worth(log, [(fact, known[fact]) for fact in asked], cut, stays, turn, frame)
    pinned = user_text(frame.pins) if frame.pins else None
    fixed = sum(_as_it_came(log[place], frame.tokens) for place in stays)
    fixed += counted(pinned, frame.tokens) if pinned else 0
    stretches = _stretches(cut, stays)
    tail = sum(entry.tokens for entry in log[cut:])
    free = frame.room - tail
    budget = min(int(free * FRONT_SHARE), free - _FREE) - fixed - _STRETCH * len(stretches)
    if rule.budget is not None:
        budget = min(rule.budget, frame.room - fixed - tail - _STRETCH * len(stretches))
    # Whatever came last, what came before it keeps some room: then the last results are trimmed instead.
    least = int((frame.room - fixed) * _LEAST_SHARE)
    least = least if rule.budget is None else min(least, rule.budget)
    passages = [(place, log[place].passages) for ends in stretches for place in range(*ends)]
    settled = settle(passages, worth, last.settled if last else {})
    made = _Maker(log, cut, stays, stretches, frame, passages, worth, settled, pinned, last.records if last else {})
    for _ in range(_TRIES):
        front, digests, kept = made.front(max(least, budget))
        tokens = fixed + sum(counted(one.message, frame.tokens) for one in digests.values())
        if tokens + tail <= frame.room or budget <= least:
            break
        budget = int(budget * _TIGHTER) - (tokens + tail - frame.room)
    pages = tuple(page for one in digests.values() for page in one.pages)
    encode = _as_it_stands if rule.plain else frame.encode
    new, standings = (log, calls) if rule.plain else _encoded(log, cut, calls, frame)
    tail = sum(entry.tokens for entry in new[cut:])
    short = ""
    if tokens + tail > frame.room:
        before = calls if rule.plain else Standings(calls=calls.calls)
        new, standings, more, short = squeezed(new, cut, frame.room - tokens, before, encode, frame.tokens)
        pages = (*pages, *more)
        tail = sum(entry.tokens for entry in new[cut:])
        short = f"{short}: {_told(log, stays, frame, tokens, tail)}" if short else ""
    decisions = tuple(_decisions(log, cut, stays, kept))
    alive = _alive(log, cut, stays, settled, kept)
    records = {start: made.record for start, made in digests.items()}
    size = frame.head + tokens + tail
    return Folded(front, cut, new, standings, size, pages, decisions, short, known, alive, records, settled)


@dataclass(frozen=True, slots=True)
class _Maker:
    """Makes the front for a budget."""

    log: Log[Entry]
    cut: int
    stays: Sequence[int]
    stretches: Sequence[tuple[int, int]]
    frame: Frame
    passages: Sequence[tuple[int, Sequence[Passage]]]
    worth: Mapping[int, Mapping[str, float]]
    settled: Mapping[int, Settled]
    pinned: Message | None
    records: Mapping[int, Record]

    def front(self, budget: int) -> tuple[tuple[Message, ...], dict[int, Digest], dict[int, list[Kept]]]:
        rate, recalled = self.frame.rate, self.frame.recalled
        kept = keep(self.passages, self.worth, self.settled, rate=rate, budget=budget, recalled=recalled)
        starts = dict(self.stretches)
        front: list[Message] = []
        digests: dict[int, Digest] = {}
        stays = frozenset(self.stays)
        for place in range(self.cut):
            if place in stays:
                front.append(self.log[place].message)
            elif place in starts:
                stretch = range(place, starts[place])
                messages = [self.log[at].message for at in stretch]
                made = digest(messages, [one for at in stretch for one in kept[at]], self.records.get(place))
                front.append(made.message)
                digests[place] = made
        if self.pinned is not None:
            front.append(self.pinned)
        return tuple(front), digests, kept


def tail_of(log: Log[Entry], turn: int, room: int) -> int:
    """Where the tail begins that stays as it is: the last answer with what came of it, and exchanges before it as far
    as there is room for them."""
    cut, tokens, answered = len(log), 0, False
    for place in range(len(log) - 1, -1, -1):
        entry = log[place]
        tokens += entry.tokens
        if answered and cut < len(log) and (entry.turn <= turn - TAIL_TURNS or tokens > room):
            break
        if entry.opens and (place == 0 or not log[place - 1].own or not entry.own):
            cut, answered = place, answered or entry.own
    return cut


def whole(log: Log[Entry], places: Iterable[int]) -> frozenset[int]:
    """These places, and where one of them answers a call, the whole exchange: no pair is parted."""
    found: set[int] = set()
    for place in places:
        first = last = place
        while first > 0 and not log[first].opens:
            first -= 1
        if first < place:
            while first > 0 and log[first - 1].own:
                first -= 1
            while last + 1 < len(log) and not log[last + 1].opens:
                last += 1
        found.update(range(first, last + 1))
    return frozenset(found)


def _as_it_came(entry: Entry, tokens: str) -> int:
    """What a message costs as it came."""
    return entry.tokens if entry.shown is entry.message else counted(entry.message, tokens)


def _known(log: Log[Entry], before: Mapping[str, Mentions], start: int) -> tuple[dict[str, Mentions], set[str]]:
    """Every fact of the log with its mentions: those that were known before, and what came from `start` on."""
    known, fresh = dict(before), set[str]()
    for place, entry in enumerate(log[start:], start):
        own, user = entry.own, entry.message.role is Role.USER
        for fact in entry.facts:
            known[fact] = mentioned(known.get(fact, NEVER), entry.turn, place, own=own, user=user)
        fresh |= entry.facts
    return known, fresh


def _alive(
    log: Log[Entry],
    cut: int,
    stays: Sequence[int],
    settled: Mapping[int, Settled],
    kept: Mapping[int, Sequence[Kept]],
) -> frozenset[str]:
    """The facts that stand after a fold: in lines that were kept, in what stays, and in the last exchanges."""
    alive = set[str]().union(*(log[place].facts for place in stays), *(entry.facts for entry in log[cut:]))
    for place, homes in settled.items():
        stands = [(one.passage.where, frozenset(one.indexes)) for one in kept[place]]
        for fact, (index, line) in homes.items():
            if line in stands[index][1] or any(not there.isdisjoint(where.get(fact, ())) for where, there in stands):
                alive.add(fact)
    return frozenset(alive)


def _worth(
    log: Log[Entry],
    asked: Iterable[tuple[str, Mentions]],
    cut: int,
    stays: Sequence[int],
    turn: int,
    frame: Frame,
) -> dict[int, dict[str, float]]:
    """By message, the facts that are at home there and what they are worth."""
    kept = frozenset(stays)
    standing = frozenset[str]().union(*(entry.facts for entry in log[cut:]), *(log[at].facts for at in stays))
    folded = [(fact, told) for fact, told in asked if told[-1] < cut and told[-1] not in kept]
    worth: defaultdict[int, dict[str, float]] = defaultdict(dict)
    foreseen = frame.foreseen
    for (fact, told), needed in zip(folded, expected(folded, turn, frame.priors), strict=True):
        need = 1.0 if fact in foreseen else needed
        worth[told[-1]][fact] = _ELSEWHERE * need if fact in standing else need
    return worth


def _stretches(cut: int, stays: Sequence[int]) -> list[tuple[int, int]]:
    """The runs of places before the cut that do not stay."""
    ends, start = list[tuple[int, int]](), 0
    for place in [*stays, cut]:
        if place > start:
            ends.append((start, place))
        start = place + 1
    return ends


def _encoded(log: Log[Entry], cut: int, calls: Standings, frame: Frame) -> tuple[Log[Entry], Standings]:
    """The log with what follows the cut encoded against what stands there alone."""
    standings = Standings(calls=calls.calls)
    new = Log(log[:cut])
    for entry in log[cut:]:
        standings, shown = frame.encode(standings, entry)
        new = new.with_items((shown,))
    return new, standings


def _as_it_stands(standings: Standings, entry: Entry) -> tuple[Standings, Entry]:
    return standings, entry


def _told(log: Log[Entry], stays: Iterable[int], frame: Frame, front: int, tail: int) -> str:
    """What there is no room for, part by part, the largest first."""
    parts = {"tools and system prompt before them": frame.head, "the last exchange": tail}
    parts["pins"] = counted(user_text(frame.pins), frame.tokens) if frame.pins else 0
    for place in stays:
        part = f"message {place} ({'the system says it' if log[place].fixed else 'what the user asked'})"
        parts[part] = _as_it_came(log[place], frame.tokens)
    parts["digests"] = front - sum(tokens for part, tokens in parts.items() if part.startswith(("message", "pins")))
    said = sorted(((tokens, part) for part, tokens in parts.items() if tokens > 0), reverse=True)
    return ", ".join(f"{part} {tokens:,}" for tokens, part in said)


def _decisions(log: Log[Entry], cut: int, stays: Iterable[int], kept: dict[int, list[Kept]]) -> Iterable[Decision]:
    fixed = frozenset(stays)
    for place in range(len(log)):
        if place >= cut:
            yield Decision(place, ResidencyLevel.COMPRESSED, "one of the last exchanges")
        elif place in fixed:
            why = "the system says it" if log[place].fixed else "what the user asked"
            yield Decision(place, ResidencyLevel.FULL, why)
        else:
            lines = sum([len(one.indexes) for one in kept[place]])
            of = sum([len(one.passage.lines) for one in kept[place]])
            level = ResidencyLevel.STRUCTURED if lines else ResidencyLevel.POINTER
            yield Decision(place, level, f"{lines} of {of} lines are worth their tokens")
