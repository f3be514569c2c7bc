"""escapes: long lines opened at their escaped line breaks."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pagefold.encode.codecs.escapes import EscapesCodec

LONG = r"\n".join(
    ["a text that somebody wrote down as one line", *["and that goes on for a while, for a long while"] * 12]
)


def test_a_long_line_is_broken_where_its_escaped_line_breaks_are() -> None:
    shown = EscapesCodec().encode(f"before\n'{LONG}'\nafter", str)

    assert shown is not None
    lines = shown.split("\n")
    assert lines[:4] == [
        "[long lines opened at their escaped line breaks]",
        "before",
        r"<<\n",
        "'a text that somebody wrote down as one line",
    ]
    assert lines[-2:] == [">>", "after"]
    assert EscapesCodec().decode(shown, str) == f"before\n'{LONG}'\nafter"


@pytest.mark.parametrize(
    "text", ["short \\n one", "x" * 900, LONG[:300], f"{LONG}\n>>", f"<<\\n\n{LONG}", LONG + r"\n>>\n"]
)
def test_what_is_short_or_holds_our_marks_is_left_alone(text: str) -> None:
    assert EscapesCodec().encode(text, str) is None


PIECES = st.sampled_from(
    [LONG, LONG.replace("\\n", r"\\n"), "x", "", ">>", r"<<\n", "a\\nb", "\\" * 5 + "n", "word " * 90]
)


@given(st.lists(st.lists(PIECES, min_size=1, max_size=3).map("".join), max_size=5))
@settings(deadline=None, max_examples=300)
def test_whatever_it_opens_it_closes_again(lines: list[str]) -> None:
    text = "\n".join(lines)
    shown = EscapesCodec().encode(text, str)

    assert shown is None or EscapesCodec().decode(shown, str) == text
