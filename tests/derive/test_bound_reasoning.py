"""A fold leaves out reasoning that it would show behind something else, the same way at every later request."""

import json
from dataclasses import replace
from typing import Any

import pytest

from pagefold.context import Context
from pagefold.derive.bound_reasoning import AS_IT_CAME, NOWHERE, change_after, may_stand
from pagefold.derive.policies.economic import Economic
from pagefold.pages.memory_store import MemoryStore

LINES = "\n".join(f"{n:6}\tdef function_{n}(page):  # seen by reader {n * 7919 % 1000}" for n in range(150))


def test_reasoning_stands_only_behind_what_it_was_made_behind() -> None:
    change = change_after(AS_IT_CAME, 3, "shorter")
    assert may_stand(change, change)
    assert may_stand(None, AS_IT_CAME)
    assert not may_stand(None, change)
    assert not may_stand(change, AS_IT_CAME)
    assert not may_stand(NOWHERE, AS_IT_CAME)
    assert len({change, change_after(change), change_after(AS_IT_CAME, 3, "other"), change_after(AS_IT_CAME)}) == 4


def _turn(number: int) -> list[dict[str, Any]]:
    thought = {"type": "thinking", "thinking": f"Thought {number}.", "signature": f"sig-{number}"}
    call = {"type": "tool_use", "id": f"t{number}", "name": "Read", "input": {"path": f"{number}.py"}}
    text = LINES.replace("function", f"function_{number}")
    result = {"type": "tool_result", "tool_use_id": f"t{number}", "content": text}
    return [{"role": "assistant", "content": [thought, call]}, {"role": "user", "content": [result]}]


def _signatures(request: list[dict[str, Any]]) -> list[str]:
    blocks = [block for message in request if isinstance(message["content"], list) for block in message["content"]]
    return [block["signature"] for block in blocks if block["type"] == "thinking"]


@pytest.mark.parametrize("binds", [True, False])
def test_after_a_fold_only_new_reasoning_stands(binds: bool) -> None:
    policy, store = replace(Economic(window=14_000), binds_reasoning=binds), MemoryStore()
    context = Context(policy=policy, store=store, clock=lambda: 0.0)
    context.add({"role": "user", "content": "Read everything."})
    sent: list[list[dict[str, Any]]] = [context.request()]
    folds = 0
    for number in range(14):
        context.add(*_turn(number))
        sent.append(context.request())
        before, now = json.dumps(sent[-2])[:-1], json.dumps(sent[-1])
        if not now.startswith(before):
            folds += 1
            assert bool(_signatures(sent[-1])) is not binds
            assert any("without its reasoning" in standing.reason for standing in context.explain()) is binds
        else:
            assert _signatures(sent[-1]) == [*_signatures(sent[-2]), f"sig-{number}"]
    assert folds > 1
    assert (context.report().reasoning_dropped > 0) is binds

    again = Context(policy=policy, store=store, clock=lambda: 0.0)
    again.add(
        {"role": "user", "content": "Read everything."}, *(part for number in range(14) for part in _turn(number))
    )
    assert again.request() == sent[-1]
