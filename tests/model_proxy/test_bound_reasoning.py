"""Thinking is bound to what stood before it: whatever pagefold does, the provider takes the next request."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from pagefold.derive.policies.economic import Economic
from pagefold.derive.policies.lossless import Lossless
from pagefold.derive.policy import NOTHING, Derived, Notes, Policy
from pagefold.model_proxy.conversations import Conversations
from pagefold.model_proxy.proxy import Proxy
from pagefold.model_proxy.server import running
from pagefold.model_proxy.upstreams import Upstreams
from pagefold.pages.memory_store import MemoryStore
from tests.model_proxy.refereed import Agent, Provider, provider


@contextmanager
def proxied(model: Provider, policy: Policy | None, store: MemoryStore, rounds: int = 0) -> Iterator[tuple[Proxy, str]]:
    conversations = Conversations(policy, store=store, recall_rounds=rounds)
    proxy = Proxy(Upstreams({"anthropic": model.url}), conversations, report=lambda line: None)
    with running(proxy) as url:
        yield proxy, url


POLICIES: dict[str, Policy] = {"lossless": Lossless(), "economic": Economic(window=12_000)}


@pytest.mark.parametrize("stream", [True, False])
def test_nothing_is_left_out_where_nothing_moved(stream: bool) -> None:
    agent = Agent(stream)
    with provider() as model, proxied(model, Lossless(), MemoryStore()) as (proxy, url):
        for _ in range(6):
            status, headers = agent.turn(url)
            assert (status, headers.get("x-pagefold-reasoning-dropped")) == (200, None)
        assert proxy.totals.work.changed > 0  # results were encoded, and thinking is bound to that
    assert model.refused == []
    assert model.records[-1].thinking == agent.thinking - 1


def test_a_fold_leaves_out_what_it_moved_and_keeps_what_is_made_afterwards() -> None:
    agent, read = Agent(size=6), -1
    with provider() as model, proxied(model, POLICIES["economic"], MemoryStore()) as (proxy, url):
        for _ in range(12):
            status, headers = agent.turn(url)
            read = 0 if "x-pagefold-fold" in headers else read + 1
            assert (status, model.records[-1].thinking) == (200, read)
        work = proxy.totals.work
    assert model.refused == []
    assert work.folds > 1
    assert work.reasoning_dropped >= work.folds
    assert work.refused == 0


def test_a_beta_that_nobody_knows_is_refused_once_and_not_by_pagefold() -> None:
    """What the client asks for is passed on; the refusal is its own, and nothing that was kept is lost by it."""
    agent = Agent(size=6)
    with provider() as model, proxied(model, POLICIES["economic"], MemoryStore()) as (proxy, url):
        for _ in range(4):
            assert agent.turn(url)[0] == 200
        assert agent.turn(url, **{"anthropic-beta": "no-such-beta-2026-01-01"})[0] == 400
        assert agent.turn(url)[0] == 200
        assert (proxy.totals.work.refused, proxy.totals.faults) == (0, 0)
    assert [record.rule for record in model.records if record.rule] == ["unknown_beta"]


def _observing(policy: Policy, store: MemoryStore) -> tuple[Policy | None, MemoryStore]:
    return None, store


EXITS: dict[str, Any] = {
    "observed": _observing,
    "restarted": lambda policy, store: (policy, store),
    "store deleted": lambda policy, store: (policy, MemoryStore()),
    "another policy": lambda policy, store: (Economic(window=20_000), store),
    "from a policy to itself": lambda policy, store: (Lossless(without=frozenset(("numbered",))), store),
}


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("exit_", EXITS)
def test_another_process_takes_over(policy: str, exit_: str) -> None:
    agent, store = Agent(size=2), MemoryStore()
    with provider() as model:
        sent_again = 0
        for now, kept in ((POLICIES[policy], store), EXITS[exit_](POLICIES[policy], store), (POLICIES[policy], store)):
            with proxied(model, now, kept) as (proxy, url):
                for _ in range(3):
                    assert agent.turn(url)[0] == 200
                sent_again += proxy.totals.work.refused
    assert sent_again == 0
    assert model.refused == []


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("wish", ["off", "identity", "lossless", "economic"])
def test_a_client_asks_for_something_else_in_between(policy: str, wish: str) -> None:
    agent = Agent(size=2)
    with provider() as model, proxied(model, POLICIES[policy], MemoryStore()) as (proxy, url):
        for at in range(9):
            headers = {"x_pagefold": wish} if at in (4, 5, 7) else {}
            assert agent.turn(url, **headers)[0] == 200
        assert proxy.totals.work.refused == 0
    assert model.refused == []


def test_a_session_that_began_elsewhere_loses_only_what_would_be_refused() -> None:
    agent = Agent()
    with provider() as model:
        for _ in range(4):
            assert agent.turn(model.url)[0] == 200
        with proxied(model, Lossless(), MemoryStore()) as (_, url):
            for _ in range(3):
                assert agent.turn(url)[0] == 200
    assert model.refused == []
    assert model.records[-1].thinking == 3  # the first, which stands before all results, and both made behind pagefold


class Stumbling:
    """The lossless policy, with a mistake at some of its requests."""

    name, abilities = "stumbling", Lossless.abilities

    def __init__(self, *mistakes: int) -> None:
        self._policy, self._mistakes, self._asked = Lossless(), mistakes, 0
        self.begin, self.step = self._policy.begin, self._policy.step

    def request(self, state: Any, notes: Notes = NOTHING) -> tuple[Any, Derived]:
        self._asked += 1
        if self._asked in self._mistakes:
            raise KeyError
        return self._policy.request(state, notes)


def test_a_mistake_of_ours_is_accepted_too() -> None:
    agent, policy = Agent(), Stumbling(4, 6)
    with provider() as model, proxied(model, policy, MemoryStore()) as (proxy, url):
        faults = 0
        for _ in range(9):
            status, headers = agent.turn(url)
            assert status == 200
            faults += "x-pagefold-fault" in headers
        assert (proxy.totals.faults, proxy.totals.work.refused) == (faults, 0)
        assert faults >= 2
    assert model.refused == []


def test_what_nobody_can_know_is_sent_once_more_and_then_left_out() -> None:
    agent = Agent()
    with provider() as model:
        with proxied(model, Lossless(), MemoryStore()) as (_, url):
            for _ in range(4):
                assert agent.turn(url)[0] == 200
        with proxied(model, None, MemoryStore()) as (proxy, url):  # it only looks on, and its store is empty
            status, headers = agent.turn(url)
            assert (status, headers["x-pagefold-sent-again"]) == (200, "without reasoning that the provider refused")
            assert agent.turn(url)[0] == agent.turn(url)[0] == 200
            assert proxy.totals.work.refused == 1
    assert len(model.refused) == 1


def test_tools_of_a_history_stay_what_they_were() -> None:
    agent, store = Agent(), MemoryStore()
    with provider() as model:
        for rounds in (0, 2):
            with proxied(model, Lossless(), store, rounds) as (_, url):
                for _ in range(2):
                    assert agent.turn(url)[0] == 200
    assert model.refused == []
    assert {json.dumps(body["tools"]) for body in model.bodies} == {json.dumps(model.bodies[0]["tools"])}
    assert model.records[-1].thinking == 3
