"""A bucket on a real server for tests: moto or s3rver, on a free port of loopback, and stopped by its id. A relay in
front of it fails as object storage does."""

import os
import shutil
import socket
import subprocess
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from http.client import HTTPConnection
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from pagefold.settings.sections import SinkSettings

AGENTS = Path(os.environ.get("AGENTS_DIR") or Path(__file__).parents[1] / ".agents").absolute()
BUCKET = "bodies"
SLOW_SECONDS = 1.0
_ANSWERS = {"500": 500, "denied": 403}
_OWN_HEADERS = frozenset(("server", "date", "connection", "transfer-encoding"))


@contextmanager
def running_bucket(name: str, folder: Path) -> Iterator[SinkSettings]:
    """`name` is moto_server or s3rver."""
    path = os.pathsep.join([f"{AGENTS}/venv/bin", f"{AGENTS}/node_modules/.bin", os.environ["PATH"]])
    found = shutil.which(name, path=path)
    if found is None:
        pytest.skip(f"no {name} on PATH or in {AGENTS}: install moto[server] or s3rver there, or set AGENTS_DIR")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    options = {
        "moto_server": ["-H", "127.0.0.1", "-p", str(port)],
        "s3rver": ["-d", str(folder), "-a", "127.0.0.1", "-p", str(port), "--configure-bucket", BUCKET],
    }
    process = subprocess.Popen(
        [found, *options[name]], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env={"PATH": path}
    )
    try:
        endpoint = f"http://127.0.0.1:{port}"
        _wait(endpoint, process)
        if name == "moto_server":
            urllib.request.urlopen(urllib.request.Request(f"{endpoint}/{BUCKET}", method="PUT")).close()
        yield SinkSettings(
            endpoint=endpoint, bucket=BUCKET, access_key="S3RVER", secret_key="S3RVER", timeout_seconds=5.0
        )
    finally:
        process.kill()
        process.wait()


def _wait(endpoint: str, process: subprocess.Popen[bytes]) -> None:
    for _ in range(1000):
        assert process.poll() is None, "the test server ended by itself"
        try:
            urllib.request.urlopen(endpoint, timeout=1).close()
        except urllib.error.HTTPError:
            return
        except OSError:
            time.sleep(0.02)
        else:
            return
    raise AssertionError("the test server did not start within 20 s")


class FaultyBucket:
    """A relay in front of a bucket, whose `fault` is what happens to requests: "", "500", "denied" or "slow"."""

    def __init__(self, settings: SinkSettings) -> None:
        self.fault, self.faults = "", 0
        outer = self

        class Relay(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def handle_one_request(self) -> None:
                with suppress(ConnectionError):  # whoever did not wait for a slow answer has hung up
                    super().handle_one_request()

            def relay(self) -> None:
                body = self.rfile.read(int(self.headers.get("content-length") or 0))
                fault = outer.fault
                outer.faults += bool(fault)
                if fault == "slow":
                    time.sleep(SLOW_SECONDS)
                if fault in _ANSWERS:
                    self.answer(_ANSWERS[fault], b"<Error><Code>Fault</Code></Error>", {})
                    return
                link = HTTPConnection(settings.endpoint.removeprefix("http://"), timeout=10)
                link.putrequest(self.command, self.path, skip_host=True, skip_accept_encoding=True)
                for name, value in self.headers.items():
                    link.putheader(name, value)
                link.endheaders(body or None)
                answer = link.getresponse()
                self.answer(answer.status, answer.read(), dict(answer.getheaders()))
                link.close()

            def answer(self, status: int, body: bytes, headers: dict[str, str]) -> None:
                self.send_response(status)
                for name, value in headers.items():
                    if name.lower() not in _OWN_HEADERS and (
                        self.command == "HEAD" or name.lower() != "content-length"
                    ):
                        self.send_header(name, value)
                if self.command != "HEAD":
                    self.send_header("content-length", str(len(body)))
                self.end_headers()
                self.wfile.write(body if self.command != "HEAD" else b"")

            do_GET = do_PUT = do_POST = do_HEAD = do_DELETE = relay  # noqa: N815  names of http.server

            def log_message(self, format: str, *args: object) -> None: ...

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Relay)
        self._server.daemon_threads = True
        self.settings = replace(settings, endpoint=f"http://127.0.0.1:{self._server.server_address[1]}")
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()
