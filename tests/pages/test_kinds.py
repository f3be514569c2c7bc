"""Kinds and residency, line by line of the checklist S-PG."""

import json
from typing import Any

import pytest

from pagefold.pages.kinds import (
    PageKind,
    ResidencyLevel,
    classify,
    refusal,
)
from pagefold.wire.message import Block, BlockKind, Message, Role

FULL, COMPRESSED, STRUCTURED, POINTER = ResidencyLevel
TABLE = {
    PageKind.BOOTSTRAP: (FULL, STRUCTURED),
    PageKind.CONSTRAINT: (FULL, STRUCTURED),
    PageKind.PLAN: (FULL, STRUCTURED, POINTER),
    PageKind.PREFERENCE: (FULL, COMPRESSED, STRUCTURED, POINTER),
    PageKind.EVIDENCE: (FULL, COMPRESSED, STRUCTURED, POINTER),
    PageKind.CONVERSATION: (FULL, COMPRESSED, STRUCTURED, POINTER),
}


def message(role: Role, *kinds: BlockKind) -> Message:
    return Message(role, tuple(Block(kind, "text") for kind in kinds), "{}")


def test_s_pg_1_a_system_message_is_bootstrap() -> None:
    assert classify(message(Role.SYSTEM, BlockKind.TEXT)) is PageKind.BOOTSTRAP


def test_s_pg_2_a_tool_message_with_a_result_is_evidence() -> None:
    assert classify(message(Role.TOOL, BlockKind.RESULT)) is PageKind.EVIDENCE


@pytest.mark.parametrize("role", [Role.USER, Role.ASSISTANT])
def test_s_pg_3_plain_words_are_conversation(role: Role) -> None:
    assert classify(message(role, BlockKind.TEXT)) is PageKind.CONVERSATION


@pytest.mark.parametrize("kind", [PageKind.BOOTSTRAP, PageKind.CONSTRAINT])
def test_s_pg_4_bootstrap_and_constraint_stay_at_least_structured(kind: PageKind) -> None:
    assert kind.min_fidelity() is STRUCTURED


@pytest.mark.parametrize("kind", PageKind)
def test_s_pg_5_every_path_starts_at_full(kind: PageKind) -> None:
    assert kind.degradation_path()[0] is FULL


def test_s_pg_6_classify_all_is_parallel_to_the_messages() -> None:
    messages = [
        message(Role.USER, BlockKind.TEXT),
        message(Role.ASSISTANT, BlockKind.TEXT),
        message(Role.TOOL, BlockKind.RESULT),
    ]

    assert [classify(message) for message in messages] == [
        PageKind.CONVERSATION,
        PageKind.CONVERSATION,
        PageKind.EVIDENCE,
    ]


def test_s_pg_7_a_constraint_stays_structured_and_evidence_may_become_a_pointer() -> None:
    assert (PageKind.CONSTRAINT.min_fidelity(), PageKind.EVIDENCE.min_fidelity()) == (STRUCTURED, POINTER)


def test_s_pg_8_the_documented_examples_hold_for_plain_chat_messages_too() -> None:
    result: dict[str, Any] = {"role": "tool", "tool_call_id": "call-1", "content": "file contents"}

    assert classify({"role": "system", "content": "you are a librarian"}) is PageKind.BOOTSTRAP
    assert classify(result) is PageKind.EVIDENCE


def test_s_pg_9_a_user_who_says_hi_is_conversation() -> None:
    assert classify({"role": "user", "content": "hi"}) is PageKind.CONVERSATION


@pytest.mark.parametrize("kind", [PageKind.PLAN, PageKind.PREFERENCE, PageKind.CONVERSATION])
def test_s_pg_10_plan_preference_and_conversation_may_become_pointers(kind: PageKind) -> None:
    assert kind.min_fidelity() is POINTER


@pytest.mark.parametrize(("kind", "path"), TABLE.items())
def test_s_pg_11_the_paths_are_those_of_the_table_and_end_at_the_minimum(
    kind: PageKind, path: tuple[ResidencyLevel, ...]
) -> None:
    assert kind.degradation_path() == path
    assert path[-1] is kind.min_fidelity()


@pytest.mark.parametrize("role", [Role.USER, Role.ASSISTANT])
def test_s_pg_12_a_message_that_carries_a_result_is_evidence(role: Role) -> None:
    assert classify(message(role, BlockKind.TEXT, BlockKind.RESULT)) is PageKind.EVIDENCE
    assert classify({"role": role, "content": [{"type": "tool_result", "content": "x"}]}) is PageKind.EVIDENCE


def test_s_pg_12_a_system_message_stays_bootstrap_even_with_a_result() -> None:
    assert classify(message(Role.SYSTEM, BlockKind.RESULT)) is PageKind.BOOTSTRAP


def test_s_pg_13_a_tool_message_without_a_result_is_still_evidence() -> None:
    assert classify(message(Role.TOOL, BlockKind.TEXT)) is PageKind.EVIDENCE


@pytest.mark.parametrize("role", Role)
@pytest.mark.parametrize("kind", BlockKind)
def test_s_pg_14_no_message_is_guessed_to_be_a_constraint_a_plan_or_a_preference(role: Role, kind: BlockKind) -> None:
    guessed = classify(message(role, kind))

    assert guessed not in (PageKind.CONSTRAINT, PageKind.PLAN, PageKind.PREFERENCE)


@pytest.mark.parametrize("kind", PageKind)
@pytest.mark.parametrize("level", ResidencyLevel)
def test_s_pg_15_a_level_off_the_path_is_refused_with_a_reason(kind: PageKind, level: ResidencyLevel) -> None:
    reason = refusal(kind, level)

    if level in TABLE[kind]:
        assert reason is None
    else:
        assert reason is not None
        assert f"a {kind} page may not stand at {level}" in reason


def test_s_pg_16_names_in_json_are_plain_words() -> None:
    assert json.loads(json.dumps(list(PageKind))) == [
        "bootstrap",
        "constraint",
        "plan",
        "preference",
        "evidence",
        "conversation",
    ]
    assert json.loads(json.dumps(list(ResidencyLevel))) == ["full", "compressed", "structured", "pointer"]


def test_a_developer_message_is_bootstrap_as_a_system_message_is() -> None:
    assert classify(message(Role.DEVELOPER, BlockKind.TEXT)) is PageKind.BOOTSTRAP
