"""Clients over HTTP, servers over HTTP, and both at once; over real sockets on loopback."""

import json
import socket
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest

from pagefold.encode import decode
from tests.mcp_proxy.peer import ODD, PAGEFOLD, Peer, environment, program

ACCEPT = {"Accept": "application/json, text/event-stream", "Content-Type": "application/json"}
SDK_CLIENT = str(Path(__file__).with_name("sdk_client.py"))
HELLO = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}}
MODERN = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientInfo": {"name": "test", "version": "1"},
    "io.modelcontextprotocol/clientCapabilities": {},
}


@contextmanager
def serving(folder: Path, *arguments: str) -> Iterator[str]:
    with process(folder, "--no-tools", *arguments) as (url, _):
        yield url


@contextmanager
def process(folder: Path, *arguments: str) -> Iterator[tuple[str, int]]:
    """The address of a proxy, and its process."""
    with subprocess.Popen(
        [*PAGEFOLD, "--json", "--http", "0", *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        stdin=subprocess.DEVNULL,
        env=environment(folder),
        cwd=folder,
    ) as proxy:
        try:
            assert proxy.stdout is not None
            yield str(json.loads(proxy.stdout.readline())["url"]), proxy.pid
        finally:
            proxy.terminate()
            assert proxy.wait(10) == 0


def post(url: str, message: object, **headers: str) -> tuple[int, dict[str, str], list[dict[str, Any]]]:
    """Status, headers, and the messages that came."""
    data = message if isinstance(message, bytes) else json.dumps(message).encode()
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    request = urllib.request.Request(url, data, {**ACCEPT, **named}, method="POST")
    try:
        with urllib.request.urlopen(request, timeout=30) as answer:
            status, headers, body = answer.status, dict(answer.headers), answer.read().decode()
    except urllib.error.HTTPError as error:
        with error:
            status, headers, body = error.code, dict(error.headers), error.read().decode()
    if not body or body[0] in "{[":
        return status, headers, [json.loads(body)] if body else []
    return status, headers, [json.loads(line[5:]) for line in body.splitlines() if line.startswith("data:")]


def call(id: object, tool: str, meta: dict[str, Any] | None = None, **arguments: Any) -> dict[str, Any]:
    params = {"name": tool, "arguments": arguments} | ({"_meta": meta} if meta else {})
    return {"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params}


def greet(url: str) -> str:
    _, headers, (answer,) = post(url, {"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": HELLO})
    assert answer["result"]["serverInfo"]["name"] == "odd"
    session = headers["Mcp-Session-Id"]
    notice = {"jsonrpc": "2.0", "method": "notifications/initialized"}
    assert post(url, notice, Mcp_Session_Id=session)[0] == 202
    return session


def test_a_client_over_http_has_a_server_of_its_own(tmp_path: Path) -> None:
    with serving(tmp_path, "--", *ODD) as url:
        sessions = [greet(url), greet(url)]
        pids = set()
        for session in sessions:
            _, _, (answer,) = post(url, call(1, "rows", count=30), Mcp_Session_Id=session)
            text = answer["result"]["content"][0]["text"]
            assert len(json.loads(decode(text))) == 30
            assert len(text) < len(decode(text)) / 3
            _, _, (answer,) = post(url, call(2, "child"), Mcp_Session_Id=session)
            pids.add(answer["result"]["content"][0]["text"])
        assert len(pids) == 2
        _, _, messages = post(url, call("p", "progress", {"progressToken": 7}), Mcp_Session_Id=sessions[0])
        names = [message.get("method", message.get("id")) for message in messages]
        assert names == [*["notifications/progress"] * 3, "p"]
        request = urllib.request.Request(url, method="DELETE", headers={"Mcp-Session-Id": sessions[0]})
        with urllib.request.urlopen(request, timeout=10) as answer:
            assert answer.status == 204
        assert post(url, call(3, "echo"), Mcp_Session_Id=sessions[0])[0] == 404


@pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="counts open files and threads by /proc")
def test_sessions_that_come_and_go_leave_no_descriptor_and_no_thread(tmp_path: Path) -> None:
    with process(tmp_path, "--", *ODD) as (url, pid):
        counts = []
        for _ in range(6):
            session = greet(url)
            assert post(url, call(1, "rows", count=30), Mcp_Session_Id=session)[0] == 200
            status = post(url, call(2, "context_status"), Mcp_Session_Id=session)[2][0]
            assert "1 pages" in status["result"]["content"][0]["text"] or "0 pages" in str(status)
            request = urllib.request.Request(url, method="DELETE", headers={"Mcp-Session-Id": session})
            with urllib.request.urlopen(request, timeout=10) as answer:
                assert answer.status == 204
            counts.append((held(pid), len(list(Path(f"/proc/{pid}/task").iterdir()))))
        assert counts[-1][0] <= counts[0][0], counts
        # Threads of the pool come one by one, up to a handful; a session of its own would have one more each.
        assert counts[-1][1] <= counts[1][1] + 2, counts


def held(pid: int) -> int:
    """How many files and pipes a process has open; the socket of the last request may just be closing."""
    count = 0
    for descriptor in Path(f"/proc/{pid}/fd").iterdir():
        with suppress(FileNotFoundError):
            count += not str(descriptor.readlink()).startswith("socket:")
    return count


def test_many_calls_over_http_at_once_get_their_own_answers(tmp_path: Path) -> None:
    with serving(tmp_path, "--", *ODD) as url:
        session = greet(url)
        with ThreadPoolExecutor(16) as pool:
            asked = [pool.submit(post, url, call(n, "echo", text=f"t{n}"), Mcp_Session_Id=session) for n in range(200)]
            for n, future in enumerate(asked):
                (answer,) = future.result()[2]
                assert (answer["id"], answer["result"]["content"][0]["text"]) == (n, f"t{n}")


def test_clients_of_the_stateless_era_share_a_server_and_not_their_ids(tmp_path: Path) -> None:
    command = [program("mcp-server-time")]
    times = [f"{hour:02}:30" for hour in range(12)]
    with serving(tmp_path, "--", *command) as url, ThreadPoolExecutor(6) as pool:
        wanted = {"source_timezone": "UTC", "target_timezone": "UTC"}
        asked = [pool.submit(post, url, call(1, "convert_time", MODERN, **wanted, time=time)) for time in times]
        for time, future in zip(times, asked, strict=True):
            status, headers, (answer,) = future.result()
            assert (status, answer["id"], "Mcp-Session-Id" in headers) == (200, 1, False)
            assert f"T{time}:00" in json.dumps(answer["result"])


def test_clients_that_share_a_server_are_not_referred_to_what_others_were_shown(tmp_path: Path) -> None:
    prose = "\n".join(f"The {n}th line says something that no other line says, {n * 7919}." for n in range(40))
    with serving(tmp_path, "--references", "--", *ODD) as url:
        texts = [post(url, call(1, "echo", MODERN, text=prose))[2][0]["result"]["content"][0]["text"] for _ in range(2)]
        assert texts == [prose, prose]
        session = greet(url)
        own = [post(url, call(n, "echo", text=prose), Mcp_Session_Id=session)[2][0] for n in range(2)]
        assert len(own[1]["result"]["content"][0]["text"]) < 200, "a client with a server of its own"
        with serving(tmp_path, "--references", url) as before:
            texts = [post(before, call(n, "echo", text=prose), Mcp_Session_Id=greet(before))[2][0] for n in range(2)]
            assert all("no other line" in text["result"]["content"][0]["text"] for text in texts)


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"Host": "evil.example"}, 403),
        ({"Origin": "https://evil.example"}, 403),
        ({"Origin": "http://localhost:3000"}, 403),
        ({"Mcp-Session-Id": "nothing"}, 404),
        ({}, 400),
    ],
)
def test_strangers_are_refused(headers: dict[str, str], status: int, tmp_path: Path) -> None:
    with serving(tmp_path, "--", *ODD) as url:
        assert post(url, call(1, "echo"), **headers)[0] == status
        assert post(url, b"not json", **headers)[0] in (status, 400)


@contextmanager
def everything_over_http(folder: Path) -> Iterator[str]:
    """The real server of everything, on a free port."""
    name = program("mcp-server-everything")
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = str(free.getsockname()[1])
    with subprocess.Popen(
        [name, "streamableHttp"],
        env=environment(folder, {"PORT": port}),
        stderr=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
    ) as server:
        try:
            assert server.stderr is not None
            while b"listening" not in (line := server.stderr.readline()):
                assert line, "it did not start"
            yield f"http://127.0.0.1:{port}/mcp"
        finally:
            server.terminate()


def test_every_way_over_http_shows_a_real_client_the_same(tmp_path: Path) -> None:
    python = str(Path(program("mcp-server-time")).with_name("python"))
    calls = [
        ["echo", {"message": "hi"}],
        ["trigger-long-running-operation", {"duration": 0.2, "steps": 2}],
        ["nope", {}],
    ]

    def seen(*target: str) -> dict[str, Any]:
        done = subprocess.run(
            [python, SDK_CLIENT, "auto", *target],
            input=json.dumps(calls),
            capture_output=True,
            text=True,
            env=environment(tmp_path),
            timeout=60,
            check=True,
        )
        return dict(json.loads(done.stdout))

    with everything_over_http(tmp_path) as direct, serving(tmp_path, direct) as both:
        straight = seen(direct)
        assert seen(both) == straight
        assert seen(*PAGEFOLD, "--no-tools", direct) == straight
        assert len(straight["progress"]) == 2
    with serving(tmp_path, "--", program("mcp-server-everything"), "stdio") as down:
        assert seen(down) == straight


def test_a_server_that_is_not_there_is_said_in_words(tmp_path: Path) -> None:
    nowhere = "http://127.0.0.1:9/mcp"
    with Peer([*PAGEFOLD, "--no-tools", nowhere], tmp_path) as peer:
        peer.send({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": HELLO})
        assert "cannot be reached" in peer.next()["error"]["message"]
    with serving(tmp_path, nowhere) as url:
        status, _, (answer,) = post(url, call(4, "echo"))
        assert (status, answer["id"]) == (502, 4)


if sys.platform == "win32":
    pytest.skip("processes are ended by signals here", allow_module_level=True)
