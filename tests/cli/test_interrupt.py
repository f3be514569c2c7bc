"""Ctrl-C ends every command that works long within a second, as a user sends it: to the whole group of processes."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

_SECONDS = 1.0
_LINES = 400


def _recording(path: Path, sessions: int, turns: int) -> Path:
    """Sessions that take far longer to work through than the test waits."""
    with path.open("w", encoding="utf-8") as file:
        for session in range(sessions):
            messages: list[dict[str, object]] = [{"role": "user", "content": f"task {session}"}]
            for turn in range(turns):
                call = {"id": f"c{turn}", "type": "function", "function": {"name": "Bash", "arguments": "{}"}}
                text = "\n".join(
                    f"{session}/{turn}: line {line} of module_{line * turn % 97}" for line in range(_LINES)
                )
                messages.append({"role": "assistant", "content": f"turn {turn}", "tool_calls": [call]})
                messages.append({"role": "tool", "tool_call_id": f"c{turn}", "content": text})
            messages.append({"role": "assistant", "content": "done"})
            file.write(json.dumps({"id": f"s{session}", "messages": messages}) + "\n")
    return path


@pytest.fixture(scope="module")
def recording(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with one file of sessions under several names, since a replay alone takes little time."""
    folder = tmp_path_factory.mktemp("logs")
    long = _recording(folder / "long.jsonl", sessions=8, turns=120)
    for name in range(12):
        (folder / f"{name}.jsonl").symlink_to(long)
    return folder


@pytest.mark.parametrize("jobs", ["1", "2"])
@pytest.mark.parametrize("command", ["replay", "report", "compare", "tune"])
def test_ctrl_c_ends_a_long_command_within_a_second(command: str, jobs: str, recording: Path, tmp_path: Path) -> None:
    policy = ["--policy", "economic"] if command == "replay" else []
    words = [sys.executable, "-m", "pagefold", command, str(recording), "--jobs", jobs, *policy]
    environment = {"HOME": str(tmp_path), "PATH": os.environ["PATH"], "PYTHONPATH": os.pathsep.join(sys.path)}
    with subprocess.Popen(
        words,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        cwd=tmp_path,
        env=environment,
        start_new_session=True,
    ) as run:
        time.sleep(3)  # the imports are over, and work is under way in every process
        assert run.poll() is None, "too short a recording"
        started = time.monotonic()
        os.killpg(run.pid, signal.SIGINT)
        _, said = run.communicate(timeout=60)
        took = time.monotonic() - started

    assert run.returncode == 130, said.decode()
    assert b"Traceback" not in said
    assert took < _SECONDS, f"{took:.2f} s"
