"""Settings learned from recorded sessions, and chosen on others.

Two sessions in three are fitted: how likely facts are needed again, how long sessions last, which codecs lose more than
they win for a tool, which calls follow which. The third that was held back decides: a change is taken only if it is
cheaper there, misses priced in, in most draws of the sessions, and does not miss more than it may. So few logs change
little. What is fitted never judges.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, NamedTuple
from zlib import crc32

from pagefold.adapters import recordings
from pagefold.analysis.compare import MISSED, drawn
from pagefold.analysis.engine import Engine, spread
from pagefold.analysis.figures import Figures
from pagefold.analysis.fit import Fitted, Observed, fitted, observed, turns_of
from pagefold.analysis.replay import Run, Terms
from pagefold.derive.arrival import Standings, arrive
from pagefold.derive.cost import Prices
from pagefold.derive.learned import SHIPPED, Folds, Forms, Learned, forms_of
from pagefold.derive.policies import policy_named
from pagefold.tokens import FRAME, counter
from pagefold.wire.message import Role
from pagefold.wire.transcripts import Format, Problem, Session

LEAST_CALLS = 20
"""Results of a tool before anything is said of its codecs."""

_CERTAIN = 0.8  # of the draws in which a change has to be cheaper
_LEAST_GAIN = 0.0002  # of the bill: less is noise
_PAIRS = 16
_SAMPLED = 60  # sessions on which codecs are tried
_SMALL = 3_000  # tokens: a session that never gets larger is never folded


def is_held(name: str) -> bool:
    """Whether a session judges instead of being fitted: one in three, by a hash of its name."""
    return (crc32(name.encode()) >> 8) % 3 == 0


# ---- what is done with the sessions, wherever it runs ----------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Job:
    """In values that travel between processes. `trials` are judged on sessions held back."""

    prices: Prices
    tokens: str
    window: int
    format: Format | None
    max_line_bytes: int
    overhead: int = 0
    trials: tuple[Learned, ...] = ()
    pairs: tuple[tuple[str, str], ...] = ()
    sampled: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Seen:
    """What one session says to be fitted."""

    path: Path
    id: str = ""
    held: bool = False
    rows: Observed = field(default_factory=Counter)
    turns: int = 0
    used: Counter[tuple[str, str]] = field(default_factory=Counter)  # tool, codec -> results
    weight: Counter[tuple[str, str]] = field(default_factory=Counter)  # the same in tokens
    problem: Problem | None = None


@dataclass(frozen=True, slots=True)
class Judged:
    """What a held-back session costs as it is, and its figures under each trial."""

    path: Path
    id: str
    base: float
    figures: tuple[Figures, ...]


@dataclass(frozen=True, slots=True)
class Tried:
    """What a fitted session costs with every codec, and what less without one of them."""

    path: Path
    cost: float
    less: dict[tuple[str, str], float]


def see(batches: Sequence[recordings.Batch], job: Job) -> list[Seen]:
    found: list[Seen] = []
    for batch, item in _items(batches, job):
        if isinstance(item, Problem):
            found.append(Seen(batch.path, problem=item))
        elif is_held(item.id):
            found.append(Seen(batch.path, item.id, held=True))
        else:
            used, weight = _codecs(item, job)
            rows, turns = observed(item.messages), turns_of(item.messages)
            found.append(Seen(batch.path, item.id, False, rows, turns, used, weight))
    return found


def judge(batches: Sequence[recordings.Batch], job: Job) -> list[Judged]:
    found: list[Judged] = []
    for batch, item in _items(batches, job):
        if isinstance(item, Session) and is_held(item.id):
            plain = _figures(item, job, "identity", SHIPPED)
            found.append(Judged(batch.path, item.id, plain.cost, tuple(_trials(item, job, plain.peak))))
    return found


def attempt(batches: Sequence[recordings.Batch], job: Job) -> list[Tried]:
    found: list[Tried] = []
    for batch, item in _items(batches, job):
        if isinstance(item, Session) and item.id in job.sampled:
            tools = {block.name for message in item.messages for block in message.blocks}
            cost = _lossless(item, job, Forms())
            less = {
                pair: cost - _lossless(item, job, forms_of([(pair[0], (pair[1],))]))
                for pair in job.pairs
                if pair[0] in tools
            }
            found.append(Tried(batch.path, cost, less))
    return found


def _items(batches: Sequence[recordings.Batch], job: Job) -> Iterator[tuple[recordings.Batch, Session | Problem]]:
    for batch in batches:
        for item in recordings.sessions(batch, max_bytes=job.max_line_bytes):
            yield batch, item


def _trials(session: Session, job: Job, peak: int) -> Iterator[Figures]:
    """Trials that differ in nothing that this session meets are replayed once."""
    tools = {block.name for message in session.messages for block in message.blocks}
    known: dict[Any, Figures] = {}
    for trial in job.trials:
        forms = Forms(tuple(pair for pair in trial.forms.without if pair[0] in tools))
        small = peak + job.overhead < min(_SMALL, trial.folds.least, trial.folds.cold)
        met = replace(trial, forms=forms) if not small else Learned(forms=forms)
        if met not in known:
            known[met] = _figures(session, job, "economic", met)
        yield known[met]


def _figures(session: Session, job: Job, name: str, learned: Learned) -> Figures:
    policy = policy_named(name, window=job.window, prices=job.prices, tokens=job.tokens, learned=learned)
    run = Run(session, Terms(policy, job.prices, counter(job.tokens), job.window, job.overhead))
    for _ in run:
        pass
    run.figures.tools.clear()
    return run.figures


def _codecs(session: Session, job: Job) -> tuple[Counter[tuple[str, str]], Counter[tuple[str, str]]]:
    standings, count = Standings(), counter(job.tokens).count
    used: Counter[tuple[str, str]] = Counter()
    weight: Counter[tuple[str, str]] = Counter()
    for message in session.messages:
        arrived = arrive(standings, message)
        standings = arrived.standings
        if message.role is Role.TOOL and arrived.codecs:
            size = count(message.text)
            for codec in set(arrived.codecs):
                used[message.blocks[0].name, codec] += 1
                weight[message.blocks[0].name, codec] += size
    return used, weight


def _lossless(session: Session, job: Job, forms: Forms) -> float:
    """What the session costs in lossless forms while the cache is warm: written once, read at every later turn."""
    standings, count, prices = Standings(), counter(job.tokens).count, job.prices
    left = turns_of(session.messages)
    cost = 0.0
    for message in session.messages:
        if message.role is Role.ASSISTANT:
            left -= 1
        arrived = arrive(standings, message, forms=forms)
        standings = arrived.standings
        if left:
            size = count(arrived.message.text) + FRAME
            cost += prices.cost(size * (left - 1), size)
    return cost


# ---- what comes of it ------------------------------------------------------------------------------------------------


class Change(NamedTuple):
    """One change: what it is about, from what to what, what it is based on, and what it did where it was judged."""

    what: str
    before: str
    after: str
    evidence: str
    effect: str
    taken: bool


@dataclass(frozen=True, slots=True)
class Trial:
    name: str
    learned: Learned
    before: str
    after: str
    evidence: str


@dataclass(frozen=True, slots=True)
class Tuned:
    """`before` and `after` are effective ratios on the sessions held back."""

    learned: Learned
    changes: tuple[Change, ...]
    fitted: int
    held: int
    before: float
    after: float
    missed_before: float
    missed_after: float
    problems: int


def tune(
    paths: Sequence[Path],
    job: Job,
    *,
    engine: Engine,
    start: Learned = SHIPPED,
    told: Callable[[str, Path], None] = lambda what, path: None,
) -> Tuned:
    """What these recordings teach. `start` is what is in force now; `told` hears of every session worked on."""

    def work(function: Any, asked: Job, what: str) -> Iterator[Any]:
        for one in spread(paths, function, asked, engine=engine, given=job.format, max_bytes=job.max_line_bytes):
            told(what, one.path)
            yield one

    seen: list[Seen] = list(work(see, job, "fitting"))
    learned = _fitted(seen, start)
    forms, evidence = _switches(seen, job, lambda asked: work(attempt, asked, "trying codecs"))
    trials = list(_candidates(start, learned, forms, evidence))
    held = sum(one.held for one in seen)
    problems = sum(one.problem is not None for one in seen)
    first = [start, *(trial.learned for trial in trials)]
    judged: list[Judged] = list(work(judge, replace(job, trials=tuple(first)), "judging")) if held else []
    verdicts = [_verdict(judged, 0, at) for at in range(1, len(first))]
    best = _together(start, trials, verdicts)
    combined: list[Judged] = judged
    last = first
    if len(best) > 1 and judged:
        last = [start, *best]
        combined = list(work(judge, replace(job, trials=tuple(last)), "judging together"))
    chosen = _chosen(combined, last)
    taken = _taken(start, last[chosen], trials, verdicts)
    return Tuned(
        last[chosen],
        tuple(taken),
        len(seen) - held - problems,
        held,
        _ratio(combined, 0),
        _ratio(combined, chosen),
        _missed(combined, 0),
        _missed(combined, chosen),
        problems,
    )


def _fitted(seen: Sequence[Seen], start: Learned) -> Fitted:
    rows: Observed = Counter()
    turns: list[int] = []
    for one in seen:
        if not one.held and one.problem is None:
            rows.update(one.rows)
            turns.append(one.turns)
    return fitted(rows, turns, priors=start.priors, lasting=start.lasting)


def _switches(
    seen: Sequence[Seen], job: Job, work: Callable[[Job], Iterator[Tried]]
) -> tuple[Forms, dict[tuple[str, str], str]]:
    """Codecs that lose more than they win for a tool: where results of it cannot be referred to later, say."""
    used: Counter[tuple[str, str]] = Counter()
    weight: Counter[tuple[str, str]] = Counter()
    for one in seen:
        used.update(one.used)
        weight.update(one.weight)
    pairs = [pair for pair, _ in weight.most_common() if used[pair] >= LEAST_CALLS][:_PAIRS]
    names = sorted((one.id for one in seen if one.used), key=lambda name: crc32(name.encode()))
    if not pairs:
        return Forms(), {}
    asked = replace(job, pairs=tuple(pairs), sampled=frozenset(names[:_SAMPLED]))
    less: Counter[tuple[str, str]] = Counter()
    better: Counter[tuple[str, str]] = Counter()
    cost = 0.0
    for tried in work(asked):
        cost += tried.cost
        for pair, gain in tried.less.items():
            less[pair] += gain  # type: ignore[assignment]  # a Counter adds floats as well
            better[pair] += gain > 0
    won = {pair: gain for pair, gain in less.items() if gain > 0 and cost}
    evidence = {
        pair: f"{used[pair]:,} results; {gain / cost:.3%} cheaper without on fitted sessions, in {better[pair]} of them"
        for pair, gain in won.items()
    }
    by_tool: dict[str, set[str]] = {}
    for tool, codec in won:
        by_tool.setdefault(tool, set()).add(codec)
    return forms_of(by_tool.items()), evidence


def _candidates(start: Learned, learned: Fitted, forms: Forms, evidence: dict[tuple[str, str], str]) -> Iterator[Trial]:
    """Every change by itself, so that each is judged by itself."""
    told = f"{learned.sessions:,} sessions, {learned.asked:,} facts asked for, {learned.needed:,} needed again"
    if learned.priors != start.priors and learned.asked:
        before, after = _spelled(start.priors.weights()), _spelled(learned.priors.weights())
        yield Trial("values", replace(start, priors=learned.priors), before, after, told)
    if learned.lasting != start.lasting:
        before, after = str(list(start.lasting.left)), str(list(learned.lasting.left))
        evidence_of = f"{learned.sessions:,} sessions"
        yield Trial("lasting", replace(start, lasting=learned.lasting), before, after, evidence_of)
    for name, value in _folds(start.folds):
        before = getattr(start.folds, name)
        changed = replace(start, folds=replace(start.folds, **{name: value}))
        yield Trial(
            f"folds.{name}", changed, f"{before:,}", f"{value:,}", "one of a few values around what is in force"
        )
    known = dict(start.forms.without)
    for tool, codecs in forms.without:
        for codec in sorted(codecs):
            without = known | {tool: known.get(tool, frozenset()) | {codec}}
            changed = replace(start, forms=forms_of(without.items()))
            yield Trial(f"learned.{tool}.without", changed, "used", f"without {codec}", evidence[tool, codec])


def _folds(folds: Folds) -> Iterator[tuple[str, Any]]:
    yield from (("rent", round(folds.rent * factor, 2)) for factor in (0.4, 0.67, 1.5))
    yield from (("least", round(folds.least * factor)) for factor in (0.125, 0.25, 0.5, 0.75, 1.5))
    yield from (("miss", round(folds.miss * factor)) for factor in (0.5, 0.75, 1.5))
    yield from (("cold", round(folds.cold * factor)) for factor in (0.25, 0.5))
    yield from (("horizon", round(folds.horizon * factor)) for factor in (0.6, 1.6))


def _spelled(weights: Sequence[float]) -> str:
    return " ".join(f"{weight:+.2f}" for weight in weights)


class _Verdict(NamedTuple):
    gain: float  # of the bill as it is
    certain: float  # in which share of the draws it was cheaper
    missed: float
    allowed: bool


def _verdict(judged: Sequence[Judged], start: int, at: int) -> _Verdict:
    base = sum(one.base for one in judged)
    if not base:
        return _Verdict(0.0, 0.0, 0.0, allowed=False)
    effective = [[one.figures[trial].effective for one in judged] for trial in (start, at)]
    gain = (sum(effective[0]) - sum(effective[1])) / base
    draws = drawn([one.base for one in judged], effective)
    certain = sum(then < now for now, then in draws) / len(draws) if draws else 0.0
    missed, before = _missed(judged, at), _missed(judged, start)
    return _Verdict(gain, certain, missed, missed <= max(MISSED, before))


def _helps(verdict: _Verdict) -> bool:
    return verdict.allowed and verdict.gain > 0 and verdict.certain >= _CERTAIN


def _together(start: Learned, trials: Sequence[Trial], verdicts: Sequence[_Verdict]) -> list[Learned]:
    """Changes that help by themselves, added one after another, the best first: of each kind the best one."""
    made: list[Learned] = []
    now, kinds = start, set[str]()
    order = sorted(zip(trials, verdicts, strict=True), key=lambda pair: -pair[1].gain)
    for trial, verdict in order:
        kind = trial.name if trial.name.startswith("folds.") else f"{trial.name} {trial.after}"
        if not _helps(verdict) or kind in kinds:
            continue
        kinds.add(kind)
        now = _merged(start, now, trial.learned)
        made.append(now)
    return made


def _merged(start: Learned, now: Learned, more: Learned) -> Learned:
    """`now` with what `more` changes of `start`."""
    folds = now.folds
    for name in Folds.__slots__:
        if getattr(more.folds, name) != getattr(start.folds, name):
            folds = replace(folds, **{name: getattr(more.folds, name)})
    without = dict(now.forms.without)
    for tool, codecs in more.forms.without:
        without[tool] = without.get(tool, frozenset()) | codecs
    return Learned(
        more.priors if more.priors != start.priors else now.priors,
        more.lasting if more.lasting != start.lasting else now.lasting,
        folds,
        forms_of(without.items()),
    )


def _chosen(judged: Sequence[Judged], trials: Sequence[Learned]) -> int:
    """The cheapest that may be taken; what is in force where nothing is clearly better."""
    best, gain = 0, _LEAST_GAIN if judged else 1.0
    small = min(gain, _LEAST_GAIN / 10)
    for at in range(1, len(trials)):
        verdict = _verdict(judged, 0, at)
        # Codecs change little and lose nothing, so a small gain will do.
        least = small if replace(trials[at], forms=trials[0].forms) == trials[0] else _LEAST_GAIN
        if _helps(verdict) and verdict.gain >= least and verdict.gain > (gain if best else 0.0):
            best, gain = at, verdict.gain
    return best


def _taken(start: Learned, chosen: Learned, trials: Sequence[Trial], verdicts: Sequence[_Verdict]) -> Iterator[Change]:
    for trial, verdict in zip(trials, verdicts, strict=True):
        alone = _merged(start, chosen, trial.learned) == chosen and chosen != start
        effect = (
            f"{-verdict.gain:+.3%} of the bill by itself, cheaper in {verdict.certain:.0%} of the draws, "
            f"{verdict.missed:.2%} missed"
        )
        yield Change(trial.name, trial.before, trial.after, trial.evidence, effect, alone)


def _ratio(judged: Sequence[Judged], at: int) -> float:
    base = sum(one.base for one in judged)
    return sum(one.figures[at].effective for one in judged) / base if base else 1.0


def _missed(judged: Sequence[Judged], at: int) -> float:
    demanded = sum(one.figures[at].demanded for one in judged)
    return sum(one.figures[at].missed for one in judged) / demanded if demanded else 0.0
