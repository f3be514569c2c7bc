"""A fold: what stands afterwards in place of everything before the last exchanges, and what it costs.

System messages, pins and the user's first words stay as they are. Everything else before the cut becomes one digest,
the working set. What follows the cut is encoded anew, in order, against what then stands; where even that is too much,
its largest results are trimmed. Nothing here decides when to fold.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from pagefold.derive.entry import Entry, Standings, again, as_it_came, counted
from pagefold.derive.learned import AS_IT_COMES, Forms
from pagefold.derive.levels import levels_after_fold
from pagefold.derive.policy import Decision, Decisions
from pagefold.derive.task import active_task
from pagefold.derive.trim_tail import Encode, squeezed
from pagefold.derive.values import NEVER, KnownFacts, Priors, mentioned
from pagefold.derive.working_set.digest import Material, WorkingSet, working_set
from pagefold.derive.working_set.names import Names
from pagefold.derive.working_set.parts import rendered
from pagefold.derive.working_set.reading import WorkReading
from pagefold.derive.working_set.record import Record, recorded
from pagefold.derive.working_set.remembered import remembered
from pagefold.log import Log
from pagefold.pages.exchanges import Work
from pagefold.pages.files.file_tools import file_tools
from pagefold.pages.files.own_tools import OwnTools
from pagefold.pages.page import Page, PageId
from pagefold.wire.message import Message, Role, user_text

TAIL_TURNS = 3
_TAIL_SHARE = 0.15
_LEAST_SHARE = 0.15
_FRONT, _FRONT_TIGHT = 0.5, 0.42  # of the room that the last exchanges leave, for the front
_ROOMY = 27_000  # tokens that stay free behind the larger of the two: the next fold should not come at once
_FREE = 6_500  # tokens that a fold leaves free at least, where the window is small: some turns have to fit
_FIRST_ASK = 0.35  # of the room, at most, for the user's first words as they came
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
    file_tools: OwnTools = ()

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
    decisions: Sequence[Decision] = field(default=(), repr=False)
    short: str = ""
    known: KnownFacts = field(default_factory=KnownFacts, repr=False)
    alive: frozenset[str] = field(default=frozenset(), repr=False)  # facts that stand: what was let go stays so
    record: Record | None = None
    reading: WorkReading | None = field(default=None, repr=False)  # of all the log
    shown: Mapping[PageId, str] = field(default_factory=dict, repr=False)  # by its page, the file that a view shows
    stays: tuple[int, ...] = ()  # places before the cut whose messages are the first of the front
    names: frozenset[str] = field(default=frozenset(), repr=False)  # facts in the digest
    above: Standings = field(default_factory=Standings, repr=False)  # what the log behind the cut was encoded below
    trimmed_to: int | None = None  # tokens that the log behind the cut had to fit in, where it did not
    bare_from: int | None = None  # the place from which reasoning was left out, where any was


@dataclass(frozen=True, slots=True)
class Rule:
    """What a policy says of its own about a fold: where the tail begins, what else stays, how long digests may be."""

    cut: int | None = None
    stays: frozenset[int] = frozenset()
    budget: int | None = None
    plain: bool = False  # the tail stands as it came, not in lossless forms


def fold(
    log: Log[Entry],
    turn: int,
    calls: Standings,
    frame: Frame,
    last: Folded | None = None,
    rule: Rule | None = None,
    reading: WorkReading | None = None,
) -> Folded:
    """What stands after a fold before this turn. `last` is the fold before it, where there was one; `reading` is what
    was read of the log since, where something was."""
    rule = rule or Rule()
    cut = tail_of(log, turn, int(frame.room * _TAIL_SHARE)) if rule.cut is None else rule.cut
    known, fresh = _known(log, last.known if last else KnownFacts(), len(last.log) if last else 0)
    reading = reading or (last.reading if last else None) or WorkReading(Work(tools=file_tools(frame.file_tools)))
    reading = reading.through(log)
    stays = _stays(log, cut, rule, frame, reading.fixed)
    pinned = user_text(frame.pins) if frame.pins else None
    fixed = sum(_cost_as_it_came(log[place], frame.tokens) for place in stays)
    fixed += counted(pinned, frame.tokens) if pinned else 0
    tail = sum(entry.tokens for entry in log[cut:])
    budget, least = _budget(frame.room - fixed, tail, rule)
    asked = known.all if last is None or frame.foreseen else known.of(last.alive | fresh)
    names = Names(asked, frame.priors, frame.rate, turn, frame.foreseen)
    record, pages = recorded(log, cut, stays, last.record if last else None)
    material = _material(log, cut, stays, turn, reading, frame, last)
    if record and rule.budget != 0:
        memory = remembered(material.entries, reading.work, cut, record)
        record, pages = memory.record, (*pages, *memory.pages)
        material = replace(material, handles=memory.handles)
    made, digest, tokens = _digest(material, names, (budget, least), record, frame.tokens, frame.room - fixed - tail)
    tokens += fixed
    front = [*(as_it_came(log[place].message) for place in stays), *filter(None, (digest, pinned))]
    pages = (*pages, *(page for page, _ in made.pages))
    encode = _as_it_stands if rule.plain else frame.encode
    before = calls if rule.plain else Standings(made.ledger, calls.calls)
    new, standings = (log, calls) if rule.plain else encoded(log, cut, before, frame.encode)
    tail = sum(entry.tokens for entry in new[cut:])
    short, trimmed, trimmed_to = "", frozenset[int](), None
    if tokens + tail > frame.room:
        trimmed_to = frame.room - tokens
        new, standings, more, short, trimmed = squeezed(new, cut, trimmed_to, before, encode, frame.tokens)
        pages = (*pages, *more)
        tail = sum(entry.tokens for entry in new[cut:])
        short = f"{short}: {_told(log, stays, frame, tokens, tail)}" if short else ""
    decisions = Decisions(lambda: levels_after_fold(new, cut, stays, trimmed, made.held))
    return Folded(
        tuple(front),
        cut,
        new,
        standings,
        frame.head + tokens + tail,
        pages,
        decisions,
        short,
        known,
        alive_facts(made.facts, log, cut, stays),
        record,
        reading,
        shown={page.id: key for page, key in made.pages},
        stays=tuple(stays),
        names=made.facts,
        above=before,
        trimmed_to=trimmed_to,
    )


def _digest(
    material: Material, names: Names, budget: tuple[int, int], record: Record | None, counter: str, free: int
) -> tuple[WorkingSet, Message | None, int]:
    """The digest that fits in what is free, and what it costs. What it may cost is an estimate that its parts keep
    to, so what comes out too long is made again with less, down to the least."""
    most, least = budget
    for _ in range(_TRIES):
        made = working_set(material, names, max(least, most))
        digest = user_text(rendered(made.parts, record, record.messages)) if record else None
        tokens = counted(digest, counter) if digest else 0
        if tokens <= free or most <= least:
            break
        most = int(most * _TIGHTER) - (tokens - free)
    return made, digest, tokens


def front_of(free: int) -> int:
    """What the front may take of so many tokens: half where enough stays free behind it, less in a tight window. There
    the next fold would come too soon."""
    return max(int(free * _FRONT_TIGHT), min(int(free * _FRONT), free - _ROOMY))


def _budget(room: int, tail: int, rule: Rule) -> tuple[int, int]:
    """What a digest may cost, and what it may cost whatever came last: then the last results are trimmed instead."""
    free, least = room - tail, int(room * _LEAST_SHARE)
    if rule.budget is not None:
        return min(rule.budget, free), min(least, rule.budget)
    return min(front_of(free), free - _FREE), least


def _material(
    log: Log[Entry], cut: int, stays: Iterable[int], turn: int, reading: WorkReading, frame: Frame, last: Folded | None
) -> Material:
    shown = last.shown if last else {}
    files = frozenset(shown[page] for page in frame.recalled if page in shown)
    return Material(log[:], cut, turn, reading, frame.rate, frozenset(stays), frame.recalled, files)


def _stays(log: Log[Entry], cut: int, rule: Rule, frame: Frame, fixed: Iterable[int]) -> list[int]:
    """The places before the cut that stand as they came: what the system says, and the user's first words unless they
    fill much of the room; then the digest tells them."""
    first = _first_ask(log)
    fits = rule.budget == 0 or (first >= 0 and _cost_as_it_came(log[first], frame.tokens) <= _FIRST_ASK * frame.room)
    kept = rule.stays | ({first} if fits else set())
    if rule.budget == 0:  # no digest tells what the user asked
        kept |= whole(log, active_task(log[:]))
    return sorted(place for place in kept.union(fixed) if 0 <= place < cut)


def _first_ask(log: Log[Entry]) -> int:
    """The place of the first thing the user said, if the model had not answered before."""
    for place, entry in enumerate(log):
        if entry.message.role is Role.USER:
            return place
        if entry.own:
            break
    return -1


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


def _cost_as_it_came(entry: Entry, tokens: str) -> int:
    """What a message costs as it came."""
    return entry.tokens if entry.shown is entry.message else counted(as_it_came(entry.message), tokens)


def _known(log: Log[Entry], before: KnownFacts, start: int) -> tuple[KnownFacts, set[str]]:
    """Every fact of the log with its mentions, of which some were known before; and the facts of what came from `start`
    on."""
    newer, fresh = dict(before.newer), set[str]()
    for place, entry in enumerate(log.since(before.places), before.places):
        own, user, facts = entry.own, entry.message.role is Role.USER, entry.facts
        for fact in facts:
            so_far = newer.get(fact) or before.older.get(fact, NEVER)
            newer[fact] = mentioned(so_far, entry.turn, place, own=own, user=user)
        if place >= start:
            fresh |= facts
    return before.with_newer(newer, log.length), fresh


def alive_facts(names: frozenset[str], log: Log[Entry], cut: int, stays: Iterable[int]) -> frozenset[str]:
    """The facts that stand after a fold: those in the digest, and those of all that stands beside it."""
    return names.union(*(entry.facts for entry in log[cut:]), *(log[place].facts for place in stays))


def encoded(log: Log[Entry], cut: int, standings: Standings, encode: Encode) -> tuple[Log[Entry], Standings]:
    """The log with what follows the cut encoded anew, where this stands above it."""
    new = Log(log[:cut])
    for entry in log[cut:]:
        standings, shown = encode(standings, entry)
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
        parts[part] = _cost_as_it_came(log[place], frame.tokens)
    parts["digests"] = front - sum(tokens for part, tokens in parts.items() if part.startswith(("message", "pins")))
    said = sorted(((tokens, part) for part, tokens in parts.items() if tokens > 0), reverse=True)
    return ", ".join(f"{part} {tokens:,}" for tokens, part in said)
