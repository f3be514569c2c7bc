"""What the Messages API refuses in the shape of a request: one row for every rule, and the same request accepted."""

from collections.abc import Callable
from typing import Any

import pytest

from pagefold.provider.referee import Referee
from pagefold.provider.refusal import RULES
from tests.provider.talk import TOOLS, ask

MARK = {"type": "ephemeral"}
HOUR = {"type": "ephemeral", "ttl": "1h"}


def call(number: str) -> dict[str, Any]:
    return {"type": "tool_use", "id": number, "name": "read", "input": {}}


def result(number: str) -> dict[str, Any]:
    return {"type": "tool_result", "tool_use_id": number, "content": "text"}


def user(*content: Any) -> dict[str, Any]:
    return {"role": "user", "content": content[0] if isinstance(content[0], str) else list(content)}


def model(*content: Any) -> dict[str, Any]:
    return {"role": "assistant", "content": list(content)}


def text(content: str, **more: Any) -> dict[str, Any]:
    return {"type": "text", "text": content, **more}


def body(**members: Any) -> dict[str, Any]:
    messages = [user("Read."), model(text("Reading."), call("a"), call("b")), user(result("a"), result("b"))]
    return {"model": "claude-opus-5-5", "max_tokens": 100, "tools": TOOLS, "messages": messages, **members}


GOOD: list[dict[str, Any]] = [
    body(),
    body(messages=[user("Hi"), user("again"), model(text("Yes")), model(text("and")), user("Go on")]),
    body(messages=[user("Hi"), {"role": "system", "content": "Be brief."}]),
    body(system=[text("a", cache_control=HOUR), text("b", cache_control=MARK)]),
    body(messages=[user("Read"), model(call("a")), user(result("a"), text("and this"))]),
    body(model="claude-opus-5", messages=[user("Hi"), model(text("prefill"))], temperature=0.3),
    body(messages=[user("Hi"), model(call("a")), user(result("a")), {"role": "system", "content": "Now."}]),
    body(max_tokens=0),
]

BAD: list[tuple[str, dict[str, Any]]] = [
    ("unknown_model", body(model="gpt-5.6")),
    ("max_tokens", body(max_tokens=-1)),
    ("max_tokens", body(max_tokens=200_000)),
    ("thinking_type", body(thinking={"type": "enabled", "budget_tokens": 2000})),
    ("thinking_type", body(thinking={"type": "disabled"})),
    ("thinking_budget", body(model="claude-sonnet-4-5", thinking={"type": "enabled", "budget_tokens": 10})),
    ("forced_tool", body(tool_choice={"type": "any"})),
    ("sampling", body(temperature=0.3)),
    ("prefill", body(messages=[user("Hi"), model(text("prefill"))])),
    ("no_messages", body(messages=[])),
    ("first_role", body(messages=[model(text("Hi")), user("Hi")])),
    ("empty_message", body(messages=[user("Hi"), model(), user("Hi")])),
    ("empty_text", body(messages=[user("Hi"), model(text("")), user("Hi")])),
    ("empty_text", body(messages=[user(" \n")])),
    ("empty_text", body(system="")),
    ("block_type", body(messages=[user({"type": "poem"})])),
    ("call_without_result", body(messages=[user("Hi"), model(call("a"), call("b")), user(result("a"))])),
    ("call_without_result", body(messages=[user("Hi"), model(call("a")), user("no result")])),
    ("call_without_result", body(model="claude-opus-5", messages=[user("Hi"), model(call("a"))])),
    ("result_without_call", body(messages=[user("Hi"), model(text("Yes")), user(result("a"))])),
    ("result_without_call", body(messages=[user(result("a"))])),
    ("result_twice", body(messages=[user("Hi"), model(call("a")), user(result("a"), result("a"))])),
    ("result_order", body(messages=[user("Hi"), model(call("a")), user(text("first"), result("a"))])),
    (
        "call_id_twice",
        body(messages=[user("Hi"), model(call("a")), user(result("a")), model(call("a")), user(result("a"))]),
    ),
    (
        "system_place",
        body(messages=[user("Hi"), model(call("a")), {"role": "system", "content": "Now."}, user(result("a"))]),
    ),
    ("role", body(messages=[user(call("a"))])),
    ("tools_missing", {key: value for key, value in body().items() if key != "tools"}),
    ("tool_name_twice", body(tools=[*TOOLS, *TOOLS])),
    ("cache_mark_count", body(system=[text(str(at), cache_control=MARK) for at in range(5)])),
    ("cache_mark_order", body(system=[text("a", cache_control=MARK), text("b", cache_control=HOUR)])),
    ("cache_mark_order", body(tools=[{**TOOLS[0], "cache_control": MARK}], system=[text("b", cache_control=HOUR)])),
    ("cache_mark_life", body(system=[text("a", cache_control={"type": "ephemeral", "ttl": "2h"})])),
    ("needs_beta", body(context_management={"edits": []})),
    ("needs_beta", body(compaction={"type": "summarize"})),
    ("needs_beta", body(thinking={"type": "adaptive", "block_binding": {}})),
    ("unknown_member", body(pagefold=True)),
    ("role", body(model="claude-sonnet-4-5", messages=[user("Hi"), {"role": "system", "content": "Be brief."}])),
    ("not_json", body(messages="Hi")),
]


@pytest.mark.parametrize("request_body", GOOD)
def test_a_request_in_order_is_accepted(request_body: dict[str, Any]) -> None:
    reply = ask(Referee(), request_body)
    assert reply.accepted, reply.message


@pytest.mark.parametrize(("rule", "request_body"), BAD)
def test_a_request_that_breaks_a_rule_is_refused_by_it(rule: str, request_body: dict[str, Any]) -> None:
    referee = Referee()
    reply = ask(referee, request_body)
    assert reply.record.rule == rule
    assert reply.status in (400, 404)
    assert reply.message["type"] == "error"
    assert referee.totals.refused == {rule: 1}
    assert rule in RULES


@pytest.mark.parametrize(
    ("header", "rule"), [("no-such-beta-2026-01-01", "unknown_beta"), ("context-1m-2025-08-07,oauth-2025-04-20", "")]
)
def test_only_known_betas_are_taken(header: str, rule: str) -> None:
    assert ask(Referee(), body(), betas=header).record.rule == rule


def test_a_prompt_beyond_the_window_is_refused_and_no_error_of_the_cache() -> None:
    referee = Referee(window=500)
    reply = ask(referee, body(messages=[user("word " * 2000)]))
    assert reply.record.rule == "too_long"
    assert "prompt is too long" in reply.message["error"]["message"]


@pytest.mark.parametrize("edit", [lambda data: data[:-1], lambda data: b"[]", lambda data: b""])
def test_what_is_no_request_is_refused(edit: Callable[[bytes], bytes]) -> None:
    reply = Referee().answer("/v1/messages", {}, edit(b'{"model":"claude-opus-5-5"}'), 0.0)
    assert reply.record.rule == "not_json"
