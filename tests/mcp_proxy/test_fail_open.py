"""Code of our own that raises, wherever it stands: the conversation goes on as if there were none of it, and says so.

Each case is the whole proxy over real pipes with one function of its own broken.
"""

import json
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.mcp_proxy.peer import ODD, Peer, environment

BREAK = """
import importlib, sys
from pagefold.cli import main

def broken(*given, **more):
    raise LookupError("what a client said")

where, name = sys.argv.pop(1).rsplit(":", 1)
module, _, inner = where.partition("/")
owner = importlib.import_module(module)
for part in filter(None, inner.split("/")):
    owner = getattr(owner, part)
setattr(owner, name, broken)
sys.exit(main())
"""
TOOLS = """
[tools.mcp__odd__rows]
side_effect_class = "read_only"
open_world = false
"""
PLACES = {
    "a result": "pagefold.mcp_proxy.shorten:shortened",
    "what a client says": "pagefold.mcp_proxy.relay/Relay:_asked",
    "what a server says": "pagefold.mcp_proxy.relay/Relay:_answered",
    "before a call": "pagefold.mcp_proxy.prefetch_driver/PrefetchDriver:begin",
    "after a call": "pagefold.mcp_proxy.prefetch_driver/PrefetchDriver:end",
    "a tool of ours": "pagefold.mcp_proxy.result_store/ResultStore:answer",
    "a server that is lost": "pagefold.mcp_proxy.relay/Relay:lost",
}


@pytest.mark.parametrize("place", PLACES)
def test_a_fault_of_our_own_costs_nobody_anything(place: str, tmp_path: Path) -> None:
    (tmp_path / "own.toml").write_text(TOOLS)
    command = [sys.executable, "-c", BREAK, PLACES[place], "mcp", "--name", "odd", "--", *ODD]
    with Peer(command, tmp_path, {"PAGEFOLD_CONFIG": str(tmp_path / "own.toml")}) as peer:
        assert peer.greet()["result"]["serverInfo"]["name"] == "odd"
        assert "echo" in {tool["name"] for tool in peer.ask("tools/list")["result"]["tools"]}
        for _ in range(3):
            assert peer.text("echo", text="heard") == "heard"
        shown = peer.text("rows", count=40)
        assert shown == json.dumps([{"id": n, "name": f"row {n}", "ok": True} for n in range(40)]) or len(shown) < 400
        if place == "a tool of ours":
            assert "do not try it again" in peer.call("context_status")["error"]["message"]
        if place == "a server that is lost":
            peer.send({"jsonrpc": "2.0", "id": "lost", "method": "tools/call", "params": {"name": "die"}})
            end = time.monotonic() + 20
            while peer.stderr.count(" starts") < 2 and time.monotonic() < end:
                time.sleep(0.02)
            assert peer.text("echo", text="again") == "again"
    assert peer.stderr.count("a fault of pagefold itself") == 1
    assert "LookupError at " in peer.stderr
    assert "what a client said" not in peer.stderr
    stats = subprocess.run(
        [sys.executable, "-m", "pagefold", "stats", "--json"],
        env=environment(tmp_path),
        capture_output=True,
        check=True,
    )
    assert json.loads(stats.stdout)["mcp"]["faults"] >= 1
