"""`pagefold top` and `pagefold dashboard` as commands: what they print, and where they look."""

import json
import re
import signal
import subprocess
import sys
import urllib.request
from pathlib import Path

import pytest

from pagefold.adapters.local_files import LocalFiles
from pagefold.cli import main
from pagefold.cli.top import resumes
from pagefold.telemetry.events import TracedFault, TurnEvent
from pagefold.telemetry.trace import TraceWriter
from tests.dashboard.traffic import Agent, behind, settled

NOBODY = "http://127.0.0.1:9"
EVENT = TurnEvent(
    at=1.0,
    session="ab" * 32,
    agent="Codex",
    status=200,
    tokens=100,
    saved=40,
    levels={"full": 60, "pointer": 40},
    faults=(TracedFault("refetch", "pf-aaaaaaaaaa", "it is not in the context"),),
)


@pytest.fixture
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A store beside which nothing runs."""
    monkeypatch.setenv("PAGEFOLD_SERVE_PORT", "9")
    monkeypatch.chdir(tmp_path)
    return tmp_path / "store.sqlite3"


def traced(store: Path) -> None:
    writer = TraceWriter(LocalFiles(store).trace)
    writer.see(EVENT)
    writer.close()


def test_a_running_proxy_is_asked(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with behind(tmp_path, 8) as one:
        Agent(one.url, "ada").turn()
        settled(one, 1)
        assert main(["top", "--once", "--url", one.url, "--store", one.settings.store.path]) == 0
        drawn = capsys.readouterr().out
        assert main(["top", "--json", "--url", one.url, "--store", one.settings.store.path]) == 0
        view = json.loads(capsys.readouterr().out)
    assert "Claude Code" in drawn
    assert "F" * 24 in drawn
    assert view["totals"]["turns"] == 1
    assert view["sessions"][0]["agent"] == "Claude Code"
    assert view["figures"]["pages"] == 0  # a note of how the history began is no page


def test_without_a_proxy_the_trace_is_read(store: Path, capsys: pytest.CaptureFixture[str]) -> None:
    traced(store)
    assert main(["top", "--once", "--store", str(store)]) == 0
    drawn = capsys.readouterr().out
    for word in ("Codex", "FFFFFFFFFFFFFFPPPPPPPPPP", "refetch", "it is not in the context", "store.trace.jsonl"):
        assert word in drawn


def test_with_nothing_at_all_it_says_so(store: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["top", "--once", "--store", str(store)]) == 0
    drawn = capsys.readouterr().out
    assert "No session has been seen yet." in drawn
    assert "no pagefold serve is reached, and there is no trace" in drawn
    assert main(["top", "--json", "--store", str(store)]) == 0
    assert json.loads(capsys.readouterr().out)["sessions"] == []


def test_a_proxy_that_was_named_and_is_not_there_is_an_error(store: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["top", "--once", "--url", NOBODY, "--store", str(store)]) == 1
    assert f"{NOBODY}: no dashboard is reached there" in capsys.readouterr().err


def test_the_dashboard_by_itself_shows_the_trace_and_ends_at_once(store: Path) -> None:
    traced(store)
    command = [sys.executable, "-m", "pagefold", "dashboard", "--json", "--store", str(store)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as running:
        assert running.stdout is not None
        try:
            url = json.loads(running.stdout.readline())["url"]
            assert re.fullmatch(r"http://127\.0\.0\.1:\d+/pagefold/\?key=\S{32,}", url)
            opener = urllib.request.build_opener(urllib.request.HTTPCookieProcessor())
            page = opener.open(url, timeout=20).read().decode()
        finally:
            running.send_signal(signal.SIGINT)
        assert running.wait(20) in (0, 130)
    assert "Codex" in page
    assert "refetch" in page


def test_what_it_costs_to_go_on_is_told_before_the_cache_expires_and_afterwards() -> None:
    session = {"name": "a" * 64, "last": 1_000.0, "life": 3600.0, "warm_usd": 0.05, "cold_usd": 1.0}
    view = {"totals": {"windows": 0.1, "usd": 5.0}, "sessions": [session]}

    assert resumes(view, 1_500.0) == []
    assert "going on costs $0.05, later $1.00, 2.0 % of a five-hour window" in resumes(view, 4_000.0)[0]
    assert "is cold since" in resumes(view, 9_000.0)[0]
    assert resumes({"totals": {}, "sessions": [session | {"cold_usd": 0.001}]}, 9_000.0) == []
    assert "window" not in resumes({"totals": {}, "sessions": [session]}, 9_000.0)[0]
