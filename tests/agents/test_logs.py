"""Logs that real agents wrote just now replay without a skipped line.

The agents are driven by the kit beside the project (../shared/agents); the programs lie in AGENTS_DIR, or in `.agents`
here (`make agents`). Where either is missing the tests skip.
"""

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.agents.kit import FOLDER, KIT, PROGRAMS

SCRIPT = [
    {"text": "Listing.", "thinking": "What is here?", "tool_call": {"name": "$shell", "input": {"command": "ls"}}},
    {
        "text": "Two at once.",
        "tool_calls": [
            {"name": "$read", "input": {"path": "notes.txt"}},
            {"name": "$shell", "input": {"command": "wc -l notes.txt"}},
        ],
    },
    {"text": "Done."},
]


pytestmark = [
    pytest.mark.skipif(not KIT.exists(), reason="the agents kit (../shared/agents) is not on this machine"),
    pytest.mark.skipif(not PROGRAMS, reason=f"no agents in {FOLDER}: make agents, or set AGENTS_DIR"),
]


@pytest.fixture
def model(tmp_path: Path) -> Iterator[str]:
    script, url = tmp_path / "script.json", tmp_path / "url"
    script.write_text(json.dumps(SCRIPT))
    with url.open("w") as out:
        served = subprocess.Popen([sys.executable, str(KIT / "scripted_model.py"), str(script)], stdout=out)
    try:
        deadline = time.monotonic() + 20
        while not url.read_text().strip():
            assert time.monotonic() < deadline, "the scripted model did not start"
        yield url.read_text().strip()
    finally:
        served.terminate()
        served.wait()


@pytest.mark.parametrize("name", PROGRAMS)
def test_the_log_of_a_real_agent_replays_without_a_skipped_line(name: str, model: str, tmp_path: Path) -> None:
    agent, program = PROGRAMS[name]
    work = tmp_path / "work"
    work.mkdir()
    (work / "notes.txt").write_text("".join(f"line {number}\n" for number in range(30)))
    settings = {"AGENT_BIN": str(program), "AGENTS_DIR": str(FOLDER), "STATE_DIR": str(tmp_path / "state")}
    driven = subprocess.run(
        ["bash", str(KIT / f"drive_{agent}.sh"), model, str(work), "Look at notes.txt"],
        env={"PATH": os.environ["PATH"], "TIME_LIMIT": "90", **settings},
        capture_output=True,
        text=True,
        check=False,
    )
    assert driven.returncode == 0, driven.stdout + driven.stderr
    log = next(line.partition(": transcript: ")[2] for line in driven.stdout.splitlines() if ": transcript: " in line)

    replayed = subprocess.run(
        [sys.executable, "-m", "pagefold", "replay", log, "--strict", "--json"], capture_output=True, check=False
    )

    assert replayed.returncode == 0, replayed.stderr.decode()
    told = json.loads(replayed.stdout)
    assert (told["problems"], told["skipped"]) == (0, 0)
    assert told["total"]["requests"] == len(SCRIPT)
    assert sum(tool["results"] for tool in told["total"]["tools"].values()) == 3
    assert told["total"]["logged_requests"] == len(SCRIPT)
