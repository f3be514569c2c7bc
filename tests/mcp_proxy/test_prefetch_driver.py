"""Reads that are run early and repeats from memory: the client sees its own call answered, and nothing runs twice."""

import time
from pathlib import Path

from tests.mcp_proxy.peer import ODD, PAGEFOLD, Peer

TOOLS = """
[tools.mcp__odd__echo]
side_effect_class = "pure"
open_world = false
memoise = true

[tools.mcp__odd__echo.cost_model]
freshness_ttl_s = 60

[tools.mcp__odd__rows]
side_effect_class = "read_only"
open_world = false
fail_fast_after_n = 2

[[tools.mcp__odd__rows.follow_up]]
tool = "mcp__odd__echo"
probability = 0.9
projection = "name"
projection_arg = "text"
"""


def proxied(folder: Path, *options: str) -> Peer:
    (folder / "own.toml").write_text(TOOLS)
    command = [*PAGEFOLD, "--no-tools", "--name", "odd", *options, "--", *ODD]
    return Peer(command, folder, {"PAGEFOLD_CONFIG": str(folder / "own.toml")})


def warm(peer: Peer) -> None:
    """The first result waits for what is heavy; early calls begin with the next."""
    peer.greet()
    peer.ask("tools/list")
    peer.text("twin")


def called(peer: Peer, words: str) -> int:
    """How often the server was asked, for sure once the proxy has ended: its stderr comes beside its answers."""
    return peer.stderr.count(f"echo {words}\n")


def test_a_likely_read_is_there_before_it_is_asked_for_and_runs_once(tmp_path: Path) -> None:
    with proxied(tmp_path) as peer:
        warm(peer)
        peer.text("rows", count=2)
        end = time.monotonic() + 10
        while not called(peer, "row 0") and time.monotonic() < end:
            time.sleep(0.02)
        time.sleep(0.05)
        answer = peer.call("echo", text="row 0")
        assert answer["result"]["content"] == [{"type": "text", "text": "row 0"}]
        assert not any(b"pagefold-" in line for line in peer.heard), "nothing of ours reaches the client"
    assert called(peer, "row 0") == 1


def test_a_repeat_is_answered_from_memory_and_says_so_until_something_is_written(tmp_path: Path) -> None:
    with proxied(tmp_path) as peer:
        warm(peer)
        assert len(peer.call("echo", text="again")["result"]["content"]) == 1
        first, second = peer.call("echo", text="again")["result"]["content"]
        assert (first["text"], "answered from memory" in second["text"]) == ("again", True)
        peer.text("child")  # nobody knows what that does
        assert len(peer.call("echo", text="again")["result"]["content"]) == 1
    assert called(peer, "again") == 2


def test_a_tool_that_keeps_saying_nothing_is_not_asked_again(tmp_path: Path) -> None:
    with proxied(tmp_path) as peer:
        warm(peer)
        assert [peer.text("rows", count=0) for _ in range(2)] == ["[]", "[]"]
        assert peer.text("rows", count=0).startswith("> [not called: mcp__odd__rows answered nothing 2 times")
        assert peer.text("rows", count=1) != "[]", "another query is made"
