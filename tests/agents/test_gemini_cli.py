"""The real Gemini CLI behind `pagefold run`, against a provider that enforces Gemini's rules."""

import hashlib
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from pagefold.model_proxy.server import running
from pagefold.provider.referee import Referee
from pagefold.provider.reply import RequestRecord
from pagefold.provider.script import parse_script
from pagefold.provider.server import ProviderApp
from tests.agents.kit import FOLDER

GEMINI = FOLDER / "node_modules/.bin/gemini"


@pytest.mark.skipif(not GEMINI.exists(), reason=f"no Gemini CLI in {FOLDER}: run `make agents`, or set AGENTS_DIR")
def test_it_works_past_its_window(tmp_path: Path) -> None:
    work, home = tmp_path / "work", tmp_path / "home"
    work.mkdir()
    (home / ".gemini").mkdir(parents=True)
    chosen = {"security": {"auth": {"selectedType": "gemini-api-key"}}}
    (home / ".gemini" / "settings.json").write_text(json.dumps(chosen))
    lines = [hashlib.sha256(str(number).encode()).hexdigest() for number in range(1000)]  # cannot be said shorter
    (work / "sums.txt").write_text("\n".join(lines))
    shells = [
        {
            "text": f"Step {at}.",
            "tool_call": {"name": "$shell", "input": {"command": f"sed -n {at},{at + 80}p sums.txt"}},
        }
        for at in range(1, 500, 81)
    ]
    script = parse_script(json.dumps([*shells, {"text": "All is read."}]), "script")
    records: list[RequestRecord] = []
    provider = ProviderApp(Referee(answers=script), seen=lambda record, body: records.append(record))
    with running(provider) as upstream:
        environment = {"PATH": os.environ["PATH"], "HOME": str(home), "GEMINI_API_KEY": "none"}
        environment |= {"GOOGLE_GEMINI_BASE_URL": upstream, "GEMINI_CLI_TRUST_WORKSPACE": "true"}
        pagefold = [sys.executable, "-m", "pagefold", "run", "--json", "--policy", "economic", "--window", "20k"]
        command = [*pagefold, "--store", str(tmp_path / "s.sqlite3"), "--", str(GEMINI), "-p", "Read it", "--yolo"]
        done = subprocess.run(
            [*command, "-m", "gemini-3.8-flash"],
            cwd=work,
            env=environment,
            capture_output=True,
            text=True,
            check=False,
            timeout=150,
        )
    assert "All is read." in done.stdout, done.stdout + done.stderr
    assert [record.reason for record in records if record.rule] == []
    assert len(records) >= len(shells) + 1
    totals = json.loads(done.stdout.splitlines()[-1])
    assert totals["work"]["folds"] >= 1, ([record.tokens for record in records], totals["work"])
    assert max(record.tokens for record in records) < 20_000


@pytest.mark.skipif(not GEMINI.exists(), reason=f"no Gemini CLI in {FOLDER}: run `make agents`, or set AGENTS_DIR")
def test_it_connects_to_its_servers_after_init_and_has_its_file_back_after_undo(tmp_path: Path) -> None:
    server = FOLDER / "venv/bin/mcp-server-time"
    if not server.exists():
        pytest.skip(f"no mcp-server-time in {FOLDER}: run `make agents`, or set AGENTS_DIR")
    settings = tmp_path / ".gemini" / "settings.json"
    settings.parent.mkdir()
    chosen = {"auth": {"selectedType": "gemini-api-key"}}
    before = json.dumps({"security": chosen, "mcpServers": {"time": {"command": str(server), "args": []}}}, indent=1)
    settings.write_text(before)
    environment = {"PATH": os.environ["PATH"], "HOME": str(tmp_path), "GEMINI_API_KEY": "none"}
    environment |= {"GEMINI_CLI_TRUST_WORKSPACE": "true"}

    def told(*command: str) -> str:
        done = subprocess.run(
            command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=True, timeout=90
        )
        return done.stdout + done.stderr

    told(sys.executable, "-m", "pagefold", "init", "gemini")
    assert "pagefold" in settings.read_text()
    listed = told(str(GEMINI), "mcp", "list")
    assert "time" in listed
    assert "Connected" in listed
    told(sys.executable, "-m", "pagefold", "init", "gemini", "--undo")
    assert settings.read_text() == before
