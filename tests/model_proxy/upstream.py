"""An upstream that answers in raw bytes, and a client that reads raw bytes: both ends of a proxy on loopback."""

import http.client
import json
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from urllib.parse import urlsplit

from pagefold.derive.policy import Policy
from pagefold.model_proxy.conversations import Conversations
from pagefold.model_proxy.proxy import Proxy
from pagefold.model_proxy.server import running
from pagefold.model_proxy.upstreams import Upstreams
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
        proxy = Proxy(Upstreams({"anthropic": model.url}), Conversations(POLICY[0]), **settings)  # type: ignore[arg-type]
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
