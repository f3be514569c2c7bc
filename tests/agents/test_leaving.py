"""Real agents leave pagefold in mid-session, against a provider that enforces the check of thinking: they go on."""

import json
import os
import subprocess
from pathlib import Path

import pytest

from pagefold.derive.policies.lossless import Lossless
from pagefold.model_proxy.conversations import Conversations
from pagefold.model_proxy.proxy import Proxy
from pagefold.model_proxy.server import running
from pagefold.model_proxy.upstreams import Upstreams
from pagefold.provider.referee import Referee
from pagefold.provider.reply import RequestRecord
from pagefold.provider.script import parse_script
from pagefold.provider.server import ProviderApp
from tests.agents.kit import CLAUDES, FOLDER, KIT, PROGRAMS, program_of

pytestmark = pytest.mark.skipif(not KIT.exists(), reason="the agents kit (../shared/agents) is not on this machine")
AGAIN = {"codex": ("resume", "--last")}
TURNS = 5


@pytest.mark.parametrize("name", [*CLAUDES, "codex"])
def test_a_session_goes_on_without_pagefold(name: str, tmp_path: Path) -> None:
    program = program_of(name)
    work = tmp_path / "work"
    work.mkdir()
    lines = "\n".join(f"def function_{n}(page):  # line {n}, seen by reader_{n * 7919 % 1000}" for n in range(400))
    (work / "code.py").write_text(lines)
    reads = [
        {
            "text": f"Step {at}.",
            "tool_call": {"name": "$shell", "input": {"command": f"sed -n {at},{at + 60}p code.py"}},
        }
        for at in range(1, TURNS * 9, 9)
    ]
    script = parse_script(json.dumps([*reads, {"text": "All is read."}, {"text": "And resumed."}]), "script")
    records: list[RequestRecord] = []

    def drive(url: str, prompt: str, *more: str) -> str:
        settings = {"AGENT_BIN": str(program), "AGENTS_DIR": str(FOLDER), "STATE_DIR": str(tmp_path / "state")}
        settings |= {"MODEL": "gpt-5.6" if name == "codex" else "claude-opus-5-5", "TIME_LIMIT": "120"}
        command = ["bash", str(KIT / f"drive_{PROGRAMS[name][0]}.sh"), url, str(work), prompt, "", *more]
        done = subprocess.run(
            command, env={"PATH": os.environ["PATH"], **settings}, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return (tmp_path / "state" / "stdout").read_text()

    provider = ProviderApp(Referee(answers=script), seen=lambda record, body: records.append(record))
    with running(provider) as upstream:
        proxy = Proxy(Upstreams({"anthropic": upstream, "openai": upstream}), Conversations(Lossless()))
        with running(proxy) as url:
            assert "All is read." in drive(url, "Read code.py in parts")
        assert [record.reason for record in records if record.rule] == []
        assert proxy.totals.work.changed > 0
        assert "And resumed." in drive(upstream, "Go on", *AGAIN.get(name, ("--continue",)))
    assert records[-1].rule == ""
