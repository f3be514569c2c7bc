"""What is bad, or large and odd, comes back as it was and never raises, and no codec is caught by the gate.

How long it takes is measured by bench/bad_input.py.
"""

import json
import random
import string

import pytest

from pagefold.encode import decode, encode
from pagefold.pages.ledger import Ledger
from pagefold.tokens import counter, estimates_words

SIZE = 60_000
dice = random.Random(1)
LETTERS = "".join(dice.choices(string.ascii_letters, k=800_000))
# Each set off a rule of some codec or the counter, over and over.
PATTERNS = {
    "open objects": '{"a":',
    "open arrays": "[",
    "arrays that go on": "[[1,2],",
    "empty arrays": "[],",
    "quotes": '"' * 3000 + "a",
    "quoted words": '"a" ',
    "backslashes": "\\" * 3000 + "n",
    "escaped breaks": "\\n",
    "colons": ":" * 3000 + "a",
    "hits in one line": "a:1:",
    "hits": "a:1:\n",
    "hits with context": "--\na.py:1:x\na.py-2-y\n",
    "times in one line": "00:00:00",
    "times": "x 00:00:01\n",
    "log lines": "2026-03-21 08:00:01 INFO a b c\n",
    "slashes": "/" * 3000 + "a",
    "paths": "a/b/c/d\n",
    "spaces": " " * 3000 + "x\n",
    "tabs": "\t" * 3000 + "x\n",
    "digits": "1234567890",
    "long numbers": "1" * 5000 + ":x\n",
    "one number": "1\tx\n",
    "three numbers": "1\ta\n2\tb\n3\tc\n",
    "keys": "Key: value\nOther: x\n\n",
    "files": "-rw-r--r-- 1 root root 12 Nov 22 10:00 a\n",
    "half files": "-rw-r--r-- 1 root root ",
    "terminal codes": "\x1b[31m",
    "half terminal codes": "\x1b[" + "1;" * 12,
    "references": "= 1-2 as in R1\n",
    "headers": "[lines 1-2]\n",
    "long headers": "[lines " + "1" * 5000 + "-2]\n",
    "headers with more digits than a line has": "[lines " + "1" * 500 + "-2]\n",
    "titles": "[R1]\n= 3 lines\n",
    "titles that nobody gives": "[R1.2.3]\nx\n",
    "hints": "> [ref: a]\n",
    "empty lines": "\n",
    "a circle of lines": "a\nb\nc\nd\ne\nf\ng\nh\n",
    "blocks in blocks": '{"type":"text","text":"',
    "halves of characters": "a\ud800 ",
    "surrogate pairs": "\ud83d\ude00",
    "symbols": "!@#$%^&*()",
    "ideographs": "的一是不了人",
}


def comes_back(text: str) -> bool:
    """Alone, and again below nearly the same."""
    ledger = Ledger()
    for one in (text, f"{text[: len(text) // 2]}x{text[len(text) // 2 :]}", text):
        shown = encode(one, tool="x", ledger=ledger)
        if shown.skipped or decode(shown.text, ledger) != one:
            return False
        for entry in shown.ledger_entries:
            ledger = ledger.with_text(entry)
    return True


@pytest.mark.parametrize("pattern", PATTERNS.values(), ids=PATTERNS)
def test_every_pattern_comes_back(pattern: str) -> None:
    assert comes_back(pattern * (SIZE // len(pattern)))


@pytest.mark.parametrize(
    "text",
    [
        '{"a":' * 180_000,
        "[" * 1_000_000,
        LETTERS,
        "\x00" * 900_000,
        "a\x00b" * 300_000,
        "word " * 2_000_000,
        "x" * 10_000_000,
        "[" + ",".join(f'{{"k{n}":1}}' for n in range(30_000)),
        "[" * 60 + ",".join(f'"{n}"' for n in range(80_000)),
        "1\tx\n" * 200_000,
        "".join(f"{n % 5}\tx\n" for n in range(14_000)),
    ],
    ids=lambda text: f"{text[:8]!r} x {len(text)}",
)
def test_the_largest_bad_texts_come_back(text: str) -> None:
    assert comes_back(text)


def test_a_form_inside_a_form_that_looks_like_ours_is_told_from_ours() -> None:
    shown = encode("[MCP text …}]\n" * 200, tool="x")

    assert shown.codecs == ("repeats",)
    assert decode(shown.text) == "[MCP text …}]\n" * 200


def test_what_is_too_large_or_binary_passes_with_a_reason_and_uncounted() -> None:
    assert encode("word " * 2_000_000).reason == "more than 1,000,000 characters"
    assert encode("a\x00b").reason == "binary"
    assert encode("y" * 50_000).reason == "one character over and over"
    assert encode("ab\n" * 70_000).reason == "more than 60,000 lines"


def test_a_large_text_is_estimated_and_says_so() -> None:
    text = "\n".join(f"{n} {LETTERS[n : n + 9]} and the rest of line {n}" for n in range(8_000))
    shown = encode(text)

    assert shown.reason == "as it is; tokens estimated"
    assert shown.before == pytest.approx(counter("o200k").count(text), rel=0.02)


def test_codecs_for_lines_are_tried_on_a_part_of_a_large_text() -> None:
    log = "\n".join(f"2026-03-21 08:{n // 60 % 60:02}:{n % 60:02} INFO [worker-{n % 7}] done {n}" for n in range(6_000))
    shown = encode(log)

    assert shown.codecs == ("log",)
    assert decode(shown.text) == log


@pytest.mark.parametrize(
    "value",
    [[{"a": n} for n in range(50_000)], [[]] * 50_000, list(range(90_000)), {f"k{n}": n for n in range(30_000)}],
    ids=["objects", "arrays", "numbers", "members"],
)
def test_json_of_more_values_than_anybody_reads_stays_as_it_is(value: object) -> None:
    text = json.dumps(value)

    assert encode(text).text == text


def test_a_word_without_end_is_counted_by_a_part_and_says_so() -> None:
    word = LETTERS[:100_000]
    count = counter("o200k").count
    parts = [word[at : at + 20_000] for at in range(0, len(word), 20_000)]  # short enough to be counted whole

    assert encode(word).reason == "as it is; long words estimated"
    assert count(word) == pytest.approx(sum(map(count, parts)), rel=0.02)
    assert not estimates_words("a few words " * 50_000)


def test_very_many_lines_are_not_looked_at_one_by_one() -> None:
    lines = "\n".join(dice.choices("abcdefgh", k=50_000))
    shown = encode(lines, tool="x", ledger=Ledger())

    assert decode(shown.text) == lines
    assert shown.ledger_entries[0].lines == ()
    assert encode("the same line\n" * 50_000, tool="x").codecs == ("repeats",)
