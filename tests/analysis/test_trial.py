"""What a trial's sessions show: ratios with intervals, and a verdict that says no more than they do."""

import random
from math import exp

import pytest

from pagefold.analysis.trial import LEAST, Compared, TrialResult, compared, sessions_needed, t_quantile
from pagefold.derive.session_row import MIXED, SessionRow
from pagefold.derive.trial import Arm, arm_of


def trial(sessions: int, *, cost: float = 1.0, turns: float = 1.0, edits: float = 0.05, seed: int = 1) -> TrialResult:
    """Made-up sessions, of which the treated cost and take so many times as much, and fail so many edits."""
    dice, rows = random.Random(seed), []
    for number in range(sessions):
        row = SessionRow(f"{seed}-{number}", arm_of(f"{seed}-{number}", 0.4), "lossless", results=40, edits=20, asks=5)
        treated = row.arm == Arm.TREATED
        length = dice.gauss(3, 0.6)
        row.turns = round(exp(length) * (turns if treated else 1.0)) + 1
        row.usd = exp(length + dice.gauss(-4, 0.15)) * (cost if treated else 1.0)
        row.seconds = 20.0 * row.turns
        row.errors, row.rereads = dice.randrange(6), dice.randrange(9)
        row.failed_edits = sum(dice.random() < (edits if treated else 0.05) for _ in range(row.edits))
        rows.append(row)
    return compared(rows)


def of(result: TrialResult, name: str) -> Compared:
    return next(one for one in result.measures if one.name == name)


def test_too_few_sessions_say_nothing() -> None:
    assert compared([]).verdict.startswith("Not enough sessions to tell anything yet: 0 sessions")
    result = trial(2 * LEAST - 4)

    assert "at least 5 in each group" in result.verdict
    assert all(one.ratio is None for one in result.measures)


def test_a_saving_is_found_with_its_interval_and_said_in_words() -> None:
    result = trial(300, cost=0.7)
    same = of(result, "cost at the same length")

    assert same.ratio == pytest.approx(0.7, abs=0.05)
    assert same.low < 0.7 < same.high < 0.8
    assert same.high - same.low < of(result, "cost").high - of(result, "cost").low
    assert result.verdict.startswith("Cheaper by ")
    assert "no sign of more turns (" in result.verdict
    assert "not enough sessions to tell about corrections" in result.verdict


def test_more_turns_and_more_failed_edits_are_said_plainly() -> None:
    result = trial(400, turns=1.5, edits=0.15)

    assert of(result, "turns").low > 1.2
    assert of(result, "failed edits").low > 2
    assert "more turns by " in result.verdict
    assert "more failed edits by " in result.verdict


def test_sessions_outside_the_trial_or_in_both_groups_are_left_out() -> None:
    rows = [SessionRow("a", ""), SessionRow("b", MIXED), SessionRow("c", Arm.TREATED), SessionRow("d", Arm.HELD_OUT)]
    result = compared(rows)

    assert (result.treated, result.held_out, result.mixed) == (1, 1, 1)


def test_the_intervals_hold_what_was_planted_in_about_95_of_100_trials() -> None:
    trials = [trial(80, cost=0.8, seed=seed) for seed in range(300)]
    for name, true in (("cost", 0.8), ("cost at the same length", 0.8), ("failed edits", 1.0), ("re-reads", 1.0)):
        held = [one.low <= true <= one.high for result in trials if (one := of(result, name)).high]
        assert len(held) > 250
        assert 0.915 <= sum(held) / len(held) <= 0.985


@pytest.mark.parametrize(("freedom", "quantile"), [(4, 2.776), (10, 2.228), (30, 2.042), (1e9, 1.96)])
def test_students_t(freedom: float, quantile: float) -> None:
    assert t_quantile(freedom) == pytest.approx(quantile, rel=0.005)


def test_smaller_effects_and_lopsided_shares_take_more_sessions() -> None:
    assert sessions_needed(1.0, 0.9, 0.5) > 4 * sessions_needed(1.0, 0.8, 0.5)
    assert sessions_needed(1.0, 0.9, 0.1) > 2 * sessions_needed(1.0, 0.9, 0.5)
