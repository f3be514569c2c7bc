"""JSON as lines: every value once, with where it stood; lists by column; nothing that a value says is changed."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pagefold.derive.json_lines import Said, json_lines, value_of
from pagefold.derive.quotable import passages
from pagefold.derive.working_set.quoted import quoted
from pagefold.wire.transcripts import parse_line

ROWS = {"total": 3, "items": [{"id": 7, "name": "harbour"}, {"id": 9}, {"id": 4, "name": "quay", "tags": ["a", "b"]}]}


@pytest.mark.parametrize(
    ("value", "lines"),
    [
        ({"total": 3}, [Said("total: 3")]),
        ([], [Said("[]")]),
        (["a", "b"], [Said('["a","b"]')]),
        ({"a": {"b": None, "c": {}}}, [Said("a.b: null"), Said("a.c: {}")]),
        (
            ROWS,
            [
                Said("total: 3"),
                Said("[0] 7", "items[].id"),
                Said("[1] 9", "items[].id", follows=True),
                Said("[2] 4", "items[].id", follows=True),
                Said("[0] harbour", "items[].name"),
                Said("[2] quay", "items[].name"),
                Said('[2] ["a","b"]', "items[].tags"),
            ],
        ),
        (
            [{"of": [{"x": 1}, {"x": 2}]}, {"of": [{"x": 3}]}],
            [
                Said("[0.0] 1", "[].of[].x"),
                Said("[0.1] 2", "[].of[].x", follows=True),
                Said("[1.0] 3", "[].of[].x"),
            ],
        ),
        ({"rows": [{"note": "one\ntwo"}]}, [Said("rows[0].note:"), Said("one"), Said("two")]),
        ({"rows": [{"note": "x" * 301}]}, [Said(f"rows[0].note: {'x' * 301}")]),
        ([{"type": "text", "text": '{"a": [{"b": 1}]}'}], [Said("[0.0] 1", "[] >.a[].b")]),
    ],
)
def test_what_is_said_where(value: Any, lines: list[Said]) -> None:
    assert json_lines(json.dumps(value)) == lines


@pytest.mark.parametrize("text", ["", "plain words", '"a string"', "3", "[1, 2", '{"a":'])
def test_what_is_no_json_gives_nothing(text: str) -> None:
    assert json_lines(text) is None


words = st.text(st.characters(codec="utf-8", exclude_characters="\n{["), max_size=20)
values = st.recursive(
    st.none() | st.booleans() | st.integers(-(10**6), 10**6) | words,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(words, inner, max_size=4),
    max_leaves=20,
)


def leaves(value: Any) -> list[str]:
    if isinstance(value, dict | list):
        inside = list(value.values()) if isinstance(value, dict) else value
        plain = isinstance(value, list) and not any(isinstance(part, dict | list) for part in value)
        if not inside or plain:
            return [json.dumps(value, ensure_ascii=False, separators=(",", ":"))]
        return [leaf for part in inside for leaf in leaves(part)]
    return [value if isinstance(value, str) else json.dumps(value)]


@given(st.lists(values, max_size=4) | st.dictionaries(words, values, max_size=4))
def test_every_value_is_said_once(value: Any) -> None:
    said = json_lines(json.dumps(value))
    assert said is not None
    whole = {"type", "text", "annotations"}
    if any(key in json.dumps(value) for key in whole):
        return  # an envelope says its text alone
    found = sorted(value_of(one.text) if one.column else one.text for one in said)
    for leaf in leaves(value):
        assert any(one.endswith(leaf) for one in found)
    assert len(found) == len(leaves(value))


def test_a_digest_quotes_a_column_in_one_line_and_says_every_place_that_does_not_follow() -> None:
    call = {"id": "c", "type": "function", "function": {"name": "list_items", "arguments": "{}"}}
    messages = [
        {"role": "user", "content": "Which items are there?"},
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "c", "content": json.dumps(ROWS)},
    ]
    history = parse_line(json.dumps({"messages": messages}), name="x").messages
    (passage,) = passages(history[-1], ("result",))
    shown = list(quoted(passage.lines))
    assert shown[-4:] == [
        "total: 3",
        "items[].id: [0] 7 | 9 | 4",
        "items[].name: [0] harbour [2] quay",
        'items[].tags: [2] ["a","b"]',
    ]
    some = [at for at, line in enumerate(passage.lines) if line[0] in ("[0] 7", "[2] 4", "[2] quay")]
    shown = list(quoted([passage.lines[index] for index in some]))
    assert shown[-2:] == ["items[].id: [0] 7 [2] 4", "items[].name: [2] quay"]


def test_a_name_of_a_column_is_held_by_all_of_its_values() -> None:
    history = parse_line(
        json.dumps(
            {"messages": [{"role": "tool", "tool_call_id": "c", "content": '[{"publishedAt": 1}, {"publishedAt": 2}]'}]}
        ),
        name="x",
    ).messages
    (passage,) = passages(history[-1], ("result",))
    assert list(passage.where["publishedAt"]) == [0, 1]
