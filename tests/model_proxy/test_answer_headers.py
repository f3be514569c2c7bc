"""What an answer says was done to its request: folds where something was folded, and how many tokens were saved."""

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pagefold import tokens
from pagefold.derive.pinned_policy import LOST
from pagefold.derive.policies import policy_named
from pagefold.model_proxy.conversations import Conversations
from pagefold.model_proxy.exchange import Exchange
from pagefold.model_proxy.totals import Ending
from pagefold.pages.memory_store import MemoryStore
from pagefold.wire.apis import MESSAGES
from tests.model_proxy.conversation import body, history

LIVE = ("lossless", "economic", "masking", "fifo", "clear", "reset", "incremental", "compaction", "legacy")


def asked(conversations: Conversations, messages: list[dict[str, Any]]) -> tuple[Exchange, list[dict[str, Any]]]:
    """The exchange of a request that was answered with 200, and the messages that went upstream."""
    data = body(messages)
    exchange = Exchange("POST", MESSAGES.path, data, conversations)
    sent = (exchange.derive() if exchange.read() else None) or data
    exchange.answer_began(200, "application/json")
    return exchange, json.loads(sent)["messages"]


def cost(messages: list[dict[str, Any]]) -> int:
    """The tokens of the texts of messages."""
    request = MESSAGES.parse_request(body(messages))
    count = tokens.counter("o200k").count
    return sum(tokens.FRAME + sum(count(block.text) for block in message.blocks) for message in request.messages)


@pytest.mark.parametrize("name", LIVE)
def test_a_history_that_only_lost_its_beginning_was_not_folded(name: str) -> None:
    exchange, _ = asked(Conversations(policy_named(name)), history(4)[2:])
    told = dict(exchange.headers)

    assert told[b"x-pagefold-begun-anew"] == LOST.encode()
    assert b"x-pagefold-fold" not in told
    assert exchange.finish(Ending.WHOLE).work.folds == 0


@pytest.mark.parametrize("name", ["fifo", "economic", "incremental"])
def test_a_first_request_that_goes_on_as_it_came_was_not_folded(name: str) -> None:
    """It is too large for the window, and there is nothing yet that could be folded."""
    came = [{"role": "user", "content": "word " * 6_000}]
    exchange, sent = asked(Conversations(policy_named(name), window=4_000), came)

    assert sent == came
    assert b"x-pagefold-fold" not in dict(exchange.headers)


@given(st.data())
@settings(max_examples=60, deadline=None)
def test_the_tokens_that_were_saved_are_those_that_the_request_has_fewer(data: st.DataObject) -> None:
    """Whether results were encoded, folded, repaired or put into words, and however the history grew."""
    name, window = data.draw(st.sampled_from(LIVE)), data.draw(st.sampled_from([6_000, 20_000, 200_000]))
    conversations = Conversations(policy_named(name), window=window, store=MemoryStore())
    for turns in sorted(data.draw(st.lists(st.integers(0, 9), min_size=1, max_size=4))):
        messages = history(turns)
        messages = messages[data.draw(st.integers(0, min(4, len(messages) - 1))) :]
        if data.draw(st.booleans()):
            messages = [{"role": "user", "content": "Go on."}, *messages]
        exchange, sent = asked(conversations, messages)
        saved = int(dict(exchange.headers)[b"x-pagefold-saved-tokens"])

        assert saved == cost(messages) - cost(sent)
        assert exchange.finish(Ending.WHOLE).work.saved == max(0, saved)
