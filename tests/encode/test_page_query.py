import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pagefold.encode.cursor import Cursor
from pagefold.encode.page_query import find_lines, find_path, find_word
from pagefold.encode.recall_reply import RecallReply, reply_to_recall
from pagefold.encode.trim import trim
from pagefold.errors import RecallError
from pagefold.pages.memory_store import MemoryPages
from pagefold.pages.page import handle_of
from pagefold.tokens import counter

count = counter("o200k").count
PLAIN = "".join(f"plain line {n}\n" for n in range(1, 201))
NUMBERED = "".join(f"{n:>6}→code_{n} = {n}\n" for n in range(900, 1_000))
JSON = json.dumps({"items": [{"id": n, "name": f"thing_{n}"} for n in range(30)], "a.b": {"c": 1.50}, "total": 30})


def ask(text: str, **asked: object) -> RecallReply:
    store = MemoryPages()
    return reply_to_recall(store, handle_of(store.put(text.encode())), **asked)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("text", "lines", "expected"),
    [
        (PLAIN, "3", "plain line 3"),
        (PLAIN, "3-5", "plain line 3\nplain line 4\nplain line 5"),
        (PLAIN, " 3 , 7-8", "plain line 3\n…\nplain line 7\nplain line 8"),
        (PLAIN, "7-8,3", "plain line 3\n…\nplain line 7\nplain line 8"),
        (PLAIN, "3-4,4-5,1", "plain line 1\n…\nplain line 3\nplain line 4\nplain line 5"),
        ("1\ta\n2\tb\n1\tc\n2\td", "1,2", "1\ta\n2\tb\n1\tc\n2\td"),
        (NUMBERED, "901-902", "   901→code_901 = 901\n   902→code_902 = 902"),
        (json.dumps({"type": "text", "text": PLAIN}), "2", "plain line 2"),
    ],
)
def test_lines_come_by_their_numbers(text: str, lines: str, expected: str) -> None:
    assert find_lines(text, lines, 500, count) == expected


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("$.total", "30"),
        ("total", "30"),
        ("$.items[3].name", '"thing_3"'),
        ("items[-1].id", "29"),
        ('$["a.b"].c', "1.50"),
        ("$.items[*].id", "\n".join(map(str, range(30)))),
    ],
)
def test_a_path_leads_to_values_as_they_are_spelled(path: str, expected: str) -> None:
    assert find_path(JSON.replace("1.5", "1.50"), path, 500, count) == expected


def test_a_word_gives_its_lines_and_their_neighbours() -> None:
    assert find_word(PLAIN, "LINE 77", 500, count) == (
        "[1 line with 'LINE 77']\n76\tplain line 76\n77\tplain line 77\n78\tplain line 78"
    )
    assert "   905→code_905" in find_word(NUMBERED, "code_905", 500, count)


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        ({"lines": "300"}, "this page has lines 1 to 201"),
        ({"lines": "a-b"}, "expected numbers and ranges"),
        ({"path": "$.x"}, "not JSON"),
        ({"find": "zebra"}, "no line of this page holds it"),
        ({"find": "  "}, "expected a word"),
        ({"lines": "1", "find": "x"}, "expected one of"),
        ({"lines": "1", "budget": 0}, "budget = 0: expected at least 100"),
        ({"budget": -1}, "budget = -1: expected at least 100"),
        ({"budget": 1}, "budget = 1: expected at least 100"),
        ({"cursor": "abc"}, "no cursor"),
    ],
)
def test_a_question_that_cannot_be_answered_gets_words_and_no_raise(asked: dict[str, object], said: str) -> None:
    found = ask(PLAIN, **asked)

    assert said in found.text
    assert found.page is None
    assert found.reason.endswith("Error")


@pytest.mark.parametrize(("path", "said"), [("$.x.y", "at the top are items, a.b, total"), ("$.[", "expected keys")])
def test_a_path_that_leads_nowhere_says_what_there_is(path: str, said: str) -> None:
    with pytest.raises(RecallError, match=said):
        find_path(JSON, path, 500, count)


@settings(deadline=None)
@given(st.integers(100, 400), st.sampled_from(["lines", "find", "path"]))
def test_a_part_is_within_its_budget_and_says_what_is_left(budget: int, how: str) -> None:
    text = json.dumps({"items": [f"plain line {n}" for n in range(400)]}) if how == "path" else PLAIN
    found = ask(
        text,
        budget=budget,
        **{"lines": {"lines": "1-200"}, "find": {"find": "line"}, "path": {"path": "$.items[*]"}}[how],
    )

    assert count(found.text) <= budget
    assert " more of " in found.text


@pytest.mark.parametrize("lines", [1, 20_000])
@pytest.mark.parametrize("length", [1, 3_000])
def test_the_smallest_budget_has_room_for_what_was_left_out(lines: int, length: int) -> None:
    for query in ({"lines": "1-99999"}, {"find": "zebra"}):
        found = ask("zebra " * length + "\n" + "zebra\n" * lines, budget=100, **query)
        assert count(found.text) <= 100


def test_one_value_too_long_for_the_budget_is_cut_and_says_so() -> None:
    found = ask(json.dumps({"a": "word " * 2_000}), path="$.a", budget=200)

    assert count(found.text) <= 200
    assert found.text.endswith("[cut off; ask for a longer path]")


def test_a_page_comes_whole_by_piece_or_by_cursor() -> None:
    assert ask(PLAIN).text == PLAIN
    assert ask(PLAIN, budget=100_000).text == PLAIN

    store = MemoryPages()
    page = store.put(PLAIN.encode())
    trimmed = trim(PLAIN, 400)
    assert trimmed.cursor is not None
    first = reply_to_recall(store, handle_of(page), cursor=trimmed.cursor)
    assert first.page == page
    assert count(first.text) <= 400
    assert 'next: cursor="' in first.text
    assert "lines 1-" in reply_to_recall(store, handle_of(page), budget=300).text


def test_a_cursor_of_another_page_an_unknown_page_and_a_collected_one_are_told_apart() -> None:
    store = MemoryPages()
    page, other = store.put(PLAIN.encode()), store.put(b"other", now=5)
    cursor = str(Cursor(page, 0, 400))

    assert reply_to_recall(store, handle_of(other), cursor=cursor).reason == "ForeignCursorError"
    assert reply_to_recall(store, "pf-aaaaaaaaaa", cursor=cursor).reason == "unknown"
    assert reply_to_recall(store, handle_of(page), cursor=cursor, within="elsewhere").reason == "unknown"

    store.collect(before=1)
    gone = reply_to_recall(store, handle_of(page), cursor=cursor)
    assert gone.reason == "unknown"
    assert "do not try it again" in gone.text
