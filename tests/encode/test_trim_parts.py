"""What trimming is made of: views, units, blocks, scanned JSON, strategies, items, keywords."""

import json
import re
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pagefold.encode.mcp_text_view import view_of
from pagefold.encode.shape import TextShape, shape_of
from pagefold.encode.trim.blocks import blocks_of
from pagefold.encode.trim.json_items import ItemKind, items_of
from pagefold.encode.trim.json_scan import Node, scan
from pagefold.encode.trim.keywords import keywords_of
from pagefold.encode.trim.landmarks import is_alarm, is_symbol
from pagefold.encode.trim.piece_values import piece_values
from pagefold.encode.trim.strategy import STRATEGIES, ItemFacts, item_values, strategy_for, thread_values
from pagefold.encode.trim.units import units_of
from pagefold.errors import ConfigError

TEXTS = st.one_of(
    st.text(max_size=2_000),
    st.lists(
        st.sampled_from(
            [
                "def f_1(a):",
                "    return a",
                "class B:",
                "",
                "# One",
                "## Two",
                "diff --git a/x b/x",
                "@@ -1 +1 @@",
                "+new",
                "src/a.py:12:hit",
                "src/a.py-13-near",
                "ERROR: bad",
                "--- FAIL: T (0s)",
                "y" * 900,
                "12:00:01 INFO up",
            ]
        ),
        max_size=120,
    ).map("\n".join),
)


@settings(deadline=None)
@given(TEXTS)
def test_units_stand_one_after_another_and_lose_nothing(text: str) -> None:
    units = units_of(text)

    assert "".join(text[unit.start : unit.end] for unit in units) == text
    assert all(first.end == second.start for first, second in pairwise(units))
    assert all(len(unit.text) <= 400 for unit in units)


@settings(deadline=None)
@given(TEXTS, st.sampled_from(TextShape))
def test_blocks_hold_every_unit_once_whatever_the_shape(text: str, shape: TextShape) -> None:
    units = units_of(text)
    blocks = blocks_of(units, shape)

    assert [index for block in blocks for index in range(block.start, block.end)] == list(range(len(units)))
    assert all(block.start <= sign < block.end for block in blocks for sign in block.signs)
    assert all(block.parent is None or block.parent < index for index, block in enumerate(blocks))


def test_methods_lie_in_their_class_and_hunks_in_their_file() -> None:
    text = "class A:\n    def b(self):\n        pass\n\n    def c(self):\n        pass\n\ndef d():\n    pass\n"
    blocks = blocks_of(units_of(text), TextShape.SOURCE)
    assert [block.parent for block in blocks] == [None, 0, 0, None]

    first = "diff --git a/x.py b/x.py\n--- a/x.py\n@@ -1 +1 @@\n-a\n@@ -9 +9 @@\n-b\n"
    text = f"{first}diff --git a/y.py b/y.py\n@@ -1 +1 @@\n+c"
    blocks = blocks_of(units_of(text), TextShape.DIFF)
    assert [(block.parent, block.path) for block in blocks] == [
        (None, "x.py"),
        (0, "x.py"),
        (0, "x.py"),
        (None, "y.py"),
        (3, "y.py"),
    ]


@settings(deadline=None)
@given(st.text(max_size=300), st.booleans(), st.integers(0, 40))
def test_a_view_knows_where_everything_stands_outside(inside: str, ascii_only: bool, cut: int) -> None:
    text = json.dumps({"type": "text", "text": f"x{inside}", "annotations": None}, ensure_ascii=ascii_only)
    text = text[: len(text) - cut]
    view = view_of(text)

    if view.opened:
        assert f"x{inside}".startswith(re.sub("[\ud800-\udbff]$", "", view.text))  # a pair may be cut in two
        for start in range(len(view.text)):
            outer = text[view.outer(start) : view.outer(start + 1)]
            assert json.loads(f'"{outer}"') == view.text[start]
            assert view.inner(view.outer(start)) == start
    if not cut:
        assert view.opened
        assert view.text == f"x{inside}"


def test_a_text_that_is_no_block_is_its_own_view() -> None:
    for text in ("", "plain", '{"type":"image"}', '{"type":"text","text":""}'):
        assert view_of(text).text == text
        assert view_of(text).outer(1) == 1


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=12),
    lambda inner: st.lists(inner, max_size=5) | st.dictionaries(st.text(max_size=5), inner, max_size=5),
    max_leaves=40,
)


def rebuilt(text: str, node: Node) -> object:
    if node.kind == "{":
        return {child.key: rebuilt(text, child) for child in node.children}
    if node.kind == "[":
        return [rebuilt(text, child) for child in node.children]
    return json.loads(text[node.start : node.end])


@settings(deadline=None)
@given(
    st.lists(VALUES, max_size=4) | st.dictionaries(st.text(max_size=4), VALUES, max_size=4), st.sampled_from([None, 2])
)
def test_scanned_json_is_the_same_value(value: object, indent: int | None) -> None:
    text = json.dumps(value, indent=indent)
    root = scan(text)

    assert root is not None
    assert root.whole
    assert root.end == len(text)
    assert rebuilt(text, root) == value


@settings(deadline=None)
@given(st.lists(VALUES, min_size=1, max_size=5), st.integers(1, 60))
def test_json_broken_off_anywhere_gives_what_was_whole(value: list[object], cut: int) -> None:
    text = json.dumps({"items": value})[: -min(cut, 60)]
    root = scan(text)

    if root is not None:
        assert not root.whole
        assert root.end <= len(text)
        assert str(rebuilt(text, root)) is not None


@pytest.mark.parametrize("text", ["", "plain", "nul", "{", "[", "{]", '"string"', "12"])
def test_what_is_no_json_is_none(text: str) -> None:
    assert scan(text) is None


@pytest.mark.parametrize(
    ("strategy", "items", "expected"),
    [
        ("default", [ItemFacts()] * 3, [1.0, 1.0, 1.0]),
        ("element_count", [ItemFacts()] * 2, [1.0, 0.65]),
        ("cascading", [ItemFacts()] * 3, [0.95**2, 0.95, 1.0]),
        (
            "size_proportional",
            [
                ItemFacts(path=path)
                for path in ("Cargo.lock", "app.min.js", "db/Migration_1.py", "tests/x.py", "src/x.py")
            ],
            [0.05, 0.10, 0.60, 0.70, 1.0],
        ),
        (
            "size_proportional",
            [ItemFacts(path=path) for path in ("go.sum", "package-lock.json", "yarn.lock")],
            [0.05] * 3,
        ),
        ("thread_level", [ItemFacts(resolved=True), ItemFacts(resolved=False), ItemFacts()], [0.3, 1.0, 1.0]),
        ("head_tail", [ItemFacts()] * 10, [0.8, 0.8, 0.1, 0.1, 0.1, 0.1, 1.0, 1.0, 1.0, 1.0]),
        ("priority", [ItemFacts()] * 2, [1.0, 0.65]),
        ("priority", [ItemFacts(activity=0, days=30), ItemFacts(activity=10, days=0)], [0.4, 0.2 + 0.35 + 0.25]),
        ("priority", [ItemFacts(activity=4), ItemFacts()], [0.4 + 0 + 0.25, 0.2 + 0.35 * 0.5 + 0.25 * 0.5]),
    ],
)
def test_strategies_value_items_as_they_say(strategy: str, items: list[ItemFacts], expected: list[float]) -> None:
    assert item_values(strategy, items) == pytest.approx(expected)


@settings(deadline=None)
@given(st.sampled_from(sorted(STRATEGIES)), st.integers(0, 40))
def test_values_lie_between_nought_and_one(strategy: str, many: int) -> None:
    assert all(0 <= value <= 1 for value in item_values(strategy, [ItemFacts()] * many))


def test_the_ends_of_a_thread_are_worth_more_than_its_middle() -> None:
    assert thread_values(1.0, 4) == [1.0, 0.5, 0.5, 1.0]
    assert thread_values(0.3, 1) == [0.3]


@pytest.mark.parametrize(
    ("tool", "named", "configured", "expected"),
    [
        ("get_issues", None, {}, "priority"),
        ("get_merge_requests", None, {}, "priority"),
        ("get_issue_comments", None, {}, "cascading"),
        ("get_merge_request_diffs", None, {}, "size_proportional"),
        ("get_merge_request_discussions", None, {}, "thread_level"),
        ("get_job_logs", None, {}, "head_tail"),
        ("get_users", None, {}, "default"),
        ("anything", None, {}, "default"),
        ("cloud__get_issues", None, {}, "priority"),
        ("mcp__cloud__get_issues", None, {}, "default"),  # only up to the first mark, as the name may hold more
        ("get_issues", None, {"get_issues": "cascading"}, "cascading"),
        ("cloud__get_issues", None, {"get_issues": "cascading"}, "cascading"),
        ("cloud__get_issues", None, {"cloud__get_issues": "head_tail", "get_issues": "cascading"}, "head_tail"),
        ("get_issues", "element_count", {"get_issues": "cascading"}, "element_count"),
    ],
)
def test_a_strategy_is_found_by_name_then_by_tool(
    tool: str, named: str | None, configured: dict[str, str], expected: str
) -> None:
    assert strategy_for(tool, named, configured) == expected


def test_a_configured_name_that_is_no_strategy_is_refused_with_its_place() -> None:
    with pytest.raises(ConfigError, match=r"strategies\.get_issues = 'best'"):
        strategy_for("get_issues", None, {"get_issues": "best"})


def test_typed_items_are_told_by_their_members_and_summed_up() -> None:
    issue = {"title": "x", "state": "open", "updated_at": "2026-01-01T00:00:00Z", "user_notes_count": 3}
    found = items_of({"total": 2, "items": [issue, issue | {"state": "closed", "updated_at": "2026-01-31T00:00:00Z"}]})
    assert found is not None
    assert (found.kind, found.path, found.summary(0, 1)) == (
        ItemKind.ISSUES,
        ("items",),
        "issues #1-2 (1 open, 1 closed)",
    )
    assert [(item.activity, item.days) for item in found.facts()] == [(3.0, 30.0), (3.0, 0.0)]

    diffs = items_of([{"new_path": f"src/app/x/f{n}.py", "diff": "@@\n+a\n-b\n+c"} for n in range(3)])
    assert diffs is not None
    assert diffs.summary(0, 2) == "diffs 1-3: src/app/x/* (3), +6/-3"

    threads = items_of([{"notes": [{"body": "x", "resolved": done}]} for done in (True, False, False)])
    assert threads is not None
    assert threads.summary(0, 2) == "discussions 1-3 (2 unresolved, 1 resolved)"

    assert (comments := items_of([{"body": "x", "author": {}}] * 2)) is not None
    assert comments.kind is ItemKind.COMMENTS
    assert (merges := items_of([{"title": "x", "source_branch": "y", "state": "merged"}] * 2)) is not None
    assert merges.summary(0, 1) == "MRs #1-2 (2 merged)"
    assert items_of({"a": 1}) is None


def test_keywords_are_names_and_the_words_in_them() -> None:
    found = keywords_of(["please fix WriteCommittedOptions in the http_server"])

    assert {"writecommittedoptions", "write", "committed", "options", "http_server", "http", "server", "fix"} <= found
    assert not {"please", "the", "in"} & found


def test_a_piece_is_worth_what_it_is_first_to_say() -> None:
    first, same, other = piece_values(["call alpha_1 now", "call alpha_1 now", "call beta_2 now"], frozenset())
    assert first > other > same

    plain, named = piece_values(["call alpha_1 now", "call beta_2 now"], frozenset({"beta_2"}))
    assert named > plain


@pytest.mark.parametrize(
    ("line", "alarm"),
    [
        ("2026 ERROR db", True),
        ("FATAL: out", True),
        ("--- FAIL: TestX", True),
        ("ValueError: no", True),
        ("src/x.c:1:2: error: no", True),
        ("Traceback (most recent call last):", True),
        ("E       assert 1 == 2", True),
        ("0 errors, 3 warnings", False),
        ("INFO no errors found", False),
        ("handled the errors page", False),
        ("test passed", False),
    ],
)
def test_an_alarm_tells_of_a_failure_and_not_of_its_absence(line: str, alarm: bool) -> None:
    assert is_alarm(line) is alarm


@pytest.mark.parametrize(
    ("line", "symbol"),
    [
        ("def f(x):", True),
        ("    async def g(self) -> None:", True),
        ("func (s *Store) Put(key string) error {", True),
        ("type Store interface {", True),
        ("export default class App {", True),
        ("export const go = async (x) => {", True),
        ("pub fn new() -> Self {", True),
        ("int main(int argc, char **argv) {", True),
        ("    return f(x)", False),
        ("x = 1", False),
        ("if (x) {", False),
        ("# def in a comment", False),
    ],
)
def test_a_symbol_is_a_line_that_defines_something(line: str, symbol: bool) -> None:
    assert is_symbol(line) is symbol


def test_source_that_begins_with_comments_is_not_markdown() -> None:
    text = "# Author: A\n# Licence: B\n\nimport os\nfrom a import b\n\ndef c(d):\n    pass\n"

    assert shape_of(text) is TextShape.SOURCE
