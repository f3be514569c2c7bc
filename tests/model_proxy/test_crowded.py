"""A proxy remembers that a history has too little room beside its tools, for the summary that the user reads."""

from typing import Any

from pagefold.derive.policies.economic import Economic
from pagefold.model_proxy.conversations import Conversations
from tests.model_proxy.conversation import body, history, sent


def tools(count: int) -> list[dict[str, Any]]:
    return [{"name": f"tool_{number}", "description": "Does more. " * 200} for number in range(count)]


def test_many_tools_in_a_small_window_are_told() -> None:
    conversations = Conversations(Economic(), window=16_000)
    sent(conversations, body(history(1), tools=tools(14)))
    assert "take 1" in conversations.crowded
    assert "of a window of 16,000" in conversations.crowded


def test_few_tools_are_not() -> None:
    conversations = Conversations(Economic(), window=16_000)
    sent(conversations, body(history(1), tools=tools(1)))
    assert not conversations.crowded
