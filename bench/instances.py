"""Instances of `pagefold serve` on one store, a provider that keeps what reached it, and clients with recorded
sessions."""

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
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from http.client import HTTPException
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import islice
from pathlib import Path
from typing import Any

from bench.recorded import PROJECT, family, sessions
from pagefold.settings.sections import SinkSettings
from pagefold.wire.message import Role

REPLICAS, TRIES, LARGE, WINDOW = 4, 60, 2_000, 30_000
PATIENT = {"PAGEFOLD_STORE_DEADLINE_SECONDS": "10"}
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
    """Instances on one store. `checkout` is the folder whose code new ones run, by its own environment if it has one;
    `more` are settings of new ones."""

    def __init__(
        self, folder: Path, upstream: str, policy: str, environment: dict[str, str], window: int = WINDOW
    ) -> None:
        self._folder, self._upstream, self._policy, self._environment = folder, upstream, policy, environment
        self._window = window
        self.checkout, self.more, self._dice = PROJECT, dict[str, str](), random.Random(5)
        self.running: list[Instance] = []
        self.retired: list[Instance] = []  # these get no turns any more
        self._errors = (folder / "stderr").open("ab")

    def start(self) -> Instance:
        own = self.checkout / ".venv/bin/python"
        python = str(own) if self.checkout != PROJECT and own.exists() else sys.executable
        command = [python, "-m", "pagefold", "serve", "--json", "--port", "0", "--policy", self._policy]
        command += ["--openai-url", self._upstream, "--anthropic-url", self._upstream, "--window", str(self._window)]
        home = {"HOME": str(self._folder), "PATH": os.environ["PATH"], "PYTHONPATH": str(self.checkout / "src")}
        process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=self._errors,
            text=True,
            cwd=self._folder,
            env={**home, **self._environment, **self.more},
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

    def stop_retired(self) -> None:
        for one in self.retired:
            one.process.send_signal(signal.SIGTERM)
        for one in self.retired:
            one.process.communicate(timeout=60)
        self.retired = []

    def kill(self, number: int) -> None:
        """Kills an instance, whatever it is at, and starts another."""
        self.running[number].process.kill()
        self.running[number].process.communicate()
        self.running[number] = self.start()

    def close(self) -> None:
        for instance in (*self.running, *self.retired):
            end(instance)
        self._errors.close()


class Balancer:
    """One address of several instances: each connection goes to one at random, and ends where nobody listens."""

    def __init__(self, instances: list[Instance]) -> None:
        self._ports = [int(one.url.rpartition(":")[2]) for one in instances]
        self._dice, self._listening = random.Random(11), socket.create_server(("127.0.0.1", 0), backlog=100)
        self.url = f"http://127.0.0.1:{self._listening.getsockname()[1]}"
        threading.Thread(target=self._accept, daemon=True).start()

    def close(self) -> None:
        self._listening.shutdown(socket.SHUT_RDWR)
        self._listening.close()

    def _accept(self) -> None:
        with suppress(OSError):  # it was closed
            while True:
                client, _ = self._listening.accept()
                try:
                    server = socket.create_connection(("127.0.0.1", self._dice.choice(self._ports)))
                except OSError:
                    client.close()
                    continue
                for ends in ((client, server), (server, client)):
                    threading.Thread(target=self._pass_on, args=ends, daemon=True).start()

    @staticmethod
    def _pass_on(source: socket.socket, target: socket.socket) -> None:
        with suppress(OSError):
            while data := source.recv(1 << 16):
                target.sendall(data)
        with suppress(OSError):
            target.shutdown(socket.SHUT_WR)


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


def drive(
    bodies: list[list[bytes]], choose: Callable[[], Instance], of_session: Callable[[int], Instance] | None = None
) -> Iterator[Counts]:
    """Sends all sessions side by side while the block runs, and gives their counts after it."""

    def chosen(at: int) -> Callable[[], Instance]:
        return choose if of_session is None else lambda: of_session(at)

    counts = [Counts() for _ in bodies]
    threads = [
        threading.Thread(target=converse, args=(f"s{at}", turns, chosen(at), counts[at], at))
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


def only(one: Instance) -> Callable[[], Instance]:
    """Has every turn go to this instance."""
    return lambda: one


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
def fleet(provider: ThreadingHTTPServer, policy: str, given: dict[str, str], window: int = WINDOW) -> Iterator[Fleet]:
    with tempfile.TemporaryDirectory() as folder:
        one = Fleet(Path(folder), f"http://127.0.0.1:{provider.server_address[1]}", policy, given, window)
        try:
            yield one
        finally:
            one.close()
            told = Path(folder, "stderr").read_text()
            print(
                "    told:", {line.split(":")[1].strip()[:70] for line in told.splitlines() if ":" in line} or "nothing"
            )
