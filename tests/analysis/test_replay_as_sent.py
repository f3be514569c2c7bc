"""Replayed logs of real agents: their results take the forms that the same results take on their way to the model."""

import json
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from pagefold.analysis.replay import SessionReplay
from pagefold.derive.policies import policy_named
from pagefold.stateless import Deriver
from pagefold.wire.message import BlockKind, Message
from pagefold.wire.transcripts import Format, Session, read_records
from tests.analysis.test_replay import TERMS

TESTS = "\n".join(f"tests/test_{n}.py::test_a_page_{n} passed in 0.01s" for n in range(40))
RAN = "Script completed\nWall time 0.1 seconds\nOutput:\n"


def part(kind: str, text: str) -> dict[str, Any]:
    return {"type": kind, "text": text}


def wrapped(text: str) -> str:
    return json.dumps({"chunk_id": "b0fdda", "exit_code": 0, "output": text})


def codex(body: str) -> list[dict[str, Any]]:
    items: list[dict[str, Any]] = [{"type": "message", "role": "user", "content": [part("input_text", "run it")]}]
    for number in range(3):
        call_id = f"c{number}"
        items.append({"type": "custom_tool_call", "call_id": call_id, "name": "exec", "input": "text(run())"})
        output = [part("input_text", RAN), part("input_text", body)]
        items.append({"type": "custom_tool_call_output", "call_id": call_id, "output": output})
    return [*items, {"type": "message", "role": "assistant", "content": [part("output_text", "Done.")]}]


def claude(body: str) -> list[dict[str, Any]]:
    messages: list[dict[str, Any]] = [{"role": "user", "content": "run it"}]
    for number in range(3):
        use = {"type": "tool_use", "id": f"c{number}", "name": "mcp__ci__run", "input": {"suite": "all"}}
        content = [part("text", RAN), part("text", body)]
        messages.append({"role": "assistant", "content": [use]})
        messages.append(
            {"role": "user", "content": [{"type": "tool_result", "tool_use_id": use["id"]} | {"content": content}]}
        )
    return [*messages, {"role": "assistant", "content": [part("text", "Done.")]}]


def logged(kind: Format, messages: list[dict[str, Any]]) -> Session:
    """The session that a client's log of these messages gives."""
    if kind is Format.CODEX:
        records = [{"type": "response_item", "payload": item} for item in messages]
    else:
        records = [
            {"type": said["role"], "sessionId": "s", "message": {"id": f"m{at}", **said}}
            for at, said in enumerate(messages)
        ]
    (session,) = read_records(kind, enumerate(map(json.dumps, records), 1), name="log")
    assert isinstance(session, Session)
    return session


def results(messages: Sequence[Message]) -> list[str]:
    return [block.text for message in messages for block in message.blocks if block.kind is BlockKind.RESULT]


@pytest.mark.parametrize("body", [TESTS, wrapped(TESTS), wrapped("ok")], ids=["plain", "wrapped", "short"])
@pytest.mark.parametrize("kind", [Format.CODEX, Format.CLAUDE_CODE])
def test_a_result_of_several_parts_takes_the_same_forms_in_a_replay_and_in_a_request(kind: Format, body: str) -> None:
    messages = codex(body) if kind is Format.CODEX else claude(body)
    sent = Deriver(policy="lossless").messages(messages[:-1])

    request: list[Message] = []
    for _, derived in SessionReplay(logged(kind, messages), replace(TERMS, policy=policy_named("lossless"))):
        request[derived.keep :] = derived.append

    assert results(request) == results(sent)
    assert len(results(sent)) == 6
