"""SIGHUP: new settings for new requests, while a stream goes on with those it began with."""

import http.client
import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import IO
from urllib.parse import urlsplit

import pytest

from tests.cli.program import SOURCE
from tests.model_proxy.upstream import EVENTS, QUESTION, STREAM_HEAD, upstream

SOON = 20.0
pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="Windows has no SIGHUP")


@contextmanager
def serving(folder: Path, *arguments: str) -> Iterator[tuple[str, "subprocess.Popen[str]"]]:
    command = [sys.executable, "-m", "pagefold", "serve", "--port", "0", "--json", *arguments]
    environment = {"HOME": str(folder), "PATH": os.environ["PATH"], "PYTHONPATH": SOURCE}
    pipes = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    with subprocess.Popen(command, cwd=folder, env=environment, text=True, **pipes) as process:  # type: ignore[call-overload]
        try:
            yield json.loads(process.stdout.readline())["url"], process
        finally:
            process.terminate()
            process.communicate(timeout=SOON)


def ask(url: str) -> http.client.HTTPResponse:
    connection = http.client.HTTPConnection(urlsplit(url).netloc, timeout=SOON)
    connection.request("POST", "/v1/messages", QUESTION, {"connection": "close"})
    return connection.getresponse()


def write(file: Path, address: str, more: str = "") -> None:
    file.write_text(f'[serve]\nanthropic_url = "{address}"\n{more}', "utf-8")


def line_with(words: str, stream: IO[str] | None) -> str:
    while stream is not None and (line := stream.readline()):
        if words in line:
            return line
    raise AssertionError(f"it ended without saying {words!r}")


def test_a_reload_drops_no_stream_and_new_requests_have_the_new_settings(tmp_path: Path) -> None:
    go_on = threading.Event()

    def slowly(connection: socket.socket) -> None:
        connection.sendall(STREAM_HEAD + b"%x\r\n%b\r\n" % (len(EVENTS[0]), EVENTS[0]))
        go_on.wait(SOON)
        rest = b"".join(EVENTS[1:])
        connection.sendall(b"%x\r\n%b\r\n0\r\n\r\n" % (len(rest), rest))

    def at_once(connection: socket.socket) -> None:
        connection.sendall(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n{}")

    file = tmp_path / "server.toml"
    with upstream(slowly) as old, upstream(at_once) as new:
        write(file, old.url)
        with serving(tmp_path, "--config", str(file)) as (url, process):
            streaming = ask(url)
            first = streaming.read1()
            write(file, new.url)
            process.send_signal(signal.SIGHUP)
            line_with("settings were reloaded", process.stderr)
            with closing(ask(url)) as answer:
                assert answer.read() == b"{}"
            write(file, new.url, "port = 'many'")
            process.send_signal(signal.SIGHUP)
            refused = line_with("not reloaded", process.stderr)
            assert "server.toml:3: serve.port" in refused
            with closing(ask(url)) as answer:
                assert answer.read() == b"{}"
            go_on.set()
            with closing(streaming):
                assert first + streaming.read() == b"".join(EVENTS)
            time.sleep(0.2)  # the first proxy is idle now, and closed
            process.terminate()
            told = json.loads(line_with("requests", process.stdout))
    assert (told["requests"], told["failed"], told["faults"]) == (3, 0, 0)
    assert (len(old.received), len(new.received)) == (1, 2)
