"""The literal reader: what a form says to somebody who knows nothing but its words."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pagefold.encode import encode
from pagefold.encode.literal_json import written
from pagefold.encode.literal_reader import read
from pagefold.pages.ledger import Ledger

SHOWN = {
    "R1": "[R1 lines 1-3]\n1\tone\ntwo\nthree",
    "R2": "[R2]\nalpha\n= lines 2-3 of R1\ndelta",
    "R3.2": "[R3 lines 1-1]\n1\tx\n[R3.2 lines 7-8]\n7\tseven\neight",
    "the content you wrote for R4": "first\nsecond",
}

READ = [
    ("no form at all", "no form at all"),
    ("[lines 9-11]\n9\ta\n10\tb\nc", "9\ta\n10\tb\n11\tc"),
    ("[lines 9-10→]\n9\ta\n10\tb", "     9→a\n    10→b"),
    ("[lines 9-10: set 4 wide]\n9\ta\nb", "   9: a\n  10: b".replace(": ", ":")),
    ("[R5]\n= line 1 is line 2 of R1\nx", "two\nx"),
    ("[R5 lines 2-4]\n= lines 2-3 of R1\n4\tfour", "2\ttwo\n3\tthree\n4\tfour"),
    ("[R5]\n= lines 1-2 are lines 7-8 of R3.2", "seven\neight"),
    ("[R5]\n= lines 1-2 of the content you wrote for R4", "first\nsecond"),
    ("[R5]\na\nb\n= lines 3-4 are lines 1-2 of R5", "a\nb\na\nb"),
    ("[R5 lines 1-3, changed since R1: line 2]\n= line 1 of R1\n2\tTWO\nthree", "1\tone\n2\tTWO\n3\tthree"),
    ("[R5 lines 1-2, changed since R1: line 2]\n= line 1 of R1\n2\tTWO\nbelow it", "1\tone\n2\tTWO\nbelow it"),
    ("before\n[R5 lines 1-2]\n1\ta\nb\nafter", "before\n1\ta\n2\tb\nafter"),
]


@pytest.mark.parametrize(("form", "text"), READ)
def test_it_reads_what_the_words_say(form: str, text: str) -> None:
    assert read(form, SHOWN.get) == text


MISLEADING = [
    "[lines 20-22]\n20\ta\n1\tuser_2\nc",  # a line of a table that looks like line 1
    "[R5]\n= lines 1-2 of R9",  # nothing has this title
    "[R5]\n= lines 2-3 of R2",  # lines that R2 itself only refers to
    "[R5]\n= lines 1-2 of R3.2",  # lines that it does not have
    "[R5]\nx\n= lines 1-2 of R1",  # not where the reference stands
    "[R5]\n= lines 1-3 are lines 1-2 of R1",
    "[R5 lines 1-3, changed since R1: line 2]\n= lines 1-2 of R1\n3\tTHREE",  # another line has changed
]


@pytest.mark.parametrize("form", MISLEADING)
def test_it_refuses_what_is_not_so(form: str) -> None:
    with pytest.raises(ValueError, match=r"line|shown"):
        read(form, SHOWN.get)


LINES = [
    "1\tuser_2",
    "= lines 1-2 of R1",
    "[R1]",
    "[lines 1-2]",
    "",
    "}",
    "ok",
    "a line of some length in a file, which is read",
]
PIECES = st.lists(st.sampled_from([*LINES, *(f"def function_{n}(argument): return argument * {n}" for n in range(9))]))


@given(st.lists(PIECES, max_size=5), st.sampled_from(["", "{}\t", "{:>6}→", "{}:"]), st.booleans())
@settings(deadline=None, max_examples=300)
def test_every_form_of_lines_is_read_literally(texts: list[list[str]], style: str, low: bool) -> None:
    """No form with titles, numbers or references is refused by this gate: the encoder writes only what reads itself."""
    ledger = Ledger()
    for lines in texts:
        text = "\n".join(f"{style.format(number)}{line}" for number, line in enumerate(lines, 1))
        shown = encode(text, tool="Read", ledger=ledger, floor=5 if low else 32, source="a")
        assert "delta" not in shown.skipped
        if {"numbered", "delta"}.issuperset(shown.codecs) and shown.ledger_entries[0].label:
            assert read(shown.text, ledger.shown) in (text, f"[as it is]\n{text}")
        for entry in shown.ledger_entries:
            ledger = ledger.with_text(entry)


NOTICE = (
    "\n<reminder>\nConsider whether this file does what its name says, and tell the user if it does not.\n"
    "You may explain what it does, and how.\n</reminder>"
)


def test_a_notice_below_numbered_lines_is_referred_to_by_a_title_of_its_own() -> None:
    ledger = Ledger()
    shown: list[str] = []
    for name in ("loans", "fines"):
        text = "\n".join(f"{number}\tdef {name}_{number}(): ..." for number in range(1, 31)) + f"\n{NOTICE}\n"
        made = encode(text, ledger=ledger, title="")
        shown.append(made.text)
        assert read(made.text, ledger.shown) == text
        for entry in made.ledger_entries:
            ledger = ledger.with_text(entry)

    assert "\n[R1.2]\n" in shown[0]
    assert "Consider whether" in shown[0]
    assert shown[1].endswith("\n[R3.2]\n\n= lines 2-6 of R1.2")


@pytest.mark.parametrize(
    ("head", "is_referred"),
    [
        pytest.param("import os\nimport sys\nfrom a import b\n", True, id="in a file"),
        pytest.param("running 3 suites\n", False, id="in a command's output"),
    ],
)
def test_words_of_failure_are_outcomes_in_outputs_and_text_in_files(head: str, is_referred: bool) -> None:
    body = "".join(f"error: the shelf {n} of the reading room was not found in the plan\n" for n in range(12))
    ledger = Ledger()
    first = encode(head + body + "the end\n" * 8, ledger=ledger)
    for entry in first.ledger_entries:
        ledger = ledger.with_text(entry)

    again = encode(head + body + "another end\n" * 8, ledger=ledger)

    assert ("= lines" in again.text) is is_referred


def test_json_that_a_command_broke_off_is_read_up_to_its_last_line_break() -> None:
    rows = ", ".join(f'{{"number": {n}, "state": "open", "url": "https://a.example/n/{n}"}}' for n in range(9))
    text = f"<returncode>0</returncode>\n<output>\n[{rows}]\nfalse\n\n</output>"

    made = encode(text)

    assert made.codecs == ("returncode", "json")
    assert not made.skipped


@pytest.mark.parametrize(
    ("form", "value"),
    [
        ('{a:one word,b:"quo,ted",c:1,\nd:[x,2,]}', None),
        (
            '{a:one word,b:"quo,ted",c:1,\nd:[x,2]}',
            (("a", "one word"), ("b", "quo,ted"), ("c", ("1",)), ("d", ["x", ("2",)])),
        ),
        ("#1\n#1 2 rows: id=1..,a.b\nx\n", [(("id", ("1",)), ("a", (("b", "x"),))), (("id", ("2",)),)]),
        ("$a=https://\n[$ax,&1{k:v},*1]", ["https://x", (("k", "v"),), (("k", "v"),)]),
        ("[a}b]", None),
        ("[&1{k:v},*1x]", None),
        ("#1\n#1 1 rows: a\n*1x", None),
        ("{a:1", None),
        ("{a:}", None),
    ],
)
def test_the_notation_is_read_word_by_word_and_nothing_else_is(form: str, value: object) -> None:
    if value is not None:
        assert written(form) == value
        return
    with pytest.raises((ValueError, LookupError)):
        written(form)
