"""Questions have one right answer, and it comes from the original; the same session and seed make the same ones."""

import random
from itertools import chain

import pytest

from pagefold.adapters import recordings
from pagefold.analysis.engine import sessions_of
from pagefold.analysis.reading.cases import ReadingCase, cases_of, without_frame
from pagefold.analysis.reading.data_questions import data_questions
from pagefold.analysis.reading.line_questions import line_questions, numbered_lines
from pagefold.analysis.reading.question import Kind, Question, plain
from pagefold.analysis.reading.selection import chosen
from pagefold.analysis.reading.text_questions import outcome_question, text_questions
from pagefold.analysis.replay_job import ReplayJob
from pagefold.derive.cost import ASSUMED
from pagefold.wire.transcripts import Session

NUMBERED = "\n".join(f"{number}\tline of text {number * 7}" for number in range(20, 40))
HITS = "\n".join(f"src/part{number % 3}.py:{number}:def name_{number}():" for number in range(10, 22))
LOG = "\n".join(f"2026-03-21 08:00:{second:02} +0100 INFO worker {second} began" for second in range(10, 22))
LISTED = "\n".join(f"-rw-r--r--  1 root root {size} Nov 22  2024 file{size}.txt" for size in range(1000, 1008))
PATHS = "\n".join(f"src/folder{number % 2}/module{number}.py" for number in range(10))
ROWS = '{"total": 3, "loans": [{"id": 1, "due": "07-11"}, {"id": 2, "due": "01-26"}, {"id": 3, "due": "02-02"}]}'


def asked(text: str, form: str = "") -> list[Question]:
    dice = random.Random(3)
    made = chain(line_questions(text, form, dice), data_questions(text, dice), text_questions(text, dice))
    return [question for question in made if question is not None]


def the(kind: Kind, text: str, form: str = "") -> Question:
    (question,) = [question for question in asked(text, form) if question.kind is kind]
    return question


@pytest.fixture(scope="module")
def session() -> Session:
    (session,) = sessions_of([recordings.example()], ReplayJob(ASSUMED, "o200k", 200_000))
    return session


@pytest.fixture(scope="module")
def cases(session: Session) -> list[ReadingCase]:
    return list(cases_of(session, context=6_000, seed=1))


def test_a_line_and_its_number_are_each_others_answer() -> None:
    by_number, by_line = the(Kind.LINE_BY_NUMBER, NUMBERED), the(Kind.NUMBER_BY_LINE, NUMBERED)
    lines = numbered_lines(NUMBERED)

    number = int(by_number.text.split()[-2])
    assert by_number.answer == lines[number]
    assert f"`{lines[int(by_line.answer)]}`" in by_line.text


def test_lines_whose_numbers_do_not_count_up_are_not_asked_about() -> None:
    assert numbered_lines(NUMBERED + "\n20\tagain") == {}
    assert not [question for question in asked(NUMBERED + "\n20\tagain") if question.kind is Kind.LINE_BY_NUMBER]


def test_a_span_has_lines_on_both_sides_of_a_reference() -> None:
    form = "[R9 lines 20-39]\n20\tline of text 140\n= lines 21-33 of R2\n34\tline of text 238"
    span = the(Kind.SPAN, NUMBERED, form)
    numbers = [int(word) for word in span.text.replace("?", "").replace(",", "").split() if word.isdigit()]

    assert numbers[0] in (20, 33)
    assert span.answer == "\n".join(numbered_lines(NUMBERED)[number] for number in range(numbers[0], numbers[1] + 1))


def test_without_numbers_the_lines_after_one_are_asked_for() -> None:
    lines = [f"the step number {number} was made" for number in range(12)]
    form = "\n".join(["[R4]", *lines[:4], "= lines 5-12 of R2"])

    span = the(Kind.SPAN, "\n".join(lines), form)

    assert f"`{lines[3]}`" in span.text
    assert span.answer == "\n".join(lines[4:6])


@pytest.mark.parametrize(
    ("kind", "text", "answer"),
    [
        (Kind.FILE_OF_HIT, HITS, "src/part"),
        (Kind.PATH_BY_NAME, PATHS, "src/folder"),
        (Kind.TIME_OF_LINE, LOG, "2026-03-21 08:00:"),
        (Kind.ROW_BY_CONDITION, ROWS, ""),
    ],
)
def test_each_shape_has_its_question(kind: Kind, text: str, answer: str) -> None:
    question = the(kind, text)

    assert question.answer.startswith(answer)
    assert question.answer in text
    assert all(plain(wrong) != plain(question.answer) and wrong in text for wrong in question.wrong)


def test_a_time_has_its_zone() -> None:
    assert the(Kind.TIME_OF_LINE, LOG).answer.endswith(" +0100")


def test_subtitles_are_no_log() -> None:
    text = "\n".join(f"00:00:{second} --> 00:00:{second + 1}\nwords said {second}" for second in range(10, 20))

    assert not [question for question in asked(text) if question.kind is Kind.TIME_OF_LINE]


def test_the_size_in_a_listing_is_a_value() -> None:
    size = the(Kind.VALUE_BY_KEY, LISTED)

    assert f"file{size.answer}.txt" in size.text


def test_numbers_are_answered_as_they_are_spelled() -> None:
    (question,) = [
        question for question in asked('{"price": 1.50, "name": "desk"}') if question.kind is Kind.VALUE_BY_KEY
    ]

    assert {question.answer, *question.wrong} == {"1.50", "desk"}


@pytest.mark.parametrize(
    "text",
    [
        HITS + "\n" + HITS.replace("src/", "/home/me/src/").replace("name_", "other_"),  # a file under two names
        "\n".join(f"src/only.py:{number}:def name_{number}():" for number in range(10)),
        "\n".join(f"src/part{number}.py:3:the same text" for number in range(10)),
    ],
)
def test_a_hit_whose_file_is_not_clear_is_not_asked_about(text: str) -> None:
    assert not [question for question in asked(text) if question.kind is Kind.FILE_OF_HIT]


def test_lines_of_json_are_not_asked_about() -> None:
    text = "[\n" + ",\n".join(f'  {{\n    "name": "row number {number}"\n  }}' for number in range(9)) + "\n]"

    assert not {question.kind for question in asked(text)} & {Kind.NEXT_LINE, Kind.SPAN}


@pytest.mark.parametrize(
    ("text", "failed", "answer"),
    [
        ("<returncode>0</returncode>\n<output>\nfine</output>", False, "yes"),
        ("Process exited with code 0\nOutput:\nfine", False, "yes"),
        ("The file a.py has been updated.", False, "yes"),
        ("<returncode>2</returncode>\n<output>\nno</output>", False, "no"),
        ("whatever it says", True, "no"),
        ("Compiled successfully\n[WARNING] broken anchors", False, None),  # nobody says how it ended
        ("some words", False, None),
    ],
)
def test_outcomes_are_asked_for_where_there_is_no_doubt(text: str, failed: bool, answer: str | None) -> None:
    question = outcome_question(text, failed=failed, script="make")

    assert (question.answer if question else None) == answer


def test_the_bundled_session_has_questions_of_many_kinds(cases: list[ReadingCase]) -> None:
    assert {case.question.kind for case in cases} >= {
        Kind.LINE_BY_NUMBER,
        Kind.NUMBER_BY_LINE,
        Kind.SPAN,
        Kind.VALUE_BY_KEY,
        Kind.ROW_BY_CONDITION,
        Kind.TIME_OF_LINE,
    }


def test_answers_stand_in_the_original_and_both_contexts_hold_the_same_messages(cases: list[ReadingCase]) -> None:
    for case in cases:
        if case.question.kind is not Kind.OUTCOME:
            for line in case.question.answer.split("\n"):
                assert line in case.result.replace('\\"', '"')
        assert case.result in case.original
        assert case.shown_result in case.form
        assert case.original.count("### ") >= case.form.count("### tool result")
        assert case.tokens[0] <= 6_000 + 200


def test_what_a_form_refers_to_stands_in_its_context(cases: list[ReadingCase]) -> None:
    referring = [case for case in cases if "delta" in case.codecs]

    assert referring
    for case in referring:
        for line in case.shown_result.split("\n"):
            if line.startswith("= line") and " of R" in line:
                assert f"[{line.rpartition(' of ')[2].strip()}" in case.form


def test_the_same_seed_makes_the_same_questions_and_another_one_others(
    session: Session, cases: list[ReadingCase]
) -> None:
    assert list(cases_of(session, context=6_000, seed=1)) == cases
    assert {case.question for case in cases_of(session, context=6_000, seed=2)} != {case.question for case in cases}


def test_a_choice_is_even_among_codecs_and_asks_nothing_twice(cases: list[ReadingCase]) -> None:
    some = chosen([*cases, *cases], 8, seed=1)

    assert len(some) == 8
    assert len({case.id for case in some}) == 8
    every = {codec for case in cases for codec in case.codecs}
    assert {codec for case in some for codec in case.codecs} == every
    assert chosen(reversed(cases), 8, seed=1) == some


@pytest.mark.parametrize(
    "framed",
    [
        "a line\nanother",
        "<returncode>0</returncode>\n<output>\na line\nanother</output>",
        "Exit code: 0\nWall time: 0.1 seconds\nOutput:\na line\nanother",
        "=== STDOUT ===\na line\nanother\n=== EXECUTION INFO ===\nReturn code: 0\nExecution time: 1 seconds",
    ],
)
def test_nothing_is_asked_about_the_lines_that_a_client_puts_around_every_result(framed: str) -> None:
    assert without_frame(framed) == "a line\nanother"
