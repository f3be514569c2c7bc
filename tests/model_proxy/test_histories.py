"""Which history a request belongs to, and how it stands to those before it: tables, no sockets."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pagefold.derive.prefix_hashes import MessageHashes, canonical
from pagefold.log import Log
from pagefold.model_proxy.totals import Prefix
from pagefold.model_proxy.usage_estimate import SeenHistories
from pagefold.wire import anthropic, json_text
from pagefold.wire.message import Message

MARK = {"cache_control": {"type": "ephemeral"}}
QUESTION = {"role": "user", "content": "What is here?"}
CALL = {"type": "tool_use", "id": "t1", "name": "Bash", "input": {"command": "ls"}}
RESULT = {"type": "tool_result", "tool_use_id": "t1", "content": "a.py\nb.py"}


def body(*messages: Any, **more: Any) -> bytes:
    return json.dumps({"model": "claude-sonnet-4-5", "messages": messages, **more}).encode()


def message(value: Any) -> Message:
    return anthropic.parse_message(value, json.dumps(value))


def canonical_of(arrived: Message) -> str:
    return canonical(json_text.parse(arrived.raw))


def placed(histories: SeenHistories, data: bytes) -> Prefix:
    request, digests = anthropic.parse_request(data), MessageHashes()
    return histories.place(Log(digests.prefix_hashes(request.messages)), digests.head(request))[0]


# ---- the canonical form


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (QUESTION, {"role": "user", "content": [{"type": "text", "text": "What is here?"}]}),
        (QUESTION, {"content": "What is here?", "role": "user"}),
        (QUESTION, {"role": "user", "content": [{"type": "text", "text": "What is here?", **MARK}]}),
        ({"role": "user", "content": [RESULT]}, {"role": "user", "content": [{**RESULT, **MARK}]}),
        (
            {"role": "user", "content": [RESULT]},
            {"role": "user", "content": [{**RESULT, "content": [{"type": "text", "text": "a.py\nb.py", **MARK}]}]},
        ),
    ],
    ids=["block or string", "order of members", "mark", "mark on a result", "mark inside a result"],
)
def test_the_same_message_has_one_canonical_form(one: Any, other: Any) -> None:
    assert canonical_of(message(one)) == canonical_of(message(other))


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (QUESTION, {**QUESTION, "role": "assistant"}),
        (QUESTION, {"role": "user", "content": "What is here? "}),
        ({"role": "assistant", "content": [CALL]}, {"role": "assistant", "content": [{**CALL, "id": "t2"}]}),
        ({"role": "assistant", "content": [CALL]}, {"role": "assistant", "content": [{**CALL, "input": MARK}]}),
        (
            {"role": "assistant", "content": [{**CALL, "input": {}}]},
            {"role": "assistant", "content": [{**CALL, "input": MARK}]},
        ),
        (
            {"role": "assistant", "content": [{**CALL, "input": {"content": "x"}}]},
            {"role": "assistant", "content": [{**CALL, "input": {"content": [{"type": "text", "text": "x"}]}}]},
        ),
        (
            {"role": "assistant", "content": [{"type": "thinking", "thinking": "", "signature": "a"}]},
            {"role": "assistant", "content": [{"type": "thinking", "thinking": "", "signature": "b"}]},
        ),
        ({"role": "user", "content": [RESULT]}, {"role": "user", "content": [{**RESULT, "is_error": True}]}),
    ],
    ids=["role", "text", "id", "arguments", "a mark in arguments", "content in arguments", "signature", "is_error"],
)
def test_different_messages_differ(one: Any, other: Any) -> None:
    assert canonical_of(message(one)) != canonical_of(message(other))


@given(
    st.sampled_from(["user", "assistant"]),
    st.text(st.characters(), max_size=8),
    st.dictionaries(st.sampled_from(["name", "cache_control", "é"]), st.text(max_size=3)),
)
def test_the_canonical_form_is_one_json_text_that_is_kept_for_ever(role: str, text: str, more: dict[str, str]) -> None:
    """Links are made of it, and notes are kept under links."""
    rest = {key: said for key, said in more.items() if key != "cache_control"}
    form = json_text.dumps([role, [{"type": "text", "text": text}], rest])

    assert canonical_of(message({"role": role, "content": text, **more})) == form
    assert canonical_of(message({**more, "content": [{"type": "text", "text": text, **MARK}], "role": role})) == form


def test_how_a_letter_is_spelled_does_not_matter() -> None:
    value = {"role": "user", "content": "é"}
    spelled = anthropic.parse_message(value, json.dumps(value))
    plain = anthropic.parse_message(value, json.dumps(value, ensure_ascii=False))

    assert spelled.raw != plain.raw
    assert canonical_of(spelled) == canonical_of(plain)


def test_a_message_of_broken_text_has_a_canonical_form() -> None:
    raw = b'{"role":"user","content":"\xff \\ud800"}'
    request = anthropic.parse_request(b'{"messages":[' + raw + b"]}")

    assert canonical_of(request.messages[0]).encode()
    assert placed(SeenHistories(), b'{"messages":[' + raw + b"]}") == Prefix(histories=1)


# ---- histories


def place(histories: SeenHistories, *texts: str, system: str = "s") -> Prefix:
    messages = [{"role": "user", "content": text} for text in texts]
    return placed(histories, body(*messages, system=system))


def test_a_request_that_extends_the_last_keeps_it_all() -> None:
    histories = SeenHistories()

    assert place(histories, "a") == Prefix(histories=1)
    assert place(histories, "a", "b", "c") == Prefix(kept=1)
    assert place(histories, "a", "b", "c") == Prefix(kept=3)
    assert place(histories, "a", "b", "c", "d", "e") == Prefix(kept=3)


def test_a_changed_message_moves_all_behind_it() -> None:
    histories = SeenHistories()
    place(histories, "a", "b", "c", "d")

    assert place(histories, "a", "B", "c", "d", "e") == Prefix(kept=1, moved=3)


def test_another_beginning_is_another_history() -> None:
    histories = SeenHistories()
    place(histories, "a", "b")

    assert place(histories, "x", "b") == Prefix(histories=1)
    assert place(histories, "a", "b", "c") == Prefix(kept=2)


def test_a_fork_does_not_disturb_its_parent() -> None:
    histories = SeenHistories()
    place(histories, "a", "b", "c")
    place(histories, "a", "b", "fork")

    assert place(histories, "a", "b", "c", "d") == Prefix(kept=3)


def test_a_changed_head_is_counted_beside_the_messages() -> None:
    histories = SeenHistories()
    place(histories, "a")

    assert place(histories, "a", "b", system="other") == Prefix(kept=1, heads_moved=1)


def test_marks_move_no_head() -> None:
    histories = SeenHistories()
    plain = body(QUESTION, system="s", tools=[{"name": "Bash"}])
    marked = body(
        QUESTION, system=[{"type": "text", "text": "s", **MARK}], tools=[{"name": "Bash", **MARK}], temperature=1
    )
    placed(histories, plain)

    assert placed(histories, marked) == Prefix(kept=1)


def test_what_is_remembered_is_bounded_and_the_oldest_goes_first() -> None:
    histories = SeenHistories(most=4)
    place(histories, "old")
    place(histories, "a", "b")
    place(histories, "a", "b", "c", "d")

    assert place(histories, "old") == Prefix(histories=1)
    assert place(histories, "a", "b", "c", "d") == Prefix(kept=4)
    assert len(histories._newest) <= 4
