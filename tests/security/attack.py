"""What attacks need: a provider that keeps what it is sent, `pagefold serve` in a folder, and raw requests to it."""

import json
import os
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

Answer = Mapping[str, Any]
DONE: Answer = {
    "id": "msg_1",
    "type": "message",
    "role": "assistant",
    "model": "claude-sonnet-4-5",
    "content": [{"type": "text", "text": "done"}],
    "stop_reason": "end_turn",
    "usage": {"input_tokens": 1, "output_tokens": 1},
}


def calling(tool: str, **arguments: object) -> Answer:
    """An answer in which the model calls a tool."""
    call = {"type": "tool_use", "id": "toolu_1", "name": tool, "input": arguments}
    return {**DONE, "content": [call], "stop_reason": "tool_use"}


class Provider(ThreadingHTTPServer):
    """Answers with what is in `answers`, and then with DONE. `bodies` and `heads` are what it was sent."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.answers: list[Answer] = []
        self.bodies: list[Any] = []
        self.heads: list[dict[str, str]] = []

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        provider = self.server
        assert isinstance(provider, Provider)
        if self.headers.get("transfer-encoding") == "chunked":
            body = b""
            while size := int(self.rfile.readline(), 16):
                body += self.rfile.read(size)
                self.rfile.readline()
            self.rfile.readline()
        else:
            body = self.rfile.read(int(self.headers.get("content-length", "0")))
        provider.bodies.append(json.loads(body))
        provider.heads.append({name.lower(): value for name, value in self.headers.items()})
        answer = json.dumps(provider.answers.pop(0) if provider.answers else DONE).encode()
        self.send_response(200)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(answer)))
        self.end_headers()
        self.wfile.write(answer)

    do_GET = do_POST  # noqa: N815  as the library asks for it

    def log_message(self, format: str, *args: object) -> None:
        pass


@contextmanager
def provider() -> Iterator[Provider]:
    with Provider() as server:
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        yield server
        server.shutdown()


@contextmanager
def serving(folder: Path, upstream: Provider, *flags: str, home: Path | None = None, **more: str) -> Iterator[str]:
    """The address of `pagefold serve`, started in a folder by a user with this home."""
    command = [sys.executable, "-m", "pagefold", "serve", "--port", "0", "--anthropic-url", upstream.url, "--json"]
    environment = {"HOME": str(home or folder), "PATH": os.environ["PATH"], **more}
    with subprocess.Popen([*command, *flags], cwd=folder, env=environment, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        try:
            yield json.loads(process.stdout.readline())["url"]
        finally:
            process.terminate()
            process.stdout.read()


def request_of(result: str, first: str = "Look at it.") -> dict[str, Any]:
    """A conversation in which a tool answered `result`."""
    call = {"type": "tool_use", "id": "toolu_0", "name": "TodoWrite", "input": {}}
    answer = {"type": "tool_result", "tool_use_id": "toolu_0", "content": result}
    messages = [("user", first), ("assistant", [call]), ("user", [answer])]
    said = [{"role": role, "content": content} for role, content in messages]
    tools = [{"name": "TodoWrite", "description": "Writes.", "input_schema": {"type": "object"}}]
    return {"model": "claude-sonnet-4-5", "max_tokens": 100, "tools": tools, "messages": said}


def post(url: str, body: Mapping[str, Any], **headers: str) -> tuple[int, Any]:
    status, text = raw(url, "POST", "/v1/messages", json.dumps(body).encode(), **headers)
    return status, json.loads(text[text.index(b"{") : text.rindex(b"}") + 1])  # it may be chunked


def raw(url: str, method: str, path: str, body: bytes = b"", **headers: str) -> tuple[int, bytes]:
    """The status and body of an answer. Headers are sent as they are given, with - for _; `Host` too."""
    named = {"Host": urlsplit(url).netloc, "Content-Length": str(len(body)), "Connection": "close", **headers}
    head = "".join(f"{name.replace('_', '-')}: {value}\r\n" for name, value in named.items() if value)
    return sent(url, f"{method} {path} HTTP/1.1\r\n{head}\r\n".encode() + body)


def sent(url: str, data: bytes) -> tuple[int, bytes]:
    """The status and body of the answer to these very bytes."""
    place = urlsplit(url)
    assert place.hostname
    assert place.port
    with socket.create_connection((place.hostname, place.port), timeout=30) as connection:
        connection.sendall(data)
        answer = b""
        while piece := connection.recv(65536):
            answer += piece
    head, _, body = answer.partition(b"\r\n\r\n")
    return int(head.split()[1]), body
