"""`serve --workers`: several processes on one port send what one would, count as one, and outlive one another."""

import json
import os
import signal
import sqlite3
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.model_proxy.conversation import body, turn
from tests.model_proxy.upstream import ANSWER, Upstream, answers, upstream

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="stops processes by signals")

HEAD = b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: %d\r\n\r\n" % len(ANSWER)
PATIENCE = 60.0
WINDOW = "12000"


class Served:
    def __init__(self, process: "subprocess.Popen[str]", url: str, dashboard: str) -> None:
        self.process, self.url, self.key = process, url, dashboard.rpartition("=")[2]

    def get(self, path: str) -> bytes:
        request = urllib.request.Request(f"{self.url}{path}", headers={"x-pagefold-token": self.key})
        with urllib.request.urlopen(request, timeout=PATIENCE) as answer:
            content: bytes = answer.read()
        return content

    def status(self) -> dict[str, Any]:
        return dict(json.loads(self.get("/pagefold/status")))

    def workers(self) -> list[int]:
        return list(self.status()["workers"]["running"])

    def ask(self, data: bytes) -> int:
        request = urllib.request.Request(f"{self.url}/v1/messages", data, {"content-type": "application/json"})
        with urllib.request.urlopen(request, timeout=PATIENCE) as answer:
            assert answer.read() == ANSWER
            return int(answer.status)


@contextmanager
def served(folder: Path, provider: Upstream, workers: int, *more: str) -> Iterator[Served]:
    folder.mkdir(exist_ok=True)
    flags = ["--workers", str(workers), "--port", "0", "--anthropic-url", provider.url, "--store", str(folder / "s.db")]
    command = [sys.executable, "-m", "pagefold", "serve", "--json", *flags, *more]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=folder) as process:
        try:
            assert process.stdout is not None
            yield Served(process, **json.loads(process.stdout.readline()))
        finally:
            process.send_signal(signal.SIGTERM)
            process.wait(PATIENCE)


@contextmanager
def stopped(worker: int, store: Path) -> Iterator[None]:
    """Stops a worker that is not writing into the store: one stopped in mid-write would lock the other out."""
    writing = sqlite3.connect(store, timeout=PATIENCE, isolation_level=None)
    try:
        writing.execute("BEGIN IMMEDIATE")
        os.kill(worker, signal.SIGSTOP)
        writing.execute("ROLLBACK")
        yield
    finally:
        writing.close()
        os.kill(worker, signal.SIGCONT)


def until(holds: Callable[[], bool]) -> None:
    due = time.monotonic() + PATIENCE
    while not holds():
        assert time.monotonic() < due
        time.sleep(0.05)


def requests(session: int, turns: int = 7) -> Iterator[bytes]:
    messages: list[dict[str, Any]] = [{"role": "user", "content": f"Session {session}."}]
    for number in range(turns):
        lines = (f"{at}\tvalue_{at * 7919 * (number + session + 3) % 10**7} = {at}" for at in range(1, 120))
        messages += turn(number, "\n".join(lines))
        yield body(messages)


def test_turns_on_any_worker_are_sent_as_by_one(tmp_path: Path) -> None:
    policy = ("--policy", "economic", "--window", WINDOW)
    conversations = [list(requests(session)) for session in range(3)]
    with upstream(answers(HEAD, ANSWER)) as provider:
        with served(tmp_path / "one", provider, 1, *policy) as one:
            for data in (data for turns in zip(*conversations, strict=True) for data in turns):
                one.ask(data)
        by_one = [received.body for received in provider.received]
        provider.received.clear()
        with served(tmp_path / "two", provider, 2, *policy) as two:
            first, second = two.workers()
            for number, turns in enumerate(zip(*conversations, strict=True)):
                for data in turns:
                    away = (first, second)[number % 2]  # who is stopped takes no connection: the other one does
                    with stopped(away, tmp_path / "two" / "s.db"):
                        two.ask(data)
            until(lambda: two.status()["requests"] == len(by_one))  # a worker that stood still tells later
            counted, metrics = two.status(), two.get("/pagefold/metrics").decode()
            sessions = json.loads(two.get("/pagefold/live.json"))["sessions"]
    assert [received.body for received in provider.received] == by_one
    assert any(b"context_recall" in data for data in by_one)
    assert (counted["requests"], counted["faults"], counted["workers"]["restarted"]) == (len(by_one), 0, 0)
    assert {"pagefold_workers 2", f"pagefold_requests_total {len(by_one)}"} <= set(metrics.splitlines())
    assert [session["turns"] for session in sessions] == [7, 7, 7]


def test_a_worker_that_is_killed_is_started_again_and_nobody_else_notices(tmp_path: Path) -> None:
    with upstream(answers(HEAD, ANSWER)) as provider, served(tmp_path, provider, 2) as two:
        before, turns = two.workers(), list(requests(1))
        two.ask(turns[0])
        two.status()  # what was counted is told
        os.kill(before[0], signal.SIGKILL)
        for data in turns[1:]:
            assert two.ask(data) == 200
        until(lambda: len(two.workers()) == 2)
        status = two.status()
        assert status["workers"]["restarted"] == 1
        assert before[1] in status["workers"]["running"]
        assert before[0] not in status["workers"]["running"]
        assert (status["requests"], status["failed"]) == (len(turns), 0)


def test_a_signal_ends_all_of_them_and_what_was_counted_is_in_the_stats(tmp_path: Path) -> None:
    with upstream(answers(HEAD, ANSWER)) as provider:
        with served(tmp_path, provider, 2) as two:
            workers = two.workers()
            for data in requests(1, 4):
                two.ask(data)
        assert two.process.returncode == 0
        assert two.process.stdout is not None
    for worker in workers:
        with pytest.raises(ProcessLookupError):
            os.kill(worker, 0)
    command = [sys.executable, "-m", "pagefold", "stats", "--json", "--store", str(tmp_path / "s.db")]
    told = subprocess.run(command, capture_output=True, text=True, check=True, cwd=tmp_path)
    assert json.loads(told.stdout)["model"]["requests"] == 4


def test_what_keeps_a_worker_from_starting_is_said_once(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "pagefold", "serve", "--workers", "2", "--port", "0", "--policy", "none-such"]
    ended = subprocess.run(command, capture_output=True, text=True, check=False, timeout=PATIENCE, cwd=tmp_path)
    assert (ended.returncode, ended.stdout) == (2, "")
    assert ended.stderr.count("none-such") == 1
