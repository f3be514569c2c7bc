"""What a small real model on loopback says of forms and of answers. Skipped where `make models` has not been run."""

import json
import os
import subprocess
from pathlib import Path

import pytest

from tests.cli.program import pagefold

ROOT = Path(__file__).parents[2]
MODELS = Path(os.environ.get("MODELS_DIR") or ROOT / ".models").absolute()
PYTHON = MODELS / "venv" / "bin" / "python"
WEIGHTS = next(iter(sorted(MODELS.glob("*.gguf"))), None) if MODELS.exists() else None


@pytest.mark.skipif(
    WEIGHTS is None or not PYTHON.exists(), reason=f"no small model in {MODELS}: run `make models`, or set MODELS_DIR"
)
def test_a_small_model_scores_answers(tmp_path: Path) -> None:
    numbers = "\n".join(f"gauge {number} reads {number * 7919 % 1000}" for number in range(40))
    call = {"id": "c", "type": "function", "function": {"name": "Read", "arguments": '{"file_path": "gauges.txt"}'}}
    messages = [
        {"role": "user", "content": "Read gauges.txt."},
        {"role": "assistant", "content": "", "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "c", "content": numbers},
        {"role": "assistant", "content": "I have read it."},
        {"role": "user", "content": "What do the last two gauges read?"},
        {"role": "assistant", "content": "gauge 38 reads 922\ngauge 39 reads 841"},
    ]
    recording = tmp_path / "recording.jsonl"
    recording.write_text(json.dumps({"id": "one", "messages": messages}))
    command = [str(PYTHON), str(ROOT / "bench" / "small_model.py"), "--gguf", str(WEIGHTS), "--threads", "1"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as server:
        assert server.stdout is not None
        try:
            words = ("--endpoint", json.loads(server.stdout.readline())["url"], "--model", "small", "--json")
            choice = ("lab", "reading", "--likelihood", "--context", 500, "--questions", 1)
            read = json.loads(pagefold(*choice, *words, home=tmp_path).stdout)
            after = ("lab", "likelihood", "--logs", recording, "--window", 300, "--context", 600, "--turns", 1)
            likely = json.loads(pagefold(*after, *words, home=tmp_path).stdout)
        finally:
            server.terminate()

    assert read["asked"] == 1
    assert read["all"]["nats_a_token"] is not None
    nats = {row["name"]: row["nats_a_token"] for row in likely["contexts"]}
    assert 0 < nats["original"] < nats["nothing"]
