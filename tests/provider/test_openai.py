"""What the Chat Completions and Responses APIs refuse, how their prompt cache works, and what they hold."""

import json
from typing import Any

import pytest

from pagefold.provider.answer import Answer, AnswerCall
from pagefold.provider.referee import Referee
from pagefold.provider.refusal import RULES
from pagefold.provider.reply import ProviderReply

LONG = "All the words of a long instruction that does not change. " * 300
CHAT, RESPONSES = "/v1/chat/completions", "/v1/responses"
CALLS = Answer(calls=[AnswerCall("read", {"path": "a"})])


def post(
    referee: Referee, path: str, body: dict[str, Any], answer: Answer | None = None, now: float = 0.0
) -> ProviderReply:
    return referee.answer(path, {}, json.dumps(body).encode(), now, answer)


def chat(*messages: dict[str, Any], **members: Any) -> dict[str, Any]:
    return {"model": "gpt-5.6-sol", "messages": list(messages), **members}


def asked(*items: dict[str, Any], **members: Any) -> dict[str, Any]:
    return {"model": "gpt-5.6-sol", "input": list(items), "store": False, **members}


def message(role: str, content: Any = "Hi", **more: Any) -> dict[str, Any]:
    return {"role": role, "content": content, **more}


def called(*ids: str) -> dict[str, Any]:
    calls = [{"id": name, "type": "function", "function": {"name": "read", "arguments": "{}"}} for name in ids]
    return {"role": "assistant", "content": None, "tool_calls": calls}


def call(name: str, **more: Any) -> dict[str, Any]:
    return {"type": "function_call", "call_id": name, "name": "read", "arguments": "{}", **more}


def output(name: str) -> dict[str, Any]:
    return {"type": "function_call_output", "call_id": name, "output": "text"}


USER = message("user")
BAD_CHATS: list[tuple[str, dict[str, Any]]] = [
    ("openai_model", chat(USER, model="claude-opus-5-5")),
    ("openai_content", chat()),
    ("openai_content", chat(message("user", None))),
    ("not_json", chat(message("robot"))),
    ("chat_tool_without_call", chat(USER, message("tool", tool_call_id="a"))),
    ("chat_tool_without_call", chat(USER, called("a"), message("tool", tool_call_id="b"))),
    ("chat_call_without_result", chat(USER, called("a"), USER)),
    ("chat_call_without_result", chat(USER, called("a", "b"), message("tool", tool_call_id="a"))),
    ("openai_parameter", chat(USER, max_tokens=100)),
    ("openai_parameter", chat(USER, temperature=0.2)),
    ("openai_parameter", chat(USER, model="gpt-5.1", prompt_cache_options={"mode": "explicit"})),
    ("not_json", {"model": "gpt-5.6-sol", "messages": 3}),
]
BAD_RESPONSES: list[tuple[str, dict[str, Any]]] = [
    ("openai_model", asked(USER, model="llama")),
    ("item_type", asked({"type": "poem"})),
    ("call_without_output", asked(USER, call("a"))),
    ("call_without_output", asked(USER, call("a"), call("b"), output("a"))),
    ("output_without_call", asked(USER, output("a"))),
    ("item_twice", asked(USER, call("a", id="fc_1"), call("b", id="fc_1"), output("a"), output("b"))),
    ("encrypted_content", asked(USER, {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "x"})),
    ("item_not_found", asked(USER, {"type": "reasoning", "id": "rs_1", "summary": []}, message("assistant"))),
    ("item_not_found", asked(USER, {"type": "item_reference", "id": "msg_1"})),
    ("previous_response", asked(USER, previous_response_id="resp_none")),
    ("previous_response", asked(USER, conversation="conv_none")),
]


@pytest.mark.parametrize(
    ("path", "rule", "body"),
    [*((CHAT, *row) for row in BAD_CHATS), *((RESPONSES, *row) for row in BAD_RESPONSES)],
)
def test_a_request_that_breaks_a_rule_is_refused_by_it(path: str, rule: str, body: dict[str, Any]) -> None:
    referee = Referee()
    reply = post(referee, path, body)
    assert (reply.record.rule, reply.status in (400, 404)) == (rule, True)
    assert set(reply.message["error"]) == {"message", "type", "param", "code"}
    assert rule in RULES
    assert referee.totals.refused == {rule: 1}


@pytest.mark.parametrize(
    ("path", "body"),
    [
        (
            CHAT,
            chat(
                message("system"),
                USER,
                called("a", "b"),
                message("tool", tool_call_id="b"),
                message("tool", tool_call_id="a"),
            ),
        ),
        (CHAT, chat(message("developer"), USER, message("assistant"), USER, prompt_cache_options={"mode": "implicit"})),
        (CHAT, chat(USER, model="gpt-4o", max_tokens=100, temperature=0.2)),
        (RESPONSES, asked(USER, call("a"), call("b"), output("b"), output("a"))),
        (RESPONSES, {"model": "gpt-5.1", "input": "Hi"}),
        (
            RESPONSES,
            asked(message("developer"), USER, {"type": "web_search_call", "id": "ws_1", "status": "completed"}),
        ),
    ],
)
def test_a_request_in_order_is_accepted(path: str, body: dict[str, Any]) -> None:
    reply = post(Referee(), path, body)
    assert reply.accepted, reply.message


def test_reasoning_goes_back_with_its_item_or_not_at_all() -> None:
    referee = Referee()
    reasoning, made = post(referee, RESPONSES, asked(USER), CALLS).message["output"]
    assert (reasoning["type"], made["type"]) == ("reasoning", "function_call")
    result = output(made["call_id"])

    def rule(*items: dict[str, Any]) -> str:
        return post(referee, RESPONSES, asked(USER, *items)).record.rule

    assert rule(reasoning, made, result) == ""
    assert rule({**made, "id": ""}, result) == ""
    assert rule(made, result) == "item_without_reasoning"
    assert rule(reasoning, USER) == "reasoning_without_item"
    assert rule(reasoning) == "reasoning_without_item"
    assert rule({**reasoning, "encrypted_content": reasoning["encrypted_content"][:-4] + "AAA="}, made, result) == (
        "encrypted_content"
    )
    assert rule({key: value for key, value in reasoning.items() if key != "id"}, {**made, "id": ""}, result) == ""


def test_a_stored_response_is_gone_on_from() -> None:
    referee = Referee()
    first = post(referee, RESPONSES, asked(USER, store=True), CALLS).message
    name = first["output"][-1]["call_id"]
    reply = post(referee, RESPONSES, asked(output(name), previous_response_id=first["id"]))
    assert reply.accepted, reply.message
    assert reply.record.tokens > 10
    unanswered = post(referee, RESPONSES, asked(USER, previous_response_id=first["id"]))
    assert unanswered.record.rule == "call_without_output"
    referenced = asked(USER, {"type": "reasoning", "id": first["output"][0]["id"], "summary": []}, first["output"][1])
    assert post(referee, RESPONSES, {**referenced, "input": [*referenced["input"], output(name)]}).accepted
    unstored = post(referee, RESPONSES, asked(USER)).message["id"]
    assert post(referee, RESPONSES, asked(USER, previous_response_id=unstored)).record.rule == "previous_response"


def used(reply: ProviderReply) -> tuple[int, int, int]:
    """Prompt, read and written tokens, as the API reports them."""
    assert reply.accepted, reply.message
    usage = reply.message["usage"]
    details = usage.get("prompt_tokens_details") or usage["input_tokens_details"]
    return usage.get("prompt_tokens") or usage["input_tokens"], details["cached_tokens"], details["cache_write_tokens"]


def test_models_before_5_6_read_every_prefix_in_steps_and_write_for_nothing() -> None:
    referee = Referee()
    request = chat(message("system", LONG), USER, model="gpt-5.1")
    prompt, read, written = used(post(referee, CHAT, request))
    assert (read, written) == (0, 0)
    longer = chat(message("system", LONG), message("user", "Other"), model="gpt-5.1")
    _, read, written = used(post(referee, CHAT, longer, now=200))
    assert (read > 1024, read % 128, read < prompt, written) == (True, 0, True, 0)
    assert used(post(referee, CHAT, request, now=900))[1] == 0


def test_models_from_5_6_match_at_breakpoints_and_bill_writes() -> None:
    referee = Referee()
    prompt, read, written = used(post(referee, CHAT, chat(message("system", LONG), USER)))
    assert (read, written) == (0, prompt)
    grown = chat(message("system", LONG), USER, message("assistant", "Yes."), message("user", "And?"))
    assert used(post(referee, CHAT, grown, now=1700))[1] == prompt
    other = chat(message("system", LONG), message("user", "Other"))
    assert used(post(referee, CHAT, other, now=1700))[1] == 0, "no breakpoint stood behind the system prompt"
    assert used(post(referee, CHAT, grown, now=9000))[1] == 0


def test_an_explicit_breakpoint_lets_another_conversation_read_the_instructions() -> None:
    text = {"type": "text", "text": LONG, "prompt_cache_breakpoint": {"mode": "explicit"}}
    referee = Referee()
    used(post(referee, CHAT, chat(message("system", [text]), USER)))
    assert used(post(referee, CHAT, chat(message("system", [text]), message("user", "Other"))))[1] > 1024
    keyed = chat(message("system", [text]), message("user", "Other"), prompt_cache_key="another")
    assert used(post(referee, CHAT, keyed))[1] == 0


def test_explicit_mode_writes_nothing_without_breakpoints() -> None:
    request = chat(message("system", LONG), USER, prompt_cache_options={"mode": "explicit"})
    assert used(post(Referee(), CHAT, request))[1:] == (0, 0)


def test_compaction_keeps_the_users_words_and_its_item_is_taken_back() -> None:
    referee = Referee()
    compacted = post(
        referee, "/v1/responses/compact", asked(USER, message("assistant"), message("user", "More"))
    ).message
    assert [item.get("role") or item["type"] for item in compacted["output"]] == ["user", "user", "compaction"]
    assert post(referee, RESPONSES, asked(*compacted["output"], message("user", "Go on"))).accepted
    broken = {**compacted["output"][-1], "encrypted_content": "gAAA"}
    assert post(referee, RESPONSES, asked(broken, USER)).record.rule == "encrypted_content"


def test_a_prompt_beyond_the_window_is_refused() -> None:
    reply = post(Referee(window=100), RESPONSES, asked(message("user", LONG)))
    assert reply.message["error"]["code"] == "context_length_exceeded"
