"""Connections are capped, half requests time out, and a proxy that is to end says so at once."""

import json
import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from urllib.parse import urlsplit

import pytest

from pagefold.adapters.descriptors import most_connections
from pagefold.model_proxy import server
from pagefold.model_proxy.conversations import Conversations
from pagefold.model_proxy.limited_http import ConnectionLimits
from pagefold.model_proxy.proxy import Proxy
from pagefold.model_proxy.server import Service
from pagefold.model_proxy.upstreams import Upstreams
from tests.model_proxy.upstream import ANSWER, answers, ask, upstream, whole


@contextmanager
def limited(limits: ConnectionLimits) -> Iterator[tuple[Proxy, str]]:
    with upstream(answers(whole(ANSWER))) as model:
        proxy = Proxy(Upstreams({"anthropic": model.url}), Conversations(), limits=limits)
        with server.running(proxy, service=Service(limits=limits)) as url:
            yield proxy, url


def connection(url: str) -> socket.socket:
    parts = urlsplit(url)
    return socket.create_connection((parts.hostname, parts.port or 80), timeout=10)


def test_one_client_too_many_gets_503_and_is_served_when_another_left() -> None:
    limits = ConnectionLimits(connections=3)
    with limited(limits) as (_, url):
        idle = [connection(url) for _ in range(3)]
        while limits.open < 3:
            time.sleep(0.01)
        status, headers, _ = ask(url)
        assert (status, dict(headers)["retry-after"]) == (503, "2")
        flood = [connection(url) for _ in range(40)]
        time.sleep(0.2)
        assert limits.open <= 3 + 16 + 1
        for each in (*flood, *idle):
            each.close()
        ends = time.monotonic() + 5
        while limits.open and time.monotonic() < ends:
            time.sleep(0.01)
        assert ask(url)[2] == ANSWER
    assert limits.refused["too many"] >= 41


def test_half_a_head_and_half_a_body_time_out() -> None:
    limits = ConnectionLimits(head_seconds=1.5, body_seconds=2.0)
    with limited(limits) as (proxy, url):
        head, body = connection(url), connection(url)
        head.sendall(b"POST /v1/messages HTTP/1.1\r\nHost: 127.0.0.1\r\n")
        body.sendall(b"POST /v1/messages HTTP/1.1\r\nHost: 127.0.0.1\r\ncontent-length: 99\r\n\r\n{")
        assert head.recv(100).startswith(b"HTTP/1.1 408")
        assert body.recv(100) == b""
        assert ask(url)[2] == ANSWER  # others are served
        for each in (head, body):
            each.close()
    assert limits.refused == {"slow head": 1, "slow body": 1}
    assert proxy.totals.faults == 0


HEAD = b"POST /v1/messages HTTP/1.1\r\nHost: 127.0.0.1\r\n"
CHUNKED = HEAD + b"transfer-encoding: chunked\r\n\r\n"


@pytest.mark.parametrize(
    ("first", "drop", "refused"),
    [
        (HEAD, b"x-a: 1\r\n", "slow head"),
        (b"", b"\r\n", ""),
        (b"\r\n", b"", ""),
        (CHUNKED, b"1\r\n{\r\n", "slow body"),
        (CHUNKED + b"2\r\n{}\r\n0\r\n", b"x-a: 1\r\n", "slow body"),
        (HEAD + b"content-length: 99\r\n\r\n", b"{", "slow body"),
    ],
    ids=["head", "blank lines", "a blank line", "chunks", "trailers", "body"],
)
def test_what_drips_in_is_hung_up_on_as_what_stops_is(first: bytes, drop: bytes, refused: str) -> None:
    limits = ConnectionLimits(head_seconds=0.8, body_seconds=0.8)
    with limited(limits) as (_, url):
        client = connection(url)
        client.sendall(first)
        client.settimeout(0.2)
        answer = None
        for _ in range(40):
            with suppress(TimeoutError):
                answer = client.recv(100)
                break
            with suppress(OSError):
                client.sendall(drop)
        assert answer is not None, "it is still open after ten times as long"
        client.close()
    assert +limits.refused == ({refused: 1} if refused else {})


def test_a_body_that_goes_on_has_all_the_time() -> None:
    limits = ConnectionLimits(head_seconds=0.8, body_seconds=0.8)
    with limited(limits) as (_, url):
        client = connection(url)
        client.sendall(HEAD + b"content-length: 24576\r\nconnection: close\r\n\r\n")
        for _ in range(12):
            client.sendall(b" " * 2048)
            time.sleep(0.1)
        assert client.recv(100).startswith(b"HTTP/1.1 200")
        client.close()
    assert not +limits.refused


def test_a_head_that_is_too_large_is_refused() -> None:
    limits = ConnectionLimits()
    with limited(limits) as (_, url):
        client = connection(url)
        client.sendall(HEAD + b"x-a: ")
        with suppress(OSError):
            for _ in range(40):
                client.sendall(b"a" * 65_536)
        with suppress(ConnectionResetError):
            assert client.recv(12) in (b"HTTP/1.1 431", b"")
        client.close()
        ends = time.monotonic() + 5
        while limits.open and time.monotonic() < ends:
            time.sleep(0.01)
    assert limits.refused == {"large head": 1}


def test_live_and_ready_are_told_and_ready_ends_at_once() -> None:
    with limited(ConnectionLimits()) as (proxy, url):
        status, _, body = ask(url, "GET", "/live", None)
        assert (status, json.loads(body)["program"]) == (200, "pagefold")
        assert ask(url, "GET", "/pagefold/ready", None)[::2] == (200, b'{"status":"ready","store":"ok"}')
        proxy.drain()
        status, _, body = ask(url, "GET", "/ready", None)
        assert (status, json.loads(body)["status"]) == (503, "draining")
        assert ask(url)[2] == ANSWER


def test_few_descriptors_leave_room_for_the_upstreams() -> None:
    assert [most_connections(count) for count in (20, 64, 1_024, 1 << 30)] == [4, 8, 488, 10_000]
