"""A list that was fetched again: the rows that changed, by key, and nothing that would not restore it."""

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pagefold.encode import decode, encode
from pagefold.encode.changed_rows import hint_for, undo
from pagefold.encode.notation.json_value import parse
from pagefold.pages.ledger import Ledger

ROWS: list[dict[str, Any]] = [
    {"id": n, "title": f"issue {n}", "state": "open", "score": 1.5, "labels": [{"name": "bug"}]} for n in range(40)
]


def changed(*changes: tuple[int, dict[str, Any]]) -> list[dict[str, Any]]:
    rows = [dict(row) for row in ROWS]
    for at, fields in changes:
        rows[at] |= fields
    return rows


def test_rows_that_changed_are_shown_by_their_key() -> None:
    ledger = Ledger()
    first = encode(json.dumps(ROWS), tool="list", ledger=ledger)
    for entry in first.ledger_entries:
        ledger = ledger.with_text(entry)
    new = json.dumps(changed((3, {"state": "closed"}), (7, {"score": 2.50, "labels": []})))

    shown = encode(new, tool="list", ledger=ledger)

    assert shown.text == (
        "> [R1 by id: 2 of 40 rows changed, all others are as there]\n"
        '{"id":3,"state":"closed"}\n{"id":7,"score":2.5,"labels":[]}'
    )
    assert parse(decode(shown.text, ledger)) == parse(new)


@pytest.mark.parametrize(
    "new",
    [
        ROWS,  # nothing changed
        ROWS[:-1],  # a row went
        [*reversed(ROWS)],  # rows moved
        changed((3, {"more": 1})),  # another field
        changed((3, {"id": 99})),  # another key
        changed(*((n, {"state": "closed"}) for n in range(20))),  # too many
        {"rows": ROWS},
    ],
)
def test_what_it_cannot_say_is_refused(new: object) -> None:
    assert hint_for("R1", json.dumps(ROWS), json.dumps(new)) is None


def test_rows_without_a_key_of_their_own_are_refused() -> None:
    rows = [{"id": 1, "name": "x", "n": n} for n in range(40)]
    assert hint_for("R1", json.dumps(rows), json.dumps([rows[0] | {"n": 7}, *rows[1:]])) is None


def test_a_text_that_looks_like_such_a_hint_is_marked() -> None:
    text = "> [R1 by id: 1 of 2 rows changed, all others are as there]\n" + json.dumps({"id": 3})
    assert decode(encode(text).text) == text
    assert encode(text).text.startswith("[as it is]\n")


VALUES = st.one_of(st.integers(), st.text(max_size=5), st.none(), st.booleans(), st.lists(st.integers(), max_size=2))


@given(st.lists(st.tuples(st.integers(0, 39), st.sampled_from(["title", "state", "labels"]), VALUES), max_size=5))
@settings(deadline=None, max_examples=200)
def test_every_hint_restores_the_new_list(changes: list[tuple[int, str, Any]]) -> None:
    old = json.dumps(ROWS)
    new = json.dumps(changed(*((at, {name: value}) for at, name, value in changes)))
    hint = hint_for("R1", old, new)
    if hint is not None:
        assert parse(undo(hint, old) or "") == parse(new)
