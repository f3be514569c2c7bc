"""What requests cost, live: by their model, the cache life they ask for, and what the provider reports."""

import json
from typing import Any

import pytest

from pagefold.adapters.model_prices import ModelPrices
from pagefold.derive.policies import policy_named
from pagefold.derive.policies.economic import Economic
from pagefold.model_proxy.conversations import Conversations
from pagefold.model_proxy.exchange import Exchange
from pagefold.model_proxy.totals import Ending, Seen
from pagefold.model_proxy.usage_estimate import parts_of
from pagefold.tokens import counter_for
from pagefold.wire.apis import CHAT, MESSAGES
from pagefold.wire.quota import NO_LIMITS, Limits, Quota
from pagefold.wire.sse import render_event
from tests.model_proxy.conversation import body, history, marked
from tests.model_proxy.conversation import sent as request_of

OPUS = "claude-opus-5"
HOUR, FIVE_MINUTES = {"type": "ephemeral", "ttl": "1h"}, {"type": "ephemeral"}


def asking(mark: dict[str, str], turns: int = 3, **more: Any) -> bytes:
    messages = history(turns)
    content = messages[-1]["content"]
    blocks = [{"type": "text", "text": content}] if isinstance(content, str) else content
    messages[-1] = {**messages[-1], "content": [*blocks[:-1], {**blocks[-1], "cache_control": mark}]}
    return body(messages, **{"model": OPUS, **more})


def exchanged(
    conversations: Conversations, data: bytes, usage: dict[str, Any], now: float = 0.0, limits: Limits = NO_LIMITS
) -> Seen:
    exchange = Exchange("POST", MESSAGES.path, data, conversations)
    if exchange.derives:
        exchange.read(now)
        exchange.derive(now)
    exchange.answer_began(200, "application/json", limits=limits)
    answer = {"model": OPUS, "content": [{"type": "text", "text": "Yes."}], "stop_reason": "end_turn", "usage": usage}
    exchange.hear(json.dumps(answer).encode())
    return exchange.finish(Ending.WHOLE, now=now)


@pytest.mark.parametrize(
    ("data", "long"),
    [
        (asking(HOUR), True),
        (asking(FIVE_MINUTES), False),
        (asking(FIVE_MINUTES, system=[{"type": "text", "text": "Be brief.", "cache_control": HOUR}]), False),
        (body(history(3), model=OPUS, system=[{"type": "text", "text": "Hi", "cache_control": HOUR}]), True),
        (body(history(3), model=OPUS, cache_control=HOUR), True),
        (body(history(3, first='{"cache_control": {"ttl": "1h"}}'), model=OPUS), False),
        (body(marked(history(3)), model=OPUS), False),
    ],
)
def test_what_the_client_asks_for_decides_life_and_price(data: bytes, long: bool) -> None:
    conversations = Conversations(known=ModelPrices())
    prices = conversations.prices_of(conversations.request_cache.read(MESSAGES, data))

    assert (prices.long, prices.life, prices.write_ratio) == ((True, 3600, 2.0) if long else (False, 300, 1.25))


def test_an_api_without_marks_asks_for_no_life() -> None:
    conversations = Conversations(known=ModelPrices())
    data = body([{"role": "user", "content": "Hi"}], model="gpt-5.6-sol")

    assert conversations.prices_of(conversations.request_cache.read(CHAT, data)).life == 1800


def test_a_policy_that_folds_is_told_the_price_of_one_hour_writes() -> None:
    conversations = Conversations(Economic(), known=ModelPrices())
    exchange = Exchange("POST", MESSAGES.path, asking(HOUR), conversations)
    exchange.read()

    assert exchange._derivations is not None
    policy: Any = exchange._derivations.policy
    assert (policy.prices.write_ratio, policy.prices.life) == (2.0, 3600)


@pytest.mark.parametrize(
    ("mark", "written", "cold_after"),
    [
        (HOUR, {"ephemeral_1h_input_tokens": 5_000}, 3600),
        (HOUR, {"ephemeral_5m_input_tokens": 5_000, "ephemeral_1h_input_tokens": 0}, 300),  # it gave less than asked
        (FIVE_MINUTES, {"ephemeral_5m_input_tokens": 5_000}, 300),
        (FIVE_MINUTES, {}, 300),
    ],
)
def test_the_cache_is_cold_when_what_the_provider_wrote_has_expired(
    mark: dict[str, str], written: dict[str, int], cold_after: float
) -> None:
    conversations = Conversations(Economic(), known=ModelPrices())  # a policy that asks whether it is
    usage = {"input_tokens": 1, "cache_creation_input_tokens": 5_000, "cache_creation": written, "output_tokens": 1}
    exchanged(conversations, asking(mark), usage, now=1_000.0)
    reading = conversations.request_cache.read(MESSAGES, asking(mark, 4))

    assert not conversations.is_cold(reading, 1_000.0 + cold_after)
    assert conversations.is_cold(reading, 1_001.0 + cold_after)
    assert not conversations.is_cold(reading, 0.0)  # a clock that was set back


def test_the_bill_is_the_reported_usage_at_the_prices_of_the_model() -> None:
    usage = {
        "input_tokens": 1_000,
        "cache_read_input_tokens": 10_000,
        "cache_creation_input_tokens": 3_000,
        "cache_creation": {"ephemeral_5m_input_tokens": 1_000, "ephemeral_1h_input_tokens": 2_000},
        "output_tokens": 500,
    }
    reckoned = exchanged(Conversations(known=ModelPrices()), asking(HOUR), usage).reckoned

    assert reckoned.usd == pytest.approx((1_000 * 5 + 10_000 * 0.5 + 1_000 * 6.25 + 2_000 * 10 + 500 * 25) / 1e6)
    assert reckoned.real == pytest.approx(1_000 + 1_000 + 1_250 + 4_000)


def test_estimates_are_drawn_towards_what_the_provider_counts() -> None:
    conversations, off = Conversations(known=ModelPrices()), []
    for turn in range(2, 14):
        data = body(history(turn, first="word " * 3_000), model=OPUS)
        estimated = sum(exchanged(Conversations(), data, {"input_tokens": 1}).estimated.values())
        seen = exchanged(conversations, data, {"cache_creation_input_tokens": round(1.3 * estimated)}, now=1e6 * turn)
        off.append(seen.reckoned.predicted / seen.reckoned.real)

    assert off[0] == pytest.approx(1 / 1.3, rel=0.02)
    assert off[-1] == pytest.approx(1.0, rel=0.02)


def counted(data: bytes) -> int:
    """The tokens of a request's messages, as the counter of its model has them."""
    parsed = Conversations().request_cache.read(MESSAGES, data)
    return sum(parts_of(parsed.request.messages, counter_for(OPUS)).values())


@pytest.mark.parametrize("log", [False, True], ids=["code", "log"])
def test_what_was_saved_is_in_the_tokens_of_messages_whatever_the_tools_count(log: bool) -> None:
    """A provider that counts tools three times as we do, and messages alike: only messages were written shorter."""
    live = Conversations(policy_named("lossless"), known=ModelPrices())
    tools = [
        {"name": f"tool_{at}", "description": "word " * 200, "input_schema": {"type": "object"}} for at in range(40)
    ]
    lines = "\n".join(f"2026-11-19 10:00:{at:02} worker {at * 31 % 89:04} took {at * 7} ms" for at in range(60))
    reckoned, true, before, whole_before = 0.0, 0.0, 0, 0
    for turns in range(1, 16):
        messages = history(turns)
        if log:
            for at in range(2, len(messages), 2):
                messages[at]["content"][0]["content"] = lines.replace("worker", f"worker_{at // 4}")
        data = body(messages, model=OPUS, tools=tools)
        other = Conversations(policy_named("lossless"), known=ModelPrices())
        whole, head = counted(data), 3 * sum(map(counter_for(OPUS).count, map(json.dumps, tools)))
        sent = head + counted(request_of(other, data))
        usage = {"cache_read_input_tokens": before, "cache_creation_input_tokens": sent - before}
        seen = exchanged(live, data, usage, now=60.0 * turns)
        whole += head
        true += (whole_before * 0.5 + (whole - whole_before) * 6.25) - (before * 0.5 + (sent - before) * 6.25)
        reckoned += 1e6 * seen.reckoned.usd_saved
        before, whole_before = sent, whole

    assert true > 10_000
    assert reckoned == pytest.approx(true, rel=0.02)


def test_what_was_used_of_the_five_hour_window_and_of_the_week_is_counted() -> None:
    conversations, usage = Conversations(known=ModelPrices()), {"input_tokens": 1}
    limits = [Limits(Quota(0.40, 9_000.0), Quota(0.1, 90_000.0)), Limits(Quota(0.43, 9_000.0), Quota(0.11, 90_000.0))]
    first = exchanged(conversations, asking(HOUR), usage, limits=limits[0])
    second = exchanged(conversations, asking(HOUR, 4), usage, limits=limits[1])

    assert (first.reckoned.windows, second.reckoned.windows) == pytest.approx((0.0, 0.03))
    assert (first.reckoned.weeks, second.reckoned.weeks) == pytest.approx((0.0, 0.01))


def test_what_it_costs_to_go_on_is_known_warm_and_cold() -> None:
    usage = {
        "cache_creation_input_tokens": 100_000,
        "cache_creation": {"ephemeral_1h_input_tokens": 100_000},
        "output_tokens": 1,
    }
    cached = exchanged(Conversations(known=ModelPrices()), asking(HOUR), usage).cached

    assert (cached.life, cached.warm_usd, cached.cold_usd) == pytest.approx((3600, 0.05, 1.0))


def test_a_model_that_is_not_known_is_told_once() -> None:
    told: list[str] = []
    known = ModelPrices(tell=told.append)
    for _ in range(3):
        exchanged(Conversations(known=known), asking(HOUR, model="mine\n1"), {"input_tokens": 9})

    (line,) = told
    assert "'mine\\n1'" in line
    assert "0.1 of that" in line
    assert "prices_usd" in line


@pytest.mark.parametrize("cut", [1, 7, 10_000])
def test_codex_says_in_its_stream_how_much_of_the_window_is_used(cut: int) -> None:
    """The ChatGPT backend says it in an event of its own, in front of the answer; the headers may say less."""
    window = {"used_percent": 41.5, "window_minutes": 300, "reset_at": 1_788_879_438}
    weekly = {"used_percent": 7, "window_minutes": 10_080, "reset_at": 1_789_000_000}
    events: list[dict[str, Any]] = [
        {"type": "codex.rate_limits", "plan_type": "plus", "rate_limits": {"primary": weekly, "secondary": window}},
        {"type": "response.output_text.delta", "delta": "codex.rate_limits"},
        {"type": "response.completed", "response": {"output": [], "usage": {"input_tokens": 5, "output_tokens": 2}}},
    ]
    stream = b"".join(render_event(event["type"], json.dumps(event)) for event in events)
    asked = json.dumps({"model": "gpt-5.6-sol", "stream": True, "input": "Hi"}).encode()
    exchange = Exchange("POST", "/v1/responses", asked, Conversations(Economic()))
    exchange.answer_began(200, "text/event-stream", limits=Limits(Quota(0.40, 9_000.0)))

    for start in range(0, len(stream), cut):
        exchange.hear(stream[start : start + cut])

    assert exchange.finish(Ending.WHOLE).limits == Limits(Quota(0.415, 1_788_879_438.0), Quota(0.07, 1_789_000_000.0))
