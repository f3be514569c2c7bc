"""Compaction on demand: the block, where it may stand, and what becomes of thinking in the turns kept behind it."""

import json
from typing import Any

import pytest

from pagefold.provider.answer import Answer
from pagefold.provider.referee import Referee
from pagefold.provider.reply import ProviderReply
from tests.provider.talk import BINDING, Talk, ask

BETA = "compact-2026-09-04"
ERROR = {"thinking": {"type": "adaptive", "block_binding": {"prefix_mismatch_behavior": "error"}}}


def talked(model: str = "claude-fable-5-1") -> Talk:
    talk = Talk(Referee(), model, betas=f"{BETA},{BINDING}", members=dict(ERROR))
    for number in range(3):
        talk.calls(number)
    return talk


def summarized(talk: Talk, upto: int, **changes: Any) -> ProviderReply:
    body = {**talk.body(), "messages": talk.messages[:upto], "compaction": {"type": "summarize"}, **changes}
    return ask(talk.referee, body, Answer("What was done."), betas=talk.betas)


def swapped(talk: Talk, block: ProviderReply, kept: int) -> None:
    content = block.message["content"]
    talk.messages = [{"role": "assistant", "content": content}, *talk.messages[kept:]]
    talk.messages.append({"role": "user", "content": "And now?"})


def test_a_summary_is_one_signed_block_billed_as_an_iteration() -> None:
    reply = summarized(talked(), 8)
    assert reply.message["stop_reason"] == "compaction"
    (block,) = reply.message["content"]
    assert (block["type"], block["content"], bool(block["signature"])) == ("compaction", "What was done.", True)
    usage = reply.message["usage"]
    assert (usage["input_tokens"], usage["output_tokens"]) == (0, 0)
    assert usage["iterations"][0]["input_tokens"] > 0
    assert reply.record.charge is not None
    assert reply.record.charge.prompt > 0


def test_thinking_of_the_turns_kept_directly_behind_the_block_stays_valid() -> None:
    talk = talked()
    swapped(talk, summarized(talk, 8), 8)
    reply = talk.keep(talk.send())
    assert reply.message["input_transformations"] == []
    assert reply.record.thinking == 2
    again = summarized(talk, len(talk.messages))
    swapped(talk, again, len(talk.messages))
    assert talk.send().accepted


def test_kept_turns_that_do_not_follow_directly_are_refused() -> None:
    talk = talked()
    block = summarized(talk, 8)
    answer = {"role": "assistant", "content": talk.messages[11]["content"]}
    talk.messages = [*talk.messages[:8], {"role": "user", "content": "Skipped."}, answer]
    swapped(talk, block, 8)
    assert talk.send().record.rule == "thinking_bound"


def test_another_system_prompt_invalidates_kept_thinking_and_nothing_else() -> None:
    talk = talked()
    block = summarized(talk, 8)
    kept = list(talk.messages)
    swapped(talk, block, 8)
    talk.system = "Another."
    assert talk.send().record.rule == "thinking_bound"
    talk.messages = kept
    swapped(talk, block, len(kept))
    assert talk.send().accepted


def test_a_summary_by_a_model_that_does_not_preserve_thinking_invalidates_it() -> None:
    talk = talked()
    swapped(talk, summarized(talk, 8, model="claude-opus-5", thinking={"type": "adaptive"}), 8)
    assert talk.send().record.rule == "thinking_bound"


def test_the_first_kept_message_may_not_go_on_from_the_last_summarized() -> None:
    talk = talked()
    talk.messages[8:9] = [{"role": "user", "content": "Read"}, {"role": "user", "content": "f2."}]
    for block in talk.messages[10]["content"], talk.messages[12]["content"]:
        block[:] = [part for part in block if part["type"] != "thinking"]
    talk.messages.append({"role": "user", "content": "Go on."})
    made = talk.keep(talk.send())
    talk.messages.append({"role": "user", "content": "On."})
    assert made.record.thinking == 4
    swapped(talk, summarized(talk, 9), 9)
    assert talk.send().record.rule == "thinking_bound"


@pytest.mark.parametrize(
    ("change", "code"),
    [
        (lambda block: {**block, "content": "Another summary."}, "compaction_content_mismatch"),
        (lambda block: {**block, "signature": "AAAA"}, "compaction_signature_invalid"),
        (lambda block: {"type": "compaction", "content": "Mine."}, ""),
    ],
)
def test_a_changed_block_is_refused(change: Any, code: str) -> None:
    talk = talked()
    block = summarized(talk, 8)
    swapped(talk, block, 8)
    talk.messages[0]["content"] = [change(block.message["content"][0])]
    error = talk.send().message["error"]
    assert error.get("details", {}).get("error_code", "") == code


def test_a_block_that_does_not_stand_first_or_lacks_its_beta_is_refused() -> None:
    talk = talked()
    block = summarized(talk, 8)
    swapped(talk, block, 8)
    first = talk.messages[0]
    talk.messages.insert(0, {"role": "user", "content": "Before."})
    assert talk.send().message["error"]["details"]["error_code"] == "compaction_block_misplaced"
    talk.messages = [first, {"role": "user", "content": "Go on."}]
    talk.betas = BINDING
    assert talk.send().record.rule == "needs_beta"


@pytest.mark.parametrize(
    ("members", "rule"),
    [
        ({"stop_sequences": ["x"]}, "compaction"),
        ({"context_management": {"edits": []}}, "compaction"),
        ({"model": "claude-opus-5", "tool_choice": {"type": "any"}}, "compaction"),
    ],
)
def test_what_a_request_for_a_summary_may_not_hold_is_refused(members: dict[str, Any], rule: str) -> None:
    talk = talked()
    talk.betas += ",context-management-2025-06-27"
    reply = summarized(talk, 8, **members)
    assert reply.record.rule == rule, json.dumps(reply.message)
