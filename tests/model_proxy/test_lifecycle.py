"""Starting, stopping, certificates, and when ended exchanges are counted."""

import asyncio
import http.client
import shutil
import signal
import socket
import ssl
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from urllib.parse import urlsplit

import aiohttp
import pytest

from pagefold.errors import ConfigError
from pagefold.model_proxy.proxy import Proxy
from pagefold.model_proxy.server import Service, Tls, running, serve
from pagefold.model_proxy.upstreams import Upstreams
from tests.model_proxy.upstream import EVENTS, PATIENCE, QUESTION, STREAM_HEAD, ask, chunk, upstream
from tests.scripted_model import ScriptedModel

pytestmark = pytest.mark.usefixtures("policy")


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
        with running(Proxy(Upstreams({"anthropic": model.url}))) as url:
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
        "from pagefold.model_proxy.upstreams import Upstreams\n"
        "from pagefold.model_proxy.proxy import Proxy\n"
        "from pagefold.model_proxy.server import run\n"
        "proxy = Proxy(Upstreams({'anthropic': 'http://127.0.0.1:1'}))\n"
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


@pytest.mark.skipif(not shutil.which("openssl"), reason="no openssl to make a certificate with")
def test_with_a_certificate_it_speaks_https_and_only_that(tmp_path: Path) -> None:
    certificate, key = tmp_path / "certificate.pem", tmp_path / "key.pem"
    made = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=localhost"]
    made += ["-addext", "subjectAltName=DNS:localhost", "-keyout", str(key), "-out", str(certificate)]
    subprocess.run(made, check=True, capture_output=True)
    with running(ScriptedModel([])) as upstream:
        proxy, ports = Proxy(Upstreams({"anthropic": upstream})), list[int]()
        tls = Tls(str(certificate), str(key))

        async def asked() -> str:
            serving = asyncio.ensure_future(serve(proxy, "127.0.0.1", 0, started=ports.append, service=Service(tls)))
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


def test_whoever_looks_leaves_no_call_behind() -> None:
    """Else the more often somebody looks, the fewer are counted at a time."""

    class Ended:
        held = 0

        def count(self) -> None:
            pass

    class Counting(Proxy):
        calls = 0

        def _on_timer(self) -> None:
            self.calls += 1
            super()._on_timer()

    async def looked_at() -> list[int]:
        proxy, calls = Counting(Upstreams({"anthropic": "http://127.0.0.1:9"})), []
        for _ in range(2):
            for _ in range(20):
                proxy.enqueue_finished(Ended())
                proxy.count_finished()
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
        proxy, so_far = Proxy(Upstreams({"anthropic": "http://127.0.0.1:9"})), []
        proxy.enqueue_finished(Ended())
        await asyncio.sleep(0.04)
        proxy.catch_up()
        so_far.append(len(counted))
        proxy.enqueue_finished(Ended())
        await asyncio.sleep(0.3)
        return [*so_far, len(counted)]

    assert asyncio.run(looked_at()) == [1, 2]
