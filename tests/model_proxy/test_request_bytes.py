"""Over real loopback sockets: a request reaches the upstream with the bytes the client sent."""

import hashlib
from urllib.parse import urlsplit

import pytest

from tests.model_proxy.upstream import ANSWER, QUESTION, USAGE, answers, ask, chunk, connected, proxied, say, whole

pytestmark = pytest.mark.usefixtures("policy")


def test_a_request_arrives_as_it_was_sent() -> None:
    body = b'{"messages": [ ],\xff "model":1.10}'
    head = [
        b"POST /v1/messages/..%2Fx;a=b//c?beta=true&x=%20+%7E&&y='\" HTTP/1.1",
        b"Host: localhost",
        b"X-Api-Key: sk-1",
        b"anthropic-beta: one",
        b"Content-Type: application/json",
        b"anthropic-beta: two, three",
        b"Connection: close, X-Hop",
        b"X-Hop: 1",
        b"Keep-Alive: timeout=5",
        b"TE: trailers",
        b"Proxy-Authorization: Basic x",
        b"Proxy-Connection: keep-alive",
        b"X-Pagefold-Token: mine",
        b"Cookie: a=b; c=d",
        b"X-Name: J\xc3\xb6rg",
        b"Content-Length: %d" % len(body),
    ]
    with proxied(answers(whole(b""))) as (_, url, model):
        say(url, b"\r\n".join(head) + b"\r\n\r\n" + body)

    (received,) = model.received
    assert received.line == head[0] + b"\r\n"
    assert received.body == body
    assert received.headers == [
        (b"host", urlsplit(model.url).netloc.encode()),
        (b"x-api-key", b"sk-1"),
        (b"anthropic-beta", b"one"),
        (b"content-type", b"application/json"),
        (b"anthropic-beta", b"two, three"),
        (b"cookie", b"a=b; c=d"),
        (b"x-name", b"J\xc3\xb6rg"),
        (b"content-length", b"%d" % len(body)),
    ]


def test_nothing_is_added_to_a_bare_request() -> None:
    with proxied(answers(whole(b""))) as (_, url, model):
        say(url, b"GET / HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")

    assert [name for name, _ in model.received[0].headers] == [b"host"]


def test_a_chunked_request_arrives_with_the_same_bytes() -> None:
    sent = b"POST /v1/messages HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nTransfer-Encoding: chunked\r\n\r\n"
    with proxied(answers(whole(ANSWER))) as (_, url, model):
        say(url, sent + chunk(QUESTION[:20]) + chunk(QUESTION[20:]) + b"0\r\n\r\n")

    assert model.received[0].body == QUESTION


@pytest.mark.parametrize("size", [100, 3_000_000])
def test_a_long_request_arrives_whole(size: int) -> None:
    body = QUESTION + b" " * size
    with proxied(answers(whole(ANSWER))) as (proxy, url, model):
        assert ask(url, body=body)[2] == ANSWER

    assert hashlib.sha256(model.received[0].body).digest() == hashlib.sha256(body).digest()
    assert (proxy.totals.usage, proxy.totals.bytes_up, proxy.totals.unread) == (USAGE, len(body), {})


@pytest.mark.parametrize("chunked", [True, False])
def test_a_request_beyond_the_bound_is_streamed_through_unread(chunked: bool) -> None:
    body = bytes(300_000)
    with proxied(answers(whole(ANSWER)), read_bytes=1000) as (proxy, url, model), connected(url) as connection:
        connection.request(
            "POST",
            "/v1/messages",
            iter([body]),
            {} if chunked else {"content-length": "300000"},
            encode_chunked=chunked,
        )
        assert connection.getresponse().read() == ANSWER

    assert model.received[0].body == body
    assert proxy.totals.unread == {"request too large": 1}
    assert proxy.totals.bytes_up == 300_000


def test_a_client_that_waits_for_permission_gets_it() -> None:
    head = b"POST /v1/messages HTTP/1.1\r\nHost: localhost\r\nExpect: 100-continue\r\nConnection: close\r\n"
    with proxied(answers(whole(ANSWER))) as (_, url, model):
        reply = say(url, head + b"Content-Length: %d\r\n\r\n" % len(QUESTION) + QUESTION)

    assert reply.endswith(ANSWER)
    assert model.received[0].body == QUESTION
