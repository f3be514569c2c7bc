"""Adds up what recorded sessions cost and what pagefold would have saved, for a report as HTML, Markdown or JSON.

`SavingsReport` takes one session at a time and stays small however many there are; the modules beside it only write
down what it holds. An answer that several logs hold counts once. The bill is what providers reported; `totals` are
those of a replay under each policy, with the head of each session.
"""

import heapq
from collections import Counter
from dataclasses import asdict, dataclass, field
from typing import Any

from pagefold.analysis.cache_losses import CacheLoss, CacheLosses, by_reason
from pagefold.analysis.compare import WORST_FROM, ComparedPolicy, PolicyChoice
from pagefold.analysis.engine import SessionResult
from pagefold.analysis.problems import FileProblem, ProblemCounts
from pagefold.analysis.replay_figures import ReplayFigures
from pagefold.analysis.replay_job import ReplayJob
from pagefold.analysis.replay_totals import ReplayTotals
from pagefold.analysis.session_bill import Bill
from pagefold.analysis.session_copies import SessionCopies
from pagefold.analysis.session_report import POLICIES, ReportOptions, SessionReport, Share, Waste
from pagefold.analysis.trial import NO_TRIAL, TrialResult
from pagefold.charts import Timeline
from pagefold.number_format import day_of, several
from pagefold.tokens import counter

EXAMPLE = "This is the example session that comes with pagefold: these are not your sessions."
_SESSIONS = 10
_WASTED = 10
_LOSSES = 12
_LABELS = 20_000  # of what was read again; later ones are left out


@dataclass(slots=True)
class SavingsReport:
    job: ReplayJob
    options: ReportOptions = field(default_factory=ReportOptions)
    trial: TrialResult = NO_TRIAL
    example: bool = False  # whether what is reported is the bundled example, nobody's own sessions
    problems: ProblemCounts = field(default_factory=ProblemCounts)
    totals: dict[str, ReplayTotals] = field(default_factory=dict)
    tools: dict[str, Share] = field(default_factory=dict)
    codecs: dict[str, Share] = field(default_factory=dict)
    reread: dict[str, tuple[int, int, int]] = field(default_factory=dict)  # label -> sessions, times, tokens
    folds: Counter[str] = field(default_factory=Counter)
    prices: Counter[str] = field(default_factory=Counter)  # by where they are from
    cache_losses: dict[str, CacheLosses] = field(default_factory=dict)
    dearest_losses: list[CacheLoss] = field(default_factory=list)
    bill: Bill = field(default_factory=Bill)
    models: dict[str, Bill] = field(default_factory=dict)
    projects: dict[str, Bill] = field(default_factory=dict)
    wasted: list[Waste] = field(default_factory=list)
    timeline: Timeline | None = None
    worst: tuple[float, str] = (0.0, "")  # what economic makes of the bill without pagefold, and whose
    longest: tuple[tuple[bool, float], str, str] | None = None  # by (was folded, cost): its file and its id
    first: float = 0.0  # when the first of these sessions began and the last one ended, in seconds since 1970, or 0
    last: float = 0.0
    undated: int = 0  # sessions left out because nobody knows when they were, where only newer ones count
    copied: SessionCopies = field(init=False)
    _rivals: dict[tuple[str, int], ReplayFigures] = field(default_factory=dict)
    _rows: list[tuple[float, int, SessionResult[SessionReport]]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.copied = SessionCopies(self.job, self.options)
        self.totals = {policy: ReplayTotals(self.job.prices, problems=self.problems) for policy in POLICIES}

    def add(self, result: SessionResult[SessionReport] | FileProblem) -> None:
        if isinstance(result, FileProblem):
            self.problems.add(result)
        elif (own := self.copied.own_part(result)) is not None:
            self._add(own)

    def _add(self, result: SessionResult[SessionReport]) -> None:
        session = result.value
        self.undated += session.undated
        if session.earlier or session.undated:
            return
        if session.first:
            self.first = min(self.first or session.first, session.first)
            self.last = max(self.last, session.last)
        for policy, totals in self.totals.items():
            totals.add(result, session.figures[policy])
        for mine, theirs in ((self.tools, session.tools), (self.codecs, session.codecs)):
            for name, share in theirs.items():
                mine.setdefault(name, Share()).add(share)
        for label, (times, tokens) in session.reread.items():
            if label in self.reread or len(self.reread) < _LABELS:
                sessions, before, total = self.reread.get(label, (0, 0, 0))
                self.reread[label] = (sessions + 1, before + times, total + tokens)
        self.folds.update(session.folds)
        self.bill.add(session.bill)
        for groups, name in ((self.models, session.model), (self.projects, session.project)):
            if name in groups or len(groups) < _LABELS:
                groups.setdefault(name, Bill()).add(session.bill)
        self.prices[session.prices] += 1
        for reason, losses in by_reason(session.cache_losses).items():
            self.cache_losses.setdefault(reason, CacheLosses()).add(losses)
        found = [*self.dearest_losses, *session.cache_losses]
        self.dearest_losses = sorted(found, key=lambda one: (-one.cost, one.when))[:_LOSSES]
        for choice, figures in session.rivals.items():
            self._rivals.setdefault(choice, ReplayFigures()).add(figures)
        self.wasted = sorted([*self.wasted, *session.wasted], key=lambda one: -one.wasted)[:_WASTED]
        self._rank(result)

    def _rank(self, result: SessionResult[SessionReport]) -> None:
        """Keeps the session if it is among those that saved most, the worst one, or the longest one."""
        before, bill = result.value.figures["identity"], result.value.bill
        paid, left = bill.happened.both, bill.with_misses("economic").both
        entry = (paid - left, -self.sessions, result)
        (heapq.heappush if len(self._rows) < _SESSIONS else heapq.heappushpop)(self._rows, entry)
        if bill.plain.both and before.requests >= WORST_FROM:
            self.worst = max(self.worst, (left / bill.plain.both, result.id))
        longest = ((bool(result.value.folds), before.cost), str(result.path), result.id)
        if before.requests and (self.longest is None or longest[0] > self.longest[0]):
            self.longest = longest

    # ---- what it says ------------------------------------------------------------------------------------------

    @property
    def sessions(self) -> int:
        return self.totals["identity"].total.sessions

    @property
    def before(self) -> ReplayFigures:
        return self.totals["identity"].total

    @property
    def lossless(self) -> ReplayFigures:
        return self.totals["lossless"].total

    @property
    def after(self) -> ReplayFigures:
        return self.totals["economic"].total

    @property
    def rows(self) -> list[SessionResult[SessionReport]]:
        """The sessions that saved most."""
        return [row for *_, row in sorted(self._rows, key=lambda one: one[:2], reverse=True)]

    @property
    def nothing(self) -> str:
        """Why a report holds no session."""
        if self.options.since:
            return f"No session in these recordings went on since {day_of(self.options.since)}."
        return "No session was found in these recordings."

    @property
    def period(self) -> str:
        """From which day to which these sessions went, by UTC; "" where no log says."""
        if not self.last:
            return ""
        return " to ".join(dict.fromkeys(map(day_of, (self.first, self.last))))

    def usd(self, cost: float) -> float:
        return self.job.prices.usd(cost)

    def points(self) -> list[ComparedPolicy]:
        """The policies on the sampled sessions, the cheapest first."""
        base = self._rivals.get(("identity", self.job.window))
        if base is None or not base.cost:
            return []
        points = [ComparedPolicy(PolicyChoice(*choice), figures, base.cost) for choice, figures in self._rivals.items()]
        return sorted(points, key=lambda point: (point.effective, point.choice))

    def cache_broken(self) -> list[tuple[str, CacheLosses]]:
        """Why providers could not read their caches, the costliest reason first."""
        return sorted(self.cache_losses.items(), key=lambda item: (-item[1].cost, item[0]))

    def _priced(self) -> str:
        """Whose prices count, the most frequent first."""
        return "; ".join(f"{source} ({several(times, 'session')})" for source, times in self.prices.most_common())

    def most_reread(self, most: int = 12) -> list[tuple[str, tuple[int, int, int]]]:
        return sorted(self.reread.items(), key=lambda item: (-item[1][2], item[0]))[:most]

    def notes(self) -> list[str]:
        """What was measured, what was estimated, and what is not in the figures."""
        job, before = self.job, self.before
        counts = counter(job.tokens)
        notes = [
            f"Tokens are counted for the model of each session: exactly for models of OpenAI, estimated for others; as "
            f"{counts.name} where no model is known."
            if "tokens" in job.fitted
            else f"Tokens are counted as {counts.label}.",
            f"Prices are those of {self._priced()}.",
            _cache_note(before),
            (
                "The agent is assumed to have answered as it did; whether it does, `pagefold trial` tells. A "
                "fact that an answer used and that the request no longer held counts as missed, and is priced as one "
                "more round trip with the page that held it."
            ),
            (
                "Costs by tool are of the replayed session, with its head. After a fold a page is charged its share of "
                "the digest it stands in, by what it cost before."
            ),
        ]
        if points := self.points():
            sampled, every = points[0].total.sessions, self.options.every
            notes.append(
                f"The picture of policies is drawn from {sampled:,} of {self.sessions:,} sessions"
                + (f", one in {every} by a hash of its name." if every > 1 else ".")
            )
        return notes

    def to_dict(self) -> dict[str, Any]:
        total = {policy: totals.to_dict() for policy, totals in self.totals.items()}
        return {
            "sessions": self.sessions,
            "period": {"first": round(self.first), "last": round(self.last)} if self.last else None,
            "bill": self.bill.to_dict(),
            "trial": self.trial.to_dict() if self.trial.sessions else None,
            "models": {name: bill.to_dict() for name, bill in _dearest(self.models)},
            "projects": {name: bill.to_dict() for name, bill in _dearest(self.projects)},
            "policies": total,
            "worst_session": {"id": self.worst[1], "ratio": round(self.worst[0], 4)} if self.worst[1] else None,
            "tools": {name: _shared(share) for name, share in _by_cost(self.tools)},
            "codecs": {name: _shared(share) for name, share in _by_cost(self.codecs)},
            "folds": dict(sorted(self.folds.items())),
            "cache_losses": {
                reason: asdict(losses) | {"cost": round(losses.cost, 3), "usd": round(self.usd(losses.cost), 4)}
                for reason, losses in self.cache_broken()
            },
            "dearest_cache_losses": [
                loss._asdict() | {"cost": round(loss.cost, 3), "usd": round(self.usd(loss.cost), 4)}
                for loss in self.dearest_losses
            ],
            "reread": [
                {"what": label, "sessions": sessions, "times": times, "tokens": tokens}
                for label, (sessions, times, tokens) in self.most_reread()
            ],
            "wasted": [asdict(one) | {"wasted": round(one.wasted, 3)} for one in self.wasted],
            "by_session": [
                {
                    "id": row.id,
                    "source": row.source,
                    "path": str(row.path),
                    "bill": row.value.bill.to_dict(),
                }
                for row in self.rows
            ],
            "points": [_point(point) for point in self.points()],
            "timeline": None if self.timeline is None else asdict(self.timeline),
        }


def _dearest(bills: dict[str, Bill]) -> list[tuple[str, Bill]]:
    return sorted(bills.items(), key=lambda item: (-item[1].happened.both, item[0]))


def _by_cost(shares: dict[str, Share]) -> list[tuple[str, Share]]:
    return sorted(shares.items(), key=lambda item: (-item[1].cost, item[0]))


def _shared(share: Share) -> dict[str, Any]:
    return asdict(share) | {"cost": round(share.cost, 3), "after": round(share.after, 3)}


def _point(point: ComparedPolicy) -> dict[str, Any]:
    named = {name: getattr(point, name) for name in ("cost", "effective", "missed", "eligible")}
    return point.choice._asdict() | named | {"over": point.total.over, "sessions": point.total.sessions}


def _share(part: float, whole: float) -> float:
    return round(part / whole, 4) if whole else 0.0


def _cache_note(figures: ReplayFigures) -> str:
    if figures.expired:
        return (
            "The provider's cache expires some time after its last use, by the model and what the client asks for; by "
            f"the recorded times it had before {figures.expired:,} of {figures.requests:,} requests, and those write "
            "everything anew."
        )
    return "Nothing recorded says that the provider's cache had ever expired."
