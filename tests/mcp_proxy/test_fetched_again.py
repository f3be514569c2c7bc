"""Lists that a client fetches again through `pagefold mcp --references`: only what is other comes the second time."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from pagefold.tokens import counter
from tests.mcp_proxy.peer import ODD, PAGEFOLD, Peer
from tests.shared import SHARED

PEERS = SHARED / "peers"
ISSUES: list[dict[str, Any]] = [
    {"number": n, "title": f"Crash number {n * 7919 % 1000}", "state": "open", "user": {"login": f"u{n % 7}"}}
    for n in range(60)
]
ORDERS: list[dict[str, Any]] = [
    {"order_id": 1000 + n, "sku": f"S-{n * 7919 % 997}", "paid": n % 3 == 0} for n in range(60)
]
PODS: list[dict[str, Any]] = [
    {"metadata": {"name": f"web-{n}", "uid": f"x{n * 7919}"}, "status": {"phase": "Running"}} for n in range(60)
]


def with_row(rows: list[dict[str, Any]], at: int, **fields: Any) -> list[dict[str, Any]]:
    return [*rows[:at], rows[at] | fields, *rows[at + 1 :]]


@pytest.mark.parametrize(
    ("old", "new", "shown"),
    [
        (
            {"total": 60, "issues": ISSUES},
            {"total": 61, "issues": [ISSUES[0] | {"number": 99}, *with_row(ISSUES, 3, user={"login": "eve"})]},
            (
                "> [R1 issues by number: 1 of 61 rows changed, 1 new, all others are as there]\n"
                'other fields: {"total":61}\n{"number":3,"user.login":"eve"}\n'
                'new at the top: {"number":99,"title":"Crash number 0","state":"open","user":{"login":"u0"}}'
            ),
        ),
        (
            ORDERS,
            [*with_row(ORDERS, 7, paid=None)[:20], *ORDERS[21:]],
            (
                "> [R1 by order_id: 1 of 59 rows changed, 1 gone, all others are as there]\n"
                '{"order_id":1007,"paid":null}\ngone: 1020'
            ),
        ),
        (
            {"kind": "PodList", "items": PODS},
            {"kind": "PodList", "items": [PODS[5], *with_row(PODS, 2, status={"phase": "Failed"})[:5], *PODS[6:]]},
            (
                "> [R1 items by metadata.name: 1 of 60 rows changed, 1 moved, all others are as there]\n"
                '{"metadata.name":"web-2","status.phase":"Failed"}\nmoved at the top: "web-5"'
            ),
        ),
    ],
    ids=["issue tracker", "database", "cluster"],
)
def test_a_list_that_came_before_comes_as_what_changed(old: object, new: object, shown: str, tmp_path: Path) -> None:
    with Peer([*PAGEFOLD, "--references", "--", *ODD], tmp_path) as peer:
        peer.greet()
        first = peer.text("echo", text=json.dumps(old))
        assert first.startswith("[R1]\n")
        assert peer.text("echo", text=json.dumps(new, indent=2)) == shown


@pytest.mark.skipif(not PEERS.exists(), reason="the peers' payloads (../shared/peers) are not on this machine")
def test_two_hundred_issues_of_which_six_changed_are_no_second_list(tmp_path: Path) -> None:
    payloads = tmp_path / "payloads"
    subprocess.run([sys.executable, PEERS / "gen.py", payloads], check=True, capture_output=True)
    server = [sys.executable, str(PEERS / "mock_mcp.py"), str(payloads)]
    with Peer([*PAGEFOLD, "--references", "--", *server], tmp_path) as peer:
        peer.greet()
        peer.text("fetch", name="issues200.json")
        again = peer.text("fetch", name="issues200_v2.json")

    assert again.startswith("> [R1 by id: 6 of 200 rows changed, all others are as there]\n")
    assert counter("o200k").count(again) <= 2_500
