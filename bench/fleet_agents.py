"""Real Claude Code in front of a fleet on one Postgres and one bucket, whose instances are killed meanwhile.

A balancer gives every request to an instance at random, and to another one where that went away. Upstream is the
provider that enforces its rules, thinking bound to its prefix included. Afterwards the requests of the agent, as they
came, go to a single instance on a file, which gets the same answers: what both sent upstream has to be the same bytes.
Needs what `make agents` installs and the kit that drives agents. Exit code 1: a request was refused or other bytes, or
a handle was sent whose page is not there. Usage: python -m bench.fleet_agents [--turns 200] [--kills 20]
"""

import argparse
import http.client
import os
import random
import tempfile
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from bench.instances import PATIENT, REPLICAS, Fleet, environment, fleet
from bench.replicas import lost_handles
from pagefold.provider.referee import Referee
from pagefold.provider.script import parse_script
from tests.agents.refereed import WINDOWS, drive, script, work_in
from tests.buckets import running_bucket
from tests.postgres import running_postgres

AGENT, POLICY, TRIES = "claude-code", "economic", 200
_OWN = frozenset(("host", "content-length", "connection", "accept-encoding", "transfer-encoding"))


@dataclass(frozen=True)
class Answer:
    status: int
    kind: str
    content: bytes


@dataclass(frozen=True)
class Asked:
    """A request of the agent, as it came."""

    path: str
    headers: Mapping[str, str]
    body: bytes


class _Server(ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.url = f"http://127.0.0.1:{self.server_address[1]}"
        threading.Thread(target=self.serve_forever, daemon=True).start()

    def handle_error(self, *_: object) -> None: ...  # who asked was killed

    def answer(self, asked: Asked) -> Answer:
        raise NotImplementedError


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        server: Any = self.server
        headers = {name.lower(): value for name, value in self.headers.items() if name.lower() not in _OWN}
        body = self.rfile.read(int(self.headers["content-length"]))
        self._give(server.answer(Asked(self.path, headers, body)))

    def do_GET(self) -> None:
        self._give(Answer(200, "application/json", b"{}"))

    def do_HEAD(self) -> None:
        self.do_GET()

    def _give(self, answer: Answer) -> None:
        self.send_response(answer.status)
        self.send_header("content-type", answer.kind)
        self.send_header("content-length", str(len(answer.content)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(answer.content)

    def log_message(self, *_: object) -> None: ...


@dataclass
class Judged:
    """What reached the provider of one turn, each time it came, and what it said."""

    bodies: list[bytes] = field(default_factory=list)
    answer: Answer | None = None


class Provider(_Server):
    """The referee. To a turn that comes again it says the same again. `told` are answers that are said instead."""

    def __init__(self, turns: int, told: Mapping[str, Judged] | None = None) -> None:
        self.referee, self._told = Referee(answers=parse_script(script(turns), "the script")), told
        self.judged: dict[str, Judged] = {}
        self._one = threading.Lock()
        super().__init__()

    def answer(self, asked: Asked) -> Answer:
        with self._one:
            turn = asked.headers["x-turn"]
            judged = self.judged.setdefault(turn, Judged())
            judged.bodies.append(asked.body)
            if self._told is not None:
                judged.answer = self._told[turn].answer
            elif judged.answer is None:
                reply = self.referee.answer(asked.path, asked.headers, asked.body, time.time())
                judged.answer = Answer(reply.status, reply.kind, b"".join(reply.pieces))
            assert judged.answer is not None
            return judged.answer


class Balancer(_Server):
    """Gives each request to an instance at random, and to another one where that went away."""

    def __init__(self, instances: Fleet) -> None:
        self._instances = instances
        self.came: list[Asked] = []
        self.again = 0
        super().__init__()

    def answer(self, asked: Asked) -> Answer:
        self.came.append(asked)
        number = len(self.came) - 1
        for _ in range(TRIES):
            try:
                return sent(self._instances.any().url, number, asked)
            except (OSError, http.client.HTTPException):
                self.again += 1
                time.sleep(0.1)
        return Answer(502, "text/plain", b"no instance answers")


def sent(url: str, number: int, asked: Asked) -> Answer:
    request = urllib.request.Request(url + asked.path, asked.body, {**asked.headers, "x-turn": str(number)})
    try:
        with urllib.request.urlopen(request, timeout=120) as answer:
            return Answer(answer.status, answer.headers["content-type"], answer.read())
    except urllib.error.HTTPError as error:
        return Answer(error.code, error.headers["content-type"] or "text/plain", error.read())


def kill_until(ended: threading.Event, instances: Fleet, kills: int, seconds: float) -> int:
    """Kills an instance now and then until the agent has ended. Returns how many."""
    dice, done = random.Random(3), 0
    while done < kills and not ended.wait(dice.uniform(0.2, 2 * seconds / kills)):
        instances.kill(dice.randrange(REPLICAS))
        done += 1
    return done


def driven(instances: Fleet, balancer: Balancer, turns: int, kills: int) -> int:
    """Has the agent work behind the balancer. Returns how many instances were killed meanwhile."""
    ended, killed = threading.Event(), list[int]()
    killer = threading.Thread(target=lambda: killed.append(kill_until(ended, instances, kills, turns * 0.12)))
    with tempfile.TemporaryDirectory() as folder:
        work_in(Path(folder))
        killer.start()
        try:
            said = drive(AGENT, balancer.url, Path(folder), "Read code.py in parts", seconds=60 + 8 * turns)
        finally:
            ended.set()
            killer.join()
    assert "All is read." in said
    return killed[0]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--turns", type=int, default=200)
    parser.add_argument("--kills", type=int, default=20)
    given = parser.parse_args()
    began = time.monotonic()
    with ExitStack() as stack:
        url = stack.enter_context(running_postgres(sync=True)).new_schema()
        folder = stack.enter_context(tempfile.TemporaryDirectory())
        sink = stack.enter_context(running_bucket("moto_server", Path(folder)))
        provider = Provider(given.turns)
        with fleet(provider, POLICY, environment(url, sink) | PATIENT, WINDOWS[AGENT]) as instances:
            instances.grow(REPLICAS)
            balancer = Balancer(instances)
            killed = driven(instances, balancer, given.turns, given.kills)
        handles, lost = lost_handles(url, [body for judged in provider.judged.values() for body in judged.bodies])
    told = Provider(given.turns, provider.judged)
    with fleet(told, POLICY, PATIENT, WINDOWS[AGENT]) as single:
        single.grow(1)
        for number, asked in enumerate(balancer.came):
            if str(number) in provider.judged:
                sent(single.any().url, number, asked)
    other = sum(len({*judged.bodies, *told.judged[turn].bodies}) != 1 for turn, judged in provider.judged.items())
    refused = dict(provider.referee.totals.refused)
    print(f"{AGENT}, {REPLICAS} instances on Postgres and a bucket, {POLICY}: ", end="")
    print(
        f"{len(provider.judged)} requests, {killed} instances killed, {balancer.again} tried again by the balancer, ",
        end="",
    )
    print(f"{time.monotonic() - began:.0f} s, load {os.getloadavg()[0]:.0f}")
    print(f"refused by the provider: {refused or 'none'}; {handles} handles were sent, {lost} without a page; ", end="")
    print(f"{other} of {len(provider.judged)} requests are other bytes than those of a single instance on a file")
    return int(bool(refused or lost or other))


if __name__ == "__main__":
    raise SystemExit(main())
