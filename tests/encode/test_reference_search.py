"""The search for lines that stand elsewhere: what it passes over could not have been worth a reference."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pagefold.encode import reference_search
from pagefold.encode.reference_search import ReferenceSearch
from pagefold.pages.ledger import Ledger, LedgerEntry

KNOWN = [
    "def first(argument): return argument",
    "    a line of some words that stands in many places",
    "",
    "}",
    "ok",
    "error: a line that tells an outcome",
    "x = 1",
    "the end of a paragraph, which is long enough to be worth a reference by itself if it has to be",
    "## A heading",
]
LINES = st.lists(st.one_of(st.sampled_from(KNOWN), st.text("abc ", max_size=6)), max_size=40)


def found(lines: list[str], ledger: Ledger, *, plain: bool, data: bool) -> tuple[object, object]:
    this = LedgerEntry(ledger.next_title, ())
    search = ReferenceSearch(lines, this, ledger, 12, plain=plain, data=data)
    return search.made, search.literal


@given(st.lists(LINES, max_size=3), LINES, st.booleans(), st.booleans())
@settings(deadline=None, max_examples=400)
def test_passing_over_lines_finds_what_comparing_each_of_them_finds(
    earlier: list[list[str]], lines: list[str], plain: bool, data: bool
) -> None:
    ledger = Ledger()
    for text in earlier:
        ledger = ledger.with_text(LedgerEntry(ledger.next_title, tuple(text)))
    quick = found(lines, ledger, plain=plain, data=data)

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(reference_search, "MOST_PLACES", 1 << 40)  # as where the places of a text are many: no shortcut
        patched.setattr(ReferenceSearch, "_lines_again", lambda search: set(search._lines))
        assert found(lines, ledger, plain=plain, data=data) == quick


def test_short_lines_that_the_ledger_does_not_list_are_part_of_a_run() -> None:
    lines = ["a line of some words that stands above", "}", "", "and another one of as many words as that"]
    ledger = Ledger().with_text(LedgerEntry("R1", (*lines, "the end")))

    made, literal = found(lines, ledger, plain=True, data=True)

    assert made == [reference_search.Reference(0, 4, ledger[0], 0)]
    assert literal == [None] * 4
