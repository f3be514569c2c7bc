"""Results over a budget: the most useful part, and everything else by a handle; parameters that no server sees."""

import json
import re
from pathlib import Path

from tests.mcp_proxy.peer import ODD, PAGEFOLD, Peer

PROSE = "\n\n".join(
    f"## Chapter {n}\n" + "\n".join(f"Sentence {n}-{m} says that item {n * 31 + m} was seen." for m in range(20))
    for n in range(30)
)


def proxied(folder: Path, *options: str) -> Peer:
    return Peer([*PAGEFOLD, *options, "--", *ODD], folder)


def everything_after(peer: Peer, shown: str) -> str:
    """What the cursors lead to, one after the other."""
    rest = ""
    handle = re.search(r"pf-[a-z2-7]{10}", shown)
    assert handle
    while link := re.search(r'cursor="([^"]+)"', shown):
        shown = peer.text("context_recall", handle=handle[0], cursor=link[1])
        rest += shown
    return rest


def test_a_result_over_the_budget_is_cut_and_all_of_it_can_be_had(tmp_path: Path) -> None:
    with proxied(tmp_path, "--budget", "800") as peer:
        peer.greet()
        shown = peer.text("echo", text=PROSE)
        assert len(shown) < len(PROSE) / 3
        rest = shown + everything_after(peer, shown)
        assert all(f"Sentence {n}-{m} " in rest for n in range(30) for m in range(20))
        assert peer.text("echo", text="short") == "short"


def test_nothing_is_cut_where_it_could_not_be_recalled(tmp_path: Path) -> None:
    with proxied(tmp_path, "--no-tools", "--budget", "800") as peer:
        peer.greet()
        assert peer.text("echo", text=PROSE) == PROSE


def test_parameters_are_offered_where_wanted_and_no_server_sees_them(tmp_path: Path) -> None:
    with proxied(tmp_path, "--parameters", "echo, rows, given") as peer:
        peer.greet()
        tools = {tool["name"]: tool["inputSchema"] for tool in peer.ask("tools/list")["result"]["tools"]}
        assert {"text", "format", "budget", "chunk"} == set(tools["echo"]["properties"])
        assert "properties" not in tools["die"]
        assert {"format", "format_", "budget", "chunk"} == set(tools["given"]["properties"])
        seen = json.loads(peer.text("given", x=1, format="its own", format_="json", budget=500))
        assert seen == {"x": 1, "format": "its own"}
        assert json.loads(peer.text("rows", count=30, format="json"))[29]["id"] == 29
        assert len(peer.text("rows", count=30)) < 400
        shown = peer.text("echo", text=PROSE, budget=500)
        assert "missing" in shown
        second = peer.text("echo", text=PROSE, budget=500, chunk=2)
        assert second != shown
        assert "Sentence" in second
        assert "There is no chunk 99" in peer.text("echo", text=PROSE, budget=500, chunk=99)
        refused = peer.call("echo", text=PROSE, budget=1)["result"]
        assert (refused["isError"], "budget = 1: expected" in refused["content"][0]["text"]) == (True, True)
