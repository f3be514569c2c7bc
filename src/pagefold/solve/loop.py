"""A plain agent loop: the user asks, the model answers and calls tools until it has said something, the user goes on.

It speaks the Messages API to whatever `send` reaches. Every message is kept. It ends when the last ask is answered,
when the turns run out, or when the provider says no.
"""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

from pagefold.solve.task import Task
from pagefold.solve.workspace import TOOLS, Workspace

SYSTEM = (
    "You are a careful programmer. You work in a directory with the tools you are given, by paths relative to it. "
    "Do what the user asks, no more, and end every turn with a short sentence."
)
SECONDS_A_TURN = 8.0  # what a turn takes, as the clock of a run goes

STOPPED = "stopped"


class RefusedError(Exception):
    """The provider did not take a request. Its text says why."""


class Send(Protocol):
    def __call__(self, body: bytes, now: float) -> Mapping[str, Any]:
        """The model's message. Raises RefusedError."""


@dataclass(slots=True)
class Outcome:
    """What became of one run. `messages` is the whole conversation as the client has it."""

    solved: bool = False
    turns: int = 0
    reason: str = ""
    messages: list[dict[str, Any]] = field(default_factory=list, repr=False)


def run(
    task: Task,
    model: str,
    send: Send,
    outcome: Outcome | None = None,
    *,
    most_turns: int,
    stop: Callable[[], bool] = lambda: False,
) -> Outcome:
    """Works on a task from its first ask to its check. What happens is written into `outcome` as it happens."""
    outcome, now = outcome or Outcome(), 0.0
    with Workspace(task) as workspace:
        for ask in task.asks:
            now += ask.idle
            for path in ask.removed:
                workspace.remove(path)
            outcome.messages.append({"role": "user", "content": [{"type": "text", "text": ask.text}]})
            while True:
                if outcome.turns >= most_turns or stop():
                    outcome.reason = "out of turns" if outcome.turns >= most_turns else STOPPED
                    return outcome
                try:
                    message = send(_body(model, outcome.messages), now)
                except RefusedError as refusal:
                    outcome.reason = f"refused: {refusal}"
                    return outcome
                outcome.turns += 1
                now += SECONDS_A_TURN
                content = [dict(block) for block in message["content"]]
                outcome.messages.append({"role": "assistant", "content": content})
                results = [_result(workspace, block) for block in content if block.get("type") == "tool_use"]
                if not results:
                    break
                outcome.messages.append({"role": "user", "content": results})
        outcome.solved = workspace.is_solved()
        outcome.reason = "" if outcome.solved else "the check failed"
    return outcome


def _result(workspace: Workspace, call: Mapping[str, Any]) -> dict[str, Any]:
    text, failed = workspace.use(str(call.get("name")), call.get("input") or {})
    result = {"type": "tool_result", "tool_use_id": call["id"], "content": text}
    return {**result, "is_error": True} if failed else result


def _body(model: str, messages: list[dict[str, Any]]) -> bytes:
    """The request, with the cache marks that agents set: behind the system prompt and behind the last message."""
    mark = {"cache_control": {"type": "ephemeral"}}
    *before, last = messages
    *blocks, end = last["content"]
    request = {
        "model": model,
        "max_tokens": 4_096,
        "system": [{"type": "text", "text": SYSTEM, **mark}],
        "tools": TOOLS,
        "messages": [*before, {**last, "content": [*blocks, {**end, **mark}]}],
    }
    return json.dumps(request).encode()
