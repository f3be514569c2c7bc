"""Long loops of tool calls, and what a policy sends for them."""

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from pagefold.derive.policies.folding import State
from pagefold.derive.policy import Derived
from pagefold.pages.page import Page
from pagefold.tokens import FRAME, counter
from pagefold.wire import openai_chat
from pagefold.wire.message import Message, Role

WINDOW = 12_000


TASK = "Please find out why the nightly report of the mill shows negative totals, and never touch the ledger."


COUNT = counter("o200k").count


@dataclass
class Told:
    """What a policy sent, request by request, and the pages it owes."""

    requests: list[tuple[Message, ...]] = field(default_factory=list)
    derived: list[Derived] = field(default_factory=list)
    pages: dict[str, Page] = field(default_factory=dict)


def run(policy: Any, messages: Sequence[Message], state: Any = None) -> Told:
    told, sent = Told(), list[Message]()
    state = policy.begin() if state is None else state
    for message in messages:
        if message.role is Role.ASSISTANT:
            state, derived = policy.request(state)
            assert derived.keep == len(sent) or derived.reason, "a request extends the last or says why not"
            sent[derived.keep :] = derived.append
            told.requests.append(tuple(sent))
            told.derived.append(derived)
            told.pages.update((page.handle, page) for page in derived.pages)
        state = policy.step(state, message)
    return told


def tokens(request: Sequence[Message]) -> int:
    return sum(COUNT(message.text) + FRAME for message in request)


def text(request: Sequence[Message]) -> str:
    return "\n".join(message.text for message in request)


def result(number: int, lines: int = 38) -> str:
    rows = (f"{at}\trow_{number}_{at} = amount({number * 31 + at}) # checked by clerk_{at}" for at in range(1, lines))
    return "\n".join(rows)


def read(values: Sequence[dict[str, Any]], wire: Any = openai_chat) -> list[Message]:
    found = []
    for place, value in enumerate(values):
        message = wire.parse_message(value, json.dumps(value))
        found.append(Message(message.role, message.blocks, message.raw, place))
    return found


def exchange(number: int, body: str = "", tool: str = "Read") -> list[dict[str, Any]]:
    arguments = json.dumps({"file_path": f"/srv/mill/part_{number}.py"})
    call = {"id": f"c{number}", "type": "function", "function": {"name": tool, "arguments": arguments}}
    return [
        {"role": "assistant", "content": f"Looking at part_{number}.", "tool_calls": [call]},
        {"role": "tool", "tool_call_id": f"c{number}", "content": body or result(number)},
    ]


def loop(turns: int, *between: tuple[int, dict[str, Any]]) -> list[dict[str, Any]]:
    """One prompt and a long loop of calls, with messages at some turns."""
    values: list[dict[str, Any]] = [
        {"role": "system", "content": "You are careful."},
        {"role": "user", "content": TASK},
    ]
    said = dict(between)
    for number in range(turns):
        values += exchange(number)
        if number in said:
            values.append(said[number])
    return [*values, {"role": "assistant", "content": "Done."}]


SUMMARY = "The sign is flipped where part_7 adds row_7_3. " * 12


def folded(policy: Any) -> tuple[State, Derived]:
    """The state before the first fold of a long loop, and the fold."""
    state = policy.begin()
    for message in read(loop(40)):
        if message.role is Role.ASSISTANT:
            after, derived = policy.request(state)
            if derived.reason:
                return state, derived
            state = after
        state = policy.step(state, message)
    raise AssertionError("nothing was folded")
