"""What a query asks for, and the few lines that are told of what was found."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pagefold.pages.search import Query, excerpt, parse_query, stands_in


@pytest.mark.parametrize(
    ("typed", "terms", "naming"),
    [
        ("where is load_config?", ("where", "is", "load_config"), ("load_config",)),
        ("loadConfig Config", ("loadConfig", "Config"), ("loadConfig",)),
        ("see src/app.py, (E0308) 404.", ("see", "src/app.py", "E0308", "404"), ("src/app.py", "E0308", "404")),
        ('"two words" two', ("two words", "two"), ("two words",)),
        ("a a a", ("a",), ()),
        ("-> :: __ ''", (), ()),
        ("--flag .env", ("--flag", ".env"), ("--flag", ".env")),
        ("HTTP", ("HTTP",), ("HTTP",)),
        ("Hello world", ("Hello", "world"), ()),
    ],
)
def test_terms_that_name_something_are_told_from_words(
    typed: str, terms: tuple[str, ...], naming: tuple[str, ...]
) -> None:
    assert parse_query(typed) == Query(terms, naming)


@pytest.mark.parametrize(
    ("term", "text", "expected"),
    [
        ("id", "the id of it", True),
        ("id", "the ids, idle, void", False),
        ("id", "void and id", True),
        ("a_b", "x.a_b()", True),
        ("a_b", "a_b_c", False),
        ("ID", "the id of it", False),
        ("src/a.py", "/work/src/a.py:12", True),
        ("src/a.py", "src/a.pyc", False),
        ("--no", "run --no-cache", True),
        ("x", "", False),
    ],
)
def test_a_term_stands_in_a_text_as_typed_or_not_at_all(term: str, text: str, expected: bool) -> None:
    assert stands_in(term, text) is expected


def test_an_excerpt_begins_at_the_line_before_and_says_its_number() -> None:
    text = "\n".join(f"line number {n}" for n in range(1, 101))

    assert excerpt(text, parse_query("57"), 45) == (56, "line number 56\nline number 57\nline number 58")
    assert excerpt("x" * 500 + " needle " + "y" * 500, parse_query("needle"), 40) == (
        1,
        "…" + "x" * 19 + " needle " + "y" * 13 + "…",
    )


@given(text=st.text(max_size=400), query=st.text(max_size=20), length=st.integers(10, 100))
def test_an_excerpt_is_a_part_of_the_text_and_its_line_is_right(text: str, query: str, length: int) -> None:
    line, cut = excerpt(text, parse_query(query), length)

    bare = cut.removeprefix("…").removesuffix("…")
    assert bare in text
    assert len(cut) <= length + 2
    assert 1 <= line <= text.count("\n") + 1
