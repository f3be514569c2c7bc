"""Real servers with real clients, each conversation held twice: straight, and through the proxy.

The servers and clients are those that `make agents` installs; where one is missing its tests are skipped. Nothing but
loopback is used.
"""

import json
import subprocess
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from pagefold.encode import decode
from tests.mcp_proxy.peer import PAGEFOLD, Peer, environment, program

SDK_CLIENT = str(Path(__file__).with_name("sdk_client.py"))
MODERN = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientInfo": {"name": "test", "version": "1"},
    "io.modelcontextprotocol/clientCapabilities": {},
}


@dataclass(frozen=True)
class Server:
    """`command` is made in a folder of its own; `calls` are tool calls, good ones and bad ones."""

    program: str
    arguments: Callable[[Path], list[str]] = lambda folder: []
    calls: Callable[[Path], list[tuple[str, dict[str, Any]]]] = lambda folder: []
    modern: bool = False
    asks: tuple[tuple[str, dict[str, Any]], ...] = ()
    varies: frozenset[str] = field(default_factory=frozenset)


def filled(folder: Path) -> list[str]:
    """A folder with files worth encoding."""
    place = folder / "files"
    place.mkdir(exist_ok=True)
    rows = [{"id": n, "name": f"row {n}", "state": "open", "labels": ["a", "b"]} for n in range(60)]
    (place / "rows.json").write_text(json.dumps(rows, indent=2))
    (place / "log.txt").write_text(
        "\n".join(
            f"2026-11-16T10:{n // 60:02}:{n % 60:02}Z INFO worker-3 request {n} served in 12 ms" for n in range(200)
        )
    )
    return [str(place)]


def repository(folder: Path) -> list[str]:
    place = folder / "repository"
    if not place.exists():
        place.mkdir()
        git = ["git", "-C", str(place), "-c", "user.name=t", "-c", "user.email=t@example.com"]
        subprocess.run([*git, "init", "-q"], check=True)
        (place / "a.txt").write_text("\n".join(f"line {n}" for n in range(50)))
        subprocess.run([*git, "add", "."], check=True)
        subprocess.run([*git, "commit", "-q", "-m", "first"], check=True)
        (place / "a.txt").write_text("\n".join(f"line {n * 2}" for n in range(50)))
    return ["--repository", str(place)]


SERVERS = {
    "everything": Server(
        "mcp-server-everything",
        lambda folder: ["stdio"],
        lambda folder: [
            ("echo", {"message": "hello"}),
            ("echo", {"message": "[JSON]\n#1 2 rows: a=1"}),
            ("get-sum", {"a": 1, "b": 2}),
            ("get-structured-content", {"location": "New York"}),
            ("get-tiny-image", {}),
            ("get-resource-reference", {"resourceType": "Text", "resourceId": 1}),
            ("get-annotated-message", {"messageType": "error", "includeImage": True}),
            ("get-env", {}),
            ("get-sum", {"a": "one"}),
            ("nothing-of-that-name", {}),
        ],
        asks=(
            ("prompts/list", {}),
            ("prompts/get", {"name": "simple-prompt"}),
            ("prompts/get", {"name": "nothing"}),
            ("resources/list", {}),
            ("resources/templates/list", {}),
            (
                "completion/complete",
                {
                    "ref": {"type": "ref/prompt", "name": "completable-prompt"},
                    "argument": {"name": "department", "value": "E"},
                },
            ),
            ("logging/setLevel", {"level": "error"}),
            ("ping", {}),
            ("future/method", {"x": [1.10, None]}),
        ),
        varies=frozenset({"get-structured-content", "get-resource-reference"}),
    ),
    "filesystem": Server(
        "mcp-server-filesystem",
        filled,
        lambda folder: [
            ("list_allowed_directories", {}),
            ("list_directory", {"path": str(folder / "files")}),
            ("read_text_file", {"path": str(folder / "files" / "rows.json")}),
            ("read_text_file", {"path": str(folder / "files" / "log.txt")}),
            ("directory_tree", {"path": str(folder / "files")}),
            ("read_text_file", {"path": "/etc/shadow"}),
        ],
    ),
    "memory": Server(
        "mcp-server-memory",
        lambda folder: [],
        lambda folder: [
            (
                "create_entities",
                {"entities": [{"name": f"e{n}", "entityType": "thing", "observations": ["seen"]} for n in range(20)]},
            ),
            ("read_graph", {}),
            ("search_nodes", {"query": "e1"}),
            ("delete_entities", {"entityNames": [f"e{n}" for n in range(20)]}),
        ],
    ),
    "git": Server(
        "mcp-server-git",
        repository,
        lambda folder: [
            ("git_status", {"repo_path": str(folder / "repository")}),
            ("git_diff_unstaged", {"repo_path": str(folder / "repository")}),
            ("git_log", {"repo_path": str(folder / "repository"), "max_count": 2}),
            ("git_log", {"repo_path": "/nowhere"}),
        ],
        modern=True,
    ),
    "time": Server(
        "mcp-server-time",
        lambda folder: [],
        lambda folder: [
            ("convert_time", {"source_timezone": "Europe/Berlin", "time": "12:00", "target_timezone": "Asia/Tokyo"}),
            ("get_current_time", {"timezone": "Nowhere/At_all"}),
        ],
        modern=True,
    ),
    "sqlite": Server(
        "mcp-server-sqlite",
        lambda folder: ["--db-path", str(folder / "test.db")],
        lambda folder: [
            ("create_table", {"query": "CREATE TABLE IF NOT EXISTS t (id INTEGER, name TEXT, state TEXT)"}),
            *(("write_query", {"query": f"INSERT INTO t VALUES ({n}, 'row {n}', 'open')"}) for n in range(12)),
            ("read_query", {"query": "SELECT DISTINCT * FROM t"}),
            ("read_query", {"query": "SELECT * FROM missing"}),
            ("list_tables", {}),
        ],
        varies=frozenset(),
    ),
}


@pytest.fixture(params=SERVERS)
def server(request: pytest.FixtureRequest) -> Server:
    return SERVERS[request.param]


def conversation(peer: Peer, server: Server, folder: Path, version: str) -> list[tuple[str, dict[str, Any]]]:
    """The calls with their answers. All that was heard stays with the peer."""
    peer.greet(version=version)
    peer.ask("tools/list")
    for one in server.asks:
        peer.ask(*one)
    return [(name, peer.ask("tools/call", {"name": name, "arguments": given})) for name, given in server.calls(folder)]


def recorded(peer: Peer, calls: list[tuple[str, dict[str, Any]]]) -> tuple[list[bytes], list[bytes]]:
    """The answers to everything but tool calls, in order, and what the server said by itself: byte for byte."""
    called = {answer["id"] for _, answer in calls}
    answers = [line for line in peer.heard if json.loads(line).get("id") not in called and b'"method"' not in line]
    return answers, sorted(line for line in peer.heard if b'"method"' in line)


def texts(answer: dict[str, Any]) -> list[str]:
    return [block["text"] for block in answer.get("result", {}).get("content", []) if block["type"] == "text"]


def without_texts(answer: dict[str, Any]) -> str:
    blocks = answer.get("result", {}).get("content", [])
    return json.dumps([{**block, "text": "…"} if block["type"] == "text" else block for block in blocks] or answer)


def same_text(shown: str, original: str) -> bool:
    back = decode(shown)
    if back == original:
        return True
    try:
        return json.dumps(json.loads(back)) == json.dumps(json.loads(original))
    except ValueError:
        return False


@pytest.mark.parametrize("version", ["2025-06-18", "2025-11-25"])
def test_the_client_sees_the_same_but_for_encoded_texts(server: Server, version: str, tmp_path: Path) -> None:
    command = [program(server.program), *server.arguments(tmp_path)]
    with Peer(command, tmp_path) as straight:
        calls = conversation(straight, server, tmp_path, version)
    with Peer([*PAGEFOLD, "--no-tools", "--", *command], tmp_path) as proxied:
        calls_seen = conversation(proxied, server, tmp_path, version)
        assert proxied.end() == 0

    assert recorded(proxied, calls_seen) == recorded(straight, calls)
    assert json.loads(straight.heard[0])["result"]["protocolVersion"] == version
    shorter = 0
    for (name, answer), (_, seen) in zip(calls, calls_seen, strict=True):
        if name in server.varies:
            continue
        assert without_texts(seen) == without_texts(answer)
        for shown, original in zip(texts(seen), texts(answer), strict=True):
            assert same_text(shown, original), name
            shorter += len(shown) < len(original)
    if server.program in ("mcp-server-filesystem", "mcp-server-memory", "mcp-server-sqlite"):
        assert shorter, "nothing was encoded at all"


def test_the_stateless_era_passes_too(server: Server, tmp_path: Path) -> None:
    if not server.modern:
        pytest.skip("this server speaks the handshake era only")
    command = [program(server.program), *server.arguments(tmp_path)]
    seen = []
    for prefix in ([], [*PAGEFOLD, "--no-tools", "--"]):
        with Peer([*prefix, *command], tmp_path) as peer:
            answers = [peer.ask("server/discover", {"_meta": MODERN}), peer.ask("tools/list", {"_meta": MODERN})]
            answers += [
                peer.ask("tools/call", {"name": name, "arguments": given, "_meta": MODERN})
                for name, given in server.calls(tmp_path)
            ]
            seen.append(answers)
    straight, proxied = seen
    assert proxied[:2] == straight[:2]
    for answer, through in zip(straight[2:], proxied[2:], strict=True):
        assert without_texts(through) == without_texts(answer)
        assert all(same_text(shown, text) for shown, text in zip(texts(through), texts(answer), strict=True))


@pytest.mark.parametrize("mode", ["auto", "legacy"])
def test_the_python_client_sees_the_same_tools_errors_and_progress(mode: str, tmp_path: Path) -> None:
    python = str(Path(program("mcp-server-time")).with_name("python"))
    command = [program("mcp-server-everything"), "stdio"]
    calls = json.dumps(
        [["echo", {"message": "hi"}], ["trigger-long-running-operation", {"duration": 0.3, "steps": 3}], ["nope", {}]]
    )
    seen = [
        subprocess.run(
            [python, SDK_CLIENT, mode, *prefix, *command],
            input=calls,
            capture_output=True,
            text=True,
            env=environment(tmp_path),
            timeout=60,
            check=True,
        ).stdout
        for prefix in ([], [*PAGEFOLD, "--no-tools", "--"])
    ]
    straight, proxied = map(json.loads, seen)
    assert proxied == straight
    assert len(straight["progress"]) == 3


def test_the_inspector_sees_the_same(tmp_path: Path) -> None:
    inspector = [program("mcp-inspector"), "--cli"]
    files = filled(tmp_path)
    command = [program("mcp-server-filesystem"), *files]
    ask = ["--method", "tools/call", "--tool-name", "read_text_file", "--tool-arg", f"path={files[0]}/rows.json"]

    def inspect(target: list[str], method: list[str]) -> dict[str, Any]:
        done = subprocess.run(
            [*inspector, *target, *method],
            capture_output=True,
            text=True,
            env=environment(tmp_path),
            timeout=60,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        return dict(json.loads(done.stdout))

    # The inspector takes options for its own: the proxy's stand in a program of one word.
    proxy = tmp_path / "proxy"
    proxy.write_text(f"#!/bin/sh\nexec {' '.join(PAGEFOLD)} --no-tools --structured keep -- {' '.join(command)}\n")
    proxy.chmod(0o700)
    assert inspect([str(proxy)], ["--method", "tools/list"]) == inspect(command, ["--method", "tools/list"])
    shown, original = (inspect(target, ask)["content"][0]["text"] for target in ([str(proxy)], command))
    assert len(shown) < len(original) / 2
    assert same_text(shown, original)


@contextmanager
def web_page(body: bytes) -> Iterator[str]:
    class Page(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200 if self.path == "/page.json" else 404)
            self.send_header("content-type", "application/json")
            self.end_headers()
            self.wfile.write(body if self.path == "/page.json" else b"")

        def log_message(self, *words: object) -> None:
            pass

    listening = ThreadingHTTPServer(("127.0.0.1", 0), Page)
    thread = threading.Thread(target=listening.serve_forever)
    thread.start()
    try:
        yield f"http://127.0.0.1:{listening.server_port}/page.json"
    finally:
        listening.shutdown()
        thread.join()
        listening.server_close()


def test_a_fetched_page_comes_whole(tmp_path: Path) -> None:
    command = [program("mcp-server-fetch"), "--allow-private-ips", "--ignore-robots-txt"]
    rows = json.dumps([{"id": n, "name": f"row {n}", "state": "open"} for n in range(60)]).encode()
    answers = []
    with web_page(rows) as url:
        for prefix in ([], [*PAGEFOLD, "--no-tools", "--"]):
            with Peer([*prefix, *command], tmp_path) as peer:
                peer.greet()
                answers.append(peer.text("fetch", url=url, max_length=20_000))
    original, shown = answers
    assert "row 59" in original
    assert same_text(shown, original)


def test_several_real_servers_stand_behind_one(tmp_path: Path) -> None:
    servers = {
        "files": {"command": program("mcp-server-filesystem"), "args": filled(tmp_path)},
        "everything": {"command": program("mcp-server-everything"), "args": ["stdio"]},
        "clock": {"command": program("mcp-server-time")},
        "gone": {"command": str(tmp_path / "no-such-program")},
    }
    (tmp_path / "mcp.json").write_text(json.dumps({"mcpServers": servers}))
    with Peer([*PAGEFOLD, "--no-tools", "--config", "mcp.json"], tmp_path) as peer:
        assert peer.greet()["result"]["serverInfo"]["name"] == "pagefold"
        names = [tool["name"] for tool in peer.ask("tools/list")["result"]["tools"]]
        assert {"read_text_file", "echo", "convert_time"} <= set(names)
        assert peer.text("echo", message="hi") == "Echo: hi"
        shown = peer.text("read_text_file", path=str(tmp_path / "files" / "rows.json"))
        assert same_text(shown, (tmp_path / "files" / "rows.json").read_text())
        assert "prompts" in peer.ask("prompts/list")["result"]
        resources = peer.ask("resources/list")["result"]["resources"]
        assert "contents" in peer.ask("resources/read", {"uri": resources[0]["uri"]})["result"]
    assert "no-such-program" in peer.stderr
