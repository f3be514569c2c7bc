"""The journal's rules: what an entry may do to a record, and why not."""

import json
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pagefold.pages.journal import (
    SCHEMAS,
    Boundary,
    JournalEntry,
    JournalRecord,
    LineState,
    Op,
    RejectReason,
    Rules,
    Schema,
    applied,
    record_of,
    rejection,
)
from pagefold.pages.memory_store import MemoryStore
from pagefold.pages.page import PageId, id_of

PAGE = id_of(b"seen")
MINE = "session:1"
FACTS = Schema("facts", {"seen": "object"}, {"count": "number", "done": "boolean", "of": "list"})
RULES = Rules({**SCHEMAS, "facts": FACTS}, frozenset({MINE, "project:x"}))


def resolves(page: PageId) -> bool:
    return page == PAGE


def entry(
    op: Op, key: str, schema: str, value: Any, *, read_version: int | None = None, scope: str = MINE
) -> JournalEntry:
    return JournalEntry.of(op, scope, key, schema, value, provenance=[PAGE], read_version=read_version)


def note(text: str, **options: Any) -> JournalEntry:
    return entry(Op.APPEND, "notes", "note", {"text": text}, **options)


def goal(text: str, read_version: int | None) -> JournalEntry:
    return entry(Op.SET, "plan", "plan", {"goal": text, "source": {}}, read_version=read_version)


def facts(**value: Any) -> JournalEntry:
    return entry(Op.MERGE, "facts", "facts", value)


def rule(*statements: str) -> list[dict[str, Any]]:
    return [{"statement": text, "scope": "session", "source": {}} for text in statements]


NOTES = JournalRecord(MINE, "notes", "note", 2, [{"text": "one"}, {"text": "two"}])
PLAN = JournalRecord(MINE, "plan", "plan", 3, {"goal": "old", "source": {}})
SEEN = JournalRecord(MINE, "facts", "facts", 1, {"seen": {"a": 1, "in": {"b": True}}})
RULED = JournalRecord(MINE, "constraints", "constraint", 2, rule("no push", "no force"))
PLANNED = {"goal": "g", "source": {}}

ACCEPTED: dict[str, tuple[JournalEntry, JournalRecord | None, Any]] = {
    "the first append": (note("one"), None, [{"text": "one"}]),
    "an append": (note("three"), NOTES, [{"text": "one"}, {"text": "two"}, {"text": "three"}]),
    "the same once more": (note("two"), NOTES, [{"text": "one"}, {"text": "two"}, {"text": "two"}]),
    "an append that looked": (note("three", read_version=2), NOTES, [*NOTES.value, {"text": "three"}]),
    "a first set": (goal("new", 0), None, {"goal": "new", "source": {}}),
    "a set of what was read": (goal("new", 3), PLAN, {"goal": "new", "source": {}}),
    "a first merge": (facts(seen={"a": 1}), None, {"seen": {"a": 1}}),
    "a merge of a new member": (facts(seen={"c": 2}), SEEN, {"seen": {"a": 1, "in": {"b": True}, "c": 2}}),
    "a merge further in": (facts(seen={"in": {"d": 0}}), SEEN, {"seen": {"a": 1, "in": {"b": True, "d": 0}}}),
    "a merge that says the same": (facts(seen={"a": 1}), SEEN, SEEN.value),
    "a merge without what is there": (facts(count=2), SEEN, SEEN.value | {"count": 2}),
    "a pinned record grows": (
        entry(Op.APPEND, "constraints", "constraint", rule("no rebase")[0]),
        RULED,
        rule("no push", "no force", "no rebase"),
    ),
    "a pinned record is put in order": (
        entry(Op.SET, "constraints", "constraint", rule("no force", "no push"), read_version=2),
        RULED,
        rule("no force", "no push"),
    ),
    "a whole list of what is not pinned": (entry(Op.SET, "notes", "note", [], read_version=2), NOTES, []),
}

REJECTED: dict[str, tuple[JournalEntry, JournalRecord | None, RejectReason, str]] = {
    "an unknown schema": (
        entry(Op.SET, "x", "poem", {}, read_version=0),
        None,
        RejectReason.SCHEMA_MISMATCH,
        "schema 'poem'",
    ),
    "another schema than the record's": (
        entry(Op.APPEND, "notes", "summary", {"text": "x"}),
        NOTES,
        RejectReason.SCHEMA_MISMATCH,
        "notes is a note",
    ),
    "a missing member": (entry(Op.APPEND, "notes", "note", {}), None, RejectReason.SCHEMA_MISMATCH, "needs 'text'"),
    "a member too many": (
        entry(Op.APPEND, "notes", "note", {"text": "", "by": "me"}),
        None,
        RejectReason.SCHEMA_MISMATCH,
        "has no 'by'",
    ),
    "a member of another type": (
        entry(Op.APPEND, "notes", "note", {"text": 1}),
        None,
        RejectReason.SCHEMA_MISMATCH,
        "'text' of a note is a string",
    ),
    "a boolean for a number": (facts(seen={}, count=True), None, RejectReason.SCHEMA_MISMATCH, "is a number"),
    "no object": (entry(Op.APPEND, "notes", "note", "text"), None, RejectReason.SCHEMA_MISMATCH, "is an object"),
    "no JSON": (replace(note("x"), value="{'text': 1}"), None, RejectReason.SCHEMA_MISMATCH, "not JSON"),
    "no number": (replace(facts(seen={}), value='{"seen":{"a":NaN}}'), None, RejectReason.SCHEMA_MISMATCH, "not JSON"),
    "too deep": (replace(note("x"), value="[" * 60_000), None, RejectReason.SCHEMA_MISMATCH, "not JSON"),
    "deeper than anything means": (
        replace(facts(seen={}), value='{"seen":' + '{"a":' * 40 + "1" + "}" * 41),
        None,
        RejectReason.SCHEMA_MISMATCH,
        "nested more than 32 deep",
    ),
    "too long": (note("x" * 70_000), None, RejectReason.SCHEMA_MISMATCH, "at most 65536"),
    "a merge into a list": (
        entry(Op.MERGE, "notes", "note", {"text": "x"}),
        NOTES,
        RejectReason.SCHEMA_MISMATCH,
        "append to it",
    ),
    "an append to what is no list": (
        entry(Op.APPEND, "plan", "plan", PLANNED),
        None,
        RejectReason.SCHEMA_MISMATCH,
        "merge into it",
    ),
    "one for a list": (
        entry(Op.SET, "notes", "note", {"text": "x"}, read_version=0),
        None,
        RejectReason.SCHEMA_MISMATCH,
        "the whole list",
    ),
    "a list with a wrong one": (
        entry(Op.SET, "notes", "note", [{"text": "x"}, {}], read_version=0),
        None,
        RejectReason.SCHEMA_MISMATCH,
        "needs 'text'",
    ),
    "no provenance": (replace(note("x"), provenance=()), None, RejectReason.PROVENANCE_FAIL, "names no page"),
    "a page that is not there": (
        replace(note("x"), provenance=(PAGE, id_of(b"gone"))),
        None,
        RejectReason.PROVENANCE_FAIL,
        id_of(b"gone"),
    ),
    "another's scope": (
        note("x", scope="session:2"),
        None,
        RejectReason.SCOPE_VIOLATION,
        "may write to project:x, session:1",
    ),
    "a set that did not look": (goal("new", None), PLAN, RejectReason.DESTRUCTIVE_OP, "which version it read"),
    "a set of an older version": (
        goal("new", 2),
        PLAN,
        RejectReason.DESTRUCTIVE_OP,
        "read version 2 of plan, which is at 3",
    ),
    "a set of what was not there": (goal("new", 0), PLAN, RejectReason.DESTRUCTIVE_OP, "which is at 3"),
    "a set of a version to come": (goal("new", 4), PLAN, RejectReason.DESTRUCTIVE_OP, "which is at 3"),
    "an append that saw another": (note("x", read_version=1), NOTES, RejectReason.DESTRUCTIVE_OP, "which is at 2"),
    "a merge that says otherwise": (facts(seen={"a": 2}), SEEN, RejectReason.DESTRUCTIVE_OP, "seen.a of facts"),
    "a merge that says otherwise further in": (
        facts(seen={"in": {"b": 1}}),
        SEEN,
        RejectReason.DESTRUCTIVE_OP,
        "seen.in.b of facts",
    ),
    "a merge that makes nothing of an object": (
        facts(seen={"in": {}, "a": {}}),
        SEEN,
        RejectReason.DESTRUCTIVE_OP,
        "seen.a",
    ),
    "a pinned statement is taken away": (
        entry(Op.SET, "constraints", "constraint", rule("no push"), read_version=2),
        RULED,
        RejectReason.INVARIANT_VIOLATION,
        "1 of 2 pinned constraint entries",
    ),
    "a pinned statement is weakened": (
        entry(Op.SET, "constraints", "constraint", rule("no push", "force if you like"), read_version=2),
        RULED,
        RejectReason.INVARIANT_VIOLATION,
        "1 of 2",
    ),
}


@pytest.mark.parametrize(("given_entry", "record", "value"), ACCEPTED.values(), ids=ACCEPTED)
def test_what_is_accepted_becomes_the_next_version(
    given_entry: JournalEntry, record: JournalRecord | None, value: Any
) -> None:
    assert rejection(given_entry, record, RULES, resolves) is None

    after = applied(given_entry, record)
    version = (record.version if record else 0) + 1
    assert after == JournalRecord(MINE, given_entry.key, given_entry.schema, version, value)


@pytest.mark.parametrize(("given_entry", "record", "reason", "detail"), REJECTED.values(), ids=REJECTED)
def test_what_is_rejected_has_a_reason_and_a_sentence(
    given_entry: JournalEntry, record: JournalRecord | None, reason: RejectReason, detail: str
) -> None:
    found = rejection(given_entry, record, RULES, resolves)

    assert found is not None
    assert found.reason is reason
    assert detail in found.detail


def test_the_reasons_are_spelled_as_people_write_them_and_each_is_in_the_table() -> None:
    assert list(RejectReason) == [
        "destructive_op",
        "schema_mismatch",
        "provenance_fail",
        "scope_violation",
        "invariant_violation",
    ]
    assert {reason for _, _, reason, _ in REJECTED.values()} == set(RejectReason)


def test_whoever_may_unpin_takes_a_pinned_statement_away() -> None:
    less = entry(Op.SET, "constraints", "constraint", rule("no push"), read_version=2)

    assert rejection(less, RULED, replace(RULES, may_unpin=True), resolves) is None


def test_a_policy_has_the_last_word() -> None:
    rules = replace(RULES, policy=lambda entry, record: "no secrets" if "token" in entry.value else "")

    found = rejection(note("a token"), NOTES, rules, resolves)

    assert found is not None
    assert (found.reason, found.detail) == (RejectReason.INVARIANT_VIOLATION, "no secrets")
    assert rejection(note("a word"), NOTES, rules, resolves) is None


# ------------------------------------------------------------------------------------------------ any order of steps


ENTRIES = st.one_of(
    st.builds(note, st.text(max_size=3), read_version=st.none() | st.integers(0, 4)),
    st.builds(goal, st.text(max_size=3), st.none() | st.integers(0, 4)),
    st.builds(lambda name, number: facts(seen={name: number}), st.sampled_from("abc"), st.integers(0, 2)),
    st.builds(lambda texts, read: entry(Op.SET, "notes", "note", [{"text": t} for t in texts], read_version=read),
              st.lists(st.text(max_size=2)), st.integers(0, 4)),
)  # fmt: skip
STEPS = st.tuples(st.sampled_from(["stage", "validate", "commit"]), st.integers(1, 8), ENTRIES)


@given(st.lists(STEPS, max_size=30))
def test_whatever_the_order_no_commit_overwrites_what_it_did_not_read(
    steps: Sequence[tuple[str, int, JournalEntry]],
) -> None:
    store = MemoryStore()
    store.pages.put(b"seen")
    kept = store.open_journal(RULES)
    for action, number, given_entry in steps:
        before = [line for line in kept.lines() if not line.pending]
        if action == "stage":
            kept.stage(given_entry)
        elif number <= len(kept.lines()):
            if action == "validate":
                kept.validate(number)
            elif kept.lines()[number - 1].state in (LineState.VALIDATED, LineState.COMMITTED):
                kept.commit(number, Boundary.RESET)
        assert [line for line in kept.lines() if line in before] == before

    for key in ("notes", "plan", "facts"):
        lines = sorted(
            (line for line in kept.lines(state=LineState.COMMITTED) if line.entry.key == key),
            key=lambda line: line.version,
        )
        assert [line.version for line in lines] == list(range(1, len(lines) + 1))
        assert all(line.entry.read_version == line.version - 1 for line in lines if line.entry.op is Op.SET)
        assert kept.record(MINE, key) == record_of(lines)
        if key == "facts" and lines:
            record = kept.record(MINE, key)
            assert record is not None
            said = [json.loads(line.entry.value)["seen"] for line in lines]
            assert all(record.value["seen"][name] == value for seen in said for name, value in seen.items())
