"""Adds up how likely answers were: nats a token by context, and the difference from another context, paired by turn.

A nat more makes a token 2.7 times less likely. Intervals hold the figure in 95 of 100 draws of the sessions with a
fixed seed, so turns of one session count as the related evidence that they are; there is none for one session alone.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from pagefold.analysis.compare import draw_ratios
from pagefold.analysis.likelihood.scores import TurnScore
from pagefold.analysis.likelihood.turns import LAST, ORIGINAL


@dataclass(frozen=True, slots=True)
class Difference:
    """How many nats a token more, and the interval. `low` and `high` are None for one session."""

    nats: float
    low: float | None
    high: float | None
    worse: int  # turns at which the answer was less likely

    def to_dict(self) -> dict[str, Any]:
        bounds = [bound if bound is None else round(bound, 4) for bound in (self.low, self.high)]
        return {"nats_a_token": round(self.nats, 4), "interval": bounds, "turns_worse": self.worse}


@dataclass(frozen=True, slots=True)
class ContextFigures:
    """One context over all turns. `tokens` is its mean size."""

    name: str
    tokens: float
    nats: float
    to_original: Difference
    to_last: Difference

    def to_dict(self) -> dict[str, Any]:
        return {
            "name": self.name,
            "tokens": round(self.tokens, 1),
            "nats_a_token": round(self.nats, 4),
            "more_than_original": self.to_original.to_dict(),
            "more_than_last_tokens": self.to_last.to_dict(),
        }


def figures_of(scores: Sequence[TurnScore]) -> list[ContextFigures]:
    """Returns the figures of every context, of turns of which there has to be one at least."""
    return [_figures(name, scores) for name in scores[0].nats]


def _figures(name: str, scores: Sequence[TurnScore]) -> ContextFigures:
    tokens = sum(score.answer_tokens for score in scores)
    return ContextFigures(
        name,
        sum(score.turn.tokens[name] for score in scores) / len(scores),
        sum(score.nats[name] for score in scores) / tokens,
        difference(scores, name, ORIGINAL),
        difference(scores, name, LAST),
    )


def difference(scores: Sequence[TurnScore], name: str, other: str) -> Difference:
    """How much less likely answers are after one context than after another."""
    tokens: dict[tuple[str, str], int] = {}
    more: dict[tuple[str, str], float] = {}
    for score in scores:
        session = score.turn.source, score.turn.session
        tokens[session] = tokens.get(session, 0) + score.answer_tokens
        more[session] = more.get(session, 0.0) + score.nats[name] - score.nats[other]
    drawn = sorted(row[0] for row in draw_ratios(list(tokens.values()), [list(more.values())]))
    low, high = (drawn[int(0.025 * len(drawn))], drawn[int(0.975 * (len(drawn) - 1))]) if drawn else (None, None)
    worse = sum(score.nats[name] > score.nats[other] for score in scores)
    return Difference(sum(more.values()) / sum(tokens.values()), low, high, worse)


def verdict(policy: str, scores: Sequence[TurnScore]) -> str:
    """Says whether what a policy sends predicts the next answer better than the plain end of the history does."""
    told = difference(scores, policy, LAST)
    if told.low is None or told.high is None:
        return f"One session does not tell whether {policy} predicts answers better than {LAST} of the same size do."
    if told.high < 0:
        return f"{policy} predicts the recorded answers better than {LAST} of the same size."
    if told.low > 0:
        return f"{policy} predicts the recorded answers worse than {LAST} of the same size."
    return f"Not decided whether {policy} predicts the recorded answers better or worse than {LAST} of the same size."
