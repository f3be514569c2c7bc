"""`pagefold lab likelihood` as a user runs it, against a model on loopback that finds likely what it has read."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from tests.cli.program import pagefold
from tests.cli.reading_model import reading_model

SMALL = ("--window", 1_000, "--context", 3_000)


def words(url: str, *more: object) -> tuple[object, ...]:
    return ("lab", "likelihood", "--endpoint", url, "--model", "m", *SMALL, *more)


def scored(url: str, home: Path, *more: object) -> dict[str, Any]:
    return dict(json.loads(pagefold(*words(url, "--json", *more), home=home).stdout))


def test_a_model_that_copies_finds_answers_likelier_the_more_it_has_read(tmp_path: Path) -> None:
    with reading_model(lambda prompt: "") as model:
        told = scored(model.url, tmp_path)
        shown = pagefold(*words(model.url), home=tmp_path)

    rows = {row["name"]: row for row in told["contexts"]}
    assert list(rows) == ["original", "lossless", "economic", "last tokens", "nothing"]
    assert told["scored"] == told["turns"] > 2
    assert told["sessions"] == 1
    assert rows["original"]["nats_a_token"] <= rows["last tokens"]["nats_a_token"] <= rows["nothing"]["nats_a_token"]
    assert rows["nothing"]["more_than_original"]["turns_worse"] == told["turns"]
    assert rows["nothing"]["more_than_original"]["nats_a_token"] > 0.5
    assert {path for path, _, _ in model.requests} == {"/v1/completions"}
    assert "One session does not tell" in told["verdict"]
    assert b"last tokens" in shown.stdout


def test_a_killed_run_goes_on_from_what_was_kept(tmp_path: Path) -> None:
    def slow(path: str) -> None:
        time.sleep(0.1)

    with reading_model(lambda prompt: "") as model:
        model.before = slow
        run = subprocess.Popen(
            [sys.executable, "-m", "pagefold", *map(str, words(model.url, "--resume", "kept.jsonl"))],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            cwd=tmp_path,
            env={"HOME": str(tmp_path), "PATH": os.environ["PATH"]},
        )
        while len(model.requests) < 5:
            time.sleep(0.02)
        run.send_signal(signal.SIGKILL)
        run.wait()
        time.sleep(0.2)  # what it had asked last is answered
        asked = len(model.requests)
        model.before = lambda path: None

        told = scored(model.url, tmp_path, "--resume", "kept.jsonl")
        kept = (tmp_path / "kept.jsonl").read_text().splitlines()
        assert len(model.requests) <= asked + 5 * told["turns"] - 4
        again = scored(model.url, tmp_path, "--resume", "kept.jsonl")
        assert len(kept) == 5 * told["turns"]

    assert told == again


def test_the_budget_is_exceeded_by_no_more_than_one_request(tmp_path: Path) -> None:
    with reading_model(lambda prompt: "") as model:
        told = scored(model.url, tmp_path, "--budget", 1_500)
        spent = [len(body["prompt"].split()) for _, _, body in model.requests]

    assert told["ended"] == "the budget of 1,500 tokens is spent"
    assert told["scored"] == 0
    assert sum(spent[:-1]) < 1_500


def test_an_endpoint_that_scores_only_some_tokens_is_told(tmp_path: Path) -> None:
    with reading_model(lambda prompt: "") as model:
        half = {"text_offset": [0, 5], "token_logprobs": [None, None]}
        model.refuse = [(200, {"choices": [{"logprobs": half}]})]
        done = pagefold(*words(model.url), home=tmp_path, code=1)

    assert b"came without a log-probability" in done.stderr


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ((), "lab likelihood: expected --endpoint URL and --model NAME"),
        (("--endpoint", "http://127.0.0.1:1", "--model", "m", "--turns", "0"), "--turns 0: expected 1 or more"),
        (("--endpoint", "http://127.0.0.1:1", "--model", "m", "--policies", "best"), "best"),
        (("--endpoint", "https://api.anthropic.com", "--model", "m", "--api", "anthropic"), "scores no texts"),
        (("--endpoint", "http://127.0.0.1:1", "--model", "m", "--window", "900k"), "no answer in these recordings"),
    ],
)
def test_what_the_user_has_to_change_is_one_sentence(arguments: tuple[str, ...], said: str, tmp_path: Path) -> None:
    done = pagefold("lab", "likelihood", *arguments, home=tmp_path, code=2)

    assert said in done.stderr.decode()
    assert len(done.stderr.decode().strip().splitlines()) == 1
