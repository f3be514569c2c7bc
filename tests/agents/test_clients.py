"""Clients as they are: their own configuration behind `pagefold init`, the servers that they then list, and undo."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.agents.kit import FOLDER, program_of

SERVER = FOLDER / "venv/bin/mcp-server-time"
OPENCODE = {"$schema": "https://opencode.ai/config.json", "mcp": {"time": {"type": "local", "command": [str(SERVER)]}}}
CLIENTS = {
    # client: its configuration, what has it write that itself, and what it says of a server that it uses
    "claude-code": (".claude.json", ["mcp", "add", "-s", "user", "time", "--", str(SERVER)], "Connected"),
    "codex": (".codex/config.toml", ["mcp", "add", "time", "--", str(SERVER)], "enabled"),
    "opencode": (".config/opencode/opencode.json", [], "connected"),
}


@pytest.mark.parametrize("client", CLIENTS)
def test_it_lists_its_servers_after_init_and_has_its_file_back_after_undo(client: str, tmp_path: Path) -> None:
    program, (place, writes, word) = program_of(client), CLIENTS[client]
    if not SERVER.exists():
        pytest.skip(f"no mcp-server-time in {FOLDER}: run `make agents`, or set AGENTS_DIR")
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    environment = {"PATH": path, "HOME": str(tmp_path), "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1"}

    def told(*command: str) -> str:
        done = subprocess.run(
            command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False, timeout=120
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout + done.stderr

    file = tmp_path / place
    file.parent.mkdir(parents=True, exist_ok=True)
    if writes:
        told(str(program), *writes)
    else:
        file.write_text(json.dumps(OPENCODE, indent=2))
    before = file.read_bytes()
    told(sys.executable, "-m", "pagefold", "init", client)
    changed = file.read_bytes()
    assert b"pagefold" in changed
    listed = told(str(program), "mcp", "list")
    assert "pagefold" in listed
    assert word in listed
    if file.read_bytes() == changed:  # some note there that they were started
        told(sys.executable, "-m", "pagefold", "init", client, "--undo")
        assert file.read_bytes() == before
    else:
        told(sys.executable, "-m", "pagefold", "init", client, "--undo")
        assert b"pagefold" not in file.read_bytes()
