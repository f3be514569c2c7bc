"""Everything a savings report needs of one recorded session: its figures as logged, in lossless forms, and folded.

The figures are those of a replay under each policy. Besides, it says what each tool's results cost before and after,
which codecs were used, what was read again, and which results wasted most.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass, field, fields, replace
from zlib import crc32

from pagefold.analysis.cache_losses import CacheLoss, cache_losses_of
from pagefold.analysis.cost_shares import HEAD, CostShares
from pagefold.analysis.edit_demand import EditsNeeded, edits_needed
from pagefold.analysis.replay import RequestSize, SessionReplay, expired, replay
from pagefold.analysis.replay_figures import ReplayFigures
from pagefold.analysis.replay_job import ReplayJob
from pagefold.analysis.report_policies import LosslessFrom, WatchedEconomic
from pagefold.analysis.session_bill import Bill, session_bill
from pagefold.derive.entry import Entry
from pagefold.derive.policies.compaction import AT, Compaction
from pagefold.derive.policies.economic import Economic
from pagefold.derive.policies.lossless import Lossless
from pagefold.pages.exchanges import label_of
from pagefold.tokens import FRAME, counter
from pagefold.wire.message import Block, BlockKind, Message, Role, arguments_of
from pagefold.wire.transcripts import Session

POLICIES = ("identity", "lossless", "economic")
_WASTED = 10
_REREAD = 40
_EXCERPT = 1_200
_LABEL = 120
_AS_IT_IS = "as it is"
_COMPACTS_AT = 0.71  # of a window: where clients compact
_BEFORE_ALL = "(system prompt and tools)"


@dataclass(frozen=True, slots=True)
class ReportOptions:
    """One session in `every` is also replayed under the `rivals`, policies with windows. `excerpts` quotes logs.
    `behind` names the policy of sessions that are known to have run behind pagefold, `used` is what the account used of
    five-hour windows and of weeks meanwhile, as the proxy was told. Only answers from `since` on count, in seconds
    since 1970; where it is 0, all of them."""

    rivals: tuple[tuple[str, int], ...] = ()
    every: int = 1
    excerpts: bool = True
    behind: Mapping[str, str] = field(default_factory=dict)
    used: Mapping[str, tuple[float, float]] = field(default_factory=dict)
    since: float = 0.0


@dataclass(slots=True)
class Share:
    """What results of one tool, or one speaker, cost in all requests, and what they were on arrival."""

    results: int = 0
    tokens: int = 0
    shown_tokens: int = 0
    cost: float = 0.0
    after: float = 0.0

    def add(self, other: "Share") -> None:
        for item in fields(self):
            setattr(self, item.name, getattr(self, item.name) + getattr(other, item.name))


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


@dataclass(slots=True)
class SessionReport:
    """Bounded, however long the session is. `figures` are by policy, `rivals` by policy and window. `first` and `last`
    are when it went on, in seconds since 1970, or 0; `earlier` says that nothing of it is as new as was asked for,
    `undated` that its log tells no time, so that nobody knows."""

    figures: dict[str, ReplayFigures] = field(default_factory=dict)
    tools: dict[str, Share] = field(default_factory=dict)
    codecs: dict[str, Share] = field(default_factory=dict)
    reread: dict[str, tuple[int, int]] = field(default_factory=dict)  # label -> times again, tokens again
    wasted: tuple[Waste, ...] = ()
    folds: Mapping[str, int] = field(default_factory=dict)
    rivals: dict[tuple[str, int], ReplayFigures] = field(default_factory=dict)
    cache_losses: list[CacheLoss] = field(default_factory=list)
    prices: str = ""  # where they are from
    bill: Bill = field(default_factory=Bill)
    model: str = ""
    project: str = ""
    answers: tuple[tuple[int, str], ...] = ()  # index and name of each, as far as the log names them
    first: float = 0.0
    last: float = 0.0
    earlier: bool = False
    undated: bool = False


def session_report(session: Session, job: ReplayJob, *, options: ReportOptions) -> SessionReport:
    answers = tuple(sorted(session.answers.items()))
    if options.since and not session.began:
        return SessionReport(answers=answers, undated=True)
    recent = session.since_time(options.since)
    return _replayed(recent, job, options) if recent else SessionReport(answers=answers, earlier=True)


def _replayed(session: Session, job: ReplayJob, options: ReportOptions) -> SessionReport:
    window = job.window
    windows, weeks = options.used.get(session.id, (0.0, 0.0))
    session = replace(session, windows=session.windows or windows, weeks=session.weeks or weeks)
    job = job.of(session).with_head_of(session)
    plain = SessionReplay(session, job.terms("identity"))
    places = {id(message): place for place, message in enumerate(session.messages)}
    before = _cost_shares(plain, job, places, ())
    terms = job.terms("economic")
    assert isinstance(terms.policy, Economic)
    economic = WatchedEconomic(terms.policy, places)
    folded = SessionReplay(session, replace(terms, policy=economic), held=plain.figures)
    after = _cost_shares(folded, job, economic.shown, economic.logged)
    figures = {"identity": plain.figures, "economic": folded.figures}
    report = SessionReport(figures, folds=Counter(economic.reasons), prices=job.prices.source)
    if not economic.sound:
        lossless = SessionReplay(session, job.terms("lossless"), held=plain.figures).whole()
    elif economic.before_fold is None:
        lossless = folded
    else:
        policy = LosslessFrom(economic.before_fold, Lossless(forms=job.learned.forms))
        lossless = SessionReplay(session, replace(terms, policy=policy), held=plain.figures).whole()
    report.figures["lossless"] = deepcopy(lossless.figures) if lossless is folded else lossless.figures
    runs = {"identity": plain, "lossless": lossless, "economic": folded}
    sent = _sent_by(session, job, runs, options.behind)
    needed = list(edits_needed(session, folded.requests, counter(job.tokens)))
    needed = needed[len(needed) - len(folded.sizes) :]  # without those of a session that it copies
    sizes: dict[str, Sequence[RequestSize]] = {name: run.sizes for name, run in runs.items()}
    sizes["economic"] = [_with_edits(size, one) for size, one in zip(folded.sizes, needed, strict=True)]
    if sent == "compaction" and lossless.figures.over:
        sizes["lossless"] = sizes[sent]  # behind it the client would have compacted too, and nobody knows when
    report.bill = session_bill(session, job.prices, sizes, sent=sent, head=job.overhead)
    report.bill.edits = sum(one.edits for one in needed)
    report.model, report.project = session.model, session.project if options.excerpts else ""
    report.cache_losses = cache_losses_of(session, job.prices)
    report.answers = tuple(sorted(session.answers.items()))
    if session.began and session.times:
        report.first, report.last = session.began + session.times[session.since], session.began + session.times[-1]
    _add_results(report, session, economic.entries, before, after, job, options)
    if options.rivals and crc32(session.id.encode()) % options.every == 0:
        for name, window in options.rivals:
            report.rivals[name, window] = replay(session, job.terms(name, window=window), held=plain.figures)
        report.rivals.update({(name, window): report.figures[name] for name in POLICIES})
    return report


def _with_edits(size: RequestSize, needed: EditsNeeded) -> RequestSize:
    """A request with what its answer's edits lacked: what a fact and an edit lack is fetched once."""
    again = max(size.again, needed.again)
    return size._replace(again=again, edits_gone=needed.gone, written_again=needed.written_again)


def _sent_by(session: Session, job: ReplayJob, runs: dict[str, SessionReplay], behind: Mapping[str, str]) -> str:
    """The policy by which a session's requests were sent, replayed too where it is another than the report's own.

    Without usage, a history that no window takes was compacted by its client: nobody can have sent it as it is."""
    name = behind.get(session.id.partition("#")[0].partition("/")[0], "identity")
    if name == "identity" and not session.usage and runs["identity"].figures.over:
        name = "compaction"
    if name not in runs:
        terms = job.terms(name)
        if isinstance(terms.policy, Compaction):
            terms = replace(terms, policy=replace(terms.policy, at=min(AT, int(_COMPACTS_AT * job.window))))
        runs[name] = SessionReplay(session, terms, held=runs["identity"].figures).whole()
    return name


def _cost_shares(run: SessionReplay, job: ReplayJob, places: dict[int, int], logged: Sequence[int]) -> CostShares:
    """The cost of a replay, by page; what stands before all messages belongs to `HEAD`."""
    cold = frozenset(expired(run.session, job.prices.life))
    shares = CostShares(job.prices, run.count, cold, places, logged, run.session.since)
    for turn, derived in run:
        shares.request(turn, derived, run.prompt)
    shared = sum(shares.end().values())
    shares.cost[HEAD] = shares.cost.get(HEAD, 0.0) + run.figures.cost - shared
    return shares


def _add_results(
    report: SessionReport,
    session: Session,
    entries: Mapping[int, Entry],
    before: CostShares,
    after: CostShares,
    job: ReplayJob,
    options: ReportOptions,
) -> None:
    """Adds up every message by tool and codec, and finds what was read again and what wasted most."""
    count = counter(job.tokens).count
    again: dict[str, tuple[int, int]] = {}
    wasted: list[Waste] = []
    calls: dict[str, Block] = {}
    seen: set[tuple[str, str]] = set()
    turn = 0
    for place, message in enumerate(session.messages):
        calls.update((block.call_id, block) for block in message.blocks if block.kind is BlockKind.CALL)
        turn += message.role is Role.ASSISTANT
        entry, tokens, name = entries.get(place), count(message.text) + FRAME, _speaker(message)
        shown = entry.tokens if entry else tokens
        costs = before.cost.get(place, 0.0), after.cost.get(place, 0.0)
        share = Share(0, 0, 0, *costs) if place < session.since else Share(1, tokens, shown, *costs)
        report.tools.setdefault(name, Share()).add(share)
        if message.role is not Role.TOOL:
            continue
        codecs = (" + ".join(entry.codecs) if entry else "") or _AS_IT_IS
        report.codecs.setdefault(codecs, Share()).add(share)
        block = message.blocks[0]
        call = calls.get(block.call_id)
        label = label_of(call.name, arguments_of(call), _LABEL) if call else block.name or "result"
        same = (call.name, repr(arguments_of(call))) if call else ("", label)
        if same in seen and place >= session.since:
            times, size = again.get(label, (0, 0))
            again[label] = (times + 1, size + tokens)
        seen.add(same)
        excerpts = (message.text[:_EXCERPT], entry.shown.text[:_EXCERPT]) if options.excerpts and entry else ("", "")
        wasted.append(
            Waste(
                session.id,
                label if options.excerpts else name,
                name,
                turn,
                tokens,
                shown,
                before.requests[place],
                share.cost,
                share.after,
                codecs,
                *excerpts,
            )
        )
    overhead = Share(cost=before.cost.get(HEAD, 0.0), after=after.cost.get(HEAD, 0.0))
    if job.overhead or abs(overhead.cost) > 1 or abs(overhead.after) > 1:
        report.tools[_BEFORE_ALL] = overhead
    if options.excerpts:
        report.reread = dict(sorted(again.items(), key=lambda item: (-item[1][1], item[0]))[:_REREAD])
    report.wasted = tuple(sorted(wasted, key=lambda one: (-one.wasted, one.turn))[:_WASTED])


def _speaker(message: Message) -> str:
    if message.role is Role.TOOL:
        return next((block.name for block in message.blocks if block.name), "") or "unnamed"
    return {Role.ASSISTANT: "(the assistant)", Role.USER: "(the user)"}.get(message.role, "(the system)")
