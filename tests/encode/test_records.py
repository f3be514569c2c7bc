import pytest
from hypothesis import given
from hypothesis import strategies as st

from pagefold.encode.codecs.records import RecordsCodec

RECORDS = RecordsCodec()
HEADER = "[records as rows below their keys]"


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        pytest.param(
            "type: data\ndata:\n- ID: 9001\n  NAME: Dorothy\n  ACTIVE: true\n"
            "- ID: 9002\n  NAME: An | thony\n  ACTIVE: true\n"
            "- ID: 9003\n  NAME: 'Maria'\n  ACTIVE: true\n",
            f"{HEADER}\ntype: data\ndata:\n[3 rows of - ID |   NAME |   ACTIVE: true]\n"
            '9001 | Dorothy\n9002 | "An | thony"\n'
            "9003 | 'Maria'\n",
            id="a list",
        ),
        pytest.param(
            "Title: a\nLink: https://a\n\nTitle: b\nLink: https://b\n\nTitle: \nLink: https://c\n\n",
            f'{HEADER}\n[3 rows of Title | Link, then an empty line]\na | https://a\nb | https://b\n"" | https://c\n',
            id="with empty lines between",
        ),
        pytest.param(
            "  b: 1\n- a: 2\n  b: 3\n- a: 4\n  b: 5\n- a: 6\n  b: 7\n- a: 8\n",
            f"{HEADER}\n  b: 1\n[3 rows of - a |   b]\n2 | 3\n4 | 5\n6 | 7\n- a: 8\n",
            id="the rest of a record before the first whole one",
        ),
        pytest.param(
            "Output: Id: 1\nName: x\nId: 2\nName: y\nId: 3\nName: z\nId: 4\nName: w",
            f"{HEADER}\nOutput: Id: 1\nName: x\n[3 rows of Id | Name]\n2 | y\n3 | z\n4 | w",
            id="a first record with something before it",
        ),
    ],
)
def test_keys_are_said_once(text: str, shown: str) -> None:
    assert RECORDS.encode(text, str) == shown
    assert RECORDS.decode(shown, str) == text


@pytest.mark.parametrize(
    "text",
    [
        "",
        "a: 1\nb: 2\n" * 2,
        "a: 1\nb: 2\nc: 3\nd: 4\ne: 5\nf: 6\ng: 7",
        "no keys here\n" * 9,
        "[3 rows of a | b]\n" + "a: 1\nb: 2\n" * 5,
    ],
)
def test_what_has_no_records_or_could_be_misread_is_declined(text: str) -> None:
    assert RECORDS.encode(text, str) is None


KEYS = ["- a: ", "  b: ", "c d: ", "    e: ", "-: ", "f:"]
VALUES = [
    "",
    "1",
    "x y",
    "|",
    " | ",
    "a |",
    "| a",
    '"',
    '"a"',
    "\\",
    " ",
    "x\r",
    "\u2028",
    "k: v",
    ", then an empty line",
    "]",
]
ODD = ["", HEADER, "[3 rows of a]", "[2 rows of a | b, then an empty line]", "x", "a: "]
RECORD = st.lists(st.sampled_from([*KEYS, ""]), min_size=1, max_size=4)


@st.composite
def texts(draw: st.DrawFn) -> str:
    lines: list[str] = []
    for _ in range(draw(st.integers(0, 3))):
        lines += draw(st.lists(st.sampled_from(ODD), max_size=2))
        keys = draw(RECORD)
        for _ in range(draw(st.integers(1, 6))):
            lines += [f"{key}{draw(st.sampled_from(VALUES))}" if key else "" for key in keys]
    return "\n".join(lines)


@given(texts())
def test_every_text_comes_back(text: str) -> None:
    back_and_forth(text)


def back_and_forth(text: str) -> None:
    shown = RECORDS.encode(text, str)
    if shown is not None:
        assert RECORDS.owns(shown.split("\n")[0])
        assert RECORDS.decode(shown, str) == text


def test_large_texts_take_no_longer_than_their_length() -> None:
    back_and_forth("a: " * 300_000)
    back_and_forth("a: 1\n" * 200_000)
    back_and_forth("a: 1\n  b: 2\n" * 100_000)
    back_and_forth("".join(f"k{chr(97 + index % 26)}{chr(97 + index // 26 % 26)}: 1\n" for index in range(200_000)))
    back_and_forth(" " * 1_000_000 + ": : : : : : ")
