"""Claude Code's hook after a tool, on the real program: what its model reads of Bash, Grep, Read and an MCP server."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from pagefold.encode.choose import decode
from tests.agents.kit import CLAUDES, FOLDER, KIT, PROGRAMS, answers_in, kit, program_of

pytestmark = [
    pytest.mark.skipif(not KIT.exists(), reason="the agents kit (../shared/agents) is not on this machine"),
    pytest.mark.skipif(not PROGRAMS, reason=f"no agents in {FOLDER}: make agents, or set AGENTS_DIR"),
]
LINES = [f"2026-11-16 12:00:{n % 60:02} INFO server.worker request {n} handled in {n * 7 % 90} ms" for n in range(200)]


def results(request: Any) -> list[str]:
    blocks = [
        block
        for message in request["body"]["messages"]
        if isinstance(message["content"], list)
        for block in message["content"]
        if block["type"] == "tool_result"
    ]
    return [
        block["content"] if isinstance(block["content"], str) else "".join(part["text"] for part in block["content"])
        for block in blocks
    ]


@pytest.mark.parametrize("name", CLAUDES)
def test_the_model_reads_denser_results_with_no_proxy_between(name: str, tmp_path: Path) -> None:
    work, state = tmp_path / "work", tmp_path / "state"
    work.mkdir()
    subprocess.run(["git", "init", "-q", str(work)], check=True)
    (work / "server.log").write_text("\n".join(LINES) + "\n")
    set_up = ["init", "claude-code", "--hook", "--file", str(state / "config" / "settings.json")]
    subprocess.run([sys.executable, "-m", "pagefold", *set_up], check=True, capture_output=True)
    turns = [
        {"name": "Bash", "input": {"command": "cat server.log"}},
        {"name": "Grep", "input": {"pattern": "INFO", "path": str(work), "output_mode": "content", "head_limit": 500}},
        {"name": "Read", "input": {"file_path": str(work / "server.log")}},
        {"name": "mcp__everything__echo", "input": {"message": "\n" + "\n".join(LINES)}},
        {"name": "Bash", "input": {"command": "cat server.log; exit 3"}},
    ]
    script = [*({"text": "Next.", "tool_call": call} for call in turns), {"text": "All is read."}]
    environment = {"PATH": os.environ["PATH"], "AGENT_BIN": str(program_of(name)), "AGENTS_DIR": str(FOLDER)}
    with kit("scripted_model").ScriptedModel(script) as model:
        driven = subprocess.run(
            ["bash", str(KIT / "drive_claude.sh"), model.url, str(work), "Go", str(KIT / "mcp.example.json")],
            env={**environment, "STATE_DIR": str(state), "TIME_LIMIT": "240"},
            capture_output=True,
            text=True,
            check=False,
        )
        assert driven.returncode == 0, driven.stdout + driven.stderr
        bash, grep, read, echo, failed = results(answers_in(model)[-1])

    text = "\n".join(LINES)
    assert len(bash) < len(text) * 0.9
    assert decode(bash).strip() == text
    assert len(grep) < len(decode(grep))
    assert sorted(line.partition(":")[2].partition(":")[2] for line in decode(grep).splitlines()) == sorted(LINES)
    assert decode(echo).endswith(text)
    assert len(echo) < len(text) * 0.9
    # Numbers are written after the hook, and what failed has another hook, which replaces nothing.
    assert json.dumps(read).count("INFO server.worker") == 200
    assert LINES[1] in failed
