"""Differences in nats a token, their intervals, and what is said of them."""

import pytest

from pagefold.analysis.likelihood.figures import difference, figures_of, verdict
from pagefold.analysis.likelihood.scores import TurnScore
from pagefold.analysis.likelihood.turns import LAST, ORIGINAL, ScoredTurn


def score(session: int, tokens: int, **more: float) -> TurnScore:
    """A turn whose answer costs a nat a token after the original, and so much more after the others."""
    names = {ORIGINAL: 0.0, LAST: more["last"], "economic": more["economic"]}
    turn = ScoredTurn(f"s{session}", "made", 7, "an answer", dict.fromkeys(names, ""), dict.fromkeys(names, 100))
    return TurnScore(turn, tokens, {name: tokens * (1 + extra) for name, extra in names.items()})


def test_nats_are_by_token_of_all_answers() -> None:
    scores = [score(1, 10, last=0.5, economic=1.0), score(2, 30, last=0.1, economic=0.2)]
    original, last, economic = figures_of(scores)

    assert original.nats == pytest.approx(1.0)
    assert last.to_original.nats == pytest.approx((10 * 0.5 + 30 * 0.1) / 40)
    assert economic.to_last.nats == pytest.approx((10 * 0.5 + 30 * 0.1) / 40)
    assert economic.to_original.worse == 2
    assert original.to_original.to_dict() == {"nats_a_token": 0, "interval": [0, 0], "turns_worse": 0}


@pytest.mark.parametrize(
    ("economic", "said"),
    [
        ([0.1, 0.2, 0.1, 0.15], "economic predicts the recorded answers better than"),
        ([0.9, 0.8, 0.7, 0.9], "economic predicts the recorded answers worse than"),
        ([0.1, 0.9, 0.2, 0.8], "Not decided"),
        ([0.9], "One session does not tell"),
    ],
)
def test_the_verdict_follows_the_interval_by_session(economic: list[float], said: str) -> None:
    scores = [score(number, 20, last=0.5, economic=extra) for number, extra in enumerate(economic)]

    assert verdict("economic", scores).startswith(said)


def test_many_turns_of_one_session_are_no_evidence_of_others() -> None:
    alike = [score(1, 20, last=0.5, economic=0.1) for _ in range(50)]
    told = difference([*alike, score(2, 20, last=0.5, economic=1.5)], "economic", LAST)

    assert told.low is not None
    assert told.high is not None
    assert told.low < 0 < told.high
