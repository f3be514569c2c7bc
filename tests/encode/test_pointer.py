import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pagefold.encode.pointer import call_words, described, pointer
from pagefold.encode.shape import TextShape, shape_of
from pagefold.tokens import counter

HANDLE = "pf-abcdefghij"


def test_a_pointer_names_the_call_the_size_and_the_way_back() -> None:
    text = "".join(f"{n:>6}→x = {n}\n" for n in range(1, 41))

    line = pointer(text, handle=HANDLE, tool="Read", arguments='{"file_path": "src/loans.py"}')

    tokens = counter("o200k").count(text)
    assert line == f'[left out: Read src/loans.py, 40 lines, {tokens} tokens; context_recall("{HANDLE}") returns it]'


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", "empty"),
        ("one", "1 line"),
        ("one\ntwo\n", "2 lines"),
        ('[{"a": 1}, {"a": 2}]', "JSON list of 2"),
        ('{"id": 1, "name": "x"}', "JSON with id, name"),
        ('{"a":1,"b":2,"c":3,"d":4,"e":5}', "JSON with a, b, c, d …"),
        ("{}", "empty JSON"),
        ("2026-11-01T09:00:00 INFO a\n2026-11-01T09:00:01 INFO b\n2026-11-01T09:00:02 INFO c", "log, 3 lines"),
    ],
)
def test_a_description_says_what_a_text_is_and_how_much(text: str, expected: str) -> None:
    assert described(text) == expected


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ("", ""),
        ('{"command": "ls -la", "timeout": 5}', "ls -la timeout=5"),
        ('{"limit": 3, "path": "a/b.py"}', "a/b.py limit=3"),
        ("not json\nat all", "not json at all"),
        ("[1, 2]", "[1, 2]"),
        (json.dumps({"file_path": "/very" * 30 + "/loans.py"}), "…" + ("/very" * 30 + "/loans.py")[-59:]),
    ],
)
def test_arguments_are_said_in_a_few_words(arguments: str, expected: str) -> None:
    assert call_words(arguments) == expected


def test_a_pointer_without_a_handle_is_refused() -> None:
    with pytest.raises(ValueError, match="handle"):
        pointer("text", handle="", tool="Read")


@settings(deadline=None)
@given(st.text(), st.text(max_size=40), st.text(max_size=200))
def test_a_pointer_is_one_short_line_for_any_text_and_call(text: str, tool: str, arguments: str) -> None:
    line = pointer(text, handle=HANDLE, tool=tool, arguments=arguments, count=len)

    assert len(line.splitlines()) == 1
    assert f'context_recall("{HANDLE}")' in line
    assert len(line) < 400
    assert line == pointer(text, handle=HANDLE, tool=tool, arguments=arguments, count=len)


@pytest.mark.parametrize(
    ("text", "shape"),
    [
        ('{"a": 1}', TextShape.JSON),
        ('{"a": 1', TextShape.TEXT),
        ("     1→import os\n     2→\n     3→x = 1\n", TextShape.NUMBERED),
        ("12\timport os\n13\t\n14\tx = 1\n", TextShape.NUMBERED),
        ("diff --git a/x b/x\n--- a/x\n+++ b/x\n@@ -1 +1 @@\n-a\n+b\n", TextShape.DIFF),
        ("=== RUN   TestA\n--- FAIL: TestA (0.00s)\nFAIL\tx\t0.1s\n", TextShape.TESTS),
        ("src/a.py:12:x\nsrc/a.py:14:y\nsrc/b.py:1:z\n", TextShape.HITS),
        ("# One\n\ntext\n\n## Two\n\nmore text\n", TextShape.MARKDOWN),
        ("import os\n\nclass A:\n    def b(self):\n        return 1\n", TextShape.SOURCE),
        ("src/a.py\nsrc/b.py\nREADME.md\ndocs/c.md\n", TextShape.LISTING),
        ("Once upon a time there was\na text of no shape, and that\nwas all right.\n", TextShape.TEXT),
    ],
)
def test_a_shape_is_told_by_its_lines(text: str, shape: TextShape) -> None:
    assert shape_of(text) is shape
