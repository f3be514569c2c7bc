"""Clients over HTTP that do not go on with a head or a body, and very many of them, are hung up on."""

import asyncio
import socket
import threading
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager, suppress

import pytest
from aiohttp import web

from pagefold.mcp_proxy import http

HEAD = b"POST / HTTP/1.1\r\nHost: 127.0.0.1\r\n"
WHOLE = HEAD + b"content-length: 2\r\n\r\n{}"


@contextmanager
def listening() -> Iterator[int]:
    """The port of an endpoint that answers everything."""
    ports: list[int] = []
    ready, ended = threading.Event(), asyncio.Event()
    loop = asyncio.new_event_loop()

    async def answer(request: web.BaseRequest) -> web.StreamResponse:
        return web.Response(body=await request.read())

    def started(port: int) -> None:
        ports.append(port)
        ready.set()

    thread = threading.Thread(
        target=loop.run_until_complete, args=(http.run(answer, 0, started=started, until=ended),), daemon=True
    )
    thread.start()
    assert ready.wait(10)
    yield ports[0]
    loop.call_soon_threadsafe(ended.set)
    thread.join(10)
    loop.close()


def hung_up(client: socket.socket, drop: bytes = b"") -> bytes | None:
    """What came before the end, or None where there was none after five seconds."""
    client.settimeout(0.2)
    found = b""
    for _ in range(25):
        with suppress(TimeoutError):
            try:
                piece = client.recv(1000)
            except ConnectionResetError:
                return found
            if not piece:
                return found
            found += piece
        with suppress(OSError):
            client.sendall(drop)
    return None


@pytest.mark.parametrize(
    ("first", "drop", "answer"),
    [
        (b"", b"", b""),
        (HEAD, b"", b""),
        (HEAD, b"x-a: 1\r\n", b""),
        (b"", b"\r\n", b""),
        (HEAD + b"content-length: 99\r\n\r\n", b"{", b"HTTP/1.1 408"),
        (WHOLE + HEAD, b"x-a: 1\r\n", b"HTTP/1.1 200"),
    ],
    ids=["nothing", "half a head", "a dripping head", "blank lines", "half a body", "half a second head"],
)
def test_who_does_not_go_on_is_hung_up_on(
    first: bytes, drop: bytes, answer: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(http, "_HEAD_SECONDS", 0.8)
    monkeypatch.setattr(http, "_BODY_SECONDS", 0.8)
    with listening() as port, socket.create_connection(("127.0.0.1", port)) as client:
        client.sendall(first)
        found = hung_up(client, drop)
        assert found is not None, "it is still open after six times as long"
        assert found.startswith(answer)


def test_connections_beyond_so_many_are_hung_up_on(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http, "_CONNECTIONS", 4)
    with listening() as port:
        idle = [socket.create_connection(("127.0.0.1", port)) for _ in range(4)]
        time.sleep(0.2)
        with socket.create_connection(("127.0.0.1", port)) as client:
            assert hung_up(client) == b""
        idle[0].sendall(WHOLE)
        assert idle[0].recv(12) == b"HTTP/1.1 200"
        for each in idle:
            each.close()


def test_a_call_that_writes_a_large_file_is_let_through() -> None:
    with listening() as port:
        body = b"x" * (3 << 20)
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/", body, timeout=10) as answer:
            assert answer.read() == body
