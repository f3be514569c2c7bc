"""Preserved thinking: each row of the documentation's table of what counts as an edit, and what the API does then."""

import copy
import json
from collections.abc import Callable
from typing import Any

import pytest

from pagefold.provider.answer import Answer, AnswerCall
from pagefold.provider.referee import Referee
from pagefold.provider.thinking import Behaviour
from tests.provider.talk import BINDING, Talk


def talked(model: str = "claude-opus-5-5", behaviour: Behaviour = Behaviour.ERROR, **settings: Any) -> Talk:
    """Three user turns with a tool loop in each, all thinking kept."""
    talk = Talk(Referee(behaviour=behaviour), model, **settings)
    for number in range(3):
        talk.calls(number)
    talk.messages.append({"role": "user", "content": "And now?"})
    return talk


def thinking(talk: Talk) -> list[tuple[int, int]]:
    return [
        (index, place)
        for index, message in enumerate(talk.messages)
        if isinstance(message["content"], list)
        for place, block in enumerate(message["content"])
        if block["type"] == "thinking"
    ]


def without(talk: Talk, places: list[tuple[int, int]]) -> None:
    for index, place in sorted(places, reverse=True):
        del talk.messages[index]["content"][place]


def change_first(talk: Talk) -> None:
    talk.messages[0]["content"] = "Read something else."


def change_result(talk: Talk) -> None:
    talk.messages[6]["content"][0]["content"] = "shortened"


def change_call(talk: Talk) -> None:
    talk.messages[5]["content"][1]["input"] = {"path": "other"}


def change_system(talk: Talk) -> None:
    talk.system = "You are another agent."


def rename_tool(talk: Talk) -> None:
    talk.tools = [*talk.tools, {**talk.tools[0], "name": "write"}]


def add_text(talk: Talk) -> None:
    talk.messages[4]["content"] = [{"type": "text", "text": "Read f1."}, {"type": "text", "text": "Hurry."}]


def delete_turn(talk: Talk) -> None:
    del talk.messages[:4]


def leave_out_middle(talk: Talk) -> None:
    without(talk, thinking(talk)[2:3])


def move_marks(talk: Talk) -> None:
    talk.messages[4]["content"] = [{"type": "text", "text": "Read f1.", "cache_control": {"type": "ephemeral"}}]


def leave_out_leading(talk: Talk) -> None:
    without(talk, thinking(talk)[:3])


def leave_out_all(talk: Talk) -> None:
    without(talk, thinking(talk))


def leave_out_last(talk: Talk) -> None:
    without(talk, thinking(talk)[-2:])


def add_deferred(talk: Talk) -> None:
    talk.tools = [*talk.tools, {**talk.tools[0], "name": "later", "defer_loading": True}]


def other_parameters(talk: Talk) -> None:
    talk.members |= {"max_tokens": 2000, "metadata": {"user_id": "u"}, "output_config": {"effort": "low"}}


def split_turn(talk: Talk) -> None:
    """One assistant message as two: turns of one role are one."""
    message = talk.messages[1]
    parts = [{"role": "assistant", "content": [block]} for block in message["content"]]
    talk.messages[1:2] = parts


EDITS: list[tuple[Callable[[Talk], None], int]] = [
    (change_first, 6),
    (change_result, 3),
    (change_call, 3),
    (change_system, 6),
    (rename_tool, 6),
    (add_text, 4),
    (delete_turn, 4),
    (leave_out_middle, 3),
    (move_marks, 0),
    (leave_out_leading, 0),
    (leave_out_all, 0),
    (leave_out_last, 0),
    (add_deferred, 0),
    (other_parameters, 0),
    (split_turn, 0),
]


@pytest.mark.parametrize(("edit", "dropped"), EDITS, ids=lambda value: getattr(value, "__name__", str(value)))
def test_an_edit_of_the_prefix_invalidates_the_thinking_after_it(edit: Callable[[Talk], None], dropped: int) -> None:
    talk = talked()
    edit(talk)
    reply = talk.send()
    if not dropped:
        assert reply.accepted, reply.message
        return
    assert (reply.status, reply.record.rule) == (400, "thinking_bound")
    message = reply.message["error"]["message"]
    assert "Invalid `signature` in `thinking` block. The block is bound to a different conversation." in message
    assert f"That setting requires the `{BINDING}` value" in message

    talk.betas = BINDING
    talk.members |= {"thinking": {"type": "adaptive", "block_binding": {"prefix_mismatch_behavior": "drop_block"}}}
    reply = talk.send()
    assert reply.accepted, reply.message
    reports = reply.message["input_transformations"]
    assert [report["type"] for report in reports] == ["thinking_dropped"] * dropped
    assert {report["reason"] for report in reports} == {"prefix_binding_mismatch"}
    assert talk.referee.totals.dropped == dropped


def test_a_refused_body_is_refused_again_and_counted() -> None:
    talk = talked()
    change_first(talk)
    assert [talk.send().status for _ in range(2)] == [400, 400]
    assert talk.referee.totals.refused == {"thinking_bound": 2}


@pytest.mark.parametrize(
    ("edit", "named"),
    [
        (change_system, "The `system` prompt"),
        (rename_tool, "The `tools` list"),
        (change_result, "first at `messages.6.content.0`"),
    ],
)
def test_the_error_names_what_changed(edit: Callable[[Talk], None], named: str) -> None:
    talk = talked()
    edit(talk)
    assert named in talk.send().message["error"]["message"]


def test_thinking_made_after_a_change_stays_valid_while_the_stale_blocks_are_dropped() -> None:
    talk = talked(betas=BINDING)
    talk.members = {"thinking": {"type": "adaptive", "block_binding": {"prefix_mismatch_behavior": "drop_block"}}}
    talk.messages[:8] = [{"role": "user", "content": "Summary of what was read."}]
    talk.keep(talk.send(Answer("Done.")))
    reply = talk.says("Go on.")
    assert [report["path"] for report in reply.message["input_transformations"]] == [
        "messages.2.content.0",
        "messages.4.content.0",
    ]
    stale = [place for place in thinking(talk) if place[0] < 5]
    without(talk, stale)
    talk.members = {}
    talk.messages.append({"role": "user", "content": "On."})
    assert talk.send().accepted


def test_thinking_that_was_left_out_may_not_come_back() -> None:
    talk = talked()
    whole = copy.deepcopy(talk.messages)
    leave_out_all(talk)
    made = talk.keep(talk.send(Answer("Without.")))
    talk.messages = [*whole, {"role": "assistant", "content": made.message["content"]}]
    talk.messages.append({"role": "user", "content": "Again."})
    assert talk.send().record.rule == "thinking_bound"


def test_older_accounts_let_a_mismatch_pass_and_report_it_under_the_beta() -> None:
    talk = talked(behaviour=Behaviour.ALLOW)
    change_result(talk)
    reply = talk.send()
    assert reply.accepted
    assert "input_transformations" not in reply.message
    talk.betas = BINDING
    reports = talk.send().message["input_transformations"]
    assert [report["type"] for report in reports] == ["thinking_mismatch_allowed"] * 3
    talk.members = {"thinking": {"type": "adaptive", "block_binding": {"prefix_mismatch_behavior": "error"}}}
    assert talk.send().record.rule == "thinking_bound"


def test_the_report_is_empty_where_nothing_was_dropped_and_stands_in_the_first_event() -> None:
    talk = talked(betas=BINDING)
    talk.members = {"stream": True}
    reply = talk.send()
    first = reply.pieces[0].decode()
    assert first.startswith("event: message_start")
    assert json.loads(first.partition("data: ")[2])["message"]["input_transformations"] == []


def test_controls_without_their_beta_are_refused() -> None:
    talk = talked()
    talk.members = {"thinking": {"type": "adaptive", "block_binding": {"prefix_mismatch_behavior": "drop_block"}}}
    reply = talk.send()
    assert reply.record.rule == "needs_beta"
    assert reply.message["error"]["message"].endswith("block_binding: Extra inputs are not permitted")


def test_a_tampered_signature_is_refused_whatever_was_asked_for() -> None:
    talk = talked(betas=BINDING)
    talk.members = {"thinking": {"type": "adaptive", "block_binding": {"prefix_mismatch_behavior": "drop_block"}}}
    index, place = thinking(talk)[1]
    block = talk.messages[index]["content"][place]
    block["signature"] = block["signature"][:-8] + "AAAAAAA="
    assert talk.send().record.rule == "thinking_signature"


def test_an_answer_may_think_twice_and_hide_a_thought() -> None:
    talk = Talk(Referee())
    answer = Answer("First.", [AnswerCall("read", {})], second_thinking="And then.", redacted=True)
    kinds = [block["type"] for block in talk.says("Read.", answer).message["content"]]
    assert kinds == ["redacted_thinking", "text", "thinking", "tool_use"]
    talk.results("content")
    assert talk.send().accepted
    whole = copy.deepcopy(talk.messages)
    talk.messages[1]["content"][1]["text"] = "Changed."
    assert talk.send().message["error"]["message"].startswith("messages.1.content.2: Invalid `signature`")
    talk.messages = whole
    del talk.messages[1]["content"][0]
    assert talk.send().accepted


def test_between_tools_thinks_only_after_results() -> None:
    talk = Talk(Referee(), "claude-sonnet-5-5", members={"thinking": {"type": "between_tools"}})
    first = talk.says("Read.", Answer(calls=[AnswerCall("read", {})]))
    talk.results("content")
    assert [block["type"] for block in first.message["content"]] == ["tool_use"]
    assert [block["type"] for block in talk.send().message["content"]] == ["thinking", "text"]


def test_newer_models_let_the_shown_text_of_thinking_be() -> None:
    talk = talked(members={"thinking": {"type": "adaptive", "display": "summarized"}})
    index, place = thinking(talk)[1]
    assert talk.messages[index]["content"][place]["thinking"]
    talk.messages[index]["content"][place]["thinking"] = "Something else."
    assert talk.send().accepted


@pytest.mark.parametrize("model", ["claude-opus-5", "claude-sonnet-5", "claude-fable-5"])
def test_models_before_fable_5_1_do_not_check(model: str) -> None:
    talk = talked(model)
    change_first(talk)
    assert thinking(talk)
    assert talk.send().accepted


@pytest.mark.parametrize(
    ("maker", "reader", "readable"),
    [
        ("claude-opus-5", "claude-opus-5-5", True),
        ("claude-opus-5-5", "claude-fable-5-1", True),
        ("claude-fable-5-1", "claude-opus-5-5", False),
        ("claude-opus-5-5", "claude-sonnet-5", False),
        ("claude-haiku-5-5", "claude-opus-5-5", True),
        ("claude-opus-5-5", "claude-haiku-5-5", False),
    ],
)
def test_thinking_that_a_model_cannot_read_is_dropped_and_comes_back_with_its_model(
    maker: str, reader: str, *, readable: bool
) -> None:
    talk = talked(maker, betas=BINDING)
    talk.model = reader
    reply = talk.keep(talk.send(Answer("By the other.")))
    reasons = [report["reason"] for report in reply.message["input_transformations"]]
    assert reasons == [] if readable else ["model_binding_mismatch"] * 6
    talk.model = maker
    talk.messages.append({"role": "user", "content": "Back."})
    assert talk.send().accepted


def test_counting_runs_the_same_check() -> None:
    talk = talked()
    change_first(talk)
    body = {key: value for key, value in talk.body().items() if key != "max_tokens"}
    reply = talk.referee.answer("/v1/messages/count_tokens", {}, json.dumps(body).encode(), 0.0)
    assert reply.record.rule == "thinking_bound"


def test_dropped_thinking_is_not_billed() -> None:
    talk = talked()
    counted = talk.referee.answer("/v1/messages/count_tokens", {}, json.dumps(talk.body()).encode(), 0.0)
    change_system(talk)
    talk.betas = BINDING
    talk.members = {"thinking": {"type": "adaptive", "block_binding": {"prefix_mismatch_behavior": "drop_block"}}}
    charge = talk.send().record.charge
    assert charge is not None
    assert charge.prompt < counted.message["input_tokens"]


def test_a_running_loop_needs_thinking_only_where_it_is_enabled_by_hand() -> None:
    adaptive = Talk(Referee())
    adaptive.says("Read.", Answer(calls=[AnswerCall("read", {})]))
    adaptive.results("content")
    without(adaptive, thinking(adaptive))
    assert adaptive.send().accepted

    enabled = {"thinking": {"type": "enabled", "budget_tokens": 1024}, "max_tokens": 4000}
    manual = Talk(Referee(), "claude-sonnet-4-5", members=enabled)
    manual.says("Read.", Answer(calls=[AnswerCall("read", {})]))
    manual.results("content")
    assert manual.send().accepted
    manual.messages[1]["content"][0]["thinking"] += " And more."
    assert manual.send().record.rule == "thinking_changed"
    without(manual, thinking(manual))
    reply = manual.send()
    assert reply.record.rule == "thinking_missing"
    assert "Expected `thinking` or `redacted_thinking`, but found `tool_use`" in reply.message["error"]["message"]
