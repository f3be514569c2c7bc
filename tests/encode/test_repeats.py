import pytest
from hypothesis import given
from hypothesis import strategies as st

from pagefold.encode import encode
from pagefold.encode.codec import Codec
from pagefold.encode.codecs.repeats import ColoursCodec, RepeatsCodec

REPEATS, COLOURS = RepeatsCodec(), ColoursCodec()
HEADER = "[repeated lines said once]"


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        pytest.param(
            "start\n" + "waiting for the server to come up\n" * 6 + "ready",
            f"{HEADER}\nstart\nwaiting for the server to come up\n[the line above 5 times more]\nready",
            id="a line",
        ),
        pytest.param(
            '  File "a.py", line 7, in walk\n    return walk(node.left)\n' * 4,
            f'{HEADER}\n  File "a.py", line 7, in walk\n    return walk(node.left)\n[the last 2 lines 3 times more]\n',
            id="a block",
        ),
        pytest.param(
            "a warning that is long enough to be worth a fold\n" * 2,
            f"{HEADER}\na warning that is long enough to be worth a fold\n[the line above 1 time more]\n",
            id="a line that comes twice",
        ),
        pytest.param(
            "[the line above 3 times more]\n" * 3 + "|[the line above 3 times more]\n|other",
            f"{HEADER}\n|[the line above 3 times more]\n[the line above 2 times more]\n"
            "||[the line above 3 times more]\n|other",
            id="lines that look like a count",
        ),
        pytest.param("a\r\n" * 30, f"{HEADER}\na\r\n[the line above 29 times more]\n", id="carriage returns"),
    ],
)
def test_what_comes_again_at_once_is_said_once(text: str, shown: str) -> None:
    assert REPEATS.encode(text, str) == shown
    assert REPEATS.decode(shown, str) == text


@pytest.mark.parametrize("text", ["", "\n", "a\na\na\n", "}\n}\n}\n", "\n" * 20, "one\ntwo\nthree\n"])
def test_what_is_not_worth_a_line_of_its_own_is_declined(text: str) -> None:
    assert REPEATS.encode(text, str) is None


def test_a_terminal_code_is_named_by_a_sign_the_text_does_not_have() -> None:
    text = "\x1b[31mFAILED\x1b[0m § 1\n\x1b[31mFAILED\x1b[0m § 2\n\x1b[2K"
    shown = "[terminal codes: ¶ is ESC[31m, ¤ is ESC[0m]\n¶FAILED¤ § 1\n¶FAILED¤ § 2\n\x1b[2K"
    assert COLOURS.encode(text, str) == shown
    assert COLOURS.decode(shown, str) == text


@pytest.mark.parametrize(
    "text", ["", "\x1b[0m" * 3, "\x1b[" * 9, "\x1b[1m\x1b[2m\x1b[3m\x1b[4m", "\x1b[0m" * 4 + "§¶¤†‡¬¦µ¢£"]
)
def test_few_codes_or_no_free_sign_are_declined(text: str) -> None:
    assert COLOURS.encode(text, str) is None


def test_what_is_left_goes_on_to_the_other_codecs() -> None:
    shown = REPEATS.encode("a line that comes again and again\n" * 9, str.upper)
    assert shown == f"{HEADER}\nA LINE THAT COMES AGAIN AND AGAIN\n[THE LINE ABOVE 8 TIMES MORE]\n"


LINES = st.sampled_from(
    [
        "",
        "a",
        "a line that is worth a fold, alone as it may be",
        "another such line\r",
        "[the line above 2 times more]",
        "||[the last 3 lines 2 times more]",
        "[the last 9 lines 0 times more]",
        "|",
        HEADER,
        "\u2028",
        "\x1b[0m\x1b[31m",
        "\x1b[0m§¶",
        "[terminal codes: § is ESC[0m]",
    ]
)
BLOCKS = st.tuples(st.lists(LINES, min_size=1, max_size=9), st.integers(1, 5)).map(lambda block: block[0] * block[1])


@given(st.lists(BLOCKS, max_size=5).map(lambda blocks: "\n".join(line for block in blocks for line in block)))
def test_every_text_comes_back(text: str) -> None:
    back_and_forth(text)


@given(st.text(alphabet="a\n\x1b[0;1mK§¶|", max_size=80))
def test_every_mix_of_codes_comes_back(text: str) -> None:
    back_and_forth(text)


def test_counts_say_nothing_about_lines_that_became_a_table() -> None:
    row = '      "n": null,\n      "user": {\n        "login": "ben",\n        "site": false\n      }\n    },'
    torn = f'{{\n  "items": [\n    {{\n      "id": 7,\n{row}\n{row}'
    shown = encode(torn)

    assert not shown.skipped
    assert "json" not in shown.codecs


def back_and_forth(text: str) -> None:
    codecs: tuple[Codec, ...] = (REPEATS, COLOURS)
    for codec in codecs:
        shown = codec.encode(text, str)
        if shown is not None:
            assert codec.owns(shown.split("\n")[0])
            assert codec.decode(shown, str) == text


def test_large_texts_take_no_longer_than_their_length() -> None:
    back_and_forth("x" * 1_000_000)
    back_and_forth("\n" * 200_000)
    back_and_forth("a\nb\na\nc\n" * 50_000)
    back_and_forth("\n".join(f"line {index // 2}" for index in range(200_000)))
    back_and_forth("\x1b[0m" * 250_000)
    back_and_forth("\x1b[" + "0;" * 500_000)
    back_and_forth("|" * 1_000_000)
