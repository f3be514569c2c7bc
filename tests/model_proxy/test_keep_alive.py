"""Keep-alives: requests of pagefold's own, off unless asked for, cheap, counted, and stopped when they are refused."""

import json
import socket
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from pagefold.adapters.model_prices import ModelPrices
from pagefold.derive.policies import policy_named
from pagefold.model_proxy.conversations import Conversations
from pagefold.model_proxy.idle_plan import keep_alive_body
from pagefold.model_proxy.proxy import Proxy
from pagefold.model_proxy.server import running
from pagefold.model_proxy.upstreams import Upstreams
from pagefold.settings.sections import PriceTable
from pagefold.wire.apis import CHAT, MESSAGES
from tests.model_proxy.upstream import Upstream, ask, upstream, whole

FREE_READS = PriceTable(name="claude-x", fresh=1, read=0, write=1.25, output=5, ttl_seconds=0.3)
"""Reads cost nothing, so that a cache is always worth keeping, and it lives so short that a test can wait for it."""
REQUEST = {
    "model": "claude-x",
    "max_tokens": 100,
    "stream": False,
    "metadata": {"n": 1.50, "m": 1e5},
    "messages": [{"role": "user", "content": "Hi"}],
}
BODY = json.dumps(REQUEST).encode()
ANSWER = {"model": "claude-x", "content": [{"type": "text", "text": "Hi."}], "stop_reason": "end_turn"}


def answered(*statuses: bytes, cached: int = 9_000) -> Callable[[socket.socket], None]:
    """The first status answers the first request and so on; the last one all that follow."""
    left = list(statuses)

    def answer(connection: socket.socket) -> None:
        status = left.pop(0) if len(left) > 1 else left[0]
        used = {"input_tokens": 3, "cache_creation_input_tokens": cached, "output_tokens": 2}
        connection.sendall(
            whole(json.dumps({**ANSWER, "usage": used}).encode(), b"content-type: application/json", status=status)
        )

    return answer


@contextmanager
def silent(answer: Callable[[socket.socket], None], *, keep_alive: bool) -> Iterator[tuple[Proxy, str, Upstream]]:
    """A proxy that has passed one request on, and then hears nothing more."""
    with upstream(answer) as model:
        conversations = Conversations(policy_named("lossless"), known=ModelPrices([FREE_READS]))
        proxy = Proxy(Upstreams({"anthropic": model.url}), conversations, keep_alive=keep_alive)
        with running(proxy) as url:
            assert ask(url, body=BODY, x_api_key="sk-own", content_type="application/json")[0] == 200
            yield proxy, url, model


def waited(until: Callable[[], bool], seconds: float = 10.0) -> bool:
    ends = time.monotonic() + seconds
    while not until() and time.monotonic() < ends:
        time.sleep(0.02)
    return until()


def test_a_silent_conversation_is_kept_in_the_cache_by_requests_without_an_answer() -> None:
    with silent(answered(b"200 OK"), keep_alive=True) as (proxy, _, model):
        assert waited(lambda: len(model.received) >= 3 and proxy.totals_so_far.keep_alives >= 2)
        counted = proxy.totals_so_far
    first, second, *_ = model.received

    assert json.loads(second.body) == {**REQUEST, "max_tokens": 0}
    assert second.body == first.body.replace(b'"max_tokens": 100', b'"max_tokens": 0')  # not a byte else
    assert dict(second.headers)[b"x-api-key"] == b"sk-own"
    assert counted.requests == 1
    assert counted.usage.cache_write == 9_000 * (1 + counted.keep_alives)
    assert counted.reckoned.usd == pytest.approx((1 + counted.keep_alives) * (3 + 9_000 * 1.25 + 2 * 5) / 1e6)


def test_nothing_is_sent_unless_it_was_asked_for() -> None:
    with silent(answered(b"200 OK"), keep_alive=False) as (proxy, _, model):
        time.sleep(0.8)
        assert (len(model.received), proxy.totals_so_far.keep_alives) == (1, 0)


def test_a_small_prompt_is_not_kept() -> None:
    with silent(answered(b"200 OK", cached=1_000), keep_alive=True) as (_, _, model):
        time.sleep(0.8)
        assert len(model.received) == 1


def test_a_provider_that_refuses_is_not_asked_again_for_that_model() -> None:
    with silent(answered(b"200 OK", b"400 Bad Request"), keep_alive=True) as (proxy, url, model):
        assert waited(lambda: proxy.totals_so_far.keep_alives_refused == 1)
        ask(url, body=BODY)
        time.sleep(0.8)
        assert len(model.received) == 3
        assert proxy.totals_so_far.keep_alives_refused == 1
        assert proxy.totals_so_far.faults == 0


def test_a_conversation_that_goes_on_is_waited_for_once() -> None:
    with silent(answered(b"200 OK"), keep_alive=True) as (proxy, url, _):
        more = [{"role": "assistant", "content": "Hi."}, {"role": "user", "content": "Go on."}]
        longer: dict[str, Any] = {**REQUEST, "messages": [*REQUEST["messages"], *more]}  # type: ignore[misc]
        ask(url, body=json.dumps(longer).encode())
        assert waited(lambda: proxy.totals_so_far.requests == 2)
        time.sleep(0.2)

        assert len(proxy._keep_alive._waiting) <= 1


def test_nothing_is_kept_alive_while_an_answer_takes_its_time() -> None:
    """The silence ends with the next request: its answer may take longer than the cache lives."""
    quick = answered(b"200 OK")
    asked: list[float] = []

    def slow_at_second(connection: socket.socket) -> None:
        asked.append(time.monotonic())
        if len(asked) == 2:
            time.sleep(1.0)  # three lives
        quick(connection)

    more = [{"role": "assistant", "content": "Hi."}, {"role": "user", "content": "Go on."}]
    longer: dict[str, Any] = {**REQUEST, "messages": [*REQUEST["messages"], *more]}  # type: ignore[misc]
    with silent(slow_at_second, keep_alive=True) as (_, url, model):
        ask(url, body=json.dumps(longer).encode())
        received = [json.loads(request.body)["max_tokens"] for request in model.received]

    assert received[:2] == [100, 100]
    assert len(received) == 2


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"[]",
        b"no JSON",
        json.dumps({**REQUEST, "thinking": {"type": "enabled", "budget_tokens": 4_000}}).encode(),
        json.dumps({"model": "claude-x", "messages": REQUEST["messages"]}).encode(),
    ],
)
def test_what_the_api_would_refuse_is_not_sent(body: bytes) -> None:
    assert keep_alive_body(body, MESSAGES) is None
    assert keep_alive_body(json.dumps(REQUEST).encode(), CHAT) is None
