"""While two versions serve, a conversation goes on with the one that began it, and where that is gone moves once."""

import json
import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest

from pagefold.derive import pinned_policy
from pagefold.derive.pinned_policy import PASSED
from pagefold.derive.policies.economic import Economic
from pagefold.model_proxy.conversations import Conversations
from pagefold.model_proxy.other_version import OtherVersion
from pagefold.model_proxy.proxy import Proxy
from pagefold.model_proxy.server import running
from pagefold.model_proxy.upstreams import Upstreams
from pagefold.pages.memory_store import MemoryStore
from tests.model_proxy.conversation import body, turn
from tests.model_proxy.test_upgrades import Client, Messages, history
from tests.model_proxy.upstream import (
    ANSWER,
    EVENTS,
    STREAM_HEAD,
    HangUp,
    Upstream,
    answers,
    ask,
    chunk,
    upstream,
    whole,
)

POLICY = Economic(window=14_000)
GONE = whole(b"nobody is there", status=b"502 Bad Gateway")
LATE = whole(b"nobody answers", status=b"504 Gateway Timeout")
BUSY = whole(b'{"error":"overloaded"}', b"x-pagefold-policy: economic", status=b"503 Service Unavailable")


@pytest.fixture
def store(monkeypatch: pytest.MonkeyPatch) -> MemoryStore:
    """A store with a conversation of thirteen turns that an earlier version began, and folded."""
    found, client = MemoryStore(), Client()
    for number in range(13):
        client.send(Conversations(POLICY, store=found), history(number))
    assert client.folds
    monkeypatch.setattr(pinned_policy, "VERSION", pinned_policy.VERSION + 1)
    monkeypatch.setattr(pinned_policy, "_DERIVED", frozenset((pinned_policy.VERSION,)))
    return found


@contextmanager
def new_version(store: MemoryStore, other: str) -> Iterator[tuple[Proxy, str, Upstream]]:
    with upstream(answers(whole(ANSWER))) as model:
        conversations = Conversations(POLICY, store=store)
        proxy = Proxy(Upstreams({"anthropic": model.url}), conversations, other_version=OtherVersion(other))
        with running(proxy) as url:
            yield proxy, url, model


def asked(messages: Messages) -> bytes:
    tools = [{"name": "Read", "description": "Reads a file."}]
    return json.dumps({"model": "a-model", "messages": messages, "system": "Be brief.", "tools": tools}).encode()


def nobody() -> str:
    with socket.create_server(("127.0.0.1", 0)) as free:
        return f"http://127.0.0.1:{free.getsockname()[1]}"


def test_it_is_handed_on_as_it_came_with_all_headers_that_are_for_pagefold(store: MemoryStore) -> None:
    told = whole(ANSWER, b"x-pagefold-fold: room", b"x-other: 1", b"content-type: application/json")
    charged = list[object]()
    with upstream(answers(told)) as other, new_version(store, other.url) as (proxy, url, model):
        proxy.meter = lambda seen, headers: charged.append(seen)
        sent = {"x_pagefold_token": "secret", "x_pagefold_project": "mill", "x_api_key": "sk-own", "accept": "a/b"}
        status, headers, answer = ask(url, path="/v1/messages?beta=true", body=asked(history(13)), **sent)

        assert (status, answer) == (200, ANSWER)
        assert {("x-pagefold-fold", "room"), ("x-other", "1")} <= set(headers)
        assert model.received == []
        [received] = other.received
        assert received.line.split()[:2] == [b"POST", b"/v1/messages?beta=true"]
        assert received.body == asked(history(13))
        kept = {name: value for name, value in received.headers if name not in (b"host", b"content-length")}
        came = {name.replace("_", "-").encode(): value.encode() for name, value in sent.items()}
        assert kept == {**came, b"accept-encoding": b"identity", b"x-pagefold-handed-on": b"1"}
        proxy.catch_up()
        totals = proxy.totals_so_far
        assert (totals.requests, totals.handed_on, totals.work.changed, totals.faults) == (1, 1, 0, 0)
        assert charged == [], "who answers it charges it"


def test_a_stream_of_the_other_version_passes_piece_by_piece(store: MemoryStore) -> None:
    pieces = [STREAM_HEAD, *map(chunk, EVENTS), b"0\r\n\r\n"]
    with upstream(answers(*pieces)) as other, new_version(store, other.url) as (_, url, model):
        assert ask(url, body=asked(history(13)))[::2] == (200, b"".join(EVENTS))
        assert model.received == []


@pytest.mark.parametrize(
    "answer", [GONE, LATE, None], ids=["a balancer without instances", "instances that hang", "a closed port"]
)
def test_once_nobody_is_left_it_is_derived_anew_and_stays(store: MemoryStore, answer: bytes | None) -> None:
    with upstream(answers(answer or GONE)) as other:
        address = other.url if answer else nobody()
        with new_version(store, address) as (proxy, url, model):
            for number in (13, 14):
                status, headers, _ = ask(url, body=asked(history(number)))
                assert status == 200
                anew = ("x-pagefold-begun-anew", PASSED) in headers
                assert anew == (number == 13)
            assert len(model.received) == 2
            assert all(b"context_recall" in received.body for received in model.received)
            assert not any(name == b"x-pagefold-handed-on" for name, _ in model.received[0].headers)
            proxy.catch_up()
            assert proxy.totals_so_far.handed_on == 0
        assert len(other.received) == bool(answer)


def test_one_of_its_instances_that_goes_away_moves_nothing(store: MemoryStore) -> None:
    gone = list[bool]()

    def answer(connection: socket.socket) -> None:
        if not gone:
            gone.append(True)
            raise HangUp
        connection.sendall(whole(ANSWER))

    with upstream(answer) as other, new_version(store, other.url) as (_, url, model):
        assert ask(url, body=asked(history(13)))[::2] == (200, ANSWER)
        assert (len(other.received), model.received) == (2, [])


def test_what_the_other_version_says_itself_is_passed_on_and_moves_nothing(store: MemoryStore) -> None:
    """It is there, and the provider is not: the next request may go on as it began."""
    older = Proxy(Upstreams({"anthropic": nobody()}), Conversations())
    with running(older) as other, new_version(store, other) as (_, url, model):
        status, headers, answer = ask(url, body=asked(history(13)))
        assert (status, b"pagefold got no answer" in answer) == (502, True)
        assert "x-pagefold-begun-anew" not in dict(headers)
        assert model.received == []


def test_what_a_provider_refused_through_the_other_version_is_passed_on(store: MemoryStore) -> None:
    with upstream(answers(BUSY)) as other, new_version(store, other.url) as (_, url, model):
        assert ask(url, body=asked(history(13)))[0] == 503
        assert model.received == []


def derived_here(store: MemoryStore, data: bytes, **headers: str) -> bool:
    """Whether the provider gets it from this instance, and the other version nothing."""
    with upstream(answers(whole(ANSWER))) as other, new_version(store, other.url) as (_, url, model):
        assert ask(url, body=data, **headers)[0] == 200
        return (len(other.received), len(model.received)) == (0, 1)


def test_what_began_nobody_knows_where_is_derived_here(store: MemoryStore) -> None:
    del store  # it is lost, and with it who began what
    assert derived_here(MemoryStore(), asked(history(13)))


NEW = {
    "what begins now": lambda: body([{"role": "user", "content": "Begin."}]),
    "what this version began": lambda: body([{"role": "user", "content": "Begin."}, *turn(1)]),
}


@pytest.mark.parametrize("name", NEW)
def test_what_is_not_of_another_version_is_derived_here(store: MemoryStore, name: str) -> None:
    data: Callable[[], bytes] = NEW[name]

    assert derived_here(store, NEW["what begins now"]())
    assert derived_here(store, data())


@pytest.mark.parametrize(
    "headers",
    [
        {"x_pagefold_handed_on": "1"},
        {"x_pagefold": "off"},
        {"authorization": "AWS4-HMAC-SHA256 Credential=AKID/20260101/eu/bedrock/aws4_request"},
    ],
    ids=["handed on already", "off", "signed for one address"],
)
def test_some_requests_are_never_handed_on(store: MemoryStore, headers: dict[str, str]) -> None:
    assert derived_here(store, asked(history(13)), **headers)
