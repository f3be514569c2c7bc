import json
import re
from collections.abc import Callable
from dataclasses import dataclass

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pagefold.encode.cursor import read_cursor
from pagefold.encode.page_pieces import LEAST, BudgetError
from pagefold.encode.trim import Trimmed, keywords_of, skeleton, trim
from pagefold.errors import ConfigError
from pagefold.pages.page import handle_of, id_of
from pagefold.tokens import counter
from tests.encode.paging import pieces

count = counter("o200k").count


def log(lines: int, alarms: dict[int, str] | None = None) -> str:
    said = [
        f"2026-11-01T09:{n // 60 % 60:02}:{n % 60:02} INFO  [worker-{n % 4}] cache: hit key=items:{n}"
        for n in range(lines)
    ]
    for at, alarm in (alarms or {}).items():
        said[at] = f"2026-11-01T09:00:00 {alarm} [main] pool: exhausted after {at} ms"
    return "\n".join(said) + "\n"


def source(functions: int) -> str:
    found = ["import os\n", "\n"]
    for n in range(functions):
        found.append(f"def handle_{n}(request: Request_{n}) -> Response:\n")
        found += [f"    value_{n}_{line} = request.read_{line}()\n" for line in range(8)]
        found.append("\n")
    return "".join(found)


def numbered(text: str) -> str:
    return "".join(f"{n:>6}→{line}\n" for n, line in enumerate(text.splitlines(), 1))


def diff(files: int) -> str:
    return "".join(
        f"diff --git a/src/f{n}.py b/src/f{n}.py\n--- a/src/f{n}.py\n+++ b/src/f{n}.py\n"
        + "".join(
            f"@@ -{h},3 +{h},3 @@ def part_{n}_{h}\n-old_{n}_{h} = 1\n+new_{n}_{h} = 2\n same\n" for h in range(1, 9)
        )
        for n in range(files)
    )


def markdown(sections: int) -> str:
    return "".join(f"## Section {n}\n\nSome text about Topic_{n} and what it means.\n\n" * 2 for n in range(sections))


def hits(many: int) -> str:
    return "".join(f"src/mod_{n // 5}/service.py:{n}:    def handle_{n}(self, request)\n" for n in range(many))


def go_tests(many: int) -> str:
    return "".join(
        f"=== RUN   TestThing_{n}\n    thing_test.go:{n}: checking value_{n}\n"
        f"--- {'FAIL' if n % 17 == 5 else 'PASS'}: TestThing_{n} (0.00s)\n"
        for n in range(many)
    )


def issues(many: int) -> str:
    return json.dumps(
        [
            {
                "id": 900_000 + n,
                "number": n,
                "title": f"The thing number {n} does not work",
                "state": "closed" if n % 3 else "open",
                "body": f"When I call handle_{n} it hangs. " * 8,
                "user": {"login": f"user_{n % 7}", "avatar_url": f"https://example.com/a/{n}"},
            }
            for n in range(many)
        ]
    )


SHAPES: dict[str, str] = {
    "log": log(400, {77: "ERROR", 200: "FATAL"}),
    "source": source(60),
    "numbered": numbered(source(60)),
    "diff": diff(12),
    "markdown": markdown(60),
    "hits": hits(200),
    "tests": go_tests(120),
    "json": issues(60),
    "pretty": json.dumps(json.loads(issues(60)), indent=2),
    "object": json.dumps({"items": json.loads(issues(40)), "total": 40, "error": None}),
    "envelope": json.dumps({"type": "text", "text": source(60), "annotations": None}),
    "broken envelope": json.dumps({"type": "text", "text": issues(60)})[:9_000],
    "broken json": issues(60)[:9_000],
    "one line": "alpha_1 beta_2, gamma; " * 800,
    "one word": "x" * 30_000,
    "prose": "It was a long story and nobody could say how it began.\n" * 300,
    "unicode": "größe→ß 日本語 \U0001f600 zähler_1\n" * 400,
    "blank": "\n" * 6_000 + "the end",
    "crlf": "one_1 two_2\r\nthree_3\r\n" * 500,
}


def whole(text: str, trimmed: Trimmed, budget: int, counted: Callable[[str], int] = count) -> str:
    """What was shown and everything the cursors give, put together."""
    found = list(trimmed.shown)
    if trimmed.cursor is not None:
        page = id_of(text.encode("utf-8", "surrogatepass"))
        for one in pieces(text, read_cursor(trimmed.cursor, page, len(text)), counted):
            assert counted(one.text) <= budget
            found += one.parts
    assert sum(last - first for first, last in found) == len(text)
    return "".join(text[first:last] for first, last in sorted(found))


@pytest.mark.parametrize("name", SHAPES)
@pytest.mark.parametrize("budget", [LEAST, 160, 500, 1_500])
def test_a_text_is_within_its_budget_and_comes_back_whole(name: str, budget: int) -> None:
    text = SHAPES[name]

    trimmed = trim(text, budget, tool="fetch", arguments='{"id": 7}', keywords=keywords_of(["handle_17 hangs"]))

    assert count(trimmed.text) == trimmed.tokens <= budget
    assert whole(text, trimmed, budget) == text
    assert 0 <= trimmed.gap < 0.25


@given(
    st.one_of(
        st.text(max_size=4_000),
        st.lists(
            st.sampled_from(["def a_1():", "    return b_2", "", "# note", "ERROR: c_3", "x" * 300]), max_size=400
        ).map("\n".join),
        st.recursive(
            st.none() | st.booleans() | st.integers() | st.text(max_size=80),
            lambda inner: st.lists(inner, max_size=12) | st.dictionaries(st.text(max_size=8), inner, max_size=8),
            max_leaves=120,
        ).map(json.dumps),
    ),
    st.integers(LEAST, 600),
    st.integers(0, 60),
)
@settings(deadline=None, max_examples=60)
def test_any_text_at_any_budget_is_within_it_and_comes_back_whole(text: str, budget: int, cut: int) -> None:
    text = text[: len(text) - cut]

    trimmed = trim(text, budget)

    assert count(trimmed.text) <= budget
    assert whole(text, trimmed, budget) == text
    assert trimmed == trim(text, budget)


@pytest.mark.parametrize("name", ["json", "pretty", "object", "broken json", "broken envelope"])
@pytest.mark.parametrize("budget", [200, 700, 2_000])
def test_json_that_was_trimmed_is_json(name: str, budget: int) -> None:
    trimmed = trim(SHAPES[name], budget)

    assert json.loads(trimmed.body)
    assert "…" in trimmed.body or "[left out: " in trimmed.text


@pytest.mark.parametrize("name", ["log", "source", "numbered", "diff", "markdown", "hits", "tests", "prose"])
def test_every_line_of_a_body_stands_in_the_text_or_is_a_mark(name: str) -> None:
    text = SHAPES[name]
    lines = set(text.split("\n"))

    for line in trim(text, 400).body.split("\n"):
        assert line in lines or re.fullmatch(r"…(?: lines? [\d-]+)?", line), line


def test_marks_and_lines_together_are_all_lines() -> None:
    text = SHAPES["log"]
    at = 0
    for line in trim(text, 400).body.split("\n"):
        mark = re.fullmatch(r"… lines? (\d+)(?:-(\d+))?", line)
        if mark:
            assert int(mark[1]) == at + 1
            at = int(mark[2] or mark[1])
        else:
            assert line == text.split("\n")[at]
            at += 1

    assert at == len(text.rstrip("\n").split("\n"))


@pytest.mark.parametrize("budget", [300, 400, 2_000])
@pytest.mark.parametrize("at", [1, 250, 499])
def test_errors_are_never_trimmed_before_ordinary_lines(budget: int, at: int) -> None:
    text = log(500, {at: "ERROR", (at + 100) % 500: "FATAL", (at + 201) % 500: "CRITICAL"})

    body = trim(text, budget).body

    assert all(word in body for word in ("ERROR", "FATAL", "CRITICAL"))


def test_more_errors_than_fit_leave_no_room_for_ordinary_lines() -> None:
    body = trim(log(400, dict.fromkeys(range(0, 400, 2), "ERROR")), 600).body

    shown = [line for line in body.split("\n") if not line.startswith("…")]
    assert len(shown) > 5
    assert all("ERROR" in line for line in shown)


def test_failures_come_before_what_passed() -> None:
    body = trim(SHAPES["tests"], 500).body

    assert body.count("--- FAIL") == SHAPES["tests"].count("--- FAIL")


def test_an_error_deep_in_json_is_shown_with_the_name_of_its_entry() -> None:
    pods = [
        {"metadata": {"name": f"web-{n:03}"}, "status": {"phase": "Running"}, "notes": "fine " * 20} for n in range(200)
    ]
    pods[150]["status"] = {"phase": "Failed", "error": "volume vol_77 cannot be mounted"}

    body = trim(json.dumps({"items": pods}), 300).body

    assert "volume vol_77 cannot be mounted" in body
    assert "web-150" in body


def test_what_the_task_is_about_is_shown_and_order_decides_where_nothing_matches() -> None:
    text = source(200)

    assert "handle_150" not in trim(text, 500).body
    assert "def handle_150" in trim(text, 500, keywords=keywords_of(["why does handle_150 hang?"])).body
    assert "def handle_0(" in trim(text, 500, keywords=keywords_of(["zebra"])).body


def test_a_text_that_fits_comes_back_as_it_is() -> None:
    trimmed = trim("short\ntext", 100_000)

    assert (trimmed.text, trimmed.cursor, trimmed.reason) == ("short\ntext", None, "fits")
    assert trimmed.shown == ((0, 10),)


@pytest.mark.parametrize("budget", [0, 1, -1, LEAST - 1])
def test_a_budget_too_small_to_say_anything_is_refused_in_words(budget: int) -> None:
    with pytest.raises(BudgetError, match=f"budget = {budget}: expected at least {LEAST} tokens"):
        trim("x" * 10_000, budget)


def test_an_empty_text_fits() -> None:
    assert trim("", LEAST).text == ""


def test_the_handle_is_the_page_s_own_where_none_is_given() -> None:
    text = SHAPES["source"]

    assert handle_of(id_of(text.encode())) in trim(text, 300).text
    assert "pf-aaaaaaaaaa" in trim(text, 300, handle="pf-aaaaaaaaaa").text


def test_each_missing_chunk_has_a_line_and_its_cursor_returns_it() -> None:
    text = SHAPES["numbered"]
    trimmed = trim(text, 2_000)
    page = id_of(text.encode())

    assert len(trimmed.chunks) >= 2
    first = next(pieces(text, read_cursor(trimmed.chunks[1].cursor, page, len(text)), count))
    assert first.parts == trimmed.chunks[1].parts
    for number, chunk in enumerate(trimmed.chunks, 2):
        assert f"  chunk {number}: {chunk.what[:40]}" in trimmed.text


def test_chunks_of_issues_say_which_and_in_what_state() -> None:
    trimmed = trim(issues(60), 1_500, tool="get_issues")

    assert re.search(r"  chunk 2: issues #\d+-\d+ \(\d+ \w+, \d+ \w+\)", trimmed.text)
    assert trimmed.strategy == "priority"


@dataclass(frozen=True)
class Fields:
    fields: tuple[str, ...]
    estimated_value: float = 0.5
    default_include: bool = True


def test_fields_worth_more_are_kept_and_optional_ones_go_first() -> None:
    found = [
        {"title": f"Page about thing_{n}", "url": f"https://example.com/{n}", "snippet": f"fact_{n} " * 6}
        for n in range(60)
    ]
    groups = {"must_have": Fields(("title", "url"), 1.0), "nice_to_have": Fields(("snippet",), 0.3, False)}

    body = trim(json.dumps({"results": found}), 900, field_groups=groups).body

    assert body.count('"title"') > 10
    assert body.count('"snippet"') < body.count('"title"') / 4


def test_an_unknown_strategy_is_refused_by_name() -> None:
    with pytest.raises(ConfigError, match="strategy = 'best': expected one of default, element_count"):
        trim("x", 500, strategy="best")


def test_a_counter_that_counts_higher_is_kept_to_as_well() -> None:
    dear = counter("claude-5").count

    trimmed = trim(SHAPES["json"], 400, count=dear)

    assert dear(trimmed.text) <= 400


def test_a_skeleton_keeps_signatures_and_the_lines_asked_for() -> None:
    text = numbered(source(30))
    lines = text.split("\n")

    shown = skeleton(text, keep=[5, 6, 120], handle="pf-abcdefghij", tool="Read", arguments='{"file_path": "a.py"}')

    assert shown.split("\n")[0].startswith("[shortened: Read a.py, 302 lines, ")
    assert 'context_recall("pf-abcdefghij")' in shown
    for index in (5, 6, 120, *(n for n, line in enumerate(lines) if "→def " in line)):
        assert lines[index] in shown.split("\n")
    assert count(shown) < count(text) / 3


@pytest.mark.parametrize("name", SHAPES)
def test_a_skeleton_is_never_longer_than_its_text(name: str) -> None:
    shown = skeleton(SHAPES[name], handle="pf-abcdefghij")

    assert len(shown) <= len(SHAPES[name])
    assert shown == skeleton(SHAPES[name], handle="pf-abcdefghij")


def test_a_skeleton_of_a_log_keeps_its_alarms() -> None:
    shown = skeleton(SHAPES["log"], handle="pf-abcdefghij")

    assert "ERROR" in shown
    assert "FATAL" in shown
    assert "… lines 2-77" in shown


def test_room_that_an_error_does_not_fit_into_is_not_given_to_ordinary_lines() -> None:
    alarms = dict.fromkeys((40, 80), "ERROR " + " ".join(f"code_{n}" for n in range(30)))
    text = log(120, alarms)

    bodies = [trim(text, budget).body for budget in range(300, 480, 20)]

    assert any(body.count("ERROR") == 1 for body in bodies)
    assert not any("INFO" in body for body in bodies if body.count("ERROR") == 1)


def test_a_list_that_was_broken_off_says_so() -> None:
    body = trim(SHAPES["broken json"], 700).body

    assert json.loads(body)[-1] == "… broken off here"
