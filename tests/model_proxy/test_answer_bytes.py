"""Over real loopback sockets: an answer reaches the client with the bytes the upstream sent."""

import gzip
import json
import socket
import threading
import zlib
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import pytest

from pagefold import zstd
from pagefold.model_proxy.proxy import Proxy
from pagefold.model_proxy.server import running
from pagefold.model_proxy.upstreams import Upstreams
from pagefold.wire.message import Usage
from tests.model_proxy.upstream import (
    ANSWER,
    EVENTS,
    PATIENCE,
    QUESTION,
    STREAM_HEAD,
    USAGE,
    answers,
    ask,
    chunk,
    connected,
    proxied,
    upstream,
    whole,
)
from tests.scripted_model import ScriptedCall, ScriptedModel, ScriptedTurn

pytestmark = pytest.mark.usefixtures("policy")


def test_an_answer_comes_back_as_it_was_sent() -> None:
    sent = whole(
        b"\x00\xff body",
        b"Date: Thu, 01 Jan 1970 00:00:00 GMT",
        b"Set-Cookie: a=1; Path=/",
        b"request-id: req_1",
        b"Set-Cookie: b=2",
        b"Keep-Alive: timeout=5",
        b"Server: them",
        b"anthropic-ratelimit-requests-remaining: 7",
        status=b"418 Short and stout",
    )
    with proxied(answers(sent)) as (_, url, model):
        status, headers, body = ask(url)
        ask(url)

    assert (status, body) == (418, b"\x00\xff body")
    assert [header for header in headers if not header[0].startswith("x-pagefold")] == [
        ("date", "Thu, 01 Jan 1970 00:00:00 GMT"),
        ("set-cookie", "a=1; Path=/"),
        ("request-id", "req_1"),
        ("set-cookie", "b=2"),
        ("server", "them"),
        ("anthropic-ratelimit-requests-remaining", "7"),
        ("content-length", "7"),
    ]
    assert not any(name == b"cookie" for name, _ in model.received[1].headers)


def test_the_first_event_is_there_before_the_second_is_sent() -> None:
    got_first, release = threading.Event(), []

    def answer(connection: socket.socket) -> None:
        connection.sendall(STREAM_HEAD + chunk(EVENTS[0]))
        release.append(got_first.wait(PATIENCE))
        connection.sendall(b"".join(map(chunk, EVENTS[1:])) + b"0\r\n\r\n")

    with proxied(answer) as (proxy, url, _), connected(url) as connection:
        connection.request("POST", "/v1/messages", QUESTION)
        response = connection.getresponse()
        first = response.read(len(EVENTS[0]))
        got_first.set()
        rest = response.read()

    assert (first, rest, release) == (EVENTS[0], b"".join(EVENTS[1:]), [True])
    assert (proxy.totals.streamed, proxy.totals.usage, proxy.totals.failed) == (1, USAGE, 0)


@pytest.mark.parametrize(
    ("encoding", "encode", "usage"),
    [
        ("gzip", gzip.compress, USAGE),
        ("deflate", zlib.compress, USAGE),
        ("zstd", zstd.compress, USAGE),
        ("br", bytes, Usage()),
        ("gzip", bytes, Usage()),
    ],
    ids=["gzip", "deflate", "zstd", "br", "not what it says"],
)
def test_an_encoded_answer_is_untouched(encoding: str, encode: Callable[[bytes], bytes], usage: Usage) -> None:
    body = encode(b"".join(EVENTS))
    sent = whole(body, b"content-type: text/event-stream", b"content-encoding: " + encoding.encode())
    with proxied(answers(sent)) as (proxy, url, _):
        _, headers, received = ask(url, accept_encoding=encoding)

    assert (received, dict(headers)["content-encoding"]) == (body, encoding)
    assert (proxy.totals.usage, proxy.totals.faults, proxy.totals.failed) == (usage, 0, 0)
    assert proxy.totals.unread == ({} if usage.output else {"answer in an encoding that is not read": 1})


@pytest.mark.parametrize(
    ("status", "kind"),
    [
        (b"400 Bad Request", "invalid_request_error"),
        (b"401 Unauthorized", "authentication_error"),
        (b"429 Too Many Requests", "rate_limit_error"),
        (b"529 ", "overloaded_error"),
    ],
)
def test_an_error_is_relayed_with_what_the_client_needs_to_retry(status: bytes, kind: str) -> None:
    body = json.dumps({"type": "error", "error": {"type": kind, "message": "no"}}).encode()
    with proxied(answers(whole(body, b"retry-after: 17", b"x-should-retry: true", status=status))) as (proxy, url, _):
        found, headers, received = ask(url)

    assert (found, received) == (int(status[:3]), body)
    assert [dict(headers)[name] for name in ("retry-after", "x-should-retry")] == ["17", "true"]
    assert (proxy.totals.failed, proxy.totals.errors) == (1, {kind: 1})


@pytest.mark.parametrize("method", ["GET", "HEAD", "OPTIONS", "DELETE", "PUT", "PATCH"])
def test_every_method_passes(method: str) -> None:
    with proxied(answers(whole(b"" if method == "HEAD" else b"{}", b"x-a: b"))) as (_, url, model):
        status, headers, body = ask(url, method, "/v1/files/file_1?limit=2", None)

    assert (status, dict(headers)["x-a"], body) == (200, "b", b"" if method == "HEAD" else b"{}")
    assert model.received[0].line == method.encode() + b" /v1/files/file_1?limit=2 HTTP/1.1\r\n"


@pytest.mark.parametrize(
    ("method", "sent", "status"),
    [
        ("HEAD", b"HTTP/1.1 200 OK\r\ncontent-length: 1234\r\n\r\n", 200),
        ("GET", b"HTTP/1.1 304 Not Modified\r\ncontent-length: 1234\r\netag: x\r\n\r\n", 304),
        ("DELETE", b"HTTP/1.1 204 No Content\r\n\r\n", 204),
        ("GET", b"HTTP/1.1 307 Temporary Redirect\r\nlocation: http://127.0.0.1:1/\r\ncontent-length: 0\r\n\r\n", 307),
    ],
)
def test_an_answer_without_a_body_ends_cleanly(method: str, sent: bytes, status: int) -> None:
    with proxied(answers(sent)) as (proxy, url, _), connected(url) as connection:
        for _ in range(2):
            connection.request(method, "/")
            response = connection.getresponse()
            assert (response.status, response.read()) == (status, b"")

    assert proxy.totals.faults == 0


def test_connections_are_kept_on_both_sides() -> None:
    with proxied(answers(whole(ANSWER))) as (_, url, model), connected(url) as connection:
        for _ in range(3):
            connection.request("POST", "/v1/messages", QUESTION)
            assert connection.getresponse().read() == ANSWER
            ours = connection.sock.getsockname()
        assert connection.sock.getsockname() == ours

    assert model.connections == 1


def test_fifty_streams_run_side_by_side() -> None:
    together = threading.Barrier(50)

    def answer(connection: socket.socket) -> None:
        connection.sendall(STREAM_HEAD + chunk(EVENTS[0]))
        together.wait(PATIENCE)
        connection.sendall(b"".join(map(chunk, EVENTS[1:])) + b"0\r\n\r\n")

    with proxied(answer) as (proxy, url, _), ThreadPoolExecutor(50) as pool:
        bodies = set(pool.map(lambda _: ask(url)[2], range(50)))

    assert bodies == {b"".join(EVENTS)}
    assert (proxy.totals.requests, proxy.totals.usage.fresh, proxy.totals.failed) == (50, 250, 0)


def test_an_upstream_is_reached_by_the_proxy_that_was_named() -> None:
    with upstream(answers(whole(ANSWER))) as outward:
        proxy = Proxy(Upstreams({"anthropic": "http://api.example"}), http_proxies={"api.example": outward.url})
        with running(proxy) as url:
            assert ask(url)[::2] == (200, ANSWER)

    (received,) = outward.received
    assert (received.line, received.body) == (b"POST http://api.example/v1/messages HTTP/1.1\r\n", QUESTION)
    assert dict(received.headers)[b"host"] == b"api.example"


def test_a_scripted_conversation_goes_through_unchanged() -> None:
    model = ScriptedModel(
        [
            ScriptedTurn(
                "Look.", thinking="Hm.", calls=[ScriptedCall("Bash", {"command": "ls"})], usage=Usage(1, 2, 3, 4)
            )
        ]
    )
    request = json.loads(QUESTION) | {"stream": True, "tools": [{"name": "Bash"}]}
    with running(model) as direct, running(proxy := Proxy(Upstreams({"anthropic": direct}))) as url:
        straight = ask(direct, body=json.dumps(request).encode())[2]
        through = ask(url, body=json.dumps(request).encode())[2]

    assert through == straight.replace(b"msg_000001", b"msg_000002")
    assert proxy.totals.usage == Usage(1, 2, 3, 4)
    assert model.requests[0] == model.requests[1]
