"""Adds up the answers of a reading test: accuracy on originals and on forms, paired, by codec and by kind.

Intervals hold the figure in 95 of 100 draws of the sessions with a fixed seed, so questions about one session count as
the related evidence that they are. Where no answer got worse (or better), the rule of three says how many may still do
so: 3 of as many as were asked. Where there is one session intervals are as wide as can be.
"""

import math
import statistics
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from pagefold.analysis.compare import draw_ratios

MARGIN = 0.02
"""How much worse forms of a codec may be read than originals. A codec that is read worse is off by default."""

_NORMAL = 1.96
_RULE_OF_THREE = 3.0


@dataclass(frozen=True, slots=True)
class PairedAnswer:
    """A question that was answered about the original and about the form, and whether each answer was right.

    `nats` is how unlikely the right answer was in each, by token, where the model was asked for that.
    """

    session: str
    codecs: tuple[str, ...]
    kind: str
    tool: str
    original: bool
    form: bool
    chance: float = 0.0
    nats: tuple[float, float] | None = None
    tokens: tuple[int, int] = (0, 0)


@dataclass(frozen=True, slots=True)
class ReadingFigures:
    """What is known about one codec, kind of question or all of them. `difference` is form less original."""

    name: str
    asked: int
    sessions: int
    original: float
    form: float
    low: float
    high: float
    chance: float
    needed: int
    tokens: float
    nats: tuple[float, float, float] | None = None

    @property
    def difference(self) -> float:
        return self.form - self.original

    @property
    def verdict(self) -> str:
        """`off`: read worse than the margin allows. `on`: not. `open`: the questions do not decide."""
        if self.high < -MARGIN:
            return "off"
        return "on" if self.low >= -MARGIN else "open"

    def to_dict(self) -> dict[str, Any]:
        told = {
            "name": self.name,
            "questions": self.asked,
            "sessions": self.sessions,
            "original": round(self.original, 4),
            "form": round(self.form, 4),
            "difference": round(self.difference, 4),
            "interval": [round(self.low, 4), round(self.high, 4)],
            "chance": round(self.chance, 4),
            "tokens_ratio": round(self.tokens, 4),
            "verdict": self.verdict,
            "questions_needed": self.needed,
        }
        if self.nats is not None:
            interval = [round(bound, 4) for bound in self.nats[1:]]
            told["nats_a_token"] = {"difference": round(self.nats[0], 4), "interval": interval}
        return told


def figures(name: str, answers: Sequence[PairedAnswer]) -> ReadingFigures:
    """Returns the figures of some answers, of which there has to be one at least."""
    gains = [answer.form - answer.original for answer in answers]
    low, high = _interval(answers, lambda answer: answer.form - answer.original)
    unseen = min(1.0, _RULE_OF_THREE / len(gains))
    low = low if -1 in gains else max(-1.0, low - unseen)
    high = high if 1 in gains else min(1.0, high + unseen)
    spread = statistics.pstdev(gains) if len(gains) > 1 else 1.0
    scored = [answer for answer in answers if answer.nats is not None]
    before = sum(answer.tokens[0] for answer in answers)
    return ReadingFigures(
        name,
        len(answers),
        len({answer.session for answer in answers}),
        _mean(answer.original for answer in answers),
        _mean(answer.form for answer in answers),
        low,
        high,
        _mean(answer.chance for answer in answers),
        math.ceil((_NORMAL * spread / MARGIN) ** 2),
        sum(answer.tokens[1] for answer in answers) / before if before else 1.0,
        (_mean(map(_more_nats, scored)), *_interval(scored, _more_nats)) if scored else None,
    )


def by_codec(answers: Sequence[PairedAnswer]) -> list[ReadingFigures]:
    """Returns the figures of each codec, over all forms that it had a part in, the worst first."""
    names = {codec for answer in answers for codec in answer.codecs}
    rows = [figures(name, [answer for answer in answers if name in answer.codecs]) for name in names]
    return sorted(rows, key=lambda row: (row.difference, row.name))


def by_kind(answers: Sequence[PairedAnswer]) -> list[ReadingFigures]:
    kinds = sorted({answer.kind for answer in answers})
    return [figures(kind, [answer for answer in answers if answer.kind == kind]) for kind in kinds]


def verdict(rows: Sequence[ReadingFigures]) -> str:
    """Says in words which codecs a result switches off, and for which it decides nothing."""
    margin = f"{MARGIN:.0%}".replace("%", " points")
    names = {sort: [row.name for row in rows if row.verdict == sort] for sort in ("off", "on", "open")}
    sentences = []
    if names["off"]:
        sentences.append(f"Below the original by more than {margin}, off by default: {', '.join(names['off'])}.")
    if names["on"]:
        sentences.append(f"Not below the original by more than {margin}: {', '.join(names['on'])}.")
    if names["open"]:
        most = max(row.needed for row in rows if row.verdict == "open")
        sentences.append(f"Not decided: {', '.join(names['open'])} (up to {most:,} questions a codec would do it).")
    return " ".join(sentences) or "Nothing was asked."


def settings_for(rows: Iterable[ReadingFigures], answers: Sequence[PairedAnswer]) -> dict[str, list[str]]:
    """Returns by tool the codecs to leave out (`learned.TOOL.without`): those that are off, where they were met."""
    off = {row.name for row in rows if row.verdict == "off"}
    left_out: dict[str, set[str]] = {}
    for answer in answers:
        for codec in off.intersection(answer.codecs):
            left_out.setdefault(answer.tool, set()).add(codec)
    return {tool: sorted(codecs) for tool, codecs in sorted(left_out.items()) if tool}


def _more_nats(answer: PairedAnswer) -> float:
    assert answer.nats is not None
    return answer.nats[1] - answer.nats[0]


def _interval(answers: Sequence[PairedAnswer], value: Callable[[PairedAnswer], float]) -> tuple[float, float]:
    """Returns where the mean lies in 95 of 100 draws of the sessions."""
    counts: dict[str, int] = {}
    sums: dict[str, float] = {}
    for answer in answers:
        counts[answer.session] = counts.get(answer.session, 0) + 1
        sums[answer.session] = sums.get(answer.session, 0.0) + value(answer)
    drawn = sorted(row[0] for row in draw_ratios(list(counts.values()), [list(sums.values())]))
    if not drawn:
        return -1.0, 1.0
    return drawn[int(0.025 * len(drawn))], drawn[int(0.975 * (len(drawn) - 1))]


def _mean(values: Iterable[float]) -> float:
    listed = list(values)
    return sum(listed) / len(listed) if listed else 0.0
