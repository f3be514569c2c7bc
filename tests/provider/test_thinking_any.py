"""Preserved thinking on any conversation and any edit, against a check that keeps whole prefixes instead of hashes."""

import copy
import json
from dataclasses import dataclass, field
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from pagefold.provider.answer import Answer, AnswerCall
from pagefold.provider.referee import Referee
from pagefold.provider.thinking import Behaviour
from tests.provider.talk import BINDING, Talk

ALLOW = Behaviour.ALLOW


@dataclass
class Remembered:
    """What every thinking block was made under, word for word: the prefix, and the signature of the block before."""

    made: dict[str, tuple[str, str]] = field(default_factory=dict)

    def note(self, body: dict[str, Any], content: list[dict[str, Any]]) -> None:
        signatures = [block["signature"] for block in content if block["type"] == "thinking"]
        if signatures:
            before = [seen for _, _, seen in places(body)]
            prefix = prefix_of(body, len(body["messages"]), 0, "assistant")
            self.made[signatures[0]] = prefix, before[-1] if before else ""

    def invalid(self, body: dict[str, Any]) -> list[str]:
        """The paths of blocks that were made under something else, each judged on its own."""
        paths, last = [], ""
        for index, place, signature in places(body):
            prefix, previous = self.made[signature]
            same = prefix_of(body, index, place, "assistant") == prefix
            if not same or (last and last != previous):
                paths.append(f"messages.{index}.content.{place}")
            last = signature
        return paths


def places(body: dict[str, Any]) -> list[tuple[int, int, str]]:
    return [
        (index, place, block["signature"])
        for index, message in enumerate(body["messages"])
        if isinstance(message["content"], list)
        for place, block in enumerate(message["content"])
        if block["type"] == "thinking"
    ]


def prefix_of(body: dict[str, Any], index: int, place: int, role: str) -> str:
    """All content before a place, thinking and marks left out, as turns of one role."""
    turns: list[tuple[str, list[Any]]] = []
    for at, message in enumerate([*body["messages"][:index], {"role": role, "content": None}]):
        content = message["content"]
        if at == index:
            content = body["messages"][index]["content"][:place] if index < len(body["messages"]) else []
        blocks = [{"type": "text", "text": content}] if isinstance(content, str) else content
        kept = [
            {key: value for key, value in block.items() if key != "cache_control"}
            for block in blocks
            if block["type"] != "thinking"
        ]
        if not turns or turns[-1][0] != message["role"]:
            turns.append((message["role"], []))
        turns[-1][1].extend(kept)
    return json.dumps([body["system"], body["tools"], turns])


@st.composite
def conversations(draw: st.DrawFn) -> tuple[Talk, Remembered]:
    talk = Talk(Referee(behaviour=ALLOW), betas=BINDING)
    remembered = Remembered()
    for number, calls in enumerate(draw(st.lists(st.integers(0, 2), min_size=1, max_size=5))):
        talk.messages.append({"role": "user", "content": f"Question {number}"})
        for step in range(calls + 1):
            thinks = "A thought." if draw(st.booleans()) else ""
            asked = [AnswerCall("read", {"path": f"{number}.{step}"})] if step < calls else []
            body = copy.deepcopy(talk.body())
            reply = talk.send(Answer(f"Answer {number}.{step}", asked, thinks))
            remembered.note(body, list(reply.message["content"]))
            talk.keep(reply)
            if asked:
                talk.results(f"content {number}.{step}")
    talk.messages.append({"role": "user", "content": "And?"})
    return talk, remembered


@st.composite
def edited(draw: st.DrawFn, talk: Talk) -> None:
    """Up to four changes, each of which leaves the request well formed."""
    for _ in range(draw(st.integers(0, 4))):
        messages = talk.messages
        match draw(st.sampled_from(("system", "word", "result", "thinking", "mark", "split", "begin"))):
            case "system":
                talk.system = draw(st.sampled_from(("You are an agent.", "You are another.")))
            case "word":
                asked = [message for message in messages if isinstance(message["content"], str)]
                draw(st.sampled_from(asked))["content"] += draw(st.sampled_from(("", "!")))
            case "result" | "mark" as kind:
                blocks = [
                    block
                    for message in messages
                    if isinstance(message["content"], list)
                    for block in message["content"]
                    if block["type"] == "tool_result"
                ]
                if blocks:
                    change = {"content": "cleared"} if kind == "result" else {"cache_control": {"type": "ephemeral"}}
                    draw(st.sampled_from(blocks)).update(change)
            case "thinking":
                if thoughts := places(talk.body()):
                    index, place, _ = draw(st.sampled_from(thoughts))
                    del messages[index]["content"][place]
            case "split":
                at = draw(st.integers(0, len(messages) - 1))
                content = messages[at]["content"]
                if messages[at]["role"] == "assistant" and len(content) > 1:
                    parts = [{"role": "assistant", "content": [block]} for block in content]
                    messages[at : at + 1] = parts
            case "begin":
                starts = [at for at, message in enumerate(messages) if isinstance(message["content"], str)]
                del messages[: draw(st.sampled_from(starts))]


@given(st.data())
def test_the_check_agrees_with_one_that_remembers_every_word(data: st.DataObject) -> None:
    talk, remembered = data.draw(conversations())
    data.draw(edited(talk))
    if any(not message["content"] for message in talk.messages) or talk_marks(talk) > 4:
        return
    reply = talk.send()
    assert reply.accepted, reply.message
    reported = [report["path"] for report in reply.message["input_transformations"]]
    assert reported == remembered.invalid(talk.body())

    strict = Talk(Referee(), talk.model, talk.system, talk.tools, talk.messages)
    assert strict.send().accepted is (reported == [])

    dropping = {"thinking": {"type": "adaptive", "block_binding": {"prefix_mismatch_behavior": "drop_block"}}}
    dropped = Talk(Referee(), talk.model, talk.system, talk.tools, talk.messages, dropping, BINDING).send()
    assert dropped.accepted
    gone = {report["path"] for report in dropped.message["input_transformations"]}
    assert {report["type"] for report in dropped.message["input_transformations"]} <= {"thinking_dropped"}
    assert bool(gone) is bool(reported)
    assert not reported or reported[0] in gone


def talk_marks(talk: Talk) -> int:
    return json.dumps(talk.messages).count("cache_control")
