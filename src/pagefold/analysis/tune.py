"""Settings learned from recorded sessions, and chosen on others.

Two sessions in three are fitted: how likely facts are needed again, how long sessions last, when a fold is due, which
codecs lose more than they win for a tool, what is worth a reference, which calls follow which. The third that was held
back decides: a change is taken only if it is cheaper there, misses priced in, in most draws of the sessions, and does
not miss more than it may, whichever single session is left out. So few logs change little. What is fitted never judges;
and of many values for a fold only the one that was best where they were fitted is judged: none is taken for its luck.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple
from zlib import crc32

from pagefold.analysis.compare import MISSED, drawn
from pagefold.analysis.engine import Engine, spread
from pagefold.analysis.fit import Fitted, Observed, fitted
from pagefold.analysis.trials import Job, Judged, Seen, Tried, attempt, judge, see
from pagefold.derive.learned import SHIPPED, Folds, Forms, Learned, forms_of

LEAST_CALLS = 20
"""Results of a tool before anything is said of its codecs."""

_CERTAIN = 0.8  # of the draws in which a change has to be cheaper
_LEAST_GAIN = 0.0002  # of the bill: less is noise
_PAIRS = 16
_FLOORS = (4, 6, 14, 20)
_SAMPLED = 60  # sessions on which forms are tried


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
    lengths: Sequence[int] = (),
    told: Callable[[str, Path], None] = lambda what, path: None,
) -> Tuned:
    """What these recordings teach. `start` is what is in force now; `lengths` are those, in turns, of sessions of which
    no more is known; `told` hears of every session worked on."""

    def work(function: Any, asked: Job, what: str) -> Iterator[Any]:
        for one in spread(paths, function, asked, engine=engine, given=job.format, max_bytes=job.max_line_bytes):
            told(what, one.path)
            yield one

    seen: list[Seen] = list(work(see, job, "fitting"))
    learned = _fitted(seen, start, lengths)
    held = sum(one.held for one in seen)
    problems = sum(one.problem is not None for one in seen)
    sample = replace(job, sampled=_sampled(seen)) if held else job
    forms = _forms(seen, sample, start, lambda asked: work(attempt, asked, "trying codecs"))
    folds = _folds(start, sample, lambda asked: work(judge, asked, "trying folds"))
    trials = list(_candidates(start, learned, [*folds, *forms]))
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


def _fitted(seen: Sequence[Seen], start: Learned, lengths: Sequence[int]) -> Fitted:
    rows: Observed = Counter()
    turns = list(lengths)
    for one in seen:
        if not one.held and one.problem is None:
            rows.update(one.rows)
            turns.append(one.turns)
    return fitted(rows, turns, priors=start.priors, lasting=start.lasting)


def _sampled(seen: Sequence[Seen]) -> frozenset[str]:
    """The fitted sessions on which values are tried."""
    names = sorted((one.id for one in seen if one.turns), key=lambda name: crc32(name.encode()))
    return frozenset(names[:_SAMPLED])


def _folds(start: Learned, job: Job, work: Callable[[Job], Iterator[Judged]]) -> list[Trial]:
    """Of each setting that says when a fold is due, the value that was cheapest on fitted sessions, if surely so."""
    asked = list(_around(start.folds))
    if not job.sampled:
        return []
    tried = [start, *(replace(start, folds=replace(start.folds, **{name: value})) for name, value in asked)]
    judged = list(work(replace(job, trials=tuple(tried))))
    found: dict[str, tuple[float, Trial]] = {}
    for at, (name, value) in enumerate(asked, 1):
        verdict = _verdict(judged, 0, at)
        if not _helps(verdict) or verdict.gain <= found.get(name, (0.0, None))[0]:
            continue
        told = f"{verdict.gain:.3%} cheaper on {len(judged)} fitted sessions, the best of the values around"
        before = getattr(start.folds, name)
        found[name] = verdict.gain, Trial(f"folds.{name}", tried[at], f"{before:,}", f"{value:,}", told)
    return [trial for _, trial in found.values()]


def _forms(seen: Sequence[Seen], job: Job, start: Learned, work: Callable[[Job], Iterator[Tried]]) -> list[Trial]:
    """Codecs that lose more than they win for a tool, because its results cannot be referred to later, say; and other
    floors for a reference."""
    used: Counter[tuple[str, str]] = Counter()
    weight: Counter[tuple[str, str]] = Counter()
    for one in seen:
        used.update(one.used)
        weight.update(one.weight)
    if used.total() < LEAST_CALLS or not job.sampled:
        return []
    known, floor = dict(start.forms.without), start.forms.floor
    asked: list[tuple[str, str, str, Forms]] = []
    for tool, codec in [pair for pair, _ in weight.most_common() if used[pair] >= LEAST_CALLS][:_PAIRS]:
        without = known | {tool: known.get(tool, frozenset()) | {codec}}
        forms = forms_of(without.items(), floor)
        asked.append((f"learned.{tool}.without", "used", f"without {codec}", forms))
    for other in _FLOORS:
        if other != floor:
            asked.append(("references.floor", str(floor), str(other), replace(start.forms, floor=other)))
    tried = list(work(replace(job, alternatives=tuple(forms for *_, forms in asked))))
    cost = sum(one.cost for one in tried)
    found = []
    for at, (what, before, after, forms) in enumerate(asked):
        less = [one.less[at] for one in tried]
        if cost and sum(less) > max(less) > 0:  # one session alone proves nothing
            won = sum(gain > 0 for gain in less)
            told = f"{sum(less) / cost:.3%} cheaper on {len(tried)} fitted sessions, in {won} of them"
            found.append(Trial(what, replace(start, forms=forms), before, after, told))
    return found


def _candidates(start: Learned, learned: Fitted, tried: Sequence[Trial]) -> Iterator[Trial]:
    """Every change by itself, so that each is judged by itself."""
    told = f"{learned.sessions:,} sessions, {learned.asked:,} facts asked for, {learned.needed:,} needed again"
    if learned.priors != start.priors and learned.asked:
        before, after = _spelled(start.priors.weights()), _spelled(learned.priors.weights())
        yield Trial("values", replace(start, priors=learned.priors), before, after, told)
    if learned.lasting != start.lasting:
        before, after = str(list(start.lasting.left)), str(list(learned.lasting.left))
        evidence_of = f"{learned.sessions:,} sessions"
        yield Trial("lasting", replace(start, lasting=learned.lasting), before, after, evidence_of)
    yield from tried


def _around(folds: Folds) -> Iterator[tuple[str, Any]]:
    """A few values around those in force."""
    yield from (("rent", round(folds.rent * factor, 2)) for factor in (0.4, 0.67, 1.5))
    yield from (("least", round(folds.least * factor)) for factor in (0.125, 0.25, 0.5, 0.75, 1.5))
    yield from (("miss", round(folds.miss * factor)) for factor in (0.5, 0.75, 1.5))
    yield from (("cold", round(folds.cold * factor)) for factor in (0.25, 0.5))
    yield from (("horizon", round(folds.horizon * factor)) for factor in (0.6, 1.6))


def _spelled(weights: Sequence[float]) -> str:
    return " ".join(f"{weight:+.2f}" for weight in weights)


class _Verdict(NamedTuple):
    gain: float  # of the bill as it is
    rest: float  # the same without the session that gained most: one alone proves nothing
    certain: float  # in which share of the draws it was cheaper
    missed: float
    allowed: bool


def _verdict(judged: Sequence[Judged], start: int, at: int) -> _Verdict:
    base = sum(one.base for one in judged)
    if not base:
        return _Verdict(0.0, 0.0, 0.0, 0.0, allowed=False)
    effective = [[one.figures[trial].effective for one in judged] for trial in (start, at)]
    gains = [now - then for now, then in zip(*effective, strict=True)]
    gain, rest = sum(gains) / base, (sum(gains) - max(gains)) / base
    draws = drawn([one.base for one in judged], effective)
    certain = sum(then < now for now, then in draws) / len(draws) if draws else 0.0
    missed, before = _missed(judged, at), _missed(judged, start)
    return _Verdict(gain, rest, certain, missed, missed <= max(MISSED, before))


def _helps(verdict: _Verdict) -> bool:
    return verdict.allowed and verdict.rest > 0 and verdict.certain >= _CERTAIN


def _together(start: Learned, trials: Sequence[Trial], verdicts: Sequence[_Verdict]) -> list[Learned]:
    """Changes that help by themselves, added one after another, the best first: of each kind the best one."""
    made: list[Learned] = []
    now, kinds = start, set[str]()
    order = sorted(zip(trials, verdicts, strict=True), key=lambda pair: -pair[1].gain)
    for trial, verdict in order:
        kind = f"{trial.name} {trial.after}" if trial.name.startswith("learned.") else trial.name
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
        forms_of(without.items(), more.forms.floor if more.forms.floor != start.forms.floor else now.forms.floor),
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
