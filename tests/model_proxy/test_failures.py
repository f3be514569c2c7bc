"""Upstreams that break off, clients that leave, and faults of pagefold itself."""

import http.client
import json
import socket
import struct
import threading
from collections.abc import Callable
from typing import Any, NoReturn
from urllib.parse import urlsplit

import pytest

from pagefold.adapters.asgi import Event, Receive, Send
from pagefold.errors import StoreError
from pagefold.model_proxy.conversations import Conversations
from pagefold.model_proxy.exchange import Exchange
from pagefold.model_proxy.proxy import Proxy
from pagefold.model_proxy.server import running
from pagefold.model_proxy.upstreams import Upstreams
from tests.model_proxy.upstream import (
    ANSWER,
    EVENTS,
    PATIENCE,
    QUESTION,
    STREAM_HEAD,
    HangUp,
    answers,
    ask,
    chunk,
    connected,
    proxied,
    upstream,
    whole,
)

pytestmark = pytest.mark.usefixtures("policy")


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
    with running(Proxy(Upstreams({"anthropic": f"http://127.0.0.1:{port}"}))) as url:
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
    sent = b"POST /v1/messages HTTP/1.1\r\nHost: localhost\r\nContent-Length: 99\r\n\r\n" + bytes(20)
    done = threading.Event()

    class Told(Proxy):
        async def __call__(self, scope: Event, receive: Receive, send: Send) -> None:
            await super().__call__(scope, receive, send)
            done.set() if scope["type"] == "http" else None

    with (
        upstream(answers(whole(b""))) as model,
        running(proxy := Told(Upstreams({"anthropic": model.url}), read_bytes=read_bytes)) as url,
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


def test_a_fault_of_the_store_is_not_said_to_be_one_of_pagefold(capfd: pytest.CaptureFixture[str]) -> None:
    def exchange(*given: Any, **more: Any) -> Exchange:
        raise StoreError("no such bucket: sk-planted", kind="objects failing")

    with proxied(answers(whole(ANSWER)), exchange=exchange) as (_, url, _):
        assert ask(url)[2] == ANSWER

    assert "a fault of the store (objects failing), reported once" in (printed := capfd.readouterr().err)
    assert "sk-planted" not in printed


class Faulty(Exchange):
    """Raises, with the client's own words, at a step of its observing."""

    step = ""

    def answer_began(self, *answer: Any, **more: Any) -> None:
        super().answer_began(*answer, **more)
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
