"""Learns settings from recorded sessions, by cross-validation: each session judges only what was fitted without it.

The sessions are in three parts, by a hash of their names. For each part every setting gets the value that was best on
the two others, and the part judges it. A setting is changed only if the change is cheaper, misses priced in, in most
draws of the sessions, also without the session that gains most; if it hardly misses more; and if no session becomes
dearer than without pagefold. Then the setting gets the value that is best on all sessions. So few logs change little.
"""

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import NamedTuple, TypeVar
from zlib import crc32

from pagefold.adapters.recordings import LogPath
from pagefold.analysis.compare import MISSED, WORST_FROM, draw_ratios
from pagefold.analysis.engine import Engine, SessionWork, run_on_sessions
from pagefold.analysis.problems import FileProblem
from pagefold.analysis.replay_figures import ReplayFigures
from pagefold.analysis.replay_job import ReplayJob
from pagefold.analysis.tuning_options import TuningOption, always, options
from pagefold.analysis.tuning_trials import (
    PARTS,
    JudgedSession,
    SessionEvidence,
    Trial,
    collect_evidence,
    judge_session,
    part_of,
)
from pagefold.derive.learned import SHIPPED, Folds, Learned, forms_of
from pagefold.number_format import change, rate

T = TypeVar("T")

_CERTAIN = 0.9  # share of the draws in which a change has to be cheaper
_LEAST_GAIN, _FORMS_GAIN = 0.0002, 0.0001
# Limits of what may be missed, and of a session's cost relative to its cost as it is. Both are stricter than what is
# allowed on other sessions, so that the learned settings stay within that there too.
_MISSED, _DEAREST = MISSED / 2, 1.01
_SAMPLED = 120  # sessions that judge


class SettingChange(NamedTuple):
    """One change of a setting: its name, old and new value, what it is based on, and its effect where it was judged.
    `gain` is the larger share of the bill that it saves or costs, where it was judged or on all sessions."""

    what: str
    before: str
    after: str
    evidence: str
    effect: str
    taken: bool
    gain: float


@dataclass(frozen=True, slots=True)
class Tuned:
    """`before` and `after` are effective ratios on the sessions that judged, each under what was fitted without it."""

    learned: Learned
    changes: tuple[SettingChange, ...]
    sessions: int
    judged: int
    before: float
    after: float
    missed_before: float
    missed_after: float
    problems: int


Picks = tuple[int, ...]
"""The trial for each part of the sessions, chosen on the others, and the one chosen on all. 0 is the present value."""

_NONE: Picks = (0,) * (PARTS + 1)
_FIRST: Picks = (1,) * (PARTS + 1)


class _Verdict(NamedTuple):
    gain: float  # share of the cost as it is
    error: float  # standard error of the gain
    rest: float  # the gain without the session that gained most: one alone proves nothing
    certain: float  # share of the draws in which it was cheaper
    before: float
    after: float
    missed_before: float
    missed: float
    worst_before: float
    worst: float

    @property
    def surely(self) -> float:
        """The gain less its error: of two values with the same gain, the one that gains in more sessions is better."""
        return self.gain - self.error

    @property
    def promises(self) -> bool:
        return self.surely > 0 and self.rest > 0 and self.allowed

    @property
    def allowed(self) -> bool:
        misses_more = self.missed > max(_MISSED, self.missed_before)
        return not misses_more and self.worst <= max(_DEAREST, self.worst_before)

    @property
    def helps(self) -> bool:
        return self.promises and self.certain >= _CERTAIN


def tune(
    paths: Sequence[LogPath],
    job: ReplayJob,
    *,
    engine: Engine,
    start: Learned = SHIPPED,
    lengths: Sequence[int] = (),
    progress: Callable[[str, LogPath], None] = lambda what, path: None,
) -> Tuned:
    """Returns what these recordings teach. `start` is what is in force now; `lengths` are those, in turns, of sessions
    of which no more is known; `progress` is called for every session worked on."""
    problems: set[FileProblem] = set()

    def values(work: SessionWork[T], what: str) -> Iterator[T]:
        for result in run_on_sessions(paths, work, job, engine):
            progress(what, result.path)
            if isinstance(result, FileProblem):
                problems.add(result)
            else:
                yield result.value

    def judge(trials: Sequence[Trial], what: str) -> list[JudgedSession]:
        work = partial(judge_session, trials=tuple(trials), sampled=sampled)
        return list(values(work, what)) if len(evidence) > 1 else []

    evidence = list(values(collect_evidence, "fitting"))
    sampled = _sampled(evidence)
    choices = list(options(evidence, start, lengths))
    trials = [always(start), *(value.learned for option in choices for value in option.values)]
    judged = judge(trials, "judging")
    weighed = list(_weighed(judged, choices))
    now, outcome, taken = always(start), _verdict(judged, _NONE), list[_Weighed]()
    # Changes that help by themselves are added one after another, the best first, as long as they help together.
    for one in sorted((one for one in weighed if one.helps), key=lambda one: -one.verdict.gain):
        more = _with_change(start, now, (trials[pick][part] for part, pick in enumerate(one.picks)))
        together = _side_by_side(judged, judge([more], "judging together"))
        verdict = _verdict(together, _FIRST)
        if verdict.helps and verdict.gain >= outcome.gain + _least_gain(one):
            now, outcome = more, verdict
            taken.append(one)
    return Tuned(
        now[-1],
        tuple(one.change(taken=one in taken, sessions=len(judged)) for one in weighed),
        len(evidence),
        len(judged),
        outcome.before,
        outcome.after,
        outcome.missed_before,
        outcome.missed,
        len(problems),
    )


def _sampled(evidence: Sequence[SessionEvidence]) -> tuple[str, ...]:
    """The sessions that judge, in an order that is the same in every process, so that a run can be resumed."""
    return tuple(sorted((one.id for one in evidence), key=lambda name: crc32(name.encode()))[:_SAMPLED])


@dataclass(frozen=True, slots=True)
class _Weighed:
    """An option, the picks among its values, and the verdict of the sessions that each pick was not chosen on."""

    option: TuningOption
    picks: Picks
    verdict: _Verdict
    best: int  # index of the value that is best on all sessions
    gain: float  # of that value on all sessions

    @property
    def helps(self) -> bool:
        return self.picks[-1] > 0 and self.verdict.helps

    def change(self, *, taken: bool, sessions: int) -> SettingChange:
        option, verdict = self.option, self.verdict
        among = f"the best of {len(option.values)} values on {sessions:,} sessions, {change(1 - self.gain, digits=2)}"
        effect = (
            f"{change(1 - verdict.gain, digits=2)} of the bill by itself, cheaper in {100 * verdict.certain:.0f} % of "
            f"the draws, {rate(verdict.missed)} missed"
        )
        after = option.values[self.best].text
        gain = max(self.gain, verdict.gain, key=abs)
        return SettingChange(option.name, option.before, after, option.evidence or among, effect, taken, gain)


def _weighed(judged: Sequence[JudgedSession], choices: Sequence[TuningOption]) -> Iterator[_Weighed]:
    first = 1
    for option in choices:
        places = range(first, first + len(option.values))
        first += len(option.values)
        picks = tuple(_best([one for one in judged if part_of(one.id) != part], places) for part in range(PARTS + 1))
        gains = [_gain(judged, place) for place in places]
        best = picks[-1] - places[0] if picks[-1] else gains.index(max(gains))
        yield _Weighed(option, picks, _verdict(judged, picks), best, gains[best])


def _gain(judged: Sequence[JudgedSession], at: int) -> float:
    base = sum(one.base for one in judged)
    return sum(one.figures[0].effective - one.figures[at].effective for one in judged) / base if base else 0.0


def _best(judged: Sequence[JudgedSession], places: Sequence[int]) -> int:
    """Returns the trial that is most surely cheaper on these sessions, and not because of one of them, or else 0."""
    verdicts = {at: _verdict(judged, (at,) * (PARTS + 1), draws=False) for at in places}
    return max((at for at in places if verdicts[at].promises), key=lambda at: verdicts[at].surely, default=0)


def _verdict(judged: Sequence[JudgedSession], picks: Picks, *, draws: bool = True) -> _Verdict:
    """Compares the picks with the present values, each session under the pick for its part."""
    base = sum(one.base for one in judged)
    if not base:
        return _Verdict(0.0, 0.0, 0.0, 0.0, 1.0, 1.0, 0.0, 0.0, 0.0, 0.0)
    now = [one.figures[0] for one in judged]
    then = [one.figures[picks[part_of(one.id)]] for one in judged]
    effective = [[one.effective for one in figures] for figures in (now, then)]
    gains = [before - after for before, after in zip(*effective, strict=True)]
    mean = sum(gains) / len(gains)
    ratios = draw_ratios([one.base for one in judged], effective) if draws and any(gains) else []
    return _Verdict(
        sum(gains) / base,
        math.sqrt(sum((one - mean) ** 2 for one in gains)) / base,
        (sum(gains) - max(gains)) / base,
        sum(after < before for before, after in ratios) / len(ratios) if ratios else 0.0,
        sum(effective[0]) / base,
        sum(effective[1]) / base,
        _missed(now),
        _missed(then),
        _worst(judged, now),
        _worst(judged, then),
    )


def _missed(figures: Sequence[ReplayFigures]) -> float:
    demanded = sum(one.demanded for one in figures)
    return sum(one.missed for one in figures) / demanded if demanded else 0.0


def _worst(judged: Sequence[JudgedSession], figures: Sequence[ReplayFigures]) -> float:
    ratios = (one.effective / of.base for of, one in zip(judged, figures, strict=True) if one.requests >= WORST_FROM)
    return max(ratios, default=0.0)


def _side_by_side(judged: Sequence[JudgedSession], others: Sequence[JudgedSession]) -> list[JudgedSession]:
    """Returns the same sessions under the present values, and under one trial."""
    return [replace(one, figures=(one.figures[0], other.figures[0])) for one, other in zip(judged, others, strict=True)]


def _least_gain(one: _Weighed) -> float:
    """The least share of the cost that is not noise. Forms change little and lose nothing, so less will do for them."""
    return _FORMS_GAIN if one.option.name.startswith(("learned.", "references.")) else _LEAST_GAIN


def _with_change(start: Learned, now: Trial, more: Iterable[Learned]) -> Trial:
    return tuple(_merged(start, mine, added) for mine, added in zip(now, more, strict=True))


def _merged(start: Learned, now: Learned, more: Learned) -> Learned:
    """Returns `now` with what `more` changes of `start`."""
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
