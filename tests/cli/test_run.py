"""`pagefold run`: the agent gets the proxy in place of the address it would have gone to, and ends as it would have."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

from pagefold.model_proxy import agents
from pagefold.model_proxy.server import running
from tests.cli.hook_input import AGENT
from tests.scripted_model import ScriptedModel, ScriptedTurn

GATEWAY = "https://gateway.example"


def run(home: Path, program: str, **more: str) -> "subprocess.Popen[str]":
    environment = {"PATH": os.environ["PATH"], "HOME": str(home), "XDG_DATA_HOME": str(home / "data"), **more}
    command = [sys.executable, "-m", "pagefold", "run", "--json", sys.executable, "-c", program]
    return subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True)


def test_what_the_agent_would_ask_is_asked(tmp_path: Path) -> None:
    model = ScriptedModel([ScriptedTurn("I look."), ScriptedTurn("Done.")])
    with running(model) as url, run(tmp_path, AGENT, ANTHROPIC_BASE_URL=url) as process:
        said, _ = process.communicate(timeout=60)

    assert (process.returncode, len(model.requests), json.loads(said)["requests"]) == (0, 2, 2)


@pytest.mark.parametrize(
    ("program", "environment", "anthropic", "openai"),
    [
        ("agent", {}, "", ""),
        ("agent", {"ANTHROPIC_BASE_URL": f"{GATEWAY}/a"}, f"{GATEWAY}/a", ""),
        ("agent", {"OPENAI_BASE_URL": f"{GATEWAY}/v1/"}, "", GATEWAY),
        ("agent", {"OPENAI_BASE_URL": f"{GATEWAY}/a/v1"}, "", f"{GATEWAY}/a"),
        ("agent", {"OPENAI_BASE_URL": GATEWAY}, "", ""),
        ("opencode", {"ANTHROPIC_BASE_URL": f"{GATEWAY}/v1"}, GATEWAY, ""),
        ("opencode", {"ANTHROPIC_BASE_URL": GATEWAY}, "", ""),
    ],
)
def test_the_upstream_is_what_the_environment_names(
    program: str, environment: Mapping[str, str], anthropic: str, openai: str
) -> None:
    found = agents.upstreams([program], environment)
    started = agents.start([program], "http://127.0.0.1:1", "", environment).variables

    assert (found.get("serve.anthropic_url", ""), found.get("serve.openai_url", "")) == (anthropic, openai)
    # An address that cannot be stood in for is left as it is.
    assert ("OPENAI_BASE_URL" in started) == (bool(openai) or "OPENAI_BASE_URL" not in environment)
    assert ("ANTHROPIC_BASE_URL" in started) == (bool(anthropic) or "ANTHROPIC_BASE_URL" not in environment)
    assert "serve.openai_url" not in agents.upstreams(["/usr/bin/codex"], environment)


def test_opencode_is_told_the_version_which_it_expects_in_both_addresses() -> None:
    told = agents.start(["/opt/bin/opencode", "run"], "http://127.0.0.1:1", "", {}).variables
    others = agents.start(["claude"], "http://127.0.0.1:1", "", {}).variables

    assert (told["ANTHROPIC_BASE_URL"], told["OPENAI_BASE_URL"]) == ("http://127.0.0.1:1/v1",) * 2
    assert others["ANTHROPIC_BASE_URL"] == "http://127.0.0.1:1"


@pytest.mark.parametrize(
    ("environment", "spared"),
    [
        ({}, None),
        ({"HTTPS_PROXY": ""}, None),
        ({"HTTPS_PROXY": GATEWAY}, "127.0.0.1"),
        ({"http_proxy": GATEWAY, "NO_PROXY": "corp.example"}, "corp.example,127.0.0.1"),
    ],
)
def test_an_agent_that_goes_out_by_a_proxy_does_not_reach_this_computer_by_it(
    environment: Mapping[str, str], spared: str | None
) -> None:
    started = agents.start(["claude"], "http://127.0.0.1:1", "", environment).variables

    assert [started.get(name) for name in ("NO_PROXY", "no_proxy")] == [spared, spared]


def test_a_signal_ends_the_agent_with_its_proxy(tmp_path: Path) -> None:
    program = "import time; print('here', flush=True); time.sleep(60)"
    with run(tmp_path, program) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "here\n"
        process.terminate()
        said, _ = process.communicate(timeout=20)

    assert (process.returncode, json.loads(said)["faults"]) == (128 + signal.SIGTERM, 0)
