"""MCP 2026-07-28 with the newest SDK on both ends: no handshake, lists that say how long they are fresh, a call in two
rounds, and a stream of changes; with the proxy between, in every way that it is reached."""

import json
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pytest

from pagefold.encode import decode
from tests.mcp_proxy.peer import PAGEFOLD, Peer, environment, program
from tests.mcp_proxy.ports import free_port, wait_for

HERE = Path(__file__).parent
VERSION = "2026-07-28"


def python() -> str:
    """The Python that has the SDK."""
    return str(Path(program("mcp-server-time")).with_name("python"))


def server() -> list[str]:
    return [python(), str(HERE / "stateless_server.py"), "stdio"]


@contextmanager
def started(command: list[str], port: int, folder: Path) -> Iterator[str]:
    """The address of a program that serves MCP at a port."""
    with subprocess.Popen(command, env=environment(folder), stdout=subprocess.DEVNULL) as child:
        try:
            wait_for(port)
            yield f"http://127.0.0.1:{port}/mcp"
        finally:
            child.terminate()


def seen(target: list[str], folder: Path, mode: str = "auto") -> dict[str, Any]:
    command = [python(), str(HERE / "stateless_client.py"), mode, *target]
    done = subprocess.run(command, capture_output=True, text=True, env=environment(folder), timeout=90, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    return dict(json.loads(done.stdout))


@pytest.mark.parametrize("way", ["stdio", "http to stdio", "http to http", "stdio to http"])
def test_a_client_sees_the_same_freshness_rounds_and_changes(way: str, tmp_path: Path) -> None:
    with ExitStack() as stack:
        target = server()
        if way.endswith("to http"):
            port = free_port()
            served = [*server()[:-1], str(port)]
            target = [stack.enter_context(started(served, port, tmp_path))]
        straight = seen(target, tmp_path)
        behind = [*PAGEFOLD, *(["--"] if not way.endswith("to http") else []), *target]
        if way.startswith("http"):
            port = free_port()
            front = [*PAGEFOLD, "--http", str(port), *behind[len(PAGEFOLD) :]]
            behind = [stack.enter_context(started(front, port, tmp_path))]
        proxied = seen(behind, tmp_path, VERSION)

    assert straight["version"] == VERSION
    assert straight["fresh"] == [60_000, "public", "complete"]
    assert (straight["asked"], straight["event"]) == ("state 1: {'colour': 'blue'}", "ToolsListChanged")
    for part in ("version", "fresh", "asked", "event"):
        assert proxied[part] == straight[part]
    assert proxied["tools"][:3] == straight["tools"]
    assert proxied["own"] == "complete"
    assert json.loads(decode(proxied["rows"])) == json.loads(straight["rows"])
    assert len(proxied["rows"]) < len(straight["rows"]) / 2


def test_several_servers_refuse_calls_without_a_handshake_in_words(tmp_path: Path) -> None:
    servers = {name: {"command": server()[0], "args": server()[1:]} for name in ("one", "two")}
    (tmp_path / "two.json").write_text(json.dumps({"mcpServers": servers}))
    envelope = {"io.modelcontextprotocol/protocolVersion": VERSION}
    with Peer([*PAGEFOLD, "--config", str(tmp_path / "two.json")], tmp_path) as peer:
        discovered = peer.ask("server/discover", {"_meta": envelope})
        listed = peer.ask("tools/list", {"_meta": envelope})

    assert discovered["error"]["code"] == -32601
    assert listed["error"]["code"] == -32022
    assert "greeted with initialize" in listed["error"]["message"]
