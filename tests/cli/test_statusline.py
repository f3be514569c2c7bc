"""`pagefold statusline` as Claude Code runs it: it always prints a line, and knows its session among others."""

import json
import socket
import sys
import time
from pathlib import Path

import pytest

from pagefold.telemetry.events import TurnEvent
from pagefold.telemetry.live import LiveView, status_rows
from pagefold.wire.claude_status import ClaudeStatus, line, parse, session_of
from tests.cli.program import pagefold

USAGE = {"input_tokens": 10, "cache_read_input_tokens": 49_000, "cache_creation_input_tokens": 990, "output_tokens": 7}
TOLD = {
    "session_id": "x",
    "model": {"id": "claude-opus-5-5[1m]", "display_name": "Opus"},
    "context_window": {"context_window_size": 200_000, "current_usage": USAGE},
}
STATUS = ClaudeStatus("claude-opus-5-5[1m]", 50_000, 200_000)


def test_what_the_client_tells_is_read() -> None:
    assert parse(json.dumps(TOLD)) == STATUS
    for odd in ("", "[]", "null", '{"context_window": 3, "model": []}', '{"context_window": {"current_usage": null}}'):
        assert parse(odd).prompt == 0


@pytest.mark.parametrize(
    ("session", "said"),
    [
        (None, "pagefold: no request yet · 25 % of 200k"),
        ({"policy": "lossless", "saved": 12_345}, "pagefold · 25 % of 200k · saved 12k · no folds (lossless)"),
        (
            {"policy": "economic", "saved": 5, "tokens": 50_000, "life": 300, "last": 900},
            "pagefold · 25 % of 200k · saved 5 · cache warm for 3 min · folds in 150k at the latest (window full)",
        ),
        (
            {"policy": "economic", "saved": 2_500_000, "life": 300, "last": 600},
            "pagefold · 25 % of 200k · saved 2.5M · cache cold · may fold next: the cache is cold",
        ),
    ],
)
def test_the_line_says_window_savings_cache_and_the_next_fold(session: dict[str, object] | None, said: str) -> None:
    assert line(STATUS, session, reached=True, now=1_000.0) == said


def test_the_session_is_found_among_others_by_its_last_prompt() -> None:
    live = LiveView()
    turns = [
        TurnEvent(at=1.0, session="mine", model="claude-opus-5-5", tokens=1, cache_read=49_000, fresh=1_000, saved=7),
        TurnEvent(at=2.0, session="sub", model="claude-opus-5-5", tokens=1, cache_read=3, saved=1),
        TurnEvent(at=3.0, session="other", model="claude-haiku-5", tokens=1, fresh=50_000),
    ]
    for turn in turns:
        live.see(turn)
    rows = status_rows(live)["sessions"]
    assert [(session_of(STATUS, rows) or {})["saved"], (session_of(ClaudeStatus(), rows) or {})["last"]] == [7, 3.0]
    assert (session_of(ClaudeStatus("claude-opus-5-5", 4), rows) or {})["saved"] == 1
    assert session_of(ClaudeStatus("unknown"), rows) is None


@pytest.mark.parametrize("stdin", [b"", b"\xff{", json.dumps(TOLD).encode()])
def test_without_a_proxy_it_says_so(stdin: bytes, tmp_path: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))  # nobody listens there
        done = pagefold("statusline", "--port", taken.getsockname()[1], home=tmp_path, stdin=stdin)
    assert done.stdout.startswith(b"pagefold: no proxy")
    assert done.stderr == b""


def test_something_else_on_the_port_is_no_proxy(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        began = time.monotonic()
        done = pagefold("statusline", home=tmp_path, ANTHROPIC_BASE_URL=f"http://127.0.0.1:{silent.getsockname()[1]}")
        assert (done.stdout, time.monotonic() - began < 10) == (b"pagefold: no proxy\n", True)


@pytest.mark.parametrize("flags", [(), ("--observe",)])
def test_it_asks_the_proxy_that_the_session_uses(flags: tuple[str, ...], tmp_path: Path) -> None:
    agent = [sys.executable, "-m", "pagefold", "statusline"]
    done = pagefold("run", *flags, "--", *agent, home=tmp_path, stdin=json.dumps(TOLD).encode())
    assert done.stdout.decode() == "pagefold: no request yet · 25 % of 200k\n"
