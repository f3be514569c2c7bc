import base64
import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pagefold.encode.cursor import (
    VERSION,
    Cursor,
    ForeignCursorError,
    ForgedCursorError,
    StaleCursorError,
    read_cursor,
)
from pagefold.encode.page_pieces import LEAST, BudgetError, gaps, piece, usable
from pagefold.errors import RecallError
from pagefold.pages.page import id_of
from pagefold.tokens import counter
from tests.encode.paging import pieces

count = counter("o200k").count
PAGE, OTHER = id_of(b"page"), id_of(b"other")


def members(cursor: str) -> dict[str, object]:
    found = json.loads(base64.urlsafe_b64decode(cursor + "=" * (-len(cursor) % 4)))
    assert isinstance(found, dict)
    return found


def spelled(said: object) -> str:
    return base64.urlsafe_b64encode(json.dumps(said).encode()).rstrip(b"=").decode()


runs = st.lists(st.integers(0, 50), max_size=12).map(
    lambda steps: tuple(
        (start, start + 3) for start in sorted({sum(steps[: n + 1]) + 5 * n for n in range(len(steps))})
    )
)


@settings(deadline=None)
@given(st.integers(0, 10), st.integers(0, 100_000), runs)
def test_a_cursor_comes_back_as_it_was(position: int, budget: int, shown: tuple[tuple[int, int], ...]) -> None:
    cursor = Cursor(PAGE, position, budget, tuple((start + position, end + position) for start, end in shown))

    assert read_cursor(str(cursor), PAGE, 1_000) == cursor
    assert set(str(cursor)) <= set("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_")


def test_a_cursor_says_version_page_position_and_budget() -> None:
    said = members(str(Cursor(PAGE, 7, 500)))

    assert (said["v"], said["a"], said["b"]) == (VERSION, 7, 500)
    assert "c" in said


@pytest.mark.parametrize("member", ["a", "b", "c", "s"])
def test_a_cursor_edited_by_hand_is_refused(member: str) -> None:
    said = members(str(Cursor(PAGE, 7, 500, ((10, 20),))))
    said[member] = {"a": 8, "b": 501, "c": "00000000", "s": [3, 11]}[member]

    with pytest.raises(ForgedCursorError, match="changed"):
        read_cursor(spelled(said), PAGE, 100)


@pytest.mark.parametrize(
    "text",
    ["", "x", "not a cursor!", "e30", spelled([1]), spelled("x"), "eyJ2Ijox", spelled({"v": VERSION}), "ü", "=" * 9],
)
def test_what_is_no_cursor_is_refused_in_words(text: str) -> None:
    with pytest.raises(RecallError, match="cursor"):
        read_cursor(text, PAGE, 100)


@pytest.mark.parametrize(
    "changed",
    [{"a": -1}, {"a": "7"}, {"a": True}, {"b": None}, {"s": "1"}, {"s": [1, -2]}, {"s": [1.5, 2]}, {"s": [[1], 2]}],
)
def test_a_cursor_with_members_of_another_kind_is_refused(changed: dict[str, object]) -> None:
    said = members(str(Cursor(PAGE, 7, 500))) | changed

    with pytest.raises(ForgedCursorError):
        read_cursor(spelled(said), PAGE, 100)


def test_a_cursor_of_another_page_is_foreign() -> None:
    with pytest.raises(ForeignCursorError, match="belongs to pf-"):
        read_cursor(str(Cursor(OTHER, 0, 500)), PAGE, 100)


def test_a_cursor_of_another_version_is_stale() -> None:
    said = members(str(Cursor(PAGE, 0, 500))) | {"v": VERSION + 1}

    with pytest.raises(StaleCursorError, match="version"):
        read_cursor(spelled(said), PAGE, 100)


def test_a_cursor_past_the_end_is_stale() -> None:
    with pytest.raises(StaleCursorError, match="everything has been seen"):
        read_cursor(str(Cursor(PAGE, 100, 500)), PAGE, 100)


@settings(deadline=None)
@given(st.text(max_size=300))
def test_any_text_is_a_cursor_or_a_typed_error(text: str) -> None:
    with pytest.raises(RecallError):
        read_cursor(text, PAGE, 100)


@settings(deadline=None)
@given(
    st.one_of(
        st.text(max_size=3_000),
        st.lists(st.text("abc de", max_size=60), max_size=200).map("\n".join),
        st.integers(0, 4_000).map(lambda n: "word " * n),
    ),
    st.integers(LEAST, 1_500),
    runs,
)
def test_shown_ranges_and_all_pieces_are_the_text_every_character_once(
    text: str, budget: int, shown: tuple[tuple[int, int], ...]
) -> None:
    page = id_of(text.encode("utf-8", "surrogatepass"))
    shown = tuple(run for run in shown if run[1] <= len(text))[: max(1, budget // 160)]  # as many as a budget may name
    missing = list(gaps(0, len(text), shown))
    start = (
        Cursor(page, missing[0][0], budget, tuple(run for run in shown if run[0] >= missing[0][0])) if missing else None
    )

    found = list(shown)
    for one in pieces(text, start, count):
        assert count(one.text) <= budget
        for first, last in one.parts:
            assert text[first:last] in one.text
        found += one.parts
        if one.cursor is not None:
            assert read_cursor(str(one.cursor), page, len(text)) == one.cursor

    assert "".join(text[first:last] for first, last in sorted(found)) == text
    assert sum(last - first for first, last in found) == len(text)


def test_a_piece_is_cut_at_a_line_where_there_is_one() -> None:
    text = "".join(f"line number {n}\n" for n in range(400))

    one = piece(text, Cursor(id_of(text.encode()), 0, 300), count)

    assert text[one.parts[0][1] - 1] == "\n"
    assert "[pf-" in one.text
    assert "lines 1-" in one.text
    assert 250 < count(one.text) <= 300


def test_the_last_piece_says_that_nothing_follows() -> None:
    one = piece("short", Cursor(id_of(b"short"), 0, 200), count)

    assert one.cursor is None
    assert "nothing follows" in one.text


@pytest.mark.parametrize("budget", [0, 1, -5, LEAST - 1])
def test_a_budget_in_which_nothing_can_be_said_is_refused(budget: int) -> None:
    with pytest.raises(BudgetError, match=f"budget = {budget}: expected at least {LEAST}"):
        usable(budget)
    with pytest.raises(BudgetError):
        piece("text" * 500, Cursor(PAGE, 0, budget), count)
