"""`pagefold lab reading` as a user runs it, against a model on loopback that reads by rule."""

import json
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from tests.cli.program import pagefold
from tests.cli.reading_model import Rule, reading_model

KEY = "sk-secret-of-the-user"


@pytest.fixture(scope="module")
def questions(tmp_path_factory: pytest.TempPathFactory) -> list[dict[str, Any]]:
    home = tmp_path_factory.mktemp("questions")
    done = pagefold("lab", "reading", "--write", "questions.jsonl", home=home)
    assert b"wrote" in done.stderr
    return [json.loads(line) for line in (home / "questions.jsonl").read_text().splitlines()]


def reader(questions: list[dict[str, Any]], *, forms: bool) -> Rule:
    """A model that knows every answer where it sees the original and, if `forms`, where it sees the form."""

    def answered(prompt: str) -> str:
        for question in questions:
            contexts = [question["original"], question["form"]][: 1 + forms]
            if question["question"] in prompt and any(context in prompt for context in contexts):
                return str(question["answer"])
        return "I cannot say."

    return answered


def asked(url: str, home: Path, *more: object, **environment: Any) -> dict[str, Any]:
    done = pagefold("lab", "reading", "--endpoint", url, "--model", "m", "--json", *more, home=home, **environment)
    return dict(json.loads(done.stdout))


def test_a_model_that_reads_everything_is_told_so(questions: list[dict[str, Any]], tmp_path: Path) -> None:
    with reading_model(reader(questions, forms=True)) as model:
        told = asked(model.url, tmp_path)
        shown = pagefold("lab", "reading", "--endpoint", f"{model.url}/v1/", "--model", "m", home=tmp_path)

    assert told["asked"] == told["questions"] == len(questions)
    assert (told["all"]["original"], told["all"]["form"]) == (1, 1)
    assert {path for path, _, _ in model.requests} == {"/v1/chat/completions"}
    assert b"by codec" in shown.stdout
    assert b"Not decided" in shown.stdout  # one session is not enough


def test_a_model_that_cannot_read_forms_is_found_out(questions: list[dict[str, Any]], tmp_path: Path) -> None:
    with reading_model(reader(questions, forms=False)) as model:
        told = asked(model.url, tmp_path)

    assert (told["all"]["original"], told["all"]["form"]) == (1, 0)
    assert {row["difference"] for row in told["codecs"]} == {-1}


def test_likelihood_chooses_among_given_answers(questions: list[dict[str, Any]], tmp_path: Path) -> None:
    with reading_model(reader(questions, forms=True)) as model:
        told = asked(model.url, tmp_path, "--likelihood")

    assert (told["all"]["original"], told["all"]["form"]) == (1, 1)
    assert told["all"]["nats_a_token"]["difference"] == 0
    assert 0 < told["all"]["chance"] < 1
    assert {path for path, _, _ in model.requests} == {"/v1/completions"}


def test_an_endpoint_that_cannot_score_is_told(tmp_path: Path) -> None:
    with reading_model(lambda prompt: "") as model:
        model.refuse = [(200, {"choices": [{"text": ""}]})]
        done = pagefold(
            "lab", "reading", "--endpoint", model.url, "--model", "m", "--likelihood", home=tmp_path, code=1
        )

    assert b"cannot score a text" in done.stderr


def test_anthropic_gets_its_own_format_and_key(questions: list[dict[str, Any]], tmp_path: Path) -> None:
    with reading_model(reader(questions, forms=True)) as model:
        told = asked(model.url, tmp_path, "--api", "anthropic", "--key-variable", "MINE", MINE=KEY)

    assert told["all"]["form"] == 1
    path, headers, _ = model.requests[0]
    assert path == "/v1/messages"
    assert {name.lower(): value for name, value in headers.items()}["x-api-key"] == KEY


def test_a_key_is_sent_to_nobody_unasked_and_shown_nowhere(questions: list[dict[str, Any]], tmp_path: Path) -> None:
    with reading_model(reader(questions, forms=True)) as model:
        asked(model.url, tmp_path, "--questions", 1, OPENAI_API_KEY=KEY)
        assert KEY not in str(model.requests)

        model.refuse = [(401, {"error": {"message": f"Incorrect API key provided: {KEY}"}})]
        words = ("lab", "reading", "--endpoint", model.url, "--model", "m", "--key-variable", "MINE")
        done = pagefold(*words, "--resume", "kept.jsonl", home=tmp_path, code=1, MINE=KEY)
        assert b"401 Incorrect API key provided: (key)" in done.stderr
        done = pagefold(*words, "--resume", "kept.jsonl", home=tmp_path, MINE=KEY)

    assert KEY.encode() not in done.stdout + done.stderr
    assert KEY not in (tmp_path / "kept.jsonl").read_text()


def test_a_run_goes_on_from_what_was_kept_and_a_torn_line_is_asked_again(
    questions: list[dict[str, Any]], tmp_path: Path
) -> None:
    kept = tmp_path / "kept.jsonl"
    with reading_model(reader(questions, forms=True)) as model:
        first = asked(model.url, tmp_path, "--resume", kept, "--budget", 105 * 6)
        assert len(model.requests) == 6
        assert first["ended"] == "the budget of 630 tokens is spent"
        assert first["asked"] == 3
        kept.write_text(kept.read_text()[:-30])

        told = asked(model.url, tmp_path, "--resume", kept)
        assert len(model.requests) == 2 * len(questions) + 1
        again = asked(model.url, tmp_path, "--resume", kept)
        assert len(model.requests) == 2 * len(questions) + 1

    assert told["all"] == again["all"]
    assert told["ended"] == ""


def test_newer_models_that_take_no_temperature_are_asked_without(
    questions: list[dict[str, Any]], tmp_path: Path
) -> None:
    with reading_model(reader(questions, forms=True)) as model:
        reason = "Unsupported parameter: 'max_tokens' is not supported; use 'max_completion_tokens'."
        model.refuse = [
            (400, {"error": {"message": reason}}),
            (400, {"error": {"message": "'temperature' does not support 0 with this model."}}),
            (429, {"error": {"message": "slow down"}}),
        ]
        told = asked(model.url, tmp_path, "--questions", 2)

    assert told["asked"] == 2
    assert [sorted(body) for _, _, body in model.requests[3:]] == [["max_completion_tokens", "messages", "model"]] * 4


def test_interrupted_it_prints_what_it_has(questions: list[dict[str, Any]], tmp_path: Path) -> None:
    def slow(prompt: str) -> str:
        time.sleep(0.2)
        return reader(questions, forms=True)(prompt)

    with reading_model(slow) as model:
        words = ["lab", "reading", "--endpoint", model.url, "--model", "m", "--json", "--resume", "kept.jsonl"]
        run = subprocess.Popen(
            [sys.executable, "-m", "pagefold", *words],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            cwd=tmp_path,
            env={"HOME": str(tmp_path), "PATH": ""},
        )
        while len(model.requests) < 5:
            time.sleep(0.05)
        run.send_signal(signal.SIGINT)
        out, _ = run.communicate(timeout=60)

    assert run.returncode == 130
    assert json.loads(out)["ended"] == "interrupted"
    assert len((tmp_path / "kept.jsonl").read_text().splitlines()) >= 4


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ((), "expected --endpoint URL and --model NAME, or --write FILE"),
        (("--endpoint", "ftp://x", "--model", "m"), "expected a key in OPENAI_API_KEY"),
        (("--endpoint", "ftp://127.0.0.1", "--model", "m"), "expected an address such as"),
        (("--endpoint", "http://example.org", "--model", "m", "--key-variable", "PATH"), "sent by https only"),
        (("--endpoint", "http://u:p@127.0.0.1", "--model", "m"), "without a password"),
        (("--endpoint", "http://127.0.0.1", "--model", "m", "--questions", "0"), "--questions 0: expected 1 or more"),
        (("--endpoint", "http://127.0.0.1", "--model", "m", "--key-variable", "NONE"), "no such environment variable"),
        (("--write", "q.jsonl", "--logs", "nothing-here.jsonl"), "nothing-here.jsonl: no such file"),
    ],
)
def test_what_the_user_has_to_change_is_one_sentence(arguments: tuple[str, ...], said: str, tmp_path: Path) -> None:
    done = pagefold("lab", "reading", *arguments, home=tmp_path, code=2)

    assert said in done.stderr.decode()
    assert len(done.stderr.decode().strip().splitlines()) == 1
