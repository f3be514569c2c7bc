"""pagefold goes nowhere by itself: not for vocabularies, prices, updates or figures. Only to where it is pointed."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from pagefold.model_proxy.server import running
from tests.cli.hook_input import AGENT
from tests.scripted_model import ScriptedModel, ScriptedTurn

_GUARD = Path(__file__).parent / "network_guard"
PROVIDERS = {"api.anthropic.com", "api.openai.com", "generativelanguage.googleapis.com", "openrouter.ai"}
_SERVER = Path(__file__).parent / "mcp_proxy" / "odd_server.py"
_ASKED = [
    {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {"protocolVersion": "2025-06-18"}},
    {"jsonrpc": "2.0", "id": 2, "method": "tools/list"},
    {"jsonrpc": "2.0", "id": 3, "method": "tools/call", "params": {"name": "context_status", "arguments": {}}},
]


class Guarded:
    """Runs programs that may not leave the computer; `attempts` are those of them that tried."""

    def __init__(self, folder: Path) -> None:
        self.folder, self._log = folder, folder / "attempts"
        # ruff's and Python's own folders come first, so the guard is named in front of them.
        self.environment = {
            "HOME": str(folder),
            "PATH": os.environ["PATH"],
            "PYTHONPATH": str(_GUARD),
            "NETWORK_GUARD_LOG": str(self._log),
        }

    def run(self, *command: object, stdin: str = "", **more: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, *map(str, command)],
            input=stdin,
            capture_output=True,
            text=True,
            cwd=self.folder,
            env=self.environment | more,
            check=False,
            timeout=120,
        )

    @property
    def attempts(self) -> list[str]:
        return self._log.read_text().splitlines() if self._log.exists() else []


@pytest.fixture
def guarded(tmp_path: Path) -> Guarded:
    return Guarded(tmp_path)


@pytest.mark.parametrize(
    "program",
    [
        "import socket; socket.create_connection(('192.0.2.1', 80), 1)",
        "import urllib.request; urllib.request.urlopen('http://example.invalid/')",
        "import asyncio; asyncio.run(asyncio.open_connection('example.invalid', 80))",
        "from pagefold.adapters.asgi import new_event_loop as new; new().run_until_complete(new().getaddrinfo('x', 1))",
    ],
)
def test_the_guard_sees_whoever_leaves(guarded: Guarded, program: str) -> None:
    assert guarded.run("-c", program).returncode != 0
    assert len(guarded.attempts) == 1


@pytest.mark.parametrize(
    "command",
    [
        ["demo"],
        ["encode", "data.json"],
        ["store", "put", "data.json"],
        ["search", "number"],
        ["store"],
        ["config"],
        ["stats"],
        ["tools"],
        ["journal"],
    ],
    ids=" ".join,
)
def test_no_command_leaves_the_computer(guarded: Guarded, command: list[str]) -> None:
    (guarded.folder / "data.json").write_text(json.dumps([{"name": f"number {n}", "state": "open"} for n in range(50)]))

    done = guarded.run("-m", "pagefold", *command)

    assert done.returncode in (0, 1), done.stderr
    assert "Traceback" not in done.stderr
    assert guarded.attempts == []


def test_only_doctor_asks_whether_the_providers_of_the_settings_can_be_reached(guarded: Guarded) -> None:
    guarded.run("-m", "pagefold", "doctor")

    assert {attempt.split()[1] for attempt in guarded.attempts} <= PROVIDERS


def test_the_model_proxy_goes_where_it_is_pointed_and_nowhere_else(guarded: Guarded) -> None:
    model = ScriptedModel([ScriptedTurn("I look."), ScriptedTurn("Done.")])
    with running(model) as url:
        run = ("-m", "pagefold", "run", "--json", sys.executable, "-c", AGENT)
        done = guarded.run(*run, ANTHROPIC_BASE_URL=url)

    assert (done.returncode, len(model.requests)) == (0, 2), done.stderr
    assert guarded.attempts == []


def test_the_mcp_proxy_goes_nowhere(guarded: Guarded) -> None:
    asked = "".join(json.dumps(message) + "\n" for message in _ASKED)

    done = guarded.run("-m", "pagefold", "mcp", "--", sys.executable, _SERVER, stdin=asked)

    assert '"id":2' in done.stdout.replace(" ", ""), done.stderr
    assert guarded.attempts == []


@pytest.mark.skipif(not shutil.which("unshare"), reason="needs unshare, to take the network away")
def test_it_works_where_there_is_no_network_at_all(tmp_path: Path) -> None:
    alone = ["unshare", "-rn", "sh", "-c"]
    if subprocess.run([*alone, "ip link set lo up"], check=False, capture_output=True).returncode:
        pytest.skip("this computer allows no network namespaces")
    environment = {"HOME": str(tmp_path), "PATH": os.environ["PATH"]}

    shown = subprocess.run(
        [*alone, f"ip link set lo up && {sys.executable} -m pagefold demo"],
        capture_output=True,
        text=True,
        env=environment,
        cwd=tmp_path,
        check=False,
        timeout=120,
    )

    assert shown.returncode == 0, shown.stderr
