"""Events of the trace: what they hold, and that every line comes back."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pagefold.telemetry.events import (
    LEVELS,
    CallEvent,
    TracedDecision,
    TracedFault,
    TracedRecall,
    TracedResult,
    TraceEvent,
    TurnEvent,
    agent_name,
    line_of,
    model_name,
    parse,
    tool_name,
)

WORDS = st.text(max_size=12)
COUNTS = st.integers(0, 10**9)
LEVEL = st.sampled_from(LEVELS)
TIMES = st.integers(0, 2 * 10**12).map(lambda thousandths: thousandths / 1000)
TURNS = st.builds(
    TurnEvent,
    at=TIMES,
    session=WORDS,
    began=WORDS,
    model=WORDS,
    status=st.integers(0, 599),
    error=WORDS,
    seconds=TIMES,
    cost=TIMES,
    usd=TIMES,
    usd_saved=TIMES,
    windows=TIMES,
    window_used=TIMES,
    window_resets=TIMES,
    life=TIMES,
    warm_usd=TIMES,
    cold_usd=TIMES,
    tokens=COUNTS,
    saved=st.integers(-(10**9), 10**9),
    cold=st.booleans(),
    fold=WORDS,
    levels=st.dictionaries(LEVEL, COUNTS),
    bands=st.lists(st.tuples(LEVEL, COUNTS), max_size=4).map(tuple),
    decisions=st.lists(st.builds(TracedDecision, COUNTS, LEVEL, WORDS, WORDS), max_size=3).map(tuple),
    results=st.lists(st.builds(TracedResult, WORDS, COUNTS, COUNTS), max_size=3).map(tuple),
    recalls=st.lists(st.builds(TracedRecall, WORDS, WORDS), max_size=2).map(tuple),
    faults=st.lists(st.builds(TracedFault, WORDS, WORDS, WORDS), max_size=2).map(tuple),
)
CALLS = st.builds(CallEvent, at=TIMES, session=WORDS, tool=WORDS, before=COUNTS, after=COUNTS)


@given(st.one_of(TURNS, CALLS))
def test_every_event_comes_back_from_its_line(event: TraceEvent) -> None:
    line = line_of(event)
    assert "\n" not in line
    assert parse(line) == event


@given(st.one_of(TURNS, CALLS), st.data())
def test_a_line_that_is_cut_off_is_no_event_and_no_error(event: TraceEvent, data: st.DataObject) -> None:
    line = line_of(event)
    assert parse(line[: data.draw(st.integers(0, len(line) - 1))]) is None


WRONG: list[object] = [
    [],
    7,
    None,
    {},
    {"v": 1},
    {"v": 2, "event": "turn", "at": 1.0, "session": "a"},
    {"v": 1, "event": "other", "at": 1.0},
    {"v": 1, "event": "turn", "session": "a"},
    {"v": 1, "event": "turn", "at": "soon", "session": "a"},
    {"v": 1, "event": "turn", "at": 1.0, "session": 5},
    {"v": 1, "event": "turn", "at": 1.0, "session": "a", "tokens": "many"},
    {"v": 1, "event": "turn", "at": 1.0, "session": "a", "tokens": True},
    {"v": 1, "event": "turn", "at": 1.0, "session": "a", "levels": {"whole": 5}},
    {"v": 1, "event": "turn", "at": 1.0, "session": "a", "bands": [["full"]]},
    {"v": 1, "event": "turn", "at": 1.0, "session": "a", "faults": [["refetch", "pf-a"]]},
    {"v": 1, "event": "turn", "at": 1.0, "session": "a", "faults": [[1, 2, 3]]},
]


@pytest.mark.parametrize("said", WRONG, ids=[json.dumps(one) for one in WRONG])
def test_what_is_no_event_is_told_apart(said: object) -> None:
    assert parse(json.dumps(said)) is None


@given(st.binary(max_size=60))
def test_any_bytes_are_an_event_or_none(data: bytes) -> None:
    assert parse(data) is None


def test_what_a_later_pagefold_adds_is_passed_over() -> None:
    assert parse('{"v":1,"event":"call","at":1.0,"session":"a","tool":"b","mood":"good"}') == CallEvent(1.0, "a", "b")


KNOWN = frozenset({"Read"})
TOOLS = [
    ("Read", False, "Read"),
    ("Read", True, "Read"),
    ("", False, ""),
    ("mcp__bank__transfer", True, "mcp__bank__transfer"),
]


@pytest.mark.parametrize(("tool", "spelled", "name"), TOOLS)
def test_a_shipped_tool_is_named_and_others_where_that_was_asked_for(tool: str, spelled: bool, name: str) -> None:
    assert tool_name(tool, KNOWN, spelled=spelled) == name


@pytest.mark.parametrize("spelled", [False, True])
def test_a_tool_that_is_not_named_is_a_hash_of_ten_digits(spelled: bool) -> None:
    tool = "transfer money; and more" if spelled else "mcp__bank__transfer"
    name = tool_name(tool, KNOWN, spelled=spelled)
    assert name.startswith("#")
    assert len(name) == 11
    assert "bank" not in name


def test_a_model_is_named_only_if_a_provider_answered_to_it() -> None:
    assert model_name("claude-sonnet-4-5", answered=True) == "claude-sonnet-4-5"
    assert model_name("claude-sonnet-4-5", answered=False) == ""
    assert model_name("my key is: 7", answered=True) == ""


AGENTS = [
    ("claude-cli/2.1.0 (external, cli)", "Claude Code"),
    ("codex_cli_rs/0.1", "Codex"),
    ("", ""),
    ("secret-agent/1 sk-123", "another agent"),
]


@pytest.mark.parametrize(("header", "name"), AGENTS)
def test_an_agent_is_one_of_those_that_are_known(header: str, name: str) -> None:
    assert agent_name(header) == name
