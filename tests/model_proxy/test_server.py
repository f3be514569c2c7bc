"""The driver, over real loopback sockets: what goes through is compared byte for byte, on either side."""

import asyncio
import gzip
import hashlib
import http.client
import json
import shutil
import signal
import socket
import ssl
import struct
import subprocess
import sys
import threading
import zlib
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NoReturn
from urllib.parse import urlsplit

import aiohttp
import pytest
import zstandard

from pagefold.derive.policies import policy_named
from pagefold.derive.policy import Policy
from pagefold.errors import ConfigError
from pagefold.model_proxy.conversations import Conversations
from pagefold.model_proxy.exchange import Exchange
from pagefold.model_proxy.http import Event, Receive, Send, Upstreams
from pagefold.model_proxy.scripted import Call, ScriptedModel, Turn
from pagefold.model_proxy.server import Proxy, Tls, running, serve
from pagefold.wire.message import Usage

PATIENCE = 20
QUESTION = json.dumps({"model": "claude-sonnet-4-5", "messages": [{"role": "user", "content": "Hi"}]}).encode()
ANSWER = b'{"model":"m","content":[],"stop_reason":"end_turn","usage":{"input_tokens":5,"output_tokens":2}}'
EVENTS = [
    b'event: message_start\ndata: {"type":"message_start","message":{"model":"m","usage":{"input_tokens":5}}}\n\n',
    b'event: message_delta\ndata: {"type":"message_delta","delta":{},"usage":{"output_tokens":2}}\n\n',
    b'event: message_stop\ndata: {"type":"message_stop"}\n\n',
]
STREAM_HEAD = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n"
USAGE = Usage(fresh=5, output=2)


POLICY: list[Policy | None] = [None]


@pytest.fixture(params=["observe", "lossless"], autouse=True)
def policy(request: pytest.FixtureRequest) -> Iterator[None]:
    """Whatever goes through, goes through a proxy that changes nothing and through one that may."""
    POLICY[0] = None if request.param == "observe" else policy_named(request.param)
    yield
    POLICY[0] = None


# ---- both ends, in raw bytes


class HangUp(Exception):  # noqa: N818 - no error: an upstream's way to end a connection
    pass


@dataclass(frozen=True)
class Received:
    line: bytes
    headers: list[tuple[bytes, bytes]]
    body: bytes


@dataclass
class Upstream:
    """Answers whatever it is asked by writing bytes to the socket; keeps what it received."""

    answer: Callable[[socket.socket], None]
    received: list[Received] = field(default_factory=list)
    connections: int = 0
    url: str = ""

    def serve_one(self, connection: socket.socket) -> None:
        with suppress(HangUp), connection, connection.makefile("rb") as stream:
            while line := stream.readline():
                headers: list[tuple[bytes, bytes]] = []
                while (header := stream.readline()) not in (b"\r\n", b""):
                    name, _, value = header.partition(b":")
                    headers.append((name.lower(), value.strip()))
                known = dict(headers)
                if known.get(b"transfer-encoding") == b"chunked":
                    body = b""
                    while size := int(stream.readline(), 16):
                        body += stream.read(size)
                        stream.readline()
                    stream.readline()
                else:
                    body = stream.read(int(known.get(b"content-length", 0)))
                self.received.append(Received(line, headers, body))
                self.answer(connection)


@contextmanager
def upstream(answer: Callable[[socket.socket], None]) -> Iterator[Upstream]:
    """Ends when its clients have closed their connections."""
    one = Upstream(answer)
    threads: list[threading.Thread] = []

    def accept() -> None:
        while True:
            connection, _ = listening.accept()
            if connection.getpeername() == closing:
                connection.close()
                return
            one.connections += 1
            threads.append(threading.Thread(target=one.serve_one, args=(connection,)))
            threads[-1].start()

    closing: object = None
    with socket.create_server(("127.0.0.1", 0), backlog=100) as listening:
        one.url = f"http://127.0.0.1:{listening.getsockname()[1]}"
        accepting = threading.Thread(target=accept)
        accepting.start()
        try:
            yield one
        finally:
            with socket.socket() as last:
                last.bind(("127.0.0.1", 0))
                closing = last.getsockname()
                last.connect(listening.getsockname())
                accepting.join()
            for thread in threads:
                thread.join()


def answers(*pieces: bytes) -> Callable[[socket.socket], None]:
    return lambda connection: connection.sendall(b"".join(pieces))


def whole(body: bytes, *headers: bytes, status: bytes = b"200 OK") -> bytes:
    lines = [b"HTTP/1.1 " + status, *headers, b"content-length: %d" % len(body)]
    return b"\r\n".join(lines) + b"\r\n\r\n" + body


def chunk(data: bytes) -> bytes:
    return b"%x\r\n%s\r\n" % (len(data), data)


@contextmanager
def proxied(answer: Callable[[socket.socket], None], **settings: object) -> Iterator[tuple[Proxy, str, Upstream]]:
    with upstream(answer) as model:
        proxy = Proxy(Upstreams(model.url), Conversations(POLICY[0]), **settings)  # type: ignore[arg-type]
        with running(proxy) as url:
            yield proxy, url, model


@contextmanager
def connected(url: str) -> Iterator[http.client.HTTPConnection]:
    connection = http.client.HTTPConnection(urlsplit(url).netloc, timeout=PATIENCE)
    try:
        yield connection
    finally:
        connection.close()


def ask(
    url: str, method: str = "POST", path: str = "/v1/messages", body: bytes | None = QUESTION, **headers: str
) -> tuple[int, list[tuple[str, str]], bytes]:
    with connected(url) as connection:
        connection.request(method, path, body, {name.replace("_", "-"): value for name, value in headers.items()})
        response = connection.getresponse()
        return response.status, response.getheaders(), response.read()


def say(url: str, data: bytes) -> bytes:
    """All that comes back for these bytes, until the other side closes."""
    parts = urlsplit(url)
    assert parts.port is not None
    with socket.create_connection(("127.0.0.1", parts.port), timeout=PATIENCE) as connection:
        connection.sendall(data)
        found = b""
        while more := connection.recv(65536):
            found += more
        return found


# ---- the way up


def test_a_request_arrives_as_it_was_sent() -> None:
    body = b'{"messages": [ ],\xff "model":1.10}'
    head = [
        b"POST /v1/messages/..%2Fx;a=b//c?beta=true&x=%20+%7E&&y='\" HTTP/1.1",
        b"Host: example.invalid",
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
        say(url, b"GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")

    assert [name for name, _ in model.received[0].headers] == [b"host"]


def test_a_chunked_request_arrives_with_the_same_bytes() -> None:
    sent = b"POST /v1/messages HTTP/1.1\r\nHost: x\r\nConnection: close\r\nTransfer-Encoding: chunked\r\n\r\n"
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
    head = b"POST /v1/messages HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\nConnection: close\r\n"
    with proxied(answers(whole(ANSWER))) as (_, url, model):
        reply = say(url, head + b"Content-Length: %d\r\n\r\n" % len(QUESTION) + QUESTION)

    assert reply.endswith(ANSWER)
    assert model.received[0].body == QUESTION


# ---- the way back


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
        ("zstd", zstandard.ZstdCompressor().compress, USAGE),
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


# ---- when something breaks


def close(_: socket.socket) -> None:
    raise HangUp


@pytest.mark.parametrize(
    ("answer", "cause"),
    [
        (close, "it closed the connection before answering"),
        (answers(b"hello\r\n\r\n"), "what it answered is not HTTP"),
    ],
)
def test_no_answer_is_a_502_that_says_why(answer: Callable[[socket.socket], None], cause: str) -> None:
    def only(connection: socket.socket) -> None:
        answer(connection)
        close(connection)

    with proxied(only) as (proxy, url, model):
        status, _, body = ask(url)

    message = f"pagefold got no answer from {urlsplit(model.url).netloc}: {cause}"
    assert (status, json.loads(body)) == (502, {"type": "error", "error": {"type": "api_error", "message": message}})
    assert (proxy.totals.errors, proxy.totals.failed) == ({"unreachable": 1}, 1)


def test_an_upstream_that_is_not_there_is_a_502() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    with running(Proxy(Upstreams(f"http://127.0.0.1:{port}"))) as url:
        status, _, body = ask(url)

    assert (status, json.loads(body)["error"]["message"]) == (
        502,
        f"pagefold got no answer from 127.0.0.1:{port}: Connection refused",
    )


def reset(connection: socket.socket) -> None:
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    raise HangUp


@pytest.mark.parametrize("hang_up", [close, reset])
@pytest.mark.parametrize(
    "head",
    [STREAM_HEAD + chunk(EVENTS[0]), b"HTTP/1.1 200 OK\r\ncontent-length: 999\r\n\r\n" + EVENTS[0]],
    ids=["chunked", "with a length"],
)
def test_an_upstream_that_breaks_off_ends_the_client_the_same_way(
    head: bytes, hang_up: Callable[[socket.socket], None]
) -> None:
    arrived = threading.Event()

    def answer(connection: socket.socket) -> None:
        connection.sendall(head)
        assert arrived.wait(PATIENCE)
        hang_up(connection)

    with proxied(answer) as (proxy, url, _), connected(url) as connection:
        connection.request("POST", "/v1/messages", QUESTION)
        response = connection.getresponse()
        first = response.read(len(EVENTS[0]))
        arrived.set()
        with pytest.raises(http.client.IncompleteRead):
            response.read()

    assert first == EVENTS[0]
    assert (proxy.totals.errors, proxy.totals.faults) == ({"cut off": 1}, 0)


@pytest.mark.parametrize("sent", [b"", STREAM_HEAD + chunk(EVENTS[0])], ids=["before the answer", "in mid-stream"])
def test_a_client_that_leaves_ends_the_request_upstream(sent: bytes) -> None:
    asked, noticed = threading.Event(), threading.Event()

    def answer(connection: socket.socket) -> None:
        connection.settimeout(PATIENCE)
        connection.sendall(sent)
        asked.set()
        try:
            if connection.recv(1) == b"":
                noticed.set()
        except ConnectionResetError:
            noticed.set()

    with proxied(answer) as (proxy, url, _):
        with connected(url) as connection:
            connection.request("POST", "/v1/messages", QUESTION)
            assert asked.wait(PATIENCE)
            if sent:
                connection.getresponse().read(len(EVENTS[0]))
        assert noticed.wait(PATIENCE)

    assert (proxy.totals.requests, proxy.totals.abandoned, proxy.totals.failed) == (1, 1, 0)


@pytest.mark.parametrize("read_bytes", [1000, 10])
def test_a_client_that_leaves_while_sending_is_counted(read_bytes: int) -> None:
    sent = b"POST /v1/messages HTTP/1.1\r\nHost: x\r\nContent-Length: 99\r\n\r\n" + bytes(20)
    done = threading.Event()

    class Told(Proxy):
        async def __call__(self, scope: Event, receive: Receive, send: Send) -> None:
            await super().__call__(scope, receive, send)
            done.set() if scope["type"] == "http" else None

    with (
        upstream(answers(whole(b""))) as model,
        running(proxy := Told(Upstreams(model.url), read_bytes=read_bytes)) as url,
    ):
        with socket.create_connection(("127.0.0.1", urlsplit(url).port or 0), timeout=PATIENCE) as connection:
            connection.sendall(sent)
        assert done.wait(PATIENCE)

    assert (proxy.totals.requests, proxy.totals.abandoned, proxy.totals.failed) == (1, 1, 0)
    assert all(received.body != bytes(20) + bytes(79) for received in model.received)


def test_a_fault_in_the_driver_is_counted_and_reported(capfd: pytest.CaptureFixture[str]) -> None:
    with proxied(answers(whole(ANSWER, status=b"799 No such status"))) as (proxy, url, _):
        for _ in range(2):
            with pytest.raises(http.client.RemoteDisconnected):
                ask(url)

    assert proxy.totals.faults == 2
    assert capfd.readouterr().err.count("a fault of pagefold itself") == 1


class Faulty(Exchange):
    """Raises, with the client's own words, at a step of its observing."""

    step = ""

    def answer_began(self, status: int, content_type: str, *, legible: bool = True) -> None:
        super().answer_began(status, content_type, legible=legible)
        self.break_at("began")

    def hear(self, data: bytes) -> None:
        self.break_at("hear")

    def break_at(self, step: str) -> None:
        if step == self.step:
            raise ZeroDivisionError(f"sk-planted {self._body!r}")

    def finish(self, *_: object, **__: object) -> NoReturn:
        raise KeyError("sk-planted")


@pytest.mark.parametrize("step", ["begin", "began", "hear", "finish"])
def test_a_fault_of_ours_never_reaches_the_client(step: str, capfd: pytest.CaptureFixture[str]) -> None:
    def exchange(method: str, path: str, body: bytes | None, conversations: Conversations, **more: Any) -> Exchange:
        if step == "begin":
            raise RuntimeError("sk-planted")
        one = Faulty(method, path, body, conversations)
        one.step = step
        return one

    sent = STREAM_HEAD + b"".join(map(chunk, EVENTS)) + b"0\r\n\r\n"
    with proxied(answers(sent), exchange=exchange) as (proxy, url, _):
        for _ in range(2):
            assert ask(url)[2] == b"".join(EVENTS)
        status = ask(url, "GET", "/pagefold/status", None)[2]

    printed = capfd.readouterr().err
    assert json.loads(status)["faults"] == 2
    assert (proxy.totals.requests, proxy.totals.bytes_down) == (2, 2 * len(b"".join(EVENTS)))
    assert printed.count("a fault of pagefold itself") == 1
    assert "sk-planted" not in printed
    assert b"sk-planted" not in status


def test_secrets_are_passed_on_and_written_nowhere(capfd: pytest.CaptureFixture[str]) -> None:
    secret = "sk-ant-planted-7781"
    bodies = [
        json.dumps({"model": "m", "messages": [{"role": "user", "content": secret}], "metadata": secret}).encode(),
        json.dumps({"model": secret, "messages": [{"role": secret}]}).encode(),
        secret.encode(),
    ]
    error = json.dumps({"error": {"type": f"{secret}!", "message": secret}}).encode()
    replies = iter([whole(ANSWER), whole(error, status=b"400 No"), b"HTTP/1.1 banana\r\n\r\n"])

    with proxied(lambda connection: connection.sendall(next(replies))) as (_, url, model):
        answered = [ask(url, path=f"/v1/messages?key={secret}", body=body, x_api_key=secret) for body in bodies]
        status = ask(url, "GET", "/pagefold/status", None)[2]

    assert [dict(received.headers)[b"x-api-key"].decode() for received in model.received] == [secret] * 3
    assert [found[0] for found in answered] == [200, 400, 502]
    assert secret.encode() not in status + answered[2][2]
    assert capfd.readouterr() == ("", "")


# ---- who may ask, and where it goes


def test_a_token_is_asked_for_and_stripped() -> None:
    with proxied(answers(whole(ANSWER)), token="open sesame") as (_, url, model):
        for path in ("/v1/messages", "/pagefold/status", "/"):
            status, _, body = ask(url, path=path)
            assert (status, json.loads(body)["error"]["type"]) == (401, "authentication_error")
            assert ask(url, path=path, x_pagefold_token="open")[0] == 401
        assert ask(url, "GET", "/pagefold/health", None)[0] == 200
        assert model.received == []

        assert ask(url, x_pagefold_token="open sesame")[0] == 200
        assert ask(url, "GET", "/pagefold/status", None, x_pagefold_token="open sesame")[0] == 200

    assert b"x-pagefold-token" not in dict(model.received[0].headers)


def test_whoever_looks_leaves_no_call_behind() -> None:
    """Else the more often somebody looks, the fewer are counted at a time."""

    class Ended:
        held = 0

        def count(self) -> None:
            pass

    class Counting(Proxy):
        calls = 0

        def _tell(self) -> None:
            self.calls += 1
            super()._tell()

    async def looked_at() -> list[int]:
        proxy, calls = Counting(Upstreams("http://127.0.0.1:9")), []
        for _ in range(2):
            for _ in range(20):
                proxy.ended(Ended())  # type: ignore[arg-type]
                proxy.count_ended()
            await asyncio.sleep(0.2)
            calls.append(proxy.calls)
        return calls

    assert asyncio.run(looked_at()) == [1, 2]


def test_what_ends_after_somebody_looked_is_counted_without_another_look() -> None:
    counted: list[int] = []

    class Ended:
        held = 0

        def count(self) -> None:
            counted.append(1)

    async def looked_at() -> list[int]:
        proxy, so_far = Proxy(Upstreams("http://127.0.0.1:9")), []
        proxy.ended(Ended())  # type: ignore[arg-type]
        await asyncio.sleep(0.04)
        proxy.catch_up()
        so_far.append(len(counted))
        proxy.ended(Ended())  # type: ignore[arg-type]
        await asyncio.sleep(0.3)
        return [*so_far, len(counted)]

    assert asyncio.run(looked_at()) == [1, 2]


def test_pagefold_answers_for_itself_and_counts_none_of_it() -> None:
    with proxied(answers(whole(ANSWER))) as (_, url, model):
        ask(url)
        assert ask(url, "GET", "/pagefold/health", None)[::2] == (200, b'{"status":"ok"}')
        assert ask(url, "GET", "/pagefold/else", None)[0] == 404
        status = json.loads(ask(url, "GET", "/pagefold/status", None)[2])

    assert (len(model.received), status["requests"], status["by_model"]["m"]["usage"]["fresh"]) == (1, 1, 5)


def test_a_websocket_is_refused_at_once() -> None:
    head = b"GET /v1/responses HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"
    with proxied(answers(whole(ANSWER))) as (_, url, model):
        reply = say(url, head + b"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n")

    assert reply.startswith(b"HTTP/1.1 426 ")
    assert b"upgrades to nothing else" in reply
    assert model.received == []


@pytest.mark.parametrize(("body", "status"), [(b"", b"200"), (QUESTION, b"426")])
def test_an_offer_of_another_protocol_is_passed_over_where_nothing_hangs_on_it(body: bytes, status: bytes) -> None:
    head = b"POST /v1/messages HTTP/1.1\r\nHost: x\r\nConnection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\n"
    with proxied(answers(whole(ANSWER))) as (_, url, model):
        reply = say(url, head + b"HTTP2-Settings: x\r\nContent-Length: %d\r\n\r\n" % len(body) + body)

    assert reply.startswith(b"HTTP/1.1 " + status)
    assert b"\r\nconnection: close\r\n" in reply
    assert len(model.received) == (status == b"200")


@pytest.mark.parametrize(
    ("target", "arrives"),
    [
        (b"http://evil.invalid/v1/messages?a=b", b"/v1/messages?a=b"),
        (b"//evil.invalid/v1/messages", b"//evil.invalid/v1/messages"),
        (b"/@evil.invalid:80/", b"/@evil.invalid:80/"),
        (b"/\\evil.invalid", b"/\\evil.invalid"),
        (b"/http://evil.invalid/", b"/http://evil.invalid/"),
        (b"/../..", b"/../.."),
        (b"*", b""),
        (b"evil.invalid:80", b""),
        (b"@evil.invalid/", b""),
        (b"/\xff", b""),
    ],
)
def test_whatever_the_target_it_goes_to_the_upstream_or_nowhere(target: bytes, arrives: bytes) -> None:
    with proxied(answers(whole(b"ok"))) as (_, url, model):
        reply = say(url, b"GET " + target + b" HTTP/1.1\r\nHost: evil.invalid\r\nConnection: close\r\n\r\n")

    assert reply.startswith(b"HTTP/1.1 200" if arrives else b"HTTP/1.1 400")
    assert [received.line.split()[1] for received in model.received] == ([arrives] if arrives else [])


@pytest.mark.parametrize(
    ("path", "headers", "expected"),
    [
        (b"/v1/messages", [], "https://a.example/v1/messages"),
        (b"/v1/messages/count_tokens", [], "https://a.example/v1/messages/count_tokens"),
        (b"/v1/complete", [], "https://a.example/v1/complete"),
        (b"/v1/chat/completions", [], "http://o.example:81/base/v1/chat/completions"),
        (b"/v1/responses/r_1", [], "http://o.example:81/base/v1/responses/r_1"),
        (b"/v1/embeddings", [], "http://o.example:81/base/v1/embeddings"),
        (b"/v1/completions", [], "http://o.example:81/base/v1/completions"),
        (b"/v1/models", [(b"anthropic-version", b"2023-06-01")], "https://a.example/v1/models"),
        (b"/v1/models", [], "http://o.example:81/base/v1/models"),
        (b"/v1/responsesx", [], "https://a.example/v1/responsesx"),
        (b"/", [], "https://a.example/"),
    ],
)
def test_each_path_has_its_upstream(path: bytes, headers: list[tuple[bytes, bytes]], expected: str) -> None:
    upstreams = Upstreams("https://a.example", "http://o.example:81/base/")

    assert str(upstreams.target(path, b"", headers)) == expected


def test_without_an_openai_address_its_keys_go_nowhere() -> None:
    with proxied(answers(whole(ANSWER))) as (_, url, model):
        assert ask(url, path="/v1/chat/completions")[0] == 404
        assert ask(url, "GET", "/v1/models", None)[0] == 200

    assert len(model.received) == 1


def test_a_header_that_cannot_be_passed_on_is_refused() -> None:
    with proxied(answers(whole(ANSWER))) as (_, url, model):
        reply = say(url, b"GET / HTTP/1.1\r\nHost: x\r\nX-Name: J\xf6rg\r\nConnection: close\r\n\r\n")

    assert reply.startswith(b"HTTP/1.1 400 ")
    assert model.received == []


# ---- starting and stopping


def test_stopping_lets_a_running_stream_end() -> None:
    release = threading.Event()

    def answer(connection: socket.socket) -> None:
        connection.sendall(STREAM_HEAD + chunk(EVENTS[0]))
        assert release.wait(PATIENCE)
        connection.sendall(b"".join(map(chunk, EVENTS[1:])) + b"0\r\n\r\n")

    def read(response: http.client.HTTPResponse, port: int) -> bytes:
        try:
            while True:
                socket.create_connection(("127.0.0.1", port)).close()
        except OSError:
            release.set()
        return response.read()

    with upstream(answer) as model, ThreadPoolExecutor(1) as pool:
        with running(Proxy(Upstreams(model.url))) as url:
            connection = http.client.HTTPConnection(urlsplit(url).netloc, timeout=PATIENCE)
            connection.request("POST", "/v1/messages", QUESTION)
            response = connection.getresponse()
            rest = pool.submit(read, response, urlsplit(url).port or 0)
        assert rest.result(PATIENCE) == b"".join(EVENTS)
        connection.close()


def test_serving_ends_when_it_is_cancelled() -> None:
    async def main() -> int:
        port: asyncio.Future[int] = asyncio.get_running_loop().create_future()
        serving = asyncio.ensure_future(serve(ScriptedModel([]), "127.0.0.1", 0, started=port.set_result))
        found = await port
        assert (await asyncio.to_thread(ask, f"http://127.0.0.1:{found}"))[0] == 200
        serving.cancel()
        with pytest.raises(asyncio.CancelledError):
            await serving
        return found

    port = asyncio.run(main())
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(("127.0.0.1", port))


def test_a_port_in_use_is_named() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(ConfigError) as caught:
            asyncio.run(serve(ScriptedModel([]), "127.0.0.1", port, started=lambda _: None))

    assert str(caught.value) == (
        f"serve.port = {port}: cannot listen on 127.0.0.1 (Address already in use); 0 takes any free port"
    )


@pytest.mark.skipif(sys.platform == "win32", reason="signals")
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_it_and_the_caller_has_the_last_word(number: signal.Signals) -> None:
    program = (
        "from pagefold.model_proxy.http import Upstreams\n"
        "from pagefold.model_proxy.server import Proxy, run\n"
        "proxy = Proxy(Upstreams('http://127.0.0.1:1'))\n"
        "run(proxy, '127.0.0.1', 0, started=lambda port: print(port, flush=True))\n"
        "print('requests', proxy.totals.requests)\n"
    )
    process = subprocess.Popen(
        [sys.executable, "-c", program], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    try:
        assert process.stdout is not None
        assert ask(f"http://127.0.0.1:{int(process.stdout.readline())}")[0] == 502
        process.send_signal(number)
        assert process.communicate(timeout=PATIENCE) == ("requests 1\n", "")
        assert process.returncode == 0
    finally:
        process.kill()
        process.wait()


def test_an_upstream_is_reached_by_the_proxy_that_was_named() -> None:
    with upstream(answers(whole(ANSWER))) as outward:
        proxy = Proxy(Upstreams("http://api.example"), through={"api.example": outward.url})
        with running(proxy) as url:
            assert ask(url)[::2] == (200, ANSWER)

    (received,) = outward.received
    assert (received.line, received.body) == (b"POST http://api.example/v1/messages HTTP/1.1\r\n", QUESTION)
    assert dict(received.headers)[b"host"] == b"api.example"


def test_a_scripted_conversation_goes_through_unchanged() -> None:
    model = ScriptedModel(
        [Turn("Look.", thinking="Hm.", calls=[Call("Bash", {"command": "ls"})], usage=Usage(1, 2, 3, 4))]
    )
    request = json.loads(QUESTION) | {"stream": True, "tools": [{"name": "Bash"}]}
    with running(model) as direct, running(proxy := Proxy(Upstreams(direct))) as url:
        straight = ask(direct, body=json.dumps(request).encode())[2]
        through = ask(url, body=json.dumps(request).encode())[2]

    assert through == straight.replace(b"msg_000001", b"msg_000002")
    assert proxy.totals.usage == Usage(1, 2, 3, 4)
    assert model.requests[0] == model.requests[1]


@pytest.mark.skipif(not shutil.which("openssl"), reason="no openssl to make a certificate with")
def test_with_a_certificate_it_speaks_https_and_only_that(tmp_path: Path) -> None:
    certificate, key = tmp_path / "certificate.pem", tmp_path / "key.pem"
    made = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=localhost"]
    made += ["-addext", "subjectAltName=DNS:localhost", "-keyout", str(key), "-out", str(certificate)]
    subprocess.run(made, check=True, capture_output=True)
    with running(ScriptedModel([])) as upstream:
        proxy, ports = Proxy(Upstreams(upstream)), list[int]()
        tls = Tls(str(certificate), str(key))

        async def asked() -> str:
            serving = asyncio.ensure_future(serve(proxy, "127.0.0.1", 0, started=ports.append, tls=tls))
            while not ports:
                await asyncio.sleep(0.01)
            trusted = ssl.create_default_context(cafile=str(certificate))
            async with aiohttp.ClientSession() as session:
                url = f"://localhost:{ports[0]}/pagefold/health"
                async with session.get(f"https{url}", ssl=trusted) as response:
                    found = await response.text()
                with pytest.raises(aiohttp.ClientError):
                    await session.get(f"http{url}")
            serving.cancel()
            with suppress(asyncio.CancelledError):
                await serving
            return found

        assert asyncio.run(asked()) == '{"status":"ok"}'


def test_what_is_no_certificate_is_named(tmp_path: Path) -> None:
    (tmp_path / "none.pem").write_text("none")
    for file in ("none.pem", "absent.pem"):
        with pytest.raises(ConfigError, match=r"serve\.tls_certificate"):
            Tls(str(tmp_path / file)).check()
