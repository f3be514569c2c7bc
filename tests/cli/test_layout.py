"""Paragraphs and tables: what is laid out fits, stands straight, and holds every word of what was said."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pagefold.cli.layout import BOLD, DIM, Line, Span, Table, cells_of, folded, shrunk

WORDS = st.text(st.sampled_from("ab c\n漢字é\u0301-1"), max_size=60)
CELLS = st.text(st.sampled_from("ab c漢é1"), max_size=20)


def said(line: Line) -> str:
    return "".join(span.text for span in line)


def without_blanks(text: str) -> str:
    return "".join(text.split())


@given(WORDS, st.integers(2, 30))
def test_folded_lines_fit_and_lose_no_character(text: str, room: int) -> None:
    lines = folded(text, room)
    assert all(cells_of(line) <= room for line in lines)
    assert without_blanks("".join(lines)) == without_blanks(text)


@pytest.mark.parametrize(
    ("text", "room", "lines"),
    [
        ("one two three", 7, ["one two", "three"]),
        ("  indented by two", 10, ["  indented", "by two"]),
        ("abcdefgh", 3, ["abc", "def", "gh"]),
        ("漢字かな", 5, ["漢字", "かな"]),
        ("", 5, [""]),
        ("a\n\nb", 5, ["a", "", "b"]),
        ("a\tb", 20, ["a       b"]),
    ],
)
def test_lines_break_between_words(text: str, room: int, lines: list[str]) -> None:
    assert folded(text, room) == lines


@given(st.lists(st.integers(1, 60), min_size=1, max_size=8), st.integers(1, 120))
def test_the_widest_columns_give_way_first(widths: list[int], room: int) -> None:
    made = shrunk(widths, room)
    assert sum(made) <= max(room, len(widths))
    assert sum(made) == sum(widths) or sum(made) == max(room, len(widths))
    assert all(1 <= now <= before for now, before in zip(made, widths, strict=True))
    kept = [now for now, before in zip(made, widths, strict=True) if now == before]
    cut = [now for now, before in zip(made, widths, strict=True) if now < before]
    assert not cut or max(kept, default=0) <= min(cut) + 1
    assert not cut or max(cut) - min(cut) <= 1


@given(st.lists(st.lists(CELLS, min_size=3, max_size=3), max_size=5), st.integers(20, 80), st.booleans())
def test_columns_of_a_table_stand_straight_and_hold_every_cell(rows: list[list[str]], room: int, left: bool) -> None:
    head = ["name", "much", "said"]
    lines = [said(line) for line in Table("", head, rows, left=left).lines(room)]
    assert all(cells_of(line) <= room for line in lines)
    found = sorted(without_blanks("".join(lines)))
    assert found == sorted(without_blanks("".join("".join(row) for row in [head, *rows])))


def test_numbers_are_aligned_right_and_styles_are_those_of_title_head_and_total() -> None:
    table = Table(
        "Costs", ["", "tokens", "cost"], [["a", "1", "$1"], ["漢字", "1,000", "$10"]], ["all", "1,001", "$11"]
    )
    lines = table.lines(80)
    assert [said(line) for line in lines] == [
        "Costs",
        "      tokens  cost",
        "a          1    $1",
        "漢字   1,000   $10",
        "all    1,001   $11",
    ]
    styles = [{span.style for span in line if span.text.strip()} for line in lines]
    assert styles == [{BOLD}, {DIM}, {""}, {""}, {BOLD}]


def test_a_cell_too_wide_is_folded_under_itself() -> None:
    lines = [said(line) for line in Table("", ["a", "b"], [["x", "one two three"]], left=True).lines(11)]
    assert lines == ["a  b", "x  one two", "   three"]


def test_a_cell_that_is_a_line_keeps_its_styles() -> None:
    table = Table("", ["a", "b"], [[(Span("xx", "7"), Span("y", "8")), "1"]])
    assert table.lines(80)[1][:2] == (Span("xx", "7"), Span("y", "8"))
    assert all(len(line) <= len(later) for line, later in pairwise(table.lines(80)))
