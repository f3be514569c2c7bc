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
        ROWS[: len(ROWS) // 2],  # too many went
        [*reversed(ROWS)],  # too many moved
        [*ROWS, ROWS[0]],  # a key twice
        changed(*((n, {"state": "closed"}) for n in range(20))),  # too many
        {"rows": ROWS},
    ],
)
def test_what_it_cannot_say_is_refused(new: object) -> None:
    assert hint_for("R1", json.dumps(ROWS), json.dumps(new)) is None


@pytest.mark.parametrize(
    ("new", "lines"),
    [
        (ROWS[:-1], ["0 of 39 rows changed, 1 gone", "gone: 39"]),
        ([{"id": 99}, *ROWS], ["0 of 41 rows changed, 1 new", 'new at the top: {"id":99}']),
        (
            [*ROWS[:3], {"id": 98}, {"id": 99}, *ROWS[3:]],
            ["0 of 42 rows changed, 2 new", 'new after 2: {"id":98}', 'new after 98: {"id":99}'],
        ),
        ([ROWS[7], *ROWS[:7], *ROWS[8:]], ["0 of 40 rows changed, 1 moved", "moved at the top: 7"]),
        ([*ROWS[:7], *ROWS[8:], ROWS[7]], ["0 of 40 rows changed, 1 moved", "moved after 39: 7"]),
        (
            [ROWS[5], *ROWS[:3], ROWS[4] | {"state": "closed"}, *ROWS[6:]],
            [
                "1 of 39 rows changed, 1 gone, 1 moved",
                '{"id":4,"state":"closed"}',
                "gone: 3",
                "moved at the top: 5",
            ],
        ),
        (changed((3, {"more": 1})), ["1 of 40 rows changed", f"whole: {json.dumps(ROWS[3] | {'more': 1})}"]),
    ],
)
def test_rows_that_came_went_or_moved_are_shown_with_their_place(new: list[dict[str, Any]], lines: list[str]) -> None:
    old = json.dumps(ROWS)
    hint = hint_for("R1", old, json.dumps(new))

    assert hint is not None
    header, *rest = hint.split("\n")
    assert header == f"> [R1 by id: {lines[0]}, all others are as there]"
    assert [line.replace('": ', '":').replace(", ", ",") for line in lines[1:]] == [
        line.replace(", ", ",") for line in rest
    ]
    assert parse(undo(hint, old) or "") == parse(json.dumps(new))


def test_a_list_in_an_object_is_named_and_so_are_the_fields_around_it() -> None:
    old = {"total": 40, "page": {"next": "x"}, "items": ROWS}
    new = {"total": 41, "page": {"next": "x"}, "items": [*ROWS, ROWS[0] | {"id": 40}]}

    hint = hint_for("R1", json.dumps(old), json.dumps(new))

    assert hint is not None
    assert hint.split("\n")[:2] == [
        "> [R1 items by id: 0 of 41 rows changed, 1 new, all others are as there]",
        'other fields: {"total":41}',
    ]
    assert parse(undo(hint, json.dumps(old)) or "") == parse(json.dumps(new))


def test_fields_of_objects_in_a_row_have_a_path_and_may_be_the_key() -> None:
    pods = [{"metadata": {"name": f"web-{n}"}, "status": {"phase": "Pending", "ip": None}} for n in range(20)]
    new = [pod | {"status": {"phase": "Running", "ip": None}} if at == 4 else pod for at, pod in enumerate(pods)]

    hint = hint_for("R1", json.dumps({"items": pods}), json.dumps({"items": new}))

    assert hint == (
        "> [R1 items by metadata.name: 1 of 20 rows changed, all others are as there]\n"
        '{"metadata.name":"web-4","status.phase":"Running"}'
    )


def test_pages_of_one_list_do_not_hide_each_other() -> None:
    ledger = Ledger()
    for rows in (ROWS[:20], [row | {"id": row["id"] + 500} for row in ROWS]):
        for entry in encode(json.dumps(rows), tool="list", ledger=ledger).ledger_entries:
            ledger = ledger.with_text(entry)
    again = json.dumps(changed((3, {"state": "closed"}))[:20])

    shown = encode(again, tool="list", ledger=ledger)

    assert shown.text.startswith("> [R1 by id: 1 of 20 rows changed, ")
    assert parse(decode(shown.text, ledger)) == parse(again)


def test_rows_without_a_key_of_their_own_are_refused() -> None:
    rows = [{"id": 1, "name": "x", "n": n} for n in range(40)]
    assert hint_for("R1", json.dumps(rows), json.dumps([rows[0] | {"n": 7}, *rows[1:]])) is None


def test_a_text_that_looks_like_such_a_hint_is_marked() -> None:
    text = "> [R1 by id: 1 of 2 rows changed, all others are as there]\n" + json.dumps({"id": 3})
    assert decode(encode(text).text) == text
    assert encode(text).text.startswith("[as it is]\n")


VALUES = st.one_of(st.integers(), st.text(max_size=5), st.none(), st.booleans(), st.lists(st.integers(), max_size=2))


@given(
    st.lists(st.tuples(st.integers(0, 39), st.sampled_from(["title", "state", "labels", "id"]), VALUES), max_size=5),
    st.lists(st.tuples(st.integers(0, 39), st.integers(0, 39)), max_size=3),
    st.lists(st.integers(0, 39), max_size=3),
)
@settings(deadline=None, max_examples=200)
def test_every_hint_restores_the_new_list(
    changes: list[tuple[int, str, Any]], moves: list[tuple[int, int]], gone: list[int]
) -> None:
    old = json.dumps(ROWS)
    rows = changed(*((at, {name: value}) for at, name, value in changes))
    for source, target in moves:
        rows.insert(target, rows.pop(source))
    rows = [row for at, row in enumerate(rows) if at not in gone]
    hint = hint_for("R1", old, json.dumps(rows))
    if hint is not None:
        assert parse(undo(hint, old) or "") == parse(json.dumps(rows))
    else:
        another_key = any(name == "id" for _, name, _ in changes)
        assert rows == ROWS or another_key or len(changes) + len(moves) + len(gone) > 10
