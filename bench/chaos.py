"""Breaks the store and the process of a running proxy while sessions go on, and counts what that costs.

Each fault is tried with sessions running through `pagefold serve` under economic in a small window: recorded ones of
Claude Code, whose tool results name their session so that a page under a wrong history is seen, or scripted ones where
there are no recordings. Counted are turns that failed, requests above the window, handles that cannot be recalled once
the proxy has recovered, pages under a wrong history, and whether the fault was told. Run by `make chaos`; everything is
on loopback.
"""

import argparse
import json
import os
import re
import resource
import shutil
import signal
import sqlite3
import subprocess
import sys
import tempfile
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Callable
from contextlib import closing, suppress
from functools import cache, partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, NamedTuple

from bench.load import recorded
from bench.recorded import family
from pagefold import tokens
from pagefold.adapters.stores import open_store

WINDOW, SESSIONS, TURNS = 16_000, 3, 24
_ANSWER = b'{"model":"m","content":[],"stop_reason":"end_turn","usage":{"input_tokens":5,"output_tokens":2}}'
_CHAT = "/v1/chat/completions"
_CHAT_ANSWER = (
    b'{"model":"m","choices":[{"index":0,"message":{"role":"assistant","content":"ok"},"finish_reason":"stop"}],'
    b'"usage":{"prompt_tokens":5,"completion_tokens":2}}'
)
_OUTAGE_SECONDS = 2.0
_BEFORE, _PAUSE = 4, 0.1  # turns of each session before the fault, and seconds between two: sessions outlast a fault
_BEGIN_SECONDS = 30.0  # within which they have to have begun
_OWNER = "miller_no_"  # and a number: whose a session is, by a name that no recording holds
_RECOVERY_SECONDS = 15.0


class Provider(ThreadingHTTPServer):
    """Answers every request, and keeps its body. With `stream_seconds`, an answer streams for so long."""

    daemon_threads = True

    def __init__(self, stream_seconds: float = 0.0) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.stream_seconds = stream_seconds
        self.bodies: list[bytes] = []
        threading.Thread(target=self.serve_forever, daemon=True).start()


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        server: Any = self.server
        server.bodies.append(self.rfile.read(int(self.headers["content-length"])))
        self.send_response(200)
        if server.stream_seconds:
            self.send_header("content-type", "text/event-stream")
            self.send_header("connection", "close")
            self.end_headers()
            ends = time.monotonic() + server.stream_seconds
            while time.monotonic() < ends:
                self.wfile.write(b"event: ping\ndata: {}\n\n")
                time.sleep(0.2)
            self.wfile.write(b"event: message_stop\ndata: {}\n\n")
            self.close_connection = True
            return
        answer = _CHAT_ANSWER if self.path == _CHAT else _ANSWER
        self.send_header("content-length", str(len(answer)))
        self.send_header("content-type", "application/json")
        self.end_headers()
        self.wfile.write(answer)

    def log_message(self, *_: object) -> None: ...


class Figures(NamedTuple):
    turns: int
    failed: int
    too_large: int
    not_recalled: int
    wrong_history: int
    told: bool
    recovered: bool


def turn(session: int, number: int) -> list[dict[str, Any]]:
    name = f"{_OWNER}{session}"
    lines = (f"{at}\t{name}_{(at * 7919 + number * 31) % 10**6} = {at * number}" for at in range(1, 90))
    call = {
        "type": "tool_use",
        "id": f"{name}t{number}",
        "name": "Read",
        "input": {"file_path": f"/{name}/{number}.py"},
    }
    result = {"type": "tool_result", "tool_use_id": call["id"], "content": "\n".join(lines)}
    return [{"role": "assistant", "content": [call]}, {"role": "user", "content": [result]}]


def scripted(session: int) -> tuple[str, list[bytes]]:
    """The path and the requests of a session that reads one file after another."""
    messages: list[dict[str, Any]] = [{"role": "user", "content": f"Work on {_OWNER}{session}."}]
    bodies: list[bytes] = []
    for number in range(TURNS):
        messages += turn(session, number)
        bodies.append(json.dumps({"model": "claude-sonnet-4-5", "max_tokens": 9, "messages": messages}).encode())
    return "/v1/messages", bodies


@cache
def recordings() -> list[tuple[list[str], list[int]]]:
    return recorded(30, TURNS) if family("coding-claude-code").exists() else []


def conversation(session: int) -> tuple[str, list[bytes]]:
    """The path and the requests of a recorded session, of a scripted one where there are no recordings."""
    if not recordings():
        return scripted(session)
    raws, ends = recordings()[session % len(recordings())]
    messages = [{"role": "user", "content": f"Work on {_OWNER}{session}."}, *map(json.loads, raws)]
    for message in messages:
        if message["role"] == "tool" and isinstance(message["content"], str):
            message["content"] += f"\n(of {_OWNER}{session})"
    bodies = [json.dumps({"model": "gpt-5", "messages": messages[: end + 1]}).encode() for end in ends]
    return _CHAT, bodies


def converse(url: str, path: str, bodies: list[bytes], failures: list[str]) -> None:
    for data in bodies:
        request = urllib.request.Request(f"{url}{path}", data, {"content-type": "application/json"})
        for attempt in range(20):
            try:
                with urllib.request.urlopen(request, timeout=30) as response:
                    response.read()
                break
            except urllib.error.HTTPError as error:
                if error.code != 503 or attempt == 19:  # a client goes by Retry-After
                    failures.append(f"{error.code}")
                    break
                time.sleep(0.5)
            except OSError as error:
                failures.append(type(error).__name__)
                break
        time.sleep(_PAUSE)


def begun(provider: Provider) -> None:
    """Waits until the sessions are under way: a fault that comes before them breaks nothing."""
    ends = time.monotonic() + _BEGIN_SECONDS
    while len(provider.bodies) < _BEFORE * SESSIONS:
        if time.monotonic() > ends:
            raise TimeoutError("the sessions have not begun")
        time.sleep(0.01)


# ---- faults: each gets the store's file and the proxy's process, and leaves what a user would find


def locked(path: Path, process: subprocess.Popen[str], seconds: float = _OUTAGE_SECONDS) -> None:
    with closing(sqlite3.connect(path, isolation_level=None, timeout=10)) as other:
        other.execute("BEGIN EXCLUSIVE")
        time.sleep(seconds)
        other.execute("ROLLBACK")


def deleted(path: Path, process: subprocess.Popen[str]) -> None:
    path.unlink()


def replaced(path: Path, process: subprocess.Popen[str]) -> None:
    with closing(open_store(path.with_name("other.sqlite3"))) as other:
        other.pages.put(b"of another store", history="other")
    path.with_name("other.sqlite3").replace(path)


def flipped(path: Path, process: subprocess.Popen[str]) -> None:
    with closing(sqlite3.connect(path, timeout=10)) as other:  # so that what is flipped is what is read
        other.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    with path.open("r+b") as file:
        for place in range(300, max(4096, path.stat().st_size), 700):
            file.seek(place)
            file.write(os.urandom(16))


def folder_gone(path: Path, process: subprocess.Popen[str]) -> None:
    shutil.rmtree(path.parent)


def stopped(path: Path, process: subprocess.Popen[str]) -> None:
    process.send_signal(signal.SIGSTOP)
    time.sleep(_OUTAGE_SECONDS)
    process.send_signal(signal.SIGCONT)


def full(path: Path, process: subprocess.Popen[str]) -> None:
    """No file of the proxy can grow, as on a full disk."""
    resource.prlimit(process.pid, resource.RLIMIT_FSIZE, (4_096, resource.RLIM_INFINITY))
    time.sleep(_OUTAGE_SECONDS)
    resource.prlimit(process.pid, resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))


def says(path: Path, process: subprocess.Popen[str], words: str, seconds: float = _OUTAGE_SECONDS) -> None:
    """What the stand-in for a disk and a clock does for a while: see chaos_disk.c."""
    path.parent.with_name("says").write_text(words)
    time.sleep(seconds)
    path.parent.with_name("says").write_text("")


def nothing(path: Path, process: subprocess.Popen[str]) -> None:
    """For limits that are set at the start."""


FAULTS: dict[str, tuple[Callable[..., None], tuple[int, int] | None]] = {
    "nothing": (nothing, None),
    "locked": (locked, None),
    "locked for long": (partial(locked, seconds=8.0), None),
    "deleted": (deleted, None),
    "replaced": (replaced, None),
    "flipped bits": (flipped, None),
    "folder gone": (folder_gone, None),
    "full": (full, None),
    "64 descriptors": (nothing, (resource.RLIMIT_NOFILE, 64)),
    "SIGSTOP": (stopped, None),
    "locked for ever": (partial(locked, seconds=40.0), None),  # until after the last turn
    "slow disk": (partial(says, words="slow", seconds=4.0), None),
    "read-only": (partial(says, words="read-only"), None),
    "inodes": (partial(says, words="inodes"), None),
    "clock + 1 h": (partial(says, words="clock 3600", seconds=3.0), None),
    "clock - 1 h": (partial(says, words="clock -3600", seconds=3.0), None),
}
_SILENT = frozenset(("nothing", "SIGSTOP", "64 descriptors", "inodes", "clock + 1 h", "clock - 1 h"))
_UNSAID = frozenset(("id", "type", "role", "tool_call_id", "tool_use_id"))
_STAND_IN = frozenset(("slow disk", "read-only", "inodes", "clock + 1 h", "clock - 1 h"))


def tried(fault: str, number: int) -> Figures:
    """A fault, the so-manieth time: each time with other recordings."""
    break_it, limit = FAULTS[fault]
    conversations = [conversation(session) for session in range(number * SESSIONS, (number + 1) * SESSIONS)]
    provider = Provider()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "store", "store.sqlite3")
        command = [sys.executable, "-m", "pagefold", "serve", "--json", "--port", "0", "--policy", "economic"]
        command += ["--window", str(WINDOW), "--store", str(path)]
        upstream = f"http://127.0.0.1:{provider.server_address[1]}"
        command += ["--anthropic-url", upstream, "--openai-url", upstream]

        def limited() -> None:
            if limit:
                resource.setrlimit(limit[0], (limit[1], limit[1]))

        with Path(folder, "stderr").open("w+") as errors:
            process = subprocess.Popen(
                command,
                env={**os.environ, **(_stand_in(Path(folder)) if fault in _STAND_IN else {})},
                stdout=subprocess.PIPE,
                stderr=errors,
                text=True,
                preexec_fn=limited,  # noqa: PLW1509
            )
            assert process.stdout is not None
            url = json.loads(process.stdout.readline())["url"]
            failures: list[str] = []
            clients = [threading.Thread(target=converse, args=(url, *one, failures)) for one in conversations]
            for client in clients:
                client.start()
            begun(provider)
            with suppress(OSError):
                break_it(path, process)
            for client in clients:
                client.join()
            recovered = _is_well(url)
            time.sleep(1.5)
            process.send_signal(signal.SIGTERM)
            process.wait(30)
            errors.seek(0)
            told = "store" in errors.read() or fault in _SILENT
        lost, wrong = _recalled(path, provider.bodies)
    too_large = sum(prompt_tokens(json.loads(body)["messages"]) > WINDOW for body in provider.bodies)
    provider.shutdown()
    return Figures(SESSIONS * TURNS, len(failures), too_large, lost, wrong, told, recovered)


def prompt_tokens(value: Any) -> int:
    """The tokens of all that is said in messages: every text but for ids and the names of kinds."""
    if isinstance(value, str):
        return tokens.counter("o200k").count(value)
    if isinstance(value, dict):
        return sum(prompt_tokens(inner) for key, inner in value.items() if key not in _UNSAID)
    return sum(map(prompt_tokens, value)) if isinstance(value, list) else 0


def _stand_in(folder: Path) -> dict[str, str]:
    """Compiles the stand-in for a disk and a clock, and returns the variables that load it."""
    built = folder / "chaos_disk.so"
    source = Path(__file__).with_name("chaos_disk.c")
    subprocess.run(["cc", "-shared", "-fPIC", "-O1", "-o", built, source, "-ldl"], check=True)
    return {"LD_PRELOAD": str(built), "CHAOS_SAYS": str(folder / "says"), "CHAOS_FOLDER": str(folder / "store")}


def ended_in_a_stream(seconds: float) -> bool:
    """Whether an answer that streams for so long arrives whole although SIGTERM comes after a second, and the proxy
    ends by itself afterwards."""
    provider = Provider(stream_seconds=seconds)
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-m", "pagefold", "serve", "--json", "--port", "0", "--store", f"{folder}/s.sqlite3"]
        command += ["--anthropic-url", f"http://127.0.0.1:{provider.server_address[1]}"]
        process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        assert process.stdout is not None
        url = json.loads(process.stdout.readline())["url"]
        timer = threading.Timer(1.0, process.terminate)
        timer.start()
        data = json.dumps({"model": "m", "max_tokens": 9, "stream": True, "messages": [turn(1, 1)[1]]}).encode()
        request = urllib.request.Request(f"{url}/v1/messages", data, {"content-type": "application/json"})
        with urllib.request.urlopen(request, timeout=seconds + 30) as response:
            answer = response.read()
        code = process.wait(30)
    provider.shutdown()
    return bool(answer.endswith(b"event: message_stop\ndata: {}\n\n")) and code == 0


def _is_well(url: str) -> bool:
    ends = time.monotonic() + _RECOVERY_SECONDS
    while time.monotonic() < ends:
        with urllib.request.urlopen(f"{url}/pagefold/ready", timeout=5) as response:
            if json.load(response)["store"] == "ok":
                return True
        time.sleep(0.2)
    return False


def _recalled(path: Path, bodies: list[bytes]) -> tuple[int, int]:
    """How many handles that were sent cannot be recalled, and how many pages stand under a wrong history."""
    handles = {handle for body in bodies for handle in re.findall(r"pf-[a-z2-7]{10}", body.decode())}
    owners: dict[str, set[str]] = {}
    with closing(sqlite3.connect(path)) as db, closing(open_store(path)) as store:
        lost = sum(not store.pages.find(handle) for handle in handles)
        for (history,) in db.execute("SELECT DISTINCT history FROM listings"):
            name = history.decode()
            for page in store.pages.listed(name):
                content = store.pages.get(page) or b""
                owners.setdefault(name, set()).update(re.findall(rf"{_OWNER}\d+", content.decode()))
    return lost, sum(len(names) > 1 for names in owners.values())


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--times", type=int, default=10, help="how often each fault is tried (default: 10)")
    parser.add_argument("--fault", default="", help="only faults whose name holds this")
    parser.add_argument("--stream-seconds", type=float, default=90.0, help="of the stream that meets SIGTERM (90)")
    options = parser.parse_args()
    bad = False
    if options.fault in "SIGTERM in a stream":
        whole = sum(ended_in_a_stream(options.stream_seconds) for _ in range(options.times))
        bad = whole < options.times
        print(f"SIGTERM in a stream of {options.stream_seconds:.0f} s: whole {whole}/{options.times}", flush=True)
    for fault in (name for name in FAULTS if options.fault in name):
        runs = [tried(fault, number) for number in range(options.times)]
        sums = [sum(column) for column in zip(*runs, strict=True)]
        told, recovered = sums[5] == len(runs), sums[6] == len(runs)
        bad |= any(sums[1:5]) or not (told and recovered)
        print(
            f"{fault:16} {sums[0]:5} turns: {sums[1]} failed, {sums[2]} too large, {sums[3]} handles not recalled, "
            f"{sums[4]} wrong histories; told {sums[5]}/{len(runs)}, recovered {sums[6]}/{len(runs)}",
            flush=True,
        )
    return int(bad)


if __name__ == "__main__":
    raise SystemExit(main())
