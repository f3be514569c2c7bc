"""The reading test against a real small model on loopback. Skipped where `make models` has not been run."""

import json
import os
import subprocess
from pathlib import Path

import pytest

from tests.cli.program import pagefold

ROOT = Path(__file__).parents[2]
MODELS = Path(os.environ.get("MODELS_DIR") or ROOT / ".models").absolute()
PYTHON = MODELS / "venv" / "bin" / "python"
WEIGHTS = next(MODELS.rglob("SmolLM2*.gguf"), None) if MODELS.exists() else None


@pytest.mark.skipif(
    WEIGHTS is None or not PYTHON.exists(), reason=f"no small model in {MODELS}: run `make models`, or set MODELS_DIR"
)
def test_a_small_model_scores_answers(tmp_path: Path) -> None:
    command = [
        str(PYTHON),
        str(ROOT / "bench" / "small_model.py"),
        "--gguf",
        str(WEIGHTS),
        "--threads",
        "1",
        "--context",
        "2048",
    ]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as server:
        assert server.stdout is not None
        try:
            url = json.loads(server.stdout.readline())["url"]
            words = (
                "--endpoint",
                url,
                "--model",
                "small",
                "--likelihood",
                "--context",
                500,
                "--questions",
                1,
                "--json",
            )
            told = json.loads(pagefold("lab", "reading", *words, home=tmp_path).stdout)
        finally:
            server.terminate()

    assert told["asked"] == 1
    assert told["all"]["nats_a_token"] is not None
