"""The Claude Code plugin of this repository: the same hook that `init` writes, and the real Claude Code takes it."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pagefold
from pagefold.pages.context_tools import CONTEXT_TOOLS
from pagefold.wire.claude_hook import with_hook
from tests.agents.kit import program_of

ROOT = Path(__file__).parents[2]
PLUGIN = ROOT / "plugins" / "claude-code"


def test_its_hook_is_the_one_that_init_writes() -> None:
    written = json.loads(with_hook("", ["pagefold"], "settings"))
    assert json.loads((PLUGIN / "hooks" / "hooks.json").read_text())["hooks"] == written["hooks"]
    assert json.loads((PLUGIN / ".claude-plugin" / "plugin.json").read_text())["version"] == pagefold.__version__


def test_its_server_offers_pagefolds_own_tools(tmp_path: Path) -> None:
    declared = json.loads((PLUGIN / ".claude-plugin" / "plugin.json").read_text())["mcpServers"]["pagefold"]
    arguments = [word.replace("${CLAUDE_PLUGIN_ROOT}", str(PLUGIN)) for word in declared["args"]]
    asked: list[dict[str, Any]] = [
        {"id": 1, "method": "initialize", "params": {"protocolVersion": "2025-06-18", "capabilities": {}}},
        {"method": "notifications/initialized"},
        {"id": 2, "method": "tools/list"},
    ]
    command = [sys.executable, "-m", "pagefold", *arguments, "--store", str(tmp_path / "s.sqlite3")]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdin is not None
        assert server.stdout is not None
        server.stdin.write("".join(json.dumps({"jsonrpc": "2.0", **each}) + "\n" for each in asked))
        server.stdin.flush()
        answers = {answer["id"]: answer["result"] for answer in (json.loads(server.stdout.readline()) for _ in "12")}
        server.stdin.close()
        server.wait(timeout=30)
    assert "tools" in answers[1]["capabilities"]
    assert {tool["name"] for tool in answers[2]["tools"]} >= {tool.name for tool in CONTEXT_TOOLS[:6]}


def test_claude_code_validates_installs_and_connects_it(tmp_path: Path) -> None:
    claude = program_of("claude-code")
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    environment = {"PATH": path, "HOME": str(tmp_path), "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1"}

    def told(*arguments: str) -> str:
        command = [str(claude), *arguments]
        done = subprocess.run(
            command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False, timeout=90
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    assert "Validation passed" in told("plugin", "validate", "--strict", str(ROOT))
    assert "Validation passed" in told("plugin", "validate", "--strict", str(PLUGIN))
    told("plugin", "marketplace", "add", str(ROOT))
    told("plugin", "install", "pagefold@pagefold")
    assert "pagefold@pagefold" in told("plugin", "list")
    assert "Connected" in told("mcp", "list")
