"""Several `pagefold serve` on one Postgres, while they are killed and the server is stopped, started and replaced.

Sessions go to a replica at random, and a client tries another one where its request was cut. A failover is a copy of
the running server (`pg_basebackup`) that takes the place of it some turns later, so that it lacks those. Counted are
turns that could not be done, and handles that were sent and whose page the store does not have. Exit code 1 where there
are any. Usage: python -m bench.replicas [--kills 20] [--restarts 10] [--failovers 5] [--replicas 3]
"""

import argparse
import json
import os
import random
import re
import signal
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request
from contextlib import closing, suppress
from http.client import HTTPException
from pathlib import Path
from typing import Any

from bench.chaos import WINDOW, Provider, turn
from pagefold.adapters.stores import open_store
from tests.postgres import PostgresServer, running_postgres

SESSIONS, TRIES = 3, 60


class Replicas:
    """The processes, each started again when it was killed."""

    def __init__(self, count: int, url: str, upstream: str, folder: Path) -> None:
        self._command = [sys.executable, "-m", "pagefold", "serve", "--json", "--port", "0", "--policy", "economic"]
        self._command += ["--window", str(WINDOW), "--anthropic-url", upstream, "--store", url]
        self._errors = (folder / "stderr").open("ab")
        self._environment = {**os.environ, "HOME": str(folder)}
        self.running = [self._start() for _ in range(count)]

    def kill(self, number: int) -> None:
        process, _ = self.running[number]
        process.send_signal(signal.SIGKILL)
        process.wait()
        self.running[number] = self._start()

    def close(self) -> None:
        for process, _ in self.running:
            process.send_signal(signal.SIGTERM)
            process.wait(30)
        self._errors.close()

    def _start(self) -> tuple[subprocess.Popen[str], str]:
        process = subprocess.Popen(
            self._command, stdout=subprocess.PIPE, stderr=self._errors, text=True, env=self._environment
        )
        assert process.stdout is not None
        return process, json.loads(process.stdout.readline())["url"]


class Session(threading.Thread):
    """One agent. It goes on until `ended` is set, and counts turns that were done and that were not."""

    def __init__(self, number: int, replicas: Replicas, ended: threading.Event) -> None:
        super().__init__()
        self._number, self._replicas, self._ended = number, replicas, ended
        self.done = self.failed = self.retried = 0
        self.seconds: list[float] = []

    def run(self) -> None:
        dice, number = random.Random(self._number), 0
        messages: list[dict[str, Any]] = [{"role": "user", "content": f"Work on session{self._number}."}]
        while not self._ended.is_set():
            messages += turn(self._number, number)
            number += 1
            data = json.dumps({"model": "claude-sonnet-4-5", "max_tokens": 9, "messages": messages}).encode()
            began = time.perf_counter()
            if self._asked(data, dice):
                self.done += 1
                self.seconds.append(time.perf_counter() - began)
            else:
                self.failed += 1
            if number == 40:
                number, messages = 0, messages[:1]

    def _asked(self, data: bytes, dice: random.Random) -> bool:
        for _ in range(TRIES):
            url = dice.choice(self._replicas.running)[1]
            request = urllib.request.Request(f"{url}/v1/messages", data, {"content-type": "application/json"})
            with suppress(OSError, HTTPException), urllib.request.urlopen(request, timeout=30) as response:
                response.read()
                return True
            self.retried += 1
            time.sleep(0.1)
        return False


def restart(server: PostgresServer, number: int) -> None:
    server.stop(signal.SIGQUIT if number % 2 else signal.SIGINT)
    time.sleep(1.0)
    server.start()


def fail_over(server: PostgresServer) -> None:
    server.copy_running()
    time.sleep(1.0)
    server.stop(signal.SIGQUIT)
    server.take_copy()
    server.start()


def lost_handles(url: str, bodies: list[bytes]) -> tuple[int, int]:
    handles = {handle for body in bodies for handle in re.findall(r"pf-[a-z2-7]{10}", body.decode())}
    with closing(open_store(url)) as store:
        return len(handles), sum(not store.pages.find(handle) for handle in handles)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kills", type=int, default=20)
    parser.add_argument("--restarts", type=int, default=10)
    parser.add_argument("--failovers", type=int, default=5)
    parser.add_argument("--replicas", type=int, default=3)
    given = parser.parse_args()
    provider, ended, dice = Provider(), threading.Event(), random.Random(7)
    with running_postgres(sync=True) as server, tempfile.TemporaryDirectory() as folder:
        url = server.new_schema()
        replicas = Replicas(given.replicas, url, f"http://127.0.0.1:{provider.server_address[1]}", Path(folder))
        sessions = [Session(number, replicas, ended) for number in range(SESSIONS)]
        for session in sessions:
            session.start()
        for _ in range(given.kills):
            time.sleep(dice.uniform(0.1, 0.8))
            replicas.kill(dice.randrange(given.replicas))
        for number in range(given.restarts):
            restart(server, number)
            time.sleep(2.0)
        for _ in range(given.failovers):
            fail_over(server)
            time.sleep(3.0)
        ended.set()
        for session in sessions:
            session.join()
        time.sleep(2.0)
        replicas.close()
        sent, lost = lost_handles(url, provider.bodies)
        told = Path(folder, "stderr").read_text()
    provider.shutdown()
    done, failed, retried = (sum(getattr(one, name) for one in sessions) for name in ("done", "failed", "retried"))
    print(f"{given.replicas} replicas, {given.kills} kills, {given.restarts} restarts, ", end="")
    print(f"{given.failovers} failovers of Postgres: {done} turns done; load {os.getloadavg()[0]:.0f}")
    print(f"{failed} turns failed, {retried} requests were tried again, ", end="")
    print(f"the store came back {told.count('works again')} times, {told.count('(gone)')} of them after a loss")
    seconds = sorted(taken for one in sessions for taken in one.seconds)
    print(f"a turn took p50 {1000 * seconds[len(seconds) // 2]:.0f} ms, ", end="")
    print(f"p99 {1000 * seconds[int(0.99 * len(seconds))]:.0f} ms, with what was tried again")
    print(f"{sent} handles were sent, {lost} of them without a page")
    return int(failed > 0 or lost > 0 or not sent)


if __name__ == "__main__":
    raise SystemExit(main())
