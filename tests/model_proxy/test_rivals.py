"""Bugs that other tools of this kind have had, each as a conversation that must go well here."""

import json
from typing import Any

from pagefold.derive.policies import policy_named
from pagefold.model_proxy.conversations import Conversations
from pagefold.model_proxy.exchange import Exchange
from pagefold.model_proxy.proxy import Proxy
from pagefold.model_proxy.server import running
from pagefold.model_proxy.upstreams import Upstreams
from pagefold.wire import json_text
from tests.model_proxy.conversation import FILE, body, canonical_messages, history, marked, sent, turn
from tests.model_proxy.upstream import ask
from tests.scripted_model import ScriptedModel, ScriptedTurn


def reads(first: str) -> list[Any]:
    return [{"role": "user", "content": first}, *turn(1), *turn(2)]


def test_a_second_conversation_with_the_same_system_prompt_gets_the_file_whole() -> None:
    conversations = Conversations(policy_named("lossless"))
    shown = []
    for first in ("One task.", "Another task."):
        messages = json.loads(sent(conversations, body(reads(first))))["messages"]
        shown.append([messages[at]["content"][0]["content"] for at in (2, 4)])
        alone = sent(Conversations(policy_named("lossless")), body(reads(first)))
        assert alone == sent(conversations, body(reads(first)))

    for whole, again in shown:
        assert "function_3" in whole
        assert "= lines 1-7 of R1" in again


def test_the_prefix_stands_still_turn_after_turn() -> None:
    conversations = Conversations(policy_named("lossless"))
    moved, before = 0, list[Any]()
    for turns in range(30):
        found = canonical_messages(sent(conversations, body(marked(history(turns)))))
        moved += found[: len(before)] != before
        before = found

    assert moved == 0


def test_two_conversations_at_once_never_share_a_state() -> None:
    conversations = Conversations(policy_named("lossless"))
    for turns in range(8):
        for first in ("One.", "Two.", "Three."):
            data = body(marked(history(turns, first=first)))
            assert sent(conversations, data) == sent(Conversations(policy_named("lossless")), data)


def test_a_sub_agent_with_its_parents_session_is_a_history_of_its_own() -> None:
    conversations = Conversations(policy_named("lossless"))
    who = {"metadata": {"user_id": "session-1"}}
    sent(conversations, body(history(5), **who))

    child = sent(conversations, body([{"role": "user", "content": "Look into it."}, *turn(1)], system="child", **who))

    assert child == sent(
        Conversations(policy_named("lossless")),
        body([{"role": "user", "content": "Look into it."}, *turn(1)], system="child", **who),
    )


def test_a_retry_saves_once() -> None:
    model = ScriptedModel([ScriptedTurn("Yes.")] * 9)
    model._failures[3] = [529, 500]
    proxy = Proxy(Upstreams({"anthropic": ""}), Conversations(policy_named("lossless")))
    with running(model) as address:
        proxy.upstreams = Upstreams({"anthropic": address})
        with running(proxy) as url:
            found = [ask(url, body=body(history(3))) for _ in range(3)]
    assert [status for status, _, _ in found] == [529, 500, 200]
    assert model.requests[0] == model.requests[1] == model.requests[2]

    assert proxy.totals.work.saved == int(dict(found[2][1])["x-pagefold-saved-tokens"]) > 0


def test_a_compaction_by_the_client_is_a_new_history() -> None:
    conversations = Conversations(policy_named("lossless"))
    sent(conversations, body(history(6)))
    compacted = [{"role": "user", "content": "Summary: all is well."}, *turn(9)]

    found = json.loads(sent(conversations, body(compacted)))["messages"]

    assert "function_3" in found[2]["content"][0]["content"]


def test_blocks_that_nobody_knows_yet_pass_through() -> None:
    odd = {"type": "tool_reference", "tool_name": "x", "later": [1.0, 1e3, "\ud800"]}
    messages = [*history(2), {"role": "assistant", "content": [odd]}, {"role": "user", "content": [odd, "bare", 7]}]
    data = json.dumps({"model": "m", "messages": messages, "context_management": {"edits": []}}).encode()
    exchange = Exchange("POST", "/v1/messages", data, Conversations(policy_named("lossless")))
    exchange.read()
    found = (exchange.derive() or data).decode()

    assert found.count(json.dumps(odd)) == 2
    assert found.endswith('"bare", 7]}], "context_management": {"edits": []}}')
    assert json_text.parse(found)["messages"][2]["content"][0]["content"] != FILE
