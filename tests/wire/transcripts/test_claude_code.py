"""Claude Code's project logs, record by record."""

import json
from typing import Any

import pytest

from pagefold.wire.message import Role, Usage
from pagefold.wire.transcripts import Format, Problem, Session, detect, read_records, unanswered


def read(*records: dict[str, Any] | str) -> list[Session | Problem]:
    lines = [record if isinstance(record, str) else json.dumps(record) for record in records]
    return list(read_records(Format.CLAUDE_CODE, enumerate(lines, 1), name="log"))


def record(kind: str, second: int = 0, **more: Any) -> dict[str, Any]:
    return {"type": kind, "sessionId": "s1", "timestamp": f"2026-03-01T10:00:{second:02}.000Z", **more}


def user(content: Any, second: int = 0, **more: Any) -> dict[str, Any]:
    return record("user", second, message={"role": "user", "content": content}, **more)


def answer(answer_id: str, *blocks: dict[str, Any], second: int = 1, **more: Any) -> dict[str, Any]:
    usage = {"input_tokens": 3, "cache_read_input_tokens": 90, "cache_creation_input_tokens": 7, "output_tokens": 5}
    said = {"id": answer_id, "role": "assistant", "model": "claude-x", "content": list(blocks), "usage": usage}
    return record("assistant", second, message=said, **more)


def text(words: str) -> dict[str, Any]:
    return {"type": "text", "text": words}


def use(call_id: str, name: str, **arguments: Any) -> dict[str, Any]:
    return {"type": "tool_use", "id": call_id, "name": name, "input": arguments}


def done(call_id: str, content: Any) -> list[dict[str, Any]]:
    return [{"type": "tool_result", "tool_use_id": call_id, "content": content}]


def only(found: list[Session | Problem]) -> Session:
    (session,) = found
    assert isinstance(session, Session)
    return session


def test_a_session_is_read_with_its_times_its_model_and_what_the_provider_reported() -> None:
    session = only(read(user("hi", 0), answer("m1", text("hello"), second=2)))

    assert (session.id, session.source, session.model) == ("s1", "claude-code", "claude-x")
    assert [(message.role, message.text) for message in session.messages] == [
        (Role.USER, "hi"),
        (Role.ASSISTANT, "hello"),
    ]
    assert session.times == (0.0, 2.0)
    assert session.usage == {1: Usage(fresh=3, cache_read=90, cache_write=7, output=5)}


def test_records_that_share_a_message_id_are_one_answer_even_with_a_result_in_between() -> None:
    session = only(
        read(
            user("go"),
            answer("m1", {"type": "thinking", "thinking": "hm", "signature": "x"}),
            answer("m1", text("two files")),
            answer("m1", use("c1", "Read", file_path="a")),
            user(done("c1", "A")),
            answer("m1", use("c2", "Read", file_path="b")),
            user(done("c2", [{"type": "text", "text": "B"}])),
            answer("m2", text("read both")),
        )
    )

    assert [message.role for message in session.messages] == ["user", "assistant", "tool", "tool", "assistant"]
    assert json.loads(session.messages[1].raw) == {
        "role": "assistant",
        "content": "two files",
        "tool_calls": [
            {"id": "c1", "type": "function", "function": {"name": "Read", "arguments": '{"file_path":"a"}'}},
            {"id": "c2", "type": "function", "function": {"name": "Read", "arguments": '{"file_path":"b"}'}},
        ],
    }
    assert [(m.blocks[0].call_id, m.blocks[0].name, m.text) for m in session.messages[2:4]] == [
        ("c1", "Read", "A"),
        ("c2", "Read", "B"),
    ]
    assert list(unanswered(session)) == []


def test_what_the_agent_added_by_itself_counts_like_any_message() -> None:
    attachment = record("attachment", rendered=[{"content": "a reminder"}], renderedRole="system", attachment={})

    session = only(read(user("hi"), attachment, answer("m1", text("hello"))))

    assert [(message.role, message.text) for message in session.messages[:2]] == [
        ("user", "hi"),
        ("system", "a reminder"),
    ]


def test_a_compaction_begins_a_new_history() -> None:
    found = read(
        user("first"),
        answer("m1", text("one")),
        record("system", subtype="compact_boundary"),
        user("a summary", isCompactSummary=True),
        answer("m2", text("two")),
    )

    assert [(session.id, len(session.messages)) for session in found if isinstance(session, Session)] == [
        ("s1", 2),
        ("s1#2", 2),
    ]


def test_a_sub_agent_is_a_session_of_its_own() -> None:
    found = read(
        user("main"),
        user("count", isSidechain=True, agentId="a7"),
        answer("m9", text("thirty"), isSidechain=True, agentId="a7"),
        answer("m1", text("it has thirty")),
    )

    assert {session.id: [m.text for m in session.messages] for session in found if isinstance(session, Session)} == {
        "s1": ["main", "it has thirty"],
        "s1/a7": ["count", "thirty"],
    }


def test_the_system_prompt_and_the_tools_are_kept_apart_as_the_head() -> None:
    shape = record("api-request-shape", shape={"system": [text("be brief")], "tools": [{"name": "Read"}]})

    session = only(read(user("hi"), shape, answer("m1", text("hello"))))

    assert session.head == ('[{"name":"Read"}]', '[{"type":"text","text":"be brief"}]')


def test_records_without_a_message_are_passed_over_and_broken_lines_are_told() -> None:
    found = read(
        {"type": "summary", "summary": "x", "leafUuid": "y"},
        record("queue-operation"),
        user("hi"),
        '{"type": "user", "mess',
        "[1]",
        {"type": "assistant", "sessionId": "s1", "message": {"content": 5}},
        answer("m1", text("hello")),
        record("assistant", message={"model": "<synthetic>", "content": [text("API error")]}),
    )

    problems = [item for item in found if isinstance(item, Problem)]
    assert [(problem.line, problem.skipped) for problem in problems] == [(4, True), (5, True), (6, True)]
    assert "expected a record, found [1]" in problems[1].what
    assert [len(item.messages) for item in found if isinstance(item, Session)] == [2]


def test_nobody_asked_the_model_anything_is_no_session() -> None:
    assert read(user("hi")) == []


def test_the_format_is_recognised_by_one_record() -> None:
    assert detect(user("hi")) is Format.CLAUDE_CODE
    assert detect({"type": "summary", "summary": "x"}) is None


@pytest.mark.parametrize(
    ("diagnostics", "expected"),
    [
        (
            {"cache_miss_reason": {"type": "tools_changed", "cache_missed_input_tokens": 20_300}},
            ("tools_changed", 20_300),
        ),
        ({"cache_miss_reason": {"type": "unavailable"}}, ("unavailable", 0)),
        ({"cache_miss_reason": {"type": "system_changed", "cache_missed_input_tokens": "many"}}, ("system_changed", 0)),
        ({"cache_miss_reason": None}, None),
        ({"cache_miss_reason": {"type": 3}}, None),
        ("odd", None),
        (None, None),
    ],
)
def test_why_the_cache_was_missed_is_read_once_for_an_answer_of_several_records(
    diagnostics: Any, expected: tuple[str, int] | None
) -> None:
    call = {"type": "tool_use", "id": "t", "name": "Bash", "input": {}}
    records = [answer("m", text("Look.")), answer("m", call)]
    for one in records:
        one["message"]["diagnostics"] = diagnostics

    (session,) = read(user("Go"), *records)

    assert isinstance(session, Session)
    assert session.cache_misses == ({1: expected} if expected else {})
    assert len(session.usage) == 1


def test_usage_stands_with_its_own_answer_though_thinking_is_a_record_before_it() -> None:
    def thinking(answer_id: str, tokens: int) -> dict[str, Any]:
        made = answer(answer_id, {"type": "thinking", "thinking": "", "signature": "s"})
        made["message"]["usage"] = {"input_tokens": tokens, "output_tokens": 1}
        return made

    def said(answer_id: str, tokens: int, *blocks: dict[str, Any]) -> dict[str, Any]:
        made = answer(answer_id, *blocks)
        made["message"]["usage"] = {"input_tokens": tokens, "output_tokens": 2}
        return made

    session = only(
        read(
            user("hi"),
            thinking("m1", 10),
            said("m1", 10, use("c1", "Bash", command="ls")),
            user(done("c1", "a")),
            thinking("m2", 20),
            said("m2", 20, text("done")),
            user("and?"),
            thinking("m3", 30),
        )
    )

    assert session.usage == {1: Usage(fresh=10, output=2), 3: Usage(fresh=20, output=2)}
    assert session.aside == (Usage(fresh=30, output=1),)
