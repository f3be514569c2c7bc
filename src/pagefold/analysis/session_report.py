"""One recorded session, looked at from all sides a report needs: as it was sent, in lossless forms, and folded.

Every session is encoded once: what the economic policy sends before its first fold is what the lossless one sends, so
that one goes on from there. The figures are those of a replay under each policy.
"""

from collections.abc import Iterator, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any
from zlib import crc32

from pagefold.adapters import recordings
from pagefold.analysis.cost_shares import HEAD, CostShares
from pagefold.analysis.replay import SessionReplay, Terms, expired
from pagefold.analysis.replay_figures import ReplayFigures
from pagefold.derive.arrival import Standings, arrive, label_of
from pagefold.derive.cost import Prices
from pagefold.derive.entry import Entry
from pagefold.derive.learned import SHIPPED, Forms, Learned
from pagefold.derive.policies import policy_named
from pagefold.derive.policies.economic import Economic
from pagefold.derive.policies.folding import State
from pagefold.derive.policy import NOTHING, Derived, Notes
from pagefold.tokens import FRAME, Counter, counter
from pagefold.wire.message import BlockKind, Message, Role
from pagefold.wire.transcripts import Format, Problem, Session

POLICIES = ("identity", "lossless", "economic")
_WASTED = 10
_REREAD = 40
_EXCERPT = 1_200
_AS_IT_IS = "as it is"


@dataclass(frozen=True, slots=True)
class Job:
    """What to look at, in values that travel between processes. One session in `every` also meets the `rivals`."""

    prices: Prices
    tokens: str
    window: int
    format: Format | None
    max_line_bytes: int
    overhead: int = 0
    rivals: tuple[tuple[str, int], ...] = ()
    every: int = 1
    learned: Learned = SHIPPED
    excerpts: bool = True


@dataclass(slots=True)
class Share:
    """What results of one tool, or one speaker, cost in all requests, and what they were on arrival."""

    results: int = 0
    tokens: int = 0
    shown_tokens: int = 0
    cost: float = 0.0
    after: float = 0.0

    def add(self, other: "Share") -> None:
        self.results += other.results
        self.tokens += other.tokens
        self.shown_tokens += other.shown_tokens
        self.cost += other.cost
        self.after += other.after


@dataclass(frozen=True, slots=True)
class Waste:
    """One result, what it cost as it was sent and what it costs after, and how it begins in either form."""

    session: str
    label: str
    tool: str
    turn: int
    tokens: int
    shown_tokens: int
    requests: int
    cost: float
    after: float
    codecs: str
    before_text: str = ""
    after_text: str = ""

    @property
    def wasted(self) -> float:
        return self.cost - self.after


@dataclass(frozen=True, slots=True)
class SessionReport:
    """What is kept of a session, or a problem without one."""

    path: Path
    id: str = ""
    source: str = ""
    figures: dict[str, ReplayFigures] = field(default_factory=dict)
    tools: dict[str, Share] = field(default_factory=dict)
    codecs: dict[str, Share] = field(default_factory=dict)
    reread: dict[str, tuple[int, int]] = field(default_factory=dict)  # label -> times again, tokens again
    wasted: tuple[Waste, ...] = ()
    folds: dict[str, int] = field(default_factory=dict)
    rivals: dict[tuple[str, int], ReplayFigures] = field(default_factory=dict)
    problem: Problem | None = None


def report_batches(batches: Sequence[recordings.LogBatch], job: Job) -> list[SessionReport]:
    """Every session of these batches; what is no session is a problem."""
    found: list[SessionReport] = []
    for batch in batches:
        for item in recordings.sessions(batch, max_bytes=job.max_line_bytes):
            if isinstance(item, Problem):
                found.append(SessionReport(batch.path, problem=item))
            else:
                source = item.source or batch.path.name.partition(".")[0]
                found.append(replace(session_report(item, job), path=batch.path, source=source))
    return found


def session_report(session: Session, job: Job) -> SessionReport:
    counts = counter(job.tokens)

    def terms(policy: Any) -> Terms:
        return Terms(policy, job.prices, counts, job.window, job.overhead)

    plain = SessionReplay(session, terms(_named("identity", job)))
    heard = {id(message): place for place, message in enumerate(session.messages)}
    before = _billed(plain, job, heard, ())
    watched = WatchedEconomic(_economic(job), heard)
    run = SessionReplay(session, terms(watched), held=plain.figures)
    after = _billed(run, job, watched.shown, watched.logged)
    figures = {"identity": plain.figures, "economic": run.figures}
    if not watched.sound:
        figures["lossless"] = _figures(SessionReplay(session, terms(_named("lossless", job)), held=plain.figures))
    elif watched.folded is None:
        figures["lossless"] = deepcopy(run.figures)
    else:
        going_on = LosslessFrom(watched.folded, job.learned.forms)
        figures["lossless"] = _figures(SessionReplay(session, terms(going_on), held=plain.figures))
    folds: dict[str, int] = {}
    for reason in watched.reasons:
        folds[reason] = folds.get(reason, 0) + 1
    tools, codecs, reread, wasted = _looked_at(session, watched.entries, before, after, job, counts)
    rivals = {}
    if job.rivals and crc32(session.id.encode()) % job.every == 0:
        for name, window in job.rivals:
            policy = _named(name, replace(job, window=window))
            rivals[name, window] = _figures(
                SessionReplay(session, replace(terms(policy), window=window), held=plain.figures)
            )
        rivals.update({(name, job.window): figures[name] for name in POLICIES})
    return SessionReport(Path(), session.id, "", figures, tools, codecs, reread, wasted, folds, rivals)


@dataclass(slots=True)
class WatchedEconomic:
    """The economic policy, with what it did written down."""

    policy: Economic
    heard: dict[int, int]  # the place of each message of the history, by its id
    entries: dict[int, Entry] = field(default_factory=dict)  # by place, as each first entered
    shown: dict[int, int] = field(default_factory=dict)  # the place of what is shown for each, by its id
    logged: list[int] = field(default_factory=list)
    reasons: list[str] = field(default_factory=list)
    folded: State | None = None  # as it was before the first fold
    name: str = "economic"

    @property
    def sound(self) -> bool:
        """Whether the history entered as it came, and nothing had to be repaired."""
        return self.logged == list(range(len(self.logged)))

    def begin(self, head: int = 0) -> State:
        return self.policy.begin(head)

    def step(self, state: State, message: Message) -> State:
        after = self.policy.step(state, message)
        self._note(after)
        return after

    def request(self, state: State, notes: Notes = NOTHING) -> tuple[State, Derived]:
        after, derived = self.policy.request(state, notes)
        self._note(after)
        if derived.reason:
            self.reasons.append(derived.reason)
            self.folded = self.folded or state
        return after, derived

    def _note(self, state: State) -> None:
        """What has entered the log since. A message that was repaired on its way in is nobody's own."""
        for entry in state.log[len(self.logged) :]:
            place = self.heard.get(id(entry.message), HEAD)
            self.logged.append(place)
            self.shown[id(entry.shown)] = place
            self.entries.setdefault(place, entry)


@dataclass(frozen=True, slots=True)
class _LosslessState:
    heard: int = 0
    sent: int = 0
    waiting: tuple[Message, ...] = ()
    standings: Standings = field(default_factory=Standings)


@dataclass(frozen=True, slots=True)
class LosslessFrom:
    """The lossless policy on a history whose beginning has been encoded already."""

    begun: State
    forms: Forms
    name: str = "lossless"

    def begin(self, head: int = 0) -> _LosslessState:
        return _LosslessState(standings=self.begun.standings)

    def step(self, state: _LosslessState, message: Message) -> _LosslessState:
        if state.heard < len(self.begun.log):
            shown, standings = self.begun.log[state.heard].shown, state.standings
        else:
            arrived = arrive(state.standings, message, forms=self.forms)
            shown, standings = arrived.message, arrived.standings
        return _LosslessState(state.heard + 1, state.sent, (*state.waiting, shown), standings)

    def request(self, state: _LosslessState, notes: Notes = NOTHING) -> tuple[_LosslessState, Derived]:
        sent = _LosslessState(state.heard, state.sent + len(state.waiting), (), state.standings)
        return sent, Derived(state.sent, state.waiting)


def _economic(job: Job) -> Economic:
    policy = _named("economic", job)
    assert isinstance(policy, Economic)
    return policy


def _named(name: str, job: Job) -> Any:
    return policy_named(
        name, window=job.window, prices=job.prices, tokens=job.tokens, learned=job.learned, offline=True
    )


def _figures(run: SessionReplay) -> ReplayFigures:
    for _ in run:
        pass
    return run.figures


def _billed(run: SessionReplay, job: Job, places: dict[int, int], logged: Sequence[int]) -> CostShares:
    """The bill of a run, by page; what stands before all messages is nobody's."""
    cold = frozenset(expired(run.session, job.prices.ttl_seconds))
    bill = CostShares(job.prices, run.count, cold, places, logged)
    for turn, derived in run:
        bill.request(turn, derived)
    shared = sum(bill.end().values())
    bill.cost[HEAD] = bill.cost.get(HEAD, 0.0) + run.figures.cost - shared
    return bill


def _looked_at(
    session: Session, entries: Mapping[int, Entry], before: CostShares, after: CostShares, job: Job, counts: Counter
) -> tuple[dict[str, Share], dict[str, Share], dict[str, tuple[int, int]], tuple[Waste, ...]]:
    tools: dict[str, Share] = {}
    codecs: dict[str, Share] = {}
    seen: dict[str, tuple[int, int]] = {}
    wasted: list[Waste] = []
    labels: dict[str, str] = {}
    shown_before: set[str] = set()
    turn = 0
    for place, message in enumerate(session.messages):
        cost, now = before.cost.get(place, 0.0), after.cost.get(place, 0.0)
        labels.update((block.call_id, label_of(block)) for block in message.blocks if block.kind is BlockKind.CALL)
        turn += message.role is Role.ASSISTANT
        tokens = counts.count(message.text) + FRAME
        shown = entries[place].tokens if place in entries else tokens
        name = _whose(message)
        tools.setdefault(name, Share()).add(Share(1, tokens, shown, cost, now))
        if message.role is not Role.TOOL:
            continue
        made = " + ".join(entries[place].codecs) if place in entries else ""
        codecs.setdefault(made or _AS_IT_IS, Share()).add(Share(1, tokens, shown, cost, now))
        block = message.blocks[0]
        label = labels.get(block.call_id, block.name or "result")
        if label in shown_before:
            times, again = seen.get(label, (0, 0))
            seen[label] = (times + 1, again + tokens)
        shown_before.add(label)
        excerpts = (message.text, entries[place].shown.text) if job.excerpts and place in entries else ("", "")
        waste = Waste(
            session.id,
            label if job.excerpts else name,
            name,
            turn,
            tokens,
            shown,
            before.requests[place],
            cost,
            now,
            made or _AS_IT_IS,
            excerpts[0][:_EXCERPT],
            excerpts[1][:_EXCERPT],
        )
        wasted.append(waste)
    overhead = Share(cost=before.cost.get(HEAD, 0.0), after=after.cost.get(HEAD, 0.0))
    if job.overhead or abs(overhead.cost) > 1 or abs(overhead.after) > 1:
        tools[_BEFORE_ALL] = overhead
    most = sorted(seen.items(), key=lambda item: (-item[1][1], item[0]))[:_REREAD] if job.excerpts else []
    top = sorted(wasted, key=lambda one: (-one.wasted, one.turn))[:_WASTED]
    return tools, codecs, dict(most), tuple(top)


_BEFORE_ALL = "(before all messages)"


def _whose(message: Message) -> str:
    if message.role is Role.TOOL:
        return next((block.name for block in message.blocks if block.name), "") or "unnamed"
    return {Role.ASSISTANT: "(the assistant)", Role.USER: "(the user)"}.get(message.role, "(the system)")


def sessions_of(path: Path, job: Job) -> Iterator[Session]:
    """The sessions of one file, for a second look."""
    for batch in recordings.batches(path, given=job.format, max_bytes=job.max_line_bytes):
        for item in recordings.sessions(batch, max_bytes=job.max_line_bytes):
            if isinstance(item, Session):
                yield item
