"""References to a text that stands in the request, byte for byte."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pagefold.encode.reference import Verbosity, ref_hint, ref_label

LABELS = st.text(st.sampled_from("ab,:]>[ ")) | st.text() | st.just("a, byte-identical")


@pytest.mark.parametrize(
    ("verbosity", "hint"),
    [
        (Verbosity.TERSE, "> [ref: 1f2e3d4c]"),
        (Verbosity.STANDARD, "> [ref: 1f2e3d4c, byte-identical]"),
        (Verbosity.VERBOSE, "> [ref: 1f2e3d4c, byte-identical, from: file-read]"),
    ],
)
def test_a_hint_says_its_label_and_gives_it_back(verbosity: Verbosity, hint: str) -> None:
    assert ref_hint("1f2e3d4c", verbosity, "file-read") == hint
    assert ref_label(hint) == "1f2e3d4c"


def test_a_hint_is_standard_unless_asked() -> None:
    assert ref_hint("a") == "> [ref: a, byte-identical]"


def test_verbose_without_a_tag_is_standard() -> None:
    assert ref_hint("a", Verbosity.VERBOSE) == ref_hint("a")


@pytest.mark.parametrize("label", ["src/[id]/a,b.tsx", "a, b]", "Read a.py #2", "a, byte-identical"])
def test_a_label_may_have_commas_and_brackets(label: str) -> None:
    assert ref_label(ref_hint(label)) == label


@pytest.mark.parametrize(
    ("label", "verbosity", "tag"),
    [
        ("", Verbosity.STANDARD, ""),
        ("a\nb", Verbosity.STANDARD, ""),
        ("a\u2028b", Verbosity.TERSE, ""),
        ("a, byte-identical", Verbosity.TERSE, ""),
        ("a", Verbosity.VERBOSE, "b, c"),
        ("a", Verbosity.VERBOSE, "b\nc"),
    ],
)
def test_what_would_not_come_back_is_refused(label: str, verbosity: Verbosity, tag: str) -> None:
    with pytest.raises(ValueError, match="cannot say"):
        ref_hint(label, verbosity, tag)


@pytest.mark.parametrize(
    "line", ["", "words", "[ref: a]", "> [ref: ]", "> [near-ref: a]", "> [ref: a]\n", "> [ref: a\nb]"]
)
def test_a_line_that_is_no_hint_has_no_label(line: str) -> None:
    assert ref_label(line) is None


@given(LABELS, st.sampled_from(Verbosity), st.sampled_from(["", "file-read", "file-mutate", "other"]) | st.text())
def test_a_hint_is_refused_or_comes_back_in_one_line(label: str, verbosity: Verbosity, tag: str) -> None:
    try:
        hint = ref_hint(label, verbosity, tag)
    except ValueError:
        return
    assert ref_label(hint) == label
    assert len(hint.splitlines()) == 1
