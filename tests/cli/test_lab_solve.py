"""`pagefold lab solve` as a user runs it: with the simulated agent, and with a model on loopback that works like it."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from pagefold.adapters.model_prices import ModelPrices
from pagefold.solve.kinds import tasks
from pagefold.wire.message import Usage
from tests.cli.program import pagefold
from tests.solve.model import SolvingModel, solving_model

KEY = "sk-secret-of-the-user"
KINDS = ("several-edits", "change-of-mind")
TASKS = tasks(12_000, 1, KINDS, ["shop"])
FEW = ("--kinds", ",".join(KINDS), "--domains", "shop", "--sizes", "12k")


def solve(home: Path, *more: object, code: int = 0, **environment: Any) -> dict[str, Any]:
    done = pagefold("lab", "solve", *FEW, "--json", *more, home=home, code=code, **environment)
    return dict(json.loads(done.stdout))


def at(model: SolvingModel, name: str = "claude-opus-5-5", api: str = "anthropic") -> tuple[object, ...]:
    return "--endpoint", model.url, "--model", name, "--api", api


def test_the_simulated_agent_needs_no_key_and_goes_on_from_a_file(tmp_path: Path) -> None:
    written = ("--html", "v.html", "--markdown", "v.md", "--resume", "runs.jsonl", "--transcripts", "kept")
    told = solve(tmp_path, "--simulate", *written)
    again = solve(tmp_path, "--simulate", "--resume", "runs.jsonl")

    (size,) = told["sizes"]
    assert [(arm["arm"], arm["runs"]) for arm in size["arms"]] == [("as it is", 2), ("economic", 2)]
    assert size["arms"][0]["solved"] == 1
    assert size["arms"][0]["folds"] == 0 < size["arms"][1]["folds"]
    assert [found["measure"] for found in size["against as it is"]["economic"]][:2] == ["solved", "cost"]
    assert again == told
    assert len((tmp_path / "runs.jsonl").read_text().splitlines()) == 4
    assert len(list((tmp_path / "kept").iterdir())) == 4
    for name in ("v.html", "v.md"):
        assert "economic against as it is, 2 pairs" in (tmp_path / name).read_text()
        assert "They do not say what a real model would do" in (tmp_path / name).read_text()


@pytest.mark.parametrize(("name", "api"), [("claude-opus-5-5", "anthropic"), ("gpt-5.6-sol", "openai")])
def test_a_real_endpoint_is_asked_straight_and_through_a_proxy(name: str, api: str, tmp_path: Path) -> None:
    kept = ("--resume", "runs.jsonl", "--transcripts", "kept", "--key-variable", "MY_KEY", "--html", "v.html")
    with solving_model(TASKS, echo=KEY) as model:  # a model that repeats the key in every answer
        told = solve(tmp_path, *at(model, name, api), *kept, MY_KEY=KEY)
        asked = len(model.records)
        solve(tmp_path, *at(model, name, api), *kept, MY_KEY=KEY)

    arms = {arm["arm"]: arm for arm in told["sizes"][0]["arms"]}
    assert arms["as it is"]["solved"] == arms["economic"]["solved"] == 1
    assert arms["economic"]["folds"] > 0
    assert arms["economic"]["largest"] < arms["as it is"]["largest"]
    assert {record.rule for record in model.records} <= {"", "openai_parameter"}
    assert len(model.records) == asked, "what is kept is not asked again"
    written = [file for file in tmp_path.rglob("*") if file.is_file()]
    assert len(written) >= 6
    assert not [file for file in written if KEY in file.read_text()]


def test_a_budget_is_passed_by_one_request_at_most(tmp_path: Path) -> None:
    with solving_model(TASKS) as model:
        told = solve(tmp_path, *at(model), "--budget-usd", "0.2", "--resume", "runs.jsonl", "--transcripts", "kept")
        asked = len(model.records)
        tokens = solve(tmp_path, *at(model), "--budget", "20k")

    assert told["runs"] < told["planned"]
    assert told["ended"] == "the budget of $0.20 is used up"
    kept = [json.loads(file.read_text()) for file in (tmp_path / "kept").iterdir()]
    (stopped,) = [run for run in kept if run["result"]["reason"] == "stopped"]
    total = sum(run["result"]["usd"] for run in kept)
    assert total - usd(stopped["usage"][-1]) < 0.2 <= total
    assert tokens["ended"] == "the budget of 20.0 k tokens is used up"
    assert sum(record.tokens for record in model.records[asked:-1]) < 20_000


def usd(told: dict[str, int]) -> float:
    names = ("input_tokens", "cache_read_input_tokens", "cache_creation_input_tokens", "output_tokens")
    return ModelPrices().prices("claude-opus-5-5").bill(Usage(*(told[name] for name in names)))


@pytest.mark.parametrize(("sent", "code"), [(signal.SIGKILL, -signal.SIGKILL), (signal.SIGINT, 130)])
def test_a_run_that_was_ended_goes_on(sent: signal.Signals, code: int, tmp_path: Path) -> None:
    runs = tmp_path / "runs.jsonl"
    with solving_model(TASKS) as model:
        command = [sys.executable, "-m", "pagefold", "lab", "solve", *FEW, *map(str, at(model)), "--resume", str(runs)]
        environment = {"HOME": str(tmp_path), "PATH": os.environ["PATH"]}
        with subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as begun:
            while begun.poll() is None and not runs.exists():
                time.sleep(0.02)
            begun.send_signal(sent)
            shown, _ = begun.communicate()
        made = runs.read_text().count("\n")
        told = solve(tmp_path, *at(model), "--resume", runs)
    assert begun.returncode == code
    assert (b"planned runs were made: interrupted" in shown) == (sent is signal.SIGINT)
    assert 1 <= made < 4
    assert told["runs"] == told["planned"] == 4
    assert runs.read_text().count("\n") == 4


def test_an_endpoint_that_fails_ends_it_and_is_no_result(tmp_path: Path) -> None:
    with solving_model(TASKS) as model:
        url = f"{model.url}/nowhere"
        flags = ("--endpoint", url, "--model", "m", "--api", "anthropic", "--transcripts", "kept")
        told = solve(tmp_path, *flags, code=1)
    assert told["runs"] == 0
    (kept,) = (tmp_path / "kept").iterdir()
    assert json.loads(kept.read_text())["result"]["reason"] == "cut off"
    assert "404 Not found" in told["ended"]
    assert told["prices"] == "assumed at the prices of Claude Opus 5 (2026-11), because m is not known"


@pytest.mark.parametrize(
    ("flags", "reason"),
    [
        ((), "expected --simulate, or --endpoint URL and --model NAME"),
        (("--simulate", "--arms", "as it is,fast"), "--arms 'fast': expected as it is, or one of"),
        (("--simulate", "--kinds", "easy"), "--kinds 'easy': expected names among several-edits"),
        (("--simulate", "--sizes", "big"), "--sizes 'big': expected a number of tokens"),
        (("--simulate", "--seeds", "0"), "--seeds 0: expected 1 to"),
    ],
)
def test_bad_flags_are_told(flags: tuple[str, ...], reason: str, tmp_path: Path) -> None:
    assert reason in pagefold("lab", "solve", *flags, home=tmp_path, code=2).stderr.decode()
