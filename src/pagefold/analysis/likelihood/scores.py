"""Asks a model how likely every answer is after every context, within a budget, and keeps what it said.

A session's turns are scored context by context, so that an endpoint that keeps what it last read reads only what is
new. A session counts once it is whole: a pair of which one half is missing says nothing.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby

from pagefold.adapters.model_endpoint import ModelEndpoint
from pagefold.analysis.kept_answers import Budget, KeptAnswers, asked_key
from pagefold.analysis.likelihood.turns import ScoredTurn


@dataclass(frozen=True, slots=True)
class TurnScore:
    """`nats` is how unlikely an answer is after each context, over all of its tokens; `answer_tokens` how many those
    are to the model."""

    turn: ScoredTurn
    answer_tokens: int
    nats: Mapping[str, float]


def scores_of(
    turns: Sequence[ScoredTurn], endpoint: ModelEndpoint, budget: Budget, kept: KeptAnswers
) -> Iterator[TurnScore]:
    """Yields the scores of all turns, session by session, until the budget is spent. Raises UpstreamError."""
    for _, group in groupby(turns, key=lambda turn: (turn.source, turn.session)):
        session = list(group)
        told: dict[int, dict[str, tuple[float, int]]] = {turn.place: {} for turn in session}
        for name in session[0].contexts:
            for turn in session:
                score = _score(turn, name, endpoint, budget, kept)
                if score is None:
                    return
                told[turn.place][name] = score
        for turn in session:
            scored = told[turn.place]
            nats = {name: value for name, (value, _) in scored.items()}
            yield TurnScore(turn, min(tokens for _, tokens in scored.values()), nats)


def _score(
    turn: ScoredTurn, name: str, endpoint: ModelEndpoint, budget: Budget, kept: KeptAnswers
) -> tuple[float, int] | None:
    context = turn.contexts[name]
    asked = asked_key("answer after context", endpoint.model, context, turn.answer)
    if asked not in kept.known:
        if budget.why_ended:
            return None
        likelihood = endpoint.likelihood(context, turn.answer)
        budget.spend(likelihood.prompt_tokens or turn.tokens[name])
        about = {"session": turn.session, "turn": turn.place, "context": name}
        kept.keep(asked, {**about, "nats": -likelihood.nats, "tokens": likelihood.tokens})
    return kept.known[asked]["nats"], kept.known[asked]["tokens"]
