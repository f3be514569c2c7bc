"""Measures what the dashboard costs the model proxy, and how soon it shows a turn, in one run.

    python bench/dashboard.py [ROUNDS]

Upstream and proxies are processes of their own: one without telemetry (`off`), one with a dashboard that a viewer
follows as a browser does (`on`), one that writes a trace too (`trace`). Fifty agents send requests of about 20 KB whose
last two messages are new. In short rounds, in turns, they ask as fast as they are answered: that gives requests a
second and CPU a request. Then each makes ten turns a second, with shorter requests, and then one, for machines that do
not keep up; for every turn that a viewer sees it is told how long after its answer's last byte the update was there.
"""

import argparse
import asyncio
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import aiohttp

from pagefold.adapters.asgi import App, Event, Receive, Send
from pagefold.adapters.library import Library
from pagefold.cli import serve_setup, telemetry_setup
from pagefold.model_proxy.server import run
from pagefold.settings.sections import ServeSettings, Settings, StoreSettings, TelemetrySettings

AGENTS = 50
A_SECOND = (10, 1)
ROUNDS = 12
ROUND_REQUESTS = 400
LIVE_SECONDS = 6.0
PAUSE_SECONDS = 0.06  # as long as the script waits
ROLES = ("off", "on", "trace")
LINE = "    def recorded(self, page: Page, level: Level) -> History:  # 17 lines further down, see docs/concepts.md"


class Agent:
    """A conversation of about 20 KB that grows by a turn with every request, and begins anew before it gets long."""

    def __init__(self, name: str, lines: int = 20) -> None:
        self.name, self.lives, self.lines = name, 0, lines
        self.messages: list[object] = []

    def request(self) -> bytes:
        if not 0 < len(self.messages) < 60:
            self.lives += 1
            self.messages = [{"role": "user", "content": f"I am {self.name}, for the {self.lives}. time."}]
            for turn in range(8):
                self._read(f"src/{turn}.py", self.lines)
        self._read(f"src/{len(self.messages)}.py", 3)
        rest = {"model": "claude-sonnet-4-5", "max_tokens": 100, "stream": True, "tools": []}
        return json.dumps({**rest, "messages": self.messages}).encode()

    def _read(self, path: str, lines: int) -> None:
        id = f"{self.name}-{self.lives}-{len(self.messages)}"
        call = {"type": "tool_use", "id": id, "name": "Read", "input": {"path": path}}
        text = "\n".join(f"{number}\t{LINE}" for number in range(1, lines))
        result = {"type": "tool_result", "tool_use_id": id, "content": f"{id}\n{text}"}
        self.messages += [{"role": "assistant", "content": [call]}, {"role": "user", "content": [result]}]


def pieces() -> list[bytes]:
    usage = {"input_tokens": 9, "cache_read_input_tokens": 4000, "cache_creation_input_tokens": 100}
    start = {"type": "message_start", "message": {"model": "claude-sonnet-4-5", "usage": usage}}
    text = {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": LINE * 10}}
    end = {"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {"output_tokens": 9}}
    events: list[dict[str, Any]] = [start, text, text, end, {"type": "message_stop"}]
    return [f"event: {event['type']}\ndata: {json.dumps(event)}\n\n".encode() for event in events]


class Upstream:
    def __init__(self) -> None:
        self.pieces = pieces()

    async def __call__(self, scope: Event, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await receive()
            await send({"type": "lifespan.startup.complete"})
            await receive()
            await send({"type": "lifespan.shutdown.complete"})
            return
        while (await receive()).get("more_body", False):
            pass
        headers = [(b"content-type", b"text/event-stream")]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        for piece in self.pieces:
            await send({"type": "http.response.body", "body": piece, "more_body": True})
        await send({"type": "http.response.body"})


def play(role: str, upstream: str, folder: str) -> None:
    """One of the processes: prints its port, and the key of its dashboard."""
    app: App = Upstream()
    key = ""
    if role != "upstream":
        telemetry = TelemetrySettings(dashboard=role != "off", trace=role == "trace")
        settings = replace(
            Settings(),
            serve=ServeSettings(anthropic_url=upstream, token=""),
            store=StoreSettings(path=str(Path(folder) / role / "store.sqlite3")),
            telemetry=telemetry,
        )
        proxy = serve_setup.proxy_for(settings, Library.open(Path(settings.store.path), settings.sink))
        key = telemetry_setup.attach(proxy, settings)
        app = proxy
    run(app, "127.0.0.1", 0, started=lambda port: print(port, key, flush=True))


@contextmanager
def process(role: str, upstream: str, folder: str) -> Iterator[tuple[str, str, int]]:
    child = subprocess.Popen([sys.executable, __file__, role, upstream, folder], stdout=subprocess.PIPE, text=True)
    try:
        assert child.stdout is not None
        port, _, key = child.stdout.readline().strip().partition(" ")
        yield f"http://127.0.0.1:{int(port)}", key, child.pid
    finally:
        child.terminate()
        child.wait()


async def ask(session: aiohttp.ClientSession, url: str, body: bytes) -> None:
    async with session.post(f"{url}/v1/messages", data=body) as response:
        assert len(await response.read()) > 1000


class Viewer:
    """Follows a dashboard as its script does; notes when it saw how many turns of which session."""

    def __init__(self, session: aiohttp.ClientSession, url: str, key: str) -> None:
        self._session, self._url, self._headers = session, url, {"x-pagefold-token": key}
        self.seen: list[tuple[float, str, int]] = []
        self.bytes: list[int] = []

    async def follow(self) -> None:
        number = told = 0
        while True:
            address = f"{self._url}/pagefold/changes?n={number}&k={told}"
            async with self._session.get(address, headers=self._headers) as answer:
                body = await answer.read()
            now, update = time.perf_counter(), json.loads(body)
            if number:
                self.bytes.append(len(body))
            number, told = update["n"], update["k"]
            self.seen += [(now, one[0], one[7]) for one in update["s"]]
            await asyncio.sleep(PAUSE_SECONDS)


async def rush(url: str, key: str, pid: int, agents: list[Agent]) -> tuple[float, float]:
    """Requests a second and CPU seconds of a request, all agents asking as fast as they are answered."""
    bodies = [[agent.request() for _ in range(ROUND_REQUESTS // AGENTS)] for agent in agents]

    async def work(session: aiohttp.ClientSession, own: list[bytes]) -> None:
        for body in own:
            await ask(session, url, body)

    async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0)) as session:
        following = asyncio.ensure_future(Viewer(session, url, key).follow()) if key else None
        worked, started = cpu_seconds(pid), time.perf_counter()
        async with asyncio.TaskGroup() as group:
            for own in bodies:
                group.create_task(work(session, own))
        took = time.perf_counter() - started
        if following:
            following.cancel()
        return ROUND_REQUESTS / took, (cpu_seconds(pid) - worked) / ROUND_REQUESTS


async def live(url: str, key: str, a_second: int) -> tuple[list[float], list[float], list[int], float, float]:
    """For each turn seen, how long after its answer, and how long that took; the length of updates; turns and updates a
    second."""
    agents = [Agent(f"live{a_second}-{n}", 4) for n in range(AGENTS)]
    asking = list[float]()
    ended: dict[tuple[str, int], float] = {}

    async def work(session: aiohttp.ClientSession, agent: Agent, starts: float) -> None:
        for turn in range(int(LIVE_SECONDS * a_second)):
            if time.perf_counter() - starts > LIVE_SECONDS + 1:
                return
            body = agent.request()
            await asyncio.sleep(max(0.0, starts + turn / a_second - time.perf_counter()))
            before = time.perf_counter()
            await ask(session, url, body)
            asking.append(time.perf_counter() - before)
            made[agent.name] = made.get(agent.name, 0) + 1
            ended[f"{agent.name}-{agent.lives}", made[agent.name]] = time.perf_counter()

    made: dict[str, int] = {}
    async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0)) as session:
        viewer = Viewer(session, url, key)
        following = asyncio.ensure_future(viewer.follow())
        started = time.perf_counter()
        async with asyncio.TaskGroup() as group:
            for at, agent in enumerate(agents):
                group.create_task(work(session, agent, started + at / AGENTS / a_second))
        took = time.perf_counter() - started
        rate, updates = sum(made.values()) / took, len(viewer.bytes) / took
        await asyncio.sleep(0.5)
        following.cancel()
    return lags(viewer.seen, sorted(ended.values())), asking, viewer.bytes, rate, updates


def lags(seen: list[tuple[float, str, int]], ended: list[float]) -> list[float]:
    """The n-th turn that ended against the moment when n turns had been shown: no turn is shown before its end."""
    turns: dict[str, int] = {}
    shown: list[float] = []
    for at, name, count in seen:
        shown += [at] * max(0, count - turns.get(name, 0))
        turns[name] = max(count, turns.get(name, 0))
    return [max(0.0, at - end) for at, end in zip(sorted(shown)[-len(ended) :], ended, strict=False)]


def cpu_seconds(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def main(rounds: int) -> None:
    rates: dict[str, list[float]] = {role: [] for role in ROLES}
    work: dict[str, list[float]] = {role: [] for role in ROLES}
    with tempfile.TemporaryDirectory() as folder, ExitStack() as stack:
        upstream = stack.enter_context(process("upstream", "", folder))[0]
        proxies = {role: stack.enter_context(process(role, upstream, folder)) for role in ROLES}
        agents = {role: [Agent(f"{role}{n}") for n in range(AGENTS)] for role in ROLES}
        print(f"{len(Agent('x').request()) / 1000:.0f} KB a request, {AGENTS} agents")
        for number in range(rounds + 1):
            # In turns and in turning order, so that a busy moment of the machine meets all of them.
            for at in range(len(ROLES)):
                role = ROLES[(at + number) % len(ROLES)]
                rate, cpu = asyncio.run(rush(*proxies[role], agents[role]))
                if number:  # the first one only makes known what was never seen
                    rates[role].append(rate)
                    work[role].append(cpu)
        for role in ROLES:
            ratio = statistics.median(one / off for one, off in zip(rates[role], rates["off"], strict=True))
            cpu = 1000 * statistics.mean(work[role])
            less = statistics.mean(work[role]) / statistics.mean(work["off"])
            rate = statistics.median(rates[role])
            print(f"{role:6} {rate:5.0f}/s, {ratio:.3f} x off;  CPU {cpu:.3f} ms a request, {less:.3f} x off")
        url, key, _ = proxies["on"]
        for a_second in A_SECOND:
            took, asking, lengths, rate, updates = asyncio.run(live(url, key, a_second))
            p50, p99 = statistics.median(took), sorted(took)[int(0.99 * len(took))]
            floor = f"answers themselves took p50 {1000 * statistics.median(asking):.0f} ms"
            length = statistics.median(lengths)
            told = f"update {length:.0f} bytes (largest {max(lengths)}), {updates:.1f} a second"
            print(f"live   at {rate:.0f} of {AGENTS * a_second} turns/s: {floor}; {told}")
            print(f"       shown after p50 {1000 * p50:.0f} p99 {1000 * p99:.0f} ms")


if __name__ == "__main__":
    if len(sys.argv) > 3:
        play(*sys.argv[1:4])
    else:
        parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
        parser.add_argument("rounds", type=int, nargs="?", default=ROUNDS)
        main(parser.parse_args().rounds)
