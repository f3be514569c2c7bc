"""Which answers are right, and what many of them say about a codec."""

import pytest

from pagefold.analysis.reading.asking import is_right
from pagefold.analysis.reading.figures import PairedAnswer, by_codec, figures, settings_for, verdict
from pagefold.analysis.reading.question import Kind, Question


def answers(right: int, lost: int, won: int, wrong: int = 0, codec: str = "json") -> list[PairedAnswer]:
    """Questions about fifty sessions: right in both, lost in the form, won by it, wrong in both."""
    pairs = [(True, True)] * right + [(True, False)] * lost + [(False, True)] * won + [(False, False)] * wrong
    return [
        PairedAnswer(f"s{at % 50}", (codec,), "value by key", "Read", original, form)
        for at, (original, form) in enumerate(pairs)
    ]


@pytest.mark.parametrize(
    ("said", "answer", "right"),
    [
        ("    return loan", "return loan", True),
        ("`return loan`", "return loan", True),
        ("```python\nreturn loan\n```", "return loan", True),
        ("<think>which one?</think>\nreturn loan", "return loan", True),
        ("12\treturn loan", "return loan", True),
        ("return loan.", "return loan", True),
        ("Yes.", "yes", True),
        ("a = 1\nb = 2", "    a = 1\n    b = 2", True),
        ("The line says return loan", "return loan", False),
        ("return loans", "return loan", False),
        ("return Loan", "return loan", False),
        ("yes or no", "yes", False),
        ("", "return loan", False),
        ("12", "2", False),
    ],
)
def test_only_the_whole_answer_is_right(said: str, answer: str, right: bool) -> None:
    assert is_right(said, Question(Kind.LINE_BY_NUMBER, "?", answer, ("other",))) is right


def test_a_codec_that_loses_many_answers_is_off_and_named_for_its_tools() -> None:
    rows = by_codec([*answers(300, 60, 0), *answers(400, 0, 0, codec="numbered")])

    assert [(row.name, row.verdict) for row in rows] == [("json", "off"), ("numbered", "on")]
    assert rows[0].difference == pytest.approx(-60 / 360)
    assert settings_for(rows, answers(300, 60, 0)) == {"Read": ["json"]}
    assert verdict(rows).startswith("Below the original by more than 2 points, off by default: json.")


@pytest.mark.parametrize(("right", "lost", "won"), [(20, 0, 0), (20, 1, 1), (0, 1, 0), (60, 3, 0)])
def test_few_questions_decide_nothing(right: int, lost: int, won: int) -> None:
    row = figures("json", answers(right, lost, won))

    assert row.verdict == "open"
    assert row.low <= row.difference <= row.high


def test_without_a_difference_the_rule_of_three_bounds_it() -> None:
    row = figures("json", answers(100, 0, 0, 50))

    assert (row.low, row.high) == (-0.02, 0.02)
    assert row.verdict == "on"


def test_one_session_decides_nothing_however_many_questions_it_has() -> None:
    one = [PairedAnswer("s", ("json",), "value by key", "Read", True, False) for _ in range(500)]

    assert figures("json", one).verdict == "open"


def test_intervals_are_paired_so_what_is_hard_in_both_does_not_widen_them() -> None:
    easy, hard = figures("json", answers(400, 8, 8)), figures("json", answers(100, 8, 8, 300))

    assert easy.low == pytest.approx(hard.low, abs=0.01)
    assert hard.original == pytest.approx(108 / 416)
