"""Codex rollouts, record by record."""

import json
from typing import Any

import pytest

from pagefold.wire.message import Usage
from pagefold.wire.transcripts import Format, Problem, Session, detect, read_records, unanswered


def read(*records: dict[str, Any] | str) -> list[Session | Problem]:
    lines = [record if isinstance(record, str) else json.dumps(record) for record in records]
    return list(read_records(Format.CODEX, enumerate(lines, 1), name="rollout"))


def record(kind: str, second: int = 0, **payload: Any) -> dict[str, Any]:
    return {"timestamp": f"2026-03-01T10:00:{second:02}.000Z", "type": kind, "payload": payload}


def said(role: str, words: str, second: int = 0) -> dict[str, Any]:
    part = {"type": "output_text" if role == "assistant" else "input_text", "text": words}
    return record("response_item", second, type="message", role=role, content=[part])


def call(call_id: str, command: str) -> dict[str, Any]:
    arguments = json.dumps({"cmd": command})
    return record("response_item", type="function_call", name="exec_command", arguments=arguments, call_id=call_id)


def output(call_id: str, text: str) -> dict[str, Any]:
    return record("response_item", type="function_call_output", call_id=call_id, output=text)


META = record("session_meta", id="r1", base_instructions={"text": "be brief"})
RUN = (
    META,
    record("turn_context", model="gpt-x"),
    said("developer", "rules"),
    said("user", "list it"),
    record("response_item", type="reasoning", summary=[], encrypted_content="zzz"),
    said("assistant", "listing", 2),
    call("c1", "ls"),
    call("c2", "pwd"),
    output("c1", "a.txt"),
    record(
        "event_msg",
        type="token_count",
        info={"last_token_usage": {"input_tokens": 100, "cached_input_tokens": 80, "output_tokens": 9}},
    ),
    output("c2", "/srv"),
    said("assistant", "one file", 5),
)


def only(found: list[Session | Problem]) -> Session:
    (session,) = found
    assert isinstance(session, Session)
    return session


def test_items_that_the_model_wrote_one_after_another_are_one_answer() -> None:
    session = only(read(*RUN))

    assert [message.role for message in session.messages] == [
        "developer",
        "user",
        "assistant",
        "tool",
        "tool",
        "assistant",
    ]
    assert session.messages[2].text == 'listing\nexec_command {"cmd": "ls"}\nexec_command {"cmd": "pwd"}'
    assert [message.blocks[0].name for message in session.messages[3:5]] == ["exec_command", "exec_command"]
    assert list(unanswered(session)) == []


def test_id_model_times_instructions_and_usage_are_kept() -> None:
    session = only(read(*RUN))

    assert (session.id, session.source, session.model) == ("r1", "codex", "gpt-x")
    assert session.head == ('{"text":"be brief"}',)
    assert session.usage == {2: Usage(fresh=20, cache_read=80, cache_write=0, output=9)}
    assert session.times[-1] == 5.0


def test_a_compaction_begins_a_new_history_with_what_was_kept() -> None:
    kept = [said("user", "list it")["payload"], said("user", "a summary")["payload"]]
    found = read(*RUN, record("compacted", message="", replacement_history=kept), said("assistant", "going on"))

    sessions = [item for item in found if isinstance(item, Session)]
    assert [session.id for session in sessions] == ["r1", "r1#2"]
    assert [message.text for message in sessions[1].messages] == ["list it", "a summary", "going on"]


def test_a_broken_line_is_told_and_the_rest_is_read() -> None:
    found = read(*RUN[:4], '{"type": "resp', {"type": "x"}, said("assistant", "hello"))

    assert [item.line for item in found if isinstance(item, Problem)] == [5, 6]
    assert any(isinstance(item, Session) for item in found)


def test_the_format_is_recognised_by_one_record() -> None:
    assert detect(META) is Format.CODEX


def test_what_was_used_of_five_hour_windows_is_kept() -> None:
    def counted(percent: float) -> dict[str, object]:
        limits = {"primary": {"used_percent": percent, "window_minutes": 300, "resets_at": 9_000}}
        return {"type": "event_msg", "payload": {"type": "token_count", "info": None, "rate_limits": limits}}

    session = only(read(*RUN, counted(40), counted(43), counted(45)))

    assert round(session.windows, 6) == 0.05
    assert only(read(*RUN)).windows == 0


def test_cache_writes_the_folder_and_both_windows_are_read() -> None:
    def used(percent: float) -> dict[str, Any]:
        usage = {"input_tokens": 100, "cached_input_tokens": 60, "cache_write_input_tokens": 30, "output_tokens": 9}
        windows = {
            name: {"used_percent": percent * times, "window_minutes": minutes, "resets_at": 1_788_879_438}
            for name, minutes, times in (("primary", 300, 1), ("secondary", 10_080, 0.5))
        }
        return record("event_msg", type="token_count", info={"last_token_usage": usage}, rate_limits=windows)

    meta = record("session_meta", id="r1", cwd="/srv/work")
    session = only(read(meta, said("user", "hi"), said("assistant", "yes"), used(10), used(14)))

    assert session.usage == {1: Usage(10, 60, 30, 9)}
    assert session.project == "/srv/work"
    assert session.windows == pytest.approx(0.04)
    assert session.weeks == pytest.approx(0.02)
