"""A fleet of `pagefold serve` on one Postgres and one bucket against a single instance, with recorded sessions.

Every session goes turn by turn to an instance at random, and some turns are sent again to another one. Phases:
`equal` compares what reached the provider with what a single instance sent. `rolling` begins with instances of another
checkout (`--old FOLDER`, its `src`) and replaces them one by one under load; a prefix that moved is a message that had
been sent and is another one in a later request. `storage` has the bucket fail, refuse and be slow meanwhile. `latency`
sends each turn to an instance on a file and to two on Postgres, one of which
commits without waiting for the disk, in alternation. A history keeps the policy that it began with, so every run has a
new store.
Usage: python -m bench.fleet [--phases equal,storage,latency] [--old FOLDER] [--sessions 4] [--turns 200]
"""

import argparse
import json
import os
import random
import signal
import statistics
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass, field
from http.client import HTTPException
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import islice
from pathlib import Path
from typing import Any

import psycopg

from bench.proxy import cpu_seconds
from bench.recorded import PROJECT, family, sessions
from pagefold.settings.sections import SinkSettings
from pagefold.wire.message import Role
from tests.buckets import FaultyBucket, running_bucket
from tests.postgres import running_postgres

REPLICAS, TRIES, LARGE, WINDOW = 4, 60, 2_000, 30_000
_ANSWER = json.dumps(
    {
        "model": "gpt-5",
        "choices": [{"index": 0, "message": {"role": "assistant", "content": "ok"}, "finish_reason": "stop"}],
        "usage": {"prompt_tokens": 20_000, "completion_tokens": 9, "prompt_tokens_details": {"cached_tokens": 19_000}},
    }
).encode()


class Provider(ThreadingHTTPServer):
    """Keeps the last body of every turn, by the name that the client gave it."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.bodies: dict[str, bytes] = {}
        threading.Thread(target=self.serve_forever, daemon=True).start()

    def handle_error(self, *_: object) -> None: ...  # an instance was ended


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        server: Any = self.server
        server.bodies[self.headers["x-turn"]] = self.rfile.read(int(self.headers["content-length"]))
        self.send_response(200)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(_ANSWER)))
        self.end_headers()
        self.wfile.write(_ANSWER)

    def log_message(self, *_: object) -> None: ...


def recorded(count: int, turns: int) -> list[list[bytes]]:
    """The requests of recorded sessions, turn by turn."""
    found = []
    for session in islice(sessions(family("coding-claude-code-july")), count):
        raws = [message.raw for message in session.messages]
        ends = [at for at, message in enumerate(session.messages) if message.role is Role.ASSISTANT and at][:turns]
        found.append([f'{{"model":"gpt-5","messages":[{",".join(raws[:end])}]}}'.encode() for end in ends])
    return found


@dataclass
class Instance:
    url: str
    process: "subprocess.Popen[str]"


class Fleet:
    """Instances on one store. `source` is the folder of the code that new ones run."""

    def __init__(self, folder: Path, upstream: str, policy: str, environment: dict[str, str]) -> None:
        self._folder, self._upstream, self._policy, self._environment = folder, upstream, policy, environment
        self.source, self._dice = PROJECT / "src", random.Random(5)
        self.running: list[Instance] = []
        self._errors = (folder / "stderr").open("ab")

    def start(self) -> Instance:
        command = [sys.executable, "-m", "pagefold", "serve", "--json", "--port", "0", "--policy", self._policy]
        command += ["--openai-url", self._upstream, "--window", str(WINDOW)]
        home = {"HOME": str(self._folder), "PATH": os.environ["PATH"], "PYTHONPATH": str(self.source)}
        process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=self._errors,
            text=True,
            cwd=self._folder,
            env={**home, **self._environment},
        )
        assert process.stdout is not None
        return Instance(json.loads(process.stdout.readline())["url"], process)

    def any(self) -> Instance:
        return self._dice.choice(self.running)

    def grow(self, count: int) -> None:
        self.running += [self.start() for _ in range(count)]

    def replace(self, number: int) -> None:
        """Starts a new instance, and ends the old one in order, as a rolling upgrade does."""
        old, self.running[number] = self.running[number], self.start()
        end(old)

    def close(self) -> None:
        for instance in self.running:
            end(instance)
        self._errors.close()


def end(instance: Instance) -> None:
    instance.process.send_signal(signal.SIGTERM)
    instance.process.communicate(timeout=60)


@dataclass
class Counts:
    done: int = 0
    failed: int = 0
    again: int = 0
    seconds: list[float] = field(default_factory=list)


def converse(name: str, bodies: list[bytes], choose: Callable[[], Instance], counts: Counts, seed: int) -> None:
    dice = random.Random(seed)
    for number, body in enumerate(bodies):
        for _ in range(1 + (dice.random() < 0.1)):  # one in ten is sent again, to any instance
            began = time.perf_counter()
            if asked(f"{name}/{number}", body, choose, counts):
                counts.done += 1
                counts.seconds.append(time.perf_counter() - began)
            else:
                counts.failed += 1


def asked(turn: str, body: bytes, choose: Callable[[], Instance], counts: Counts) -> bool:
    headers = {"content-type": "application/json", "authorization": "Bearer sk-bench", "x-turn": turn}
    for _ in range(TRIES):
        request = urllib.request.Request(f"{choose().url}/v1/chat/completions", body, headers)
        try:
            with urllib.request.urlopen(request, timeout=60) as response:
                response.read()
                return True
        except (OSError, HTTPException):
            counts.again += 1
            time.sleep(0.1)
    return False


def drive(bodies: list[list[bytes]], choose: Callable[[], Instance]) -> Iterator[Counts]:
    """Sends all sessions side by side while the block runs, and gives their counts after it."""
    counts = [Counts() for _ in bodies]
    threads = [
        threading.Thread(target=converse, args=(f"s{at}", turns, choose, counts[at], at))
        for at, turns in enumerate(bodies)
    ]
    for thread in threads:
        thread.start()
    whole = Counts()
    yield whole
    for thread in threads:
        thread.join()
    for one in counts:
        whole.done, whole.failed, whole.again = (
            whole.done + one.done,
            whole.failed + one.failed,
            whole.again + one.again,
        )
        whole.seconds += one.seconds


driving = contextmanager(drive)


def environment(url: str, sink: SinkSettings | None) -> dict[str, str]:
    given = {"PAGEFOLD_STORE_URL": url}
    if sink is not None:
        given |= {
            "PAGEFOLD_STORE_OBJECTS_OVER": str(LARGE),
            "PAGEFOLD_SINK_ENDPOINT": sink.endpoint,
            "PAGEFOLD_SINK_BUCKET": sink.bucket,
            "PAGEFOLD_SINK_ACCESS_KEY": sink.access_key,
            "PAGEFOLD_SINK_SECRET_KEY": sink.secret_key,
        }
    return given


@contextmanager
def fleet(provider: Provider, policy: str, given: dict[str, str]) -> Iterator[Fleet]:
    with tempfile.TemporaryDirectory() as folder:
        one = Fleet(Path(folder), f"http://127.0.0.1:{provider.server_address[1]}", policy, given)
        try:
            yield one
        finally:
            one.close()
            told = Path(folder, "stderr").read_text()
            print(
                "    told:", {line.split(":")[1].strip()[:70] for line in told.splitlines() if ":" in line} or "nothing"
            )


def moved(bodies: dict[str, bytes], sessions: int) -> tuple[int, int]:
    """How many requests followed another one, and how many of them do not begin with all messages of it."""
    followed = wrong = 0
    for session in range(sessions):
        before: list[Any] = []
        for number in range(10**6):
            if (body := bodies.get(f"s{session}/{number}")) is None:
                break
            messages = json.loads(body)["messages"]
            followed += bool(before)
            wrong += messages[: len(before)] != before
            before = messages
    return followed, wrong


def alone(bodies: list[list[bytes]], policy: str) -> dict[str, bytes]:
    """What a single instance on a file sends."""
    provider = Provider()
    with fleet(provider, policy, {}) as single:
        single.grow(1)
        with driving(bodies, single.any) as counts:
            pass
    print(f"    single instance, {policy}: {counts.done} turns, {counts.failed} failed")
    return provider.bodies


def equal(bodies: list[list[bytes]], new_store: Callable[[], str], sink: SinkSettings) -> int:
    wrong = 0
    for policy in ("lossless", "economic"):
        expected, provider = alone(bodies, policy), Provider()
        with fleet(provider, policy, environment(new_store(), sink)) as several:
            several.grow(REPLICAS)
            with driving(bodies, several.any) as counts:
                pass
        other = sum(provider.bodies[turn] != body for turn, body in expected.items())
        wrong += other + counts.failed
        print(f"equal, {policy}: {counts.done} turns over {REPLICAS} instances, {counts.failed} failed, ", end="")
        print(f"{len(expected)} bodies compared with a single instance on a file, {other} other")
    return wrong


def rolling(bodies: list[list[bytes]], new_store: Callable[[], str], old: Path) -> int:
    wrong, turns = 0, sum(map(len, bodies))
    for policy in ("lossless", "economic"):
        provider = Provider()
        with fleet(provider, policy, environment(new_store(), None)) as several:
            several.source = old / "src"
            several.grow(REPLICAS)
            with driving(bodies, several.any) as counts:
                several.source = PROJECT / "src"
                for number in range(REPLICAS):
                    while len(provider.bodies) < turns * (number + 1) // (REPLICAS + 1):
                        time.sleep(0.05)
                    several.replace(number)
                before_the_last = len(provider.bodies)
        followed, wrong_ones = moved(provider.bodies, len(bodies))
        wrong += counts.failed
        print(f"rolling, {policy}: {counts.done} turns, {counts.failed} failed, {counts.again} tried again, ", end="")
        print(f"{wrong_ones} of {followed} requests do not begin with all of the one before; ", end="")
        print(f"all instances were new after {before_the_last} turns")
        stayed = moved(alone(bodies, policy), len(bodies))
        print(f"    a single instance that is not replaced: {stayed[1]} of {stayed[0]}")
    return wrong


def storage(bodies: list[list[bytes]], new_store: Callable[[], str], sink: SinkSettings) -> int:
    wrong = 0
    for fault in ("500", "denied", "slow"):
        relay, provider = FaultyBucket(sink), Provider()
        with closing(relay), fleet(provider, "economic", environment(new_store(), relay.settings)) as several:
            several.grow(2)
            with driving(bodies, several.any) as counts:
                time.sleep(2.0)
                relay.fault = fault
                time.sleep(6.0)
                relay.fault = ""
        wrong += counts.failed
        slowest = sorted(counts.seconds)[int(0.99 * len(counts.seconds))]
        print(f"storage {fault}: {counts.done} turns, {counts.failed} failed, p99 {1000 * slowest:.0f} ms; ", end="")
        print(f"{relay.faults} requests of the bucket went wrong")
    return wrong


def written(url: str, turns: int) -> str:
    """What a turn has written to Postgres, on average."""
    with psycopg.connect(url) as db:
        sizes = "SELECT sum(pg_total_relation_size(oid)) FROM pg_class WHERE relkind = 'r' AND relnamespace = "
        schema = "(SELECT oid FROM pg_namespace WHERE nspname = current_schema())"
        tables = "FROM pg_stat_user_tables WHERE schemaname = current_schema()"
        asked = f"SELECT sum(n_tup_ins), sum(n_tup_upd), ({sizes}{schema}) {tables}"
        row = db.execute(asked.encode()).fetchone()
    assert row is not None
    inserted, updated, size = (float(value or 0) / turns for value in row)
    return f"a turn wrote {inserted:.1f} rows, changed {updated:.1f}, and takes {size:,.0f} bytes with all indexes"


def latency(bodies: list[list[bytes]], new_store: Callable[[], str]) -> int:
    for policy in ("lossless", "economic"):
        provider, times = Provider(), {name: list[float]() for name in ("file", "postgres", "postgres, commits later")}
        url, later = new_store(), f"{new_store()}%20-csynchronous_commit%3Doff"
        with ExitStack() as stack:
            ends = {
                "file": stack.enter_context(fleet(provider, policy, {})),
                "postgres": stack.enter_context(fleet(provider, policy, environment(url, None))),
                "postgres, commits later": stack.enter_context(fleet(provider, policy, environment(later, None))),
            }
            for one in ends.values():
                one.grow(1)
            began_with = {name: cpu_seconds(one.any().process.pid) for name, one in ends.items()}
            for at, turns in enumerate(bodies):
                for number, body in enumerate(turns):
                    for name in random.Random(number).sample(sorted(ends), len(ends)):
                        began = time.perf_counter()
                        assert asked(f"s{at}/{number}", body, ends[name].any, Counts())
                        times[name].append(time.perf_counter() - began)
            cpu = {name: cpu_seconds(one.any().process.pid) - began_with[name] for name, one in ends.items()}
        own = ", ".join(f"{name} {1000 * used / len(times[name]):.1f} ms" for name, used in cpu.items())
        print(f"    CPU a turn, first sights included: {own}")
        print(f"    {written(url, len(times['file']))}")
        told = {name: sorted(1000 * one for one in values) for name, values in times.items()}
        print(f"latency, {policy}: {len(times['file'])} turns each; ", end="")
        print(
            ", ".join(
                f"{name} p50 {statistics.median(one):.2f}, p99 {one[-len(one) // 100]:.0f} ms"
                for name, one in told.items()
            )
        )
    return 0


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--phases", default="equal,storage,latency")
    parser.add_argument("--old", type=Path, help="a checkout of another version, for the phase rolling")
    parser.add_argument("--sessions", type=int, default=4)
    parser.add_argument("--turns", type=int, default=200)
    given = parser.parse_args()
    bodies, wrong = recorded(given.sessions, given.turns), 0
    print(f"{len(bodies)} recorded sessions, {sum(map(len, bodies))} turns; load {os.getloadavg()[0]:.0f}", flush=True)
    with ExitStack() as stack:
        server = stack.enter_context(running_postgres(sync=True))
        folder = stack.enter_context(tempfile.TemporaryDirectory())
        sink = stack.enter_context(running_bucket("moto_server", Path(folder)))
        phases: dict[str, Callable[[], int]] = {
            "equal": lambda: equal(bodies, server.new_schema, sink),
            "rolling": lambda: rolling(bodies, server.new_schema, given.old),
            "storage": lambda: storage(bodies, server.new_schema, sink),
            "latency": lambda: latency(bodies, server.new_schema),
        }
        for phase in given.phases.split(","):
            wrong += phases[phase]()
            sys.stdout.flush()
    return int(bool(wrong))


if __name__ == "__main__":
    raise SystemExit(main())
