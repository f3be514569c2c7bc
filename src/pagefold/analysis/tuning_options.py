"""Lists the settings that tuning may change, and the values it tries for each.

Some values are fitted: how likely facts are needed again, how long sessions last. Each of those is fitted once for each
part of the sessions, without that part. Others are a few steps around the present value: when a fold is due, which
codec is left out for which tool, from which length on a reference is used. Which value is better is not decided here.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from pagefold.analysis.fit import FittedValues, Observed, fitted
from pagefold.analysis.tuning_trials import PARTS, SessionEvidence, Trial
from pagefold.derive.learned import Folds, Learned, forms_of

LEAST_CALLS = 20
"""Results of a tool before leaving out one of its codecs is tried."""

_PAIRS = 12
_FLOORS = (16, 24, 48, 64)


@dataclass(frozen=True, slots=True)
class OptionValue:
    """`text` is how the value is shown to the user."""

    text: str
    learned: Trial


@dataclass(frozen=True, slots=True)
class TuningOption:
    """One setting: its present value, what the tried values are based on, and those values."""

    name: str
    before: str
    evidence: str
    values: tuple[OptionValue, ...]


def always(learned: Learned) -> Trial:
    """Returns a trial that is the same for every part of the sessions."""
    return (learned,) * (PARTS + 1)


def options(evidence: Sequence[SessionEvidence], start: Learned, lengths: Sequence[int]) -> Iterator[TuningOption]:
    yield from _fitted(evidence, start, lengths)
    yield from _folds(start)
    yield from _codecs(evidence, start)
    floor = start.forms.floor
    values = [OptionValue(str(one), always(replace(start, forms=replace(start.forms, floor=one)))) for one in _FLOORS]
    yield TuningOption("references.floor", str(floor), "", tuple(one for one in values if one.text != str(floor)))


def _fitted(evidence: Sequence[SessionEvidence], start: Learned, lengths: Sequence[int]) -> Iterator[TuningOption]:
    """What is fitted on two parts for the third to judge, and on all parts for the result."""
    fits = [_fit([one for one in evidence if one.part != part], start, lengths) for part in range(PARTS + 1)]
    whole = fits[-1]
    if whole.asked and whole.priors != start.priors:
        basis = f"{whole.sessions:,} sessions, {whole.asked:,} facts asked for, {whole.needed:,} needed again"
        each = tuple(replace(start, priors=one.priors) for one in fits)
        before, after = _spelled(start.priors.weights()), _spelled(whole.priors.weights())
        yield TuningOption("values", before, basis, (OptionValue(after, each),))
    if whole.lasting != start.lasting:
        each = tuple(replace(start, lasting=one.lasting) for one in fits)
        before, after = str(list(start.lasting.left)), str(list(whole.lasting.left))
        yield TuningOption("lasting", before, f"{whole.sessions:,} sessions", (OptionValue(after, each),))


def _fit(evidence: Sequence[SessionEvidence], start: Learned, lengths: Sequence[int]) -> FittedValues:
    rows: Observed = Counter()
    for one in evidence:
        rows.update(one.rows)
    return fitted(rows, [*lengths, *(one.turns for one in evidence)], priors=start.priors, lasting=start.lasting)


def _folds(start: Learned) -> Iterator[TuningOption]:
    for name, values in _around(start.folds).items():
        before = getattr(start.folds, name)
        tried = (
            OptionValue(f"{one:,}", always(replace(start, folds=replace(start.folds, **{name: one})))) for one in values
        )
        yield TuningOption(f"folds.{name}", f"{before:,}", "", tuple(tried))


def _around(folds: Folds) -> dict[str, list[Any]]:
    """A few values around the present ones."""
    return {
        "rent": [round(folds.rent * factor, 2) for factor in (0.4, 0.67, 1.5)],
        "least": [round(folds.least * factor) for factor in (0.25, 0.5, 0.75, 1.5)],
        "miss": [round(folds.miss * factor) for factor in (0.5, 0.75, 1.5)],
        "cold": [round(folds.cold * factor) for factor in (0.25, 0.5)],
        "horizon": [round(folds.horizon * factor) for factor in (0.6, 1.6)],
    }


def _codecs(evidence: Sequence[SessionEvidence], start: Learned) -> Iterator[TuningOption]:
    """Codecs that may cost more than they save for a tool, for example because nothing refers to its results."""
    used: Counter[tuple[str, str]] = Counter()
    weight: Counter[tuple[str, str]] = Counter()
    for one in evidence:
        used.update(one.used)
        weight.update(one.weight)
    left_out = dict(start.forms.without)
    for tool, codec in [pair for pair, _ in weight.most_common() if used[pair] >= LEAST_CALLS][:_PAIRS]:
        without = left_out | {tool: left_out.get(tool, frozenset()) | {codec}}
        forms = forms_of(without.items(), start.forms.floor)
        value = OptionValue(f"without {codec}", always(replace(start, forms=forms)))
        yield TuningOption(f"learned.{tool}.without", "used", f"used for {used[tool, codec]:,} results", (value,))


def _spelled(weights: Sequence[float]) -> str:
    return " ".join(f"{weight:+.2f}" for weight in weights)
