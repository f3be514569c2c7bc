"""Spans are exact, replacing one value leaves every other byte, and nothing that is not JSON gets through."""

import json
import re
import tracemalloc
from collections.abc import Callable, Iterator
from random import Random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pagefold.errors import WireError
from pagefold.wire import json_text

# Two halves of a surrogate pair side by side are no text: any reader makes one character of them.
PAIR = re.compile("[\ud800-\udbff][\udc00-\udfff]")
TEXTS = st.text(st.characters(codec=None), max_size=8).filter(lambda text: not PAIR.search(text))
SCALARS = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | TEXTS
VALUES = st.recursive(
    SCALARS, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXTS, inner, max_size=4), max_leaves=12
)
SPACES = ("", "", " ", "\n\t", "\r\n  ")


def spelled(value: Any, random: Random) -> str:
    """The value as JSON, with white space wherever it may stand and strings escaped or not."""

    def space() -> str:
        return random.choice(SPACES)

    if isinstance(value, list):
        inner = ",".join(f"{space()}{spelled(element, random)}{space()}" for element in value)
        return f"[{inner or space()}]"
    if isinstance(value, dict):
        pairs = (
            f"{space()}{spelled(key, random)}{space()}:{space()}{spelled(inner, random)}{space()}"
            for key, inner in value.items()
        )
        return f"{{{','.join(pairs) or space()}}}"
    return json.dumps(value, ensure_ascii=random.random() < 0.5)


def paths(value: Any, path: json_text.Path = ()) -> Iterator[tuple[json_text.Path, Any]]:
    yield path, value
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for step, element in inner:
        yield from paths(element, (*path, step))


@settings(deadline=None)
@given(VALUES, VALUES, st.randoms(use_true_random=False))
def test_opening_along_a_path_finds_the_spots_that_opening_step_by_step_does(
    value: Any, other: Any, random: Random
) -> None:
    blocks = [{"t": value, "b": other}, value, [{"t": other}], {}]
    text = f" {spelled({'a': other, 'r': {'c': blocks, 'd': value}, 'z': value}, random)} "
    whole = json_text.opened(text, ("r", "c", "t"))

    top = json_text.top(text)
    assert [spot[:2] for spot in whole.value] == [spot[:2] for spot in top]
    result = json_text.member(whole.value, "r")
    assert result is not None
    assert [spot[:2] for spot in result.value] == [spot[:2] for spot in json_text.members(text, result.start)]
    content = json_text.member(result.value, "c")
    assert content is not None
    elements = json_text.elements(text, content.start)
    assert [spot[:2] for spot in content.value] == [spot[:2] for spot in elements]
    for opened, element in zip(content.value, elements, strict=True):
        is_object = json_text.is_object(text, opened)
        assert opened.value == (json_text.members(text, element.start) if is_object else element.value)


@pytest.mark.parametrize("text", ["", "{", '{"r":', '{"r":[', '{"r":[{}', '{"r":[{},]}', '{"r":{"c":1,}}', '{"r":1} 2'])
def test_what_is_not_json_is_not_opened(text: str) -> None:
    with pytest.raises(WireError):
        json_text.opened(text, ("r", "c"))


@settings(deadline=None)
@given(VALUES, st.randoms(use_true_random=False))
def test_every_path_leads_to_the_span_of_its_value(value: Any, random: Random) -> None:
    text = f" {spelled(value, random)}\n"

    assert json_text.parse(text) == value
    for path, expected in paths(value):
        start, end = json_text.find(text, path)
        assert json.loads(text[start:end]) == expected
        assert text[start:end] == text[start:end].strip(" \t\r\n")


@settings(deadline=None)
@given(st.dictionaries(TEXTS, VALUES, max_size=5), st.randoms(use_true_random=False))
def test_members_are_all_seen_in_order_with_the_span_of_each(value: dict[str, Any], random: Random) -> None:
    text = spelled(value, random)

    spots = json_text.members(text)

    assert [(spot.key, spot.value) for spot in spots] == list(value.items())
    assert [json.loads(text[spot.start : spot.end]) for spot in spots] == list(value.values())
    assert json_text.top(f"\ufeff {text} ") == [
        json_text.Spot(spot.start + 2, spot.end + 2, spot.value, spot.key) for spot in spots
    ]


@settings(deadline=None)
@given(st.lists(VALUES, max_size=5), st.randoms(use_true_random=False))
def test_elements_are_all_seen_in_order_with_the_span_of_each(value: list[Any], random: Random) -> None:
    text = spelled(value, random)

    spots = json_text.elements(text)

    assert [spot.value for spot in spots] == value
    assert [json.loads(text[spot.start : spot.end]) for spot in spots] == value


@settings(deadline=None)
@given(VALUES, st.randoms(use_true_random=False), TEXTS)
def test_replacing_a_string_leaves_every_byte_outside_it(value: Any, random: Random, new: str) -> None:
    text = spelled(value, random)

    for path, old in paths(value):
        if not isinstance(old, str):
            with pytest.raises(WireError):
                json_text.replaced(text, path, new)
            continue
        start, end = json_text.find(text, path)
        replaced = json_text.replaced(text, path, new)
        assert replaced.startswith(text[:start])
        assert replaced.endswith(text[end:])
        assert json.loads(replaced[start : len(replaced) - len(text[end:])]) == new


def test_long_texts_are_not_held_after_a_string_in_them_was_replaced() -> None:
    tracemalloc.start()
    try:
        for number in range(8):
            assert json_text.replaced(f'{{"a": "b", "long": "{str(number) * 1_000_000}"}}', ("a",), "c")[7] == "c"
        assert tracemalloc.get_traced_memory()[0] < 2_000_000
    finally:
        tracemalloc.stop()


@settings(deadline=None)
@given(VALUES, st.randoms(use_true_random=False))
def test_replacing_several_strings_is_replacing_one_after_the_other(value: Any, random: Random) -> None:
    text = spelled({"a": value, "b": [value, "x"]}, random)
    strings = [path for path, found in paths(json.loads(text)) if isinstance(found, str)]
    chosen = [(path, f"new {number}") for number, path in enumerate(random.sample(strings, len(strings) // 2 + 1))]
    one_by_one = text
    for path, new in chosen:
        one_by_one = json_text.replaced(one_by_one, path, new)

    assert json_text.replaced_each(text, chosen) == one_by_one


@pytest.mark.parametrize("path", [("b",), ("a", 2), ("a", 0, "b"), ("n",)])
def test_several_strings_are_replaced_only_where_there_are_strings(path: json_text.Path) -> None:
    with pytest.raises(WireError):
        json_text.replaced_each('{"a": ["x", "y"], "n": 1}', [(("a", 1), "new"), (path, "new")])


@settings(deadline=None)
@given(st.text("abc", max_size=20), st.lists(st.tuples(st.integers(0, 20), st.text("XY", max_size=3)), max_size=4))
def test_splicing_touches_only_the_spans(text: str, cuts: list[tuple[int, str]]) -> None:
    bounds = sorted(min(at, len(text)) for at, _ in cuts for _ in range(2))
    spans = list(zip(bounds[::2], bounds[1::2], strict=True))
    changes = [(start, end, new) for (start, end), (_, new) in zip(spans, cuts, strict=True)]

    expected = text
    for start, end, new in reversed(changes):
        expected = expected[:start] + new + expected[end:]
    assert json_text.splice(text, changes) == expected


def test_splicing_two_spans_keeps_what_lies_between() -> None:
    assert json_text.splice("abcdef", [(1, 2, "XX"), (4, 6, "")]) == "aXXcd"
    with pytest.raises(AssertionError):
        json_text.splice("abcdef", [(3, 4, ""), (1, 2, "")])


@settings(deadline=None)
@given(st.binary())
def test_any_bytes_become_text_and_go_back_the_same(data: bytes) -> None:
    assert json_text.bytes_of(json_text.text_of(data)) == data


@pytest.mark.parametrize("data", [b"\xff\xfe", b"\xed\xa0\x80", b"\xef\xbb\xbf{}", b"\xc3", "é\u2028😀".encode()])
def test_broken_and_marked_bytes_become_text_and_go_back_the_same(data: bytes) -> None:
    assert json_text.bytes_of(json_text.text_of(data)) == data


@settings(deadline=None)
@given(VALUES)
def test_what_is_written_can_be_sent_and_reads_the_same(value: Any) -> None:
    text = json_text.dumps(value)

    assert json_text.parse(json_text.text_of(json_text.bytes_of(text))) == value


def test_writing_is_compact_keeps_the_order_and_escapes_only_what_cannot_be_sent() -> None:
    assert json_text.dumps({"b": [1, "é\ud800"], "a": None}) == '{"b":[1,"é\\ud800"],"a":null}'


@pytest.mark.parametrize("number", ["1.10", "-0", "1E+2", "1" * 30, "9" * 5000, "-" + "7" * 5000, "0.1e-400", "1e400"])
def test_a_number_keeps_its_spelling_in_its_span(number: str) -> None:
    text = f'{{"n": {number} , "s": "x"}}'

    spot = json_text.member(json_text.members(text), "n")

    assert spot is not None
    assert text[spot.start : spot.end] == number
    assert json_text.replaced(text, ("s",), "y") == f'{{"n": {number} , "s": "y"}}'


def test_of_two_members_with_one_key_both_are_seen_and_the_last_counts() -> None:
    text = '{"a": "first", "a": "last"}'

    assert [spot.value for spot in json_text.members(text)] == ["first", "last"]
    assert json_text.parse(text) == {"a": "last"}
    assert json_text.replaced(text, ("a",), "new") == '{"a": "first", "a": "new"}'


def test_a_byte_order_mark_is_passed_over_and_kept() -> None:
    for mark in ("\ufeff", "\ufeff "):
        assert json_text.parse(mark + '{"a": ["x"]}') == {"a": ["x"]}
        assert json_text.replaced(mark + '{"a": ["x"]}', ("a", 0), "y") == mark + '{"a": ["y"]}'
    with pytest.raises(WireError):
        json_text.parse("{\ufeff}")


READERS: list[Callable[[str], object]] = [
    json_text.parse,
    json_text.top,
    json_text.members,
    json_text.elements,
    lambda text: json_text.find(text, ("a", 0)),
    lambda text: json_text.find(text, (0, "a")),
]


@pytest.mark.parametrize("depth", [10_000, 1_000_000])
@pytest.mark.parametrize("opening", ["[", '{"a":['])
@pytest.mark.parametrize("read", READERS)
def test_nesting_without_end_is_refused(read: Callable[[str], object], opening: str, depth: int) -> None:
    closing = "".join({"{": "}", "[": "]"}.get(letter, "") for letter in reversed(opening))

    with pytest.raises(WireError):
        read(opening * depth + "1" + closing * depth)
    with pytest.raises(WireError):
        read(opening * depth)


def test_a_value_too_deep_to_write_is_refused() -> None:
    value: list[Any] = []
    for _ in range(100_000):
        value = [value]

    with pytest.raises(WireError, match="too deeply"):
        json_text.dumps(value)


TEXT = '{"a": [1.5, -2, true, null, "x\\u00e9\\n"], "b": {"c": {}, "d": []}}'


@pytest.mark.parametrize("text", [TEXT[:end] for end in range(len(TEXT))])
def test_a_text_cut_off_anywhere_is_refused(text: str) -> None:
    for read in (json_text.parse, json_text.top, json_text.members):
        with pytest.raises(WireError):
            read(text)


@pytest.mark.parametrize(
    "text", ["1", '"a"', "null", "[]", "{'a': 1}", '{"a" 1}', '{"a": 1,}', "{1: 2}", "{} {}", "{}x"]
)
def test_what_is_not_one_object_has_no_top(text: str) -> None:
    with pytest.raises(WireError, match=r"^line 1, column \d+: "):
        json_text.top(text)


@pytest.mark.parametrize("text", ["", " ", "nul", "[1,]", "[1 2]", "01", "1 2", "[]]", '"a', "\u00a01"])
def test_what_is_not_one_value_cannot_be_read(text: str) -> None:
    with pytest.raises(WireError, match=r"^line 1, column \d+: "):
        json_text.parse(text)


def test_an_error_names_the_line_and_the_column() -> None:
    with pytest.raises(WireError, match="line 2, column 6"):
        json_text.top('{"a": 1,\n "b" 2}')
    with pytest.raises(WireError, match="line 3, column 2: no 'x'"):
        json_text.find('{\n"a":\n {"b": 1}}', ("a", "x"))


@pytest.mark.parametrize("path", [("x",), ("a", 2), ("a", -1), ("a", "b"), (0,), ("s", 0)])
def test_a_path_that_leads_nowhere_is_refused(path: json_text.Path) -> None:
    with pytest.raises(WireError):
        json_text.find('{"a": [1, 2], "s": "text"}', path)


def test_only_a_line_feed_ends_a_line_of_json() -> None:
    assert list(json_text.lines('{"a":"\u2028\x0b"}\r\n\n  \n[1]')) == ['{"a":"\u2028\x0b"}\r', "[1]"]


@pytest.mark.parametrize(
    ("value", "string", "obj", "listed", "count"),
    [
        (None, "", {}, [], 0),
        ("x", "x", {}, [], 0),
        (7, "7", {}, [], 7),
        (True, "true", {}, [], 0),
        (1.5, "1.5", {}, [], 0),
        ({"a": 1}, '{"a":1}', {"a": 1}, [], 0),
        ([1], "[1]", {}, [1], 0),
    ],
)
def test_a_field_of_the_wrong_type_is_read_as_what_it_can_be(
    value: Any, string: str, obj: Any, listed: Any, count: int
) -> None:
    assert json_text.as_string(value) == string
    assert json_text.as_object(value) == obj
    assert json_text.as_list(value) == listed
    assert json_text.as_count(value) == count
