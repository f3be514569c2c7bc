"""Kills a running `pagefold serve` in the middle of requests and starts it again: is anything refused or undone?

    python -m bench.killed_serve [--kills 30] [--seed 1] [--policy economic] [--window 16000]

The simulated agent of `pagefold.solve` works on tasks through a real proxy process, in front of the provider on
loopback, whose thinking is bound to its prefix. At random moments the process gets SIGKILL: before a request, or while
it is under way. The client waits for the next process and sends the same request once more, as agents do. What reaches
the provider has to be the same bytes then: *other bytes* counts requests of which it was not, and `--keep DIR` writes
them there.
"""

import argparse
import http.client
import json
import os
import random
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from pagefold.provider.referee import Referee
from pagefold.solve.experiment import MODEL, most_turns
from pagefold.solve.kinds import tasks
from pagefold.solve.loop import RefusedError, run
from pagefold.solve.simulated import SimulatedAgent

_SIZE = 16_000
_SLOW = 0.3  # seconds that the provider takes at most: a kill may come meanwhile


class Provider(ThreadingHTTPServer):
    """The referee over HTTP, one request after the other, each after a moment."""

    daemon_threads = True

    def __init__(self, dice: random.Random) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.dice, self.lock = dice, threading.Lock()
        self.referee = Referee()
        self.answered: dict[bytes, tuple[int, bytes]] = {}
        self.came: list[bytes] = []  # of the request that the client is at
        threading.Thread(target=self.serve_forever, daemon=True).start()

    def handle_error(self, *_: object) -> None: ...  # who asked was killed

    def answer(self, body: bytes) -> tuple[int, bytes]:
        """What the model says; to the same request the same again, as the agent has not gone on since."""
        time.sleep(self.dice.random() * _SLOW)
        with self.lock:
            self.came.append(body)
            if body not in self.answered:
                reply = self.referee.answer("/v1/messages", {"anthropic-version": "2023-06-01"}, body, time.monotonic())
                self.answered = {body: (reply.status, b"".join(reply.pieces))}
            return self.answered[body]


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        provider: Any = self.server
        status, said = provider.answer(self.rfile.read(int(self.headers["content-length"])))
        try:
            self.send_response(status)
            self.send_header("content-type", "application/json")
            self.send_header("content-length", str(len(said)))
            self.end_headers()
            self.wfile.write(said)
        except OSError:
            return  # who asked was killed

    def log_message(self, *_: object) -> None: ...


class Serve:
    """A proxy process that is killed now and then; `kills` are left."""

    def __init__(
        self, home: Path, provider: Provider, policy: str, window: int, dice: random.Random, kills: int
    ) -> None:
        self._home, self._provider, self._dice = home, provider, dice
        self._policy, self._window = policy, window
        self.kills, self.killed, self.sent_again = kills, 0, 0
        self.others: list[list[bytes]] = []  # what reached the provider of requests that did not stay the same
        self._start()

    def _start(self) -> None:
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self._port = free.getsockname()[1]
        command = [sys.executable, "-m", "pagefold", "serve", "--port", str(self._port), "--policy", self._policy]
        command += ["--window", str(self._window), "--anthropic-url", f"http://127.0.0.1:{self._provider.server_port}"]
        environment = {**os.environ, "HOME": str(self._home), "XDG_DATA_HOME": str(self._home)}
        self._process = subprocess.Popen(command, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        for _ in range(600):
            with socket.socket() as tried:
                if tried.connect_ex(("127.0.0.1", self._port)) == 0:
                    return
            time.sleep(0.05)
        raise SystemExit("pagefold serve did not start")

    def kill(self) -> None:
        self._process.send_signal(signal.SIGKILL)
        self._process.wait()
        self.killed += 1

    def close(self) -> None:
        self._process.terminate()
        self._process.wait(30)

    def __call__(self, body: bytes, now: float) -> Mapping[str, Any]:
        self._provider.came = []
        try:
            return self._sent(body)
        finally:
            if len(set(self._provider.came)) > 1:
                self.others.append([body, *self._provider.came])

    def _sent(self, body: bytes) -> Mapping[str, Any]:
        doomed = None
        if self.kills and self._dice.random() < 0.3:
            self.kills -= 1
            doomed = threading.Timer(self._dice.random() * 0.4, self.kill)
            doomed.start()
        try:
            for _ in range(4):
                try:
                    return self._post(body)
                except (OSError, http.client.HTTPException) as error:
                    if isinstance(error, urllib.error.HTTPError):
                        raise RefusedError(f"{error.code} {error.read()[:300]!r}") from error
                    self.sent_again += 1
                    self._process.wait(10)
                    self._start()
        finally:
            if doomed is not None:
                doomed.join()
                if self._process.poll() is not None:
                    self._start()
        raise RefusedError("no process answered")

    def _post(self, body: bytes) -> Mapping[str, Any]:
        headers = {"content-type": "application/json", "x-api-key": "none", "anthropic-version": "2023-06-01"}
        asked = urllib.request.Request(f"http://127.0.0.1:{self._port}/v1/messages", body, headers)
        with urllib.request.urlopen(asked, timeout=60) as answer:
            message: Mapping[str, Any] = json.load(answer)
        return message


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kills", type=int, default=30)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--policy", default="economic")
    parser.add_argument("--window", type=int, default=_SIZE)
    parser.add_argument("--keep", metavar="DIR", type=Path, help="write requests there that were not the same bytes")
    options = parser.parse_args()
    dice, solved, runs, turns, refused = random.Random(options.seed), 0, 0, 0, list[str]()
    provider = Provider(dice)
    with tempfile.TemporaryDirectory() as home:
        serve = Serve(Path(home), provider, options.policy, options.window, dice, options.kills)
        for seed in range(options.seed, options.seed + 20):
            for task in tasks(options.window, seed, ["change-of-mind", "early-fact", "several-edits"], ["shop"]):
                provider.referee = Referee(answers=SimulatedAgent(task.asks))
                outcome = run(task, MODEL, serve, most_turns=most_turns(task))
                runs, solved, turns = runs + 1, solved + outcome.solved, turns + outcome.turns
                refused += [f"{task.name}: {outcome.reason}"] if not outcome.solved else []
                rules = dict(provider.referee.totals.refused)
                print(
                    f"{task.name}: {'solved' if outcome.solved else outcome.reason}, {outcome.turns} turns, "
                    f"{serve.killed} killed so far, refused by the provider {rules or 'none'}",
                    flush=True,
                )
                if not serve.kills:
                    break
            if not serve.kills:
                break
        serve.close()
    print(
        f"{serve.killed} kills in {turns} turns of {runs} tasks: {serve.sent_again} requests sent again by the client, "
        f"{len(serve.others)} of them as other bytes, {solved} tasks solved"
    )
    for number, bodies in enumerate(serve.others if options.keep else ()):
        options.keep.mkdir(parents=True, exist_ok=True)
        for place, body in enumerate(bodies):
            (options.keep / f"{number}-{'client' if place == 0 else place}.json").write_bytes(body)
    print("\n".join(refused))
    return 0 if solved == runs and not serve.others else 1


if __name__ == "__main__":
    raise SystemExit(main())
