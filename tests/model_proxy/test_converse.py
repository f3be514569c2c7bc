"""Long conversations by Converse, with all that a message may hold: what is sent is what Bedrock takes."""

import json
import random
from collections.abc import Iterator
from itertools import pairwise
from typing import Any

import pytest

from pagefold.derive.policies import policy_named
from pagefold.model_proxy.conversations import Conversations
from pagefold.pages.memory_store import MemoryStore
from pagefold.wire.apis import CONVERSE
from tests.model_proxy.conversation import sent

MARK = {"cachePoint": {"type": "default"}}
TOOLS = {"tools": [{"toolSpec": {"name": "orders", "inputSchema": {"json": {}}}}]}
PICTURE = {"image": {"format": "png", "source": {"bytes": "iVBO"}}}


def histories(dice: random.Random, turns: int) -> Iterator[list[Any]]:
    """A conversation before each of its turns, with cache marks in its last two messages of the user."""
    messages: list[Any] = [
        {"role": "user", "content": [{"guardContent": {"text": {"text": "Never delete an order."}}}]}
    ]
    for turn in range(turns):
        marked = json.loads(json.dumps(messages))
        for message in [one for one in marked if one["role"] == "user"][-2:]:
            message["content"].append(MARK)
        yield marked
        thought = {"reasoningContent": {"reasoningText": {"text": "Hm.", "signature": f"s{turn}"}}}
        said = [part for part in (thought, {"text": f"Step {turn}."}) if dice.random() < 0.5]
        if dice.random() < 0.15:
            messages.append({"role": "assistant", "content": [*said, {"text": "Done."}]})
            messages.append({"role": "user", "content": [{"text": f"And order-{dice.randrange(turn + 1)}-3?"}]})
            continue
        ids = [f"c{turn}-{at}" for at in range(dice.choice((1, 1, 1, 2, 3)))]
        calls = [{"toolUse": {"toolUseId": call, "name": "orders", "input": {"of": call}}} for call in ids]
        results = [{"toolResult": {"toolUseId": call, "content": returned(dice, turn)}} for call in ids]
        messages.append({"role": "assistant", "content": [*said, *calls]})
        messages.append({"role": "user", "content": [*results, *([{"text": "Go on."}] if dice.random() < 0.1 else [])]})


def returned(dice: random.Random, turn: int) -> list[Any]:
    rows = [{"id": f"order-{turn}-{at}", "paid": dice.random() < 0.5} for at in range(dice.choice((2, 20, 50)))]
    text = json.dumps(rows)
    kinds: tuple[list[Any], ...] = (
        [{"json": {"rows": rows}}],
        [{"text": text}],
        [{"text": "Found:"}, {"json": {"rows": rows}}],
        [PICTURE],
        [{"searchResult": {"title": "orders", "content": [{"text": text}]}}],
    )
    return dice.choice(kinds)


def problem_with(messages: list[Any]) -> str:
    """Why Bedrock would refuse these messages, or ""."""
    if [message["role"] for message in messages[::2]] != ["user"] * len(messages[::2]):
        return "it does not begin with the user"
    if any(one["role"] == other["role"] for one, other in pairwise(messages)):
        return "the sides do not alternate"
    waiting: list[str] = []
    for at, message in enumerate(messages):
        parts = message["content"]
        answered = [part["toolResult"]["toolUseId"] for part in parts if "toolResult" in part]
        if sorted(answered) != sorted(waiting):
            return f"message {at} answers {answered} in place of {waiting}"
        waiting = [part["toolUse"]["toolUseId"] for part in parts if "toolUse" in part]
        if all(part == MARK for part in parts) or any(part.get("text") == "" for part in parts):
            return f"message {at} says nothing"
    marks = json.dumps(messages).count('"cachePoint"')
    return f"{marks} cache marks" if marks > 4 else ""


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("policy", ["lossless", "economic"])
def test_what_is_sent_is_valid_and_goes_on_from_the_last_unless_it_is_folded(policy: str, seed: int) -> None:
    conversations = Conversations(policy_named(policy, window=9_000), store=MemoryStore())
    before, moved = list[Any](), 0
    for messages in histories(random.Random(seed), 40):
        body = json.dumps({"messages": messages, "toolConfig": TOOLS}).encode()
        request = json.loads(sent(conversations, body, CONVERSE))["messages"]
        assert problem_with(request) == ""
        told = [{**one, "content": [part for part in one["content"] if part != MARK]} for one in request]
        moved += told[: len(before)] != before
        before = told

    assert (moved > 0) is (policy == "economic")
    assert moved < 20
