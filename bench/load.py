"""What the model proxy costs under load against a bare pass-through, in alternation, as ratios.

Recorded Claude Code sessions are sent again: 200 of them at once, each turn as its client sent it. Where there are
fewer recordings than sessions, one is sent several times, each time under another first message. Upstream, proxies and
load are processes that share the machine; the load average is told, because everything but CPU seconds depends on it.

Phases: `turns` are warm turns as fast as they go, for CPU and requests a second; `rate` is the same at a fixed rate,
60 % of what pagefold carried, for p50 and p99 (it should be 25 % of what bare carried at least); `bystander` is one
session that goes on while a history of 5,000 messages is seen for the first time; `memory` is 2,000 sessions one behind
the other.
Run as a module: `python -m bench.load --phases turns,rate`.
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
from itertools import islice
from pathlib import Path
from typing import NamedTuple

import aiohttp

from bench import first_sight
from bench.proxy import Bare, cpu_seconds, percentile, whole
from bench.recorded import PROJECT, family, sessions, table
from pagefold.adapters.asgi import App, Event, Receive, Send
from pagefold.adapters.library import Library
from pagefold.cli import serve_setup, telemetry_setup
from pagefold.model_proxy.server import run
from pagefold.settings.sections import ServeSettings, Settings, StoreSettings
from pagefold.wire.message import Role

LARGEST = 80_000  # bytes of a request, of longer sessions the beginning: 200 sessions have to fit in the memory budget
CONNECTIONS = 16
PATH = "/v1/chat/completions"
WORDS = "The parser refuses an empty file because its first line is read before its length is checked. " * 20


class Upstream:
    """Answers every request at once with a short stream of Chat Completions."""

    def __init__(self) -> None:
        choice = {"index": 0, "delta": {"role": "assistant", "content": WORDS}, "finish_reason": None}
        usage = {"prompt_tokens": 20_000, "completion_tokens": 900, "prompt_tokens_details": {"cached_tokens": 19_000}}
        chunk = {"id": "c", "object": "chat.completion.chunk", "model": "gpt-5"}
        chunks: list[object] = [{**chunk, "choices": [choice]}] * 4
        chunks += [{**chunk, "choices": [{**choice, "delta": {}, "finish_reason": "stop"}]}]
        chunks += [{**chunk, "choices": [], "usage": usage}]
        self.pieces = [f"data: {json.dumps(each)}\n\n".encode() for each in chunks] + [b"data: [DONE]\n\n"]

    async def __call__(self, scope: Event, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await receive()
            await send({"type": "lifespan.startup.complete"})
            await receive()
            await send({"type": "lifespan.shutdown.complete"})
            return
        await whole(receive)
        headers = [(b"content-type", b"text/event-stream")]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        for piece in self.pieces:
            await send({"type": "http.response.body", "body": piece, "more_body": True})
        await send({"type": "http.response.body"})


class Server(NamedTuple):
    """A process that takes requests."""

    url: str
    pid: int

    @property
    def resident_mb(self) -> float:
        status = Path(f"/proc/{self.pid}/status").read_text(encoding="ascii")
        return int(status.partition("VmRSS:")[2].split()[0]) / 1024


@contextmanager
def process(role: str, upstream: str = "") -> Iterator[Server]:
    command = [sys.executable, "-m", "bench.load", "--play", role, upstream]
    child = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=PROJECT)
    try:
        assert child.stdout is not None
        yield Server(f"http://127.0.0.1:{int(child.stdout.readline())}", child.pid)
    finally:
        child.terminate()
        child.wait()


def play(role: str, upstream: str) -> None:
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        run(app_for(role, upstream, folder), "127.0.0.1", 0, started=lambda port: print(port, flush=True))


def app_for(role: str, upstream: str, folder: str) -> App:
    """What `pagefold serve` runs under the policy of this name, with store and dashboard; or what is no pagefold."""
    if role == "upstream":
        return Upstream()
    if role == "bare":
        return Bare(upstream)
    store = StoreSettings(path=f"{folder}/store.db")
    settings = Settings(serve=ServeSettings(openai_url=upstream, policy=role), store=store)
    library = Library.open_steady(
        Path(settings.store.path),
        settings.sink,
        deadline=settings.store.deadline_seconds,
        report=lambda kind, sentence: print(f"{role}: {sentence}", file=sys.stderr, flush=True),
    )
    proxy = serve_setup.proxy_for(settings, library)
    telemetry_setup.attach(proxy, settings)
    return proxy


class Turns:
    """The requests of one session, made when they are sent. The first is behind a first answer."""

    def __init__(self, name: str, raws: list[str], ends: list[int]) -> None:
        first = json.dumps({"role": "user", "content": f"This is {name}."})
        self.raws, self._ends = [first, *raws], [end + 1 for end in ends]

    def take(self) -> bytes:
        """The next request; none comes twice."""
        end = self._ends.pop(0)
        return f'{{"model":"gpt-5","stream":true,"messages":[{",".join(self.raws[:end])}]}}'.encode()


def recorded(count: int, least: int) -> list[tuple[list[str], list[int]]]:
    """Recorded messages, and before which of them a request was made; each session with at least so many requests."""
    found: list[tuple[list[str], list[int]]] = []
    for session in sessions(family("coding-claude-code")):
        raws, ends, size = list[str](), list[int](), 0
        for place, message in enumerate(session.messages):
            if message.role is Role.ASSISTANT and place:
                ends.append(place)
            size += len(message.raw.encode("utf-8", "surrogatepass"))
            if size > LARGEST:
                break
            raws.append(message.raw)
        ends = [end for end in ends if end <= len(raws)]
        if len(ends) >= least:
            found.append((raws, ends[-least:]))
        if len(found) == count:
            break
    return found


def crowd(name: str, count: int, requests: int) -> list[Turns]:
    sources = recorded(count, requests)
    return [Turns(f"{name} {number}", *sources[number % len(sources)]) for number in range(count)]


async def ask(session: aiohttp.ClientSession, url: str, body: bytes) -> float:
    before = time.perf_counter()
    async with session.post(url + PATH, data=body, headers={"content-type": "application/json"}) as response:
        assert len(await response.read()) > 1000
        assert response.status == 200
    return time.perf_counter() - before


class Measured(NamedTuple):
    took: list[float]
    rate: float
    cpu: float


async def as_fast(server: Server, agents: list[Turns], turns: int) -> Measured:
    """So many turns of every session, by a few connections, as fast as they go."""
    took: list[float] = []
    waiting = iter([agent for _ in range(turns) for agent in agents])

    async def work(session: aiohttp.ClientSession) -> None:
        for agent in waiting:
            took.append(await ask(session, server.url, agent.take()))

    async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0)) as session:
        worked, started = cpu_seconds(server.pid), time.perf_counter()
        async with asyncio.TaskGroup() as group:
            for _ in range(CONNECTIONS):
                group.create_task(work(session))
        rate = len(took) / (time.perf_counter() - started)
    await asyncio.sleep(0.3)
    return Measured(took, rate, (cpu_seconds(server.pid) - worked) / len(took))


async def at_rate(server: Server, agents: list[Turns], turns: int, rate: float) -> list[float]:
    """So many turns of every session, one begun every 1/rate seconds whether or not others have ended. A request that
    begins late because the load's own process was held up is timed from when it does."""
    took: list[float] = []

    async def once(session: aiohttp.ClientSession, body: bytes) -> None:
        took.append(await ask(session, server.url, body))

    async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0)) as session, asyncio.TaskGroup() as group:
        started = time.perf_counter()
        for number, agent in enumerate([agent for _ in range(turns) for agent in agents]):
            body = agent.take()
            await asyncio.sleep(max(0.0, started + number / rate - time.perf_counter()))
            group.create_task(once(session, body))
    return took


async def bystander(server: Server, name: str, long: bytes | None, seconds: float) -> tuple[list[float], float]:
    """Sessions that go on one after another, and how long the long history took that was sent meanwhile, if one was."""
    agents, took, other = crowd(name, 20, 20), list[float](), 0.0
    bodies = iter([agent.take() for agent in agents for _ in range(20)])
    async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0)) as session:
        for body in islice(bodies, 5):
            await ask(session, server.url, body)
        sight = asyncio.create_task(ask(session, server.url, long)) if long is not None else None
        started = time.perf_counter()
        for body in bodies:
            if sight.done() if sight else time.perf_counter() - started > seconds:
                break
            took.append(await ask(session, server.url, body))
            await asyncio.sleep(0.02)
        if sight:
            other = await sight
    return took, other


def ratios(ours: list[float], bare: list[float]) -> dict[str, float]:
    """p50 and p99 of two, in milliseconds, and how many times the one is the other."""
    row: dict[str, float] = {}
    for share in (0.5, 0.99):
        mine, theirs = percentile(ours, share), percentile(bare, share)
        row |= {f"p{share * 100:.0f} ms": mine, f"bare p{share * 100:.0f}": theirs}
        row[f"p{share * 100:.0f} x"] = mine / theirs
    return row


def load_average() -> str:
    return "load average " + ", ".join(f"{load:.1f}" for load in os.getloadavg())


def measure_turns(servers: dict[str, Server], count: int, rounds: int, *, with_rate: bool) -> None:
    turns = 2
    agents = {name: crowd(name, count, 1 + turns * rounds * 2) for name in servers}
    for name, server in servers.items():
        asyncio.run(as_fast(server, agents[name], 1))  # each is seen for the first time
    measured: dict[str, list[Measured]] = {name: [] for name in servers}
    for _ in range(rounds):
        for name, server in servers.items():
            measured[name].append(asyncio.run(as_fast(server, agents[name], turns)))
    cpu = {name: statistics.median(each.cpu for each in some) for name, some in measured.items()}
    rate = {name: statistics.median(each.rate for each in some) for name, some in measured.items()}
    rows = [
        {"": name, "CPU ms a turn": cpu[name] * 1000, "x bare": cpu[name] / cpu["bare"], "turns a second": rate[name]}
        | {"of bare": rate[name] / rate["bare"], "RSS MB": servers[name].resident_mb}
        for name in servers
    ]
    print(f"{count} sessions, {turns * rounds} warm turns each; {load_average()}", table(rows), sep="\n")
    if not with_rate:
        return
    rows = []
    for name in [name for name in servers if name != "bare"]:
        at = 0.6 * rate[name]
        took: dict[str, list[float]] = {"bare": [], name: []}
        for _ in range(rounds):
            for which in took:
                own = agents[which] if which == name else crowd(f"bare for {name}", count, turns)
                took[which] += asyncio.run(at_rate(servers[which], own, turns, at))
        rows.append({"": name, "turns a second": at, "of bare": at / rate["bare"]} | ratios(took[name], took["bare"]))
    print(f"at a fixed rate; {load_average()}", table(rows), sep="\n")


def measure_bystander(servers: dict[str, Server], messages: int) -> None:
    long, rows = first_sight.body(messages), []
    alone, _ = asyncio.run(bystander(servers["bare"], "bare", None, 5.0))
    for name, server in servers.items():
        took, other = asyncio.run(bystander(server, f"beside {name}", long, 0.0))
        if took:
            figures = {"": name, "turns": len(took), "first sight s": other}
            rows.append(figures | {"p50 ms": percentile(took, 0.5), "p99 ms": percentile(took, 0.99)})
            rows[-1]["p99 x bare alone"] = percentile(took, 0.99) / percentile(alone, 0.99)
    print(f"a bystander while {messages} messages are seen for the first time; {load_average()}")
    print(table(rows))


def measure_memory(servers: dict[str, Server], count: int) -> None:
    rows = []
    for name, server in servers.items():
        before, rates, works, peak = server.resident_mb, list[float](), list[float](), 0.0
        sources = recorded(50, 4)
        numbers = iter(range(count))
        while part := list(islice(numbers, 100)):
            agents = [Turns(f"{name} {number}", *sources[number % len(sources)]) for number in part]
            asyncio.run(as_fast(server, agents, 1))
            measured = asyncio.run(as_fast(server, agents, 2))
            rates.append(measured.rate)
            works.append(measured.cpu)
            peak = max(peak, server.resident_mb)
        early, late = statistics.median(rates[:3]), statistics.median(rates[-3:])
        row = {"": name, "RSS before MB": before, "largest": peak, "at the end": server.resident_mb}
        row |= {"turns/s of the first 300": early, "of the last 300": late, "last/first": late / early}
        rows.append(row | {"CPU first/last": statistics.median(works[:3]) / statistics.median(works[-3:])})
    print(f"{count} sessions one behind the other, three requests each; {load_average()}", table(rows), sep="\n")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--phases", default="turns,rate,bystander,memory", help="which, divided by commas")
    parser.add_argument("--policies", default="lossless,economic")
    parser.add_argument("--sessions", type=int, default=200)
    parser.add_argument("--rounds", type=int, default=3, help="how often each is measured, in turns (default: 3)")
    parser.add_argument("--messages", type=int, default=5000, help="of the long history (default: 5000)")
    parser.add_argument("--many", type=int, default=2000, help="sessions of the phase memory (default: 2000)")
    parser.add_argument("--play", nargs=2, metavar=("ROLE", "UPSTREAM"), help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.play:
        play(*given.play)
        return
    phases = given.phases.split(",")
    with ExitStack() as stack:
        upstream = stack.enter_context(process("upstream")).url
        roles = ("bare", *given.policies.split(","))

        def fresh() -> dict[str, Server]:
            return {role: stack.enter_context(process(role, upstream)) for role in roles}

        if "turns" in phases or "rate" in phases:
            measure_turns(fresh(), given.sessions, given.rounds, with_rate="rate" in phases)
        if "bystander" in phases:
            measure_bystander(fresh(), given.messages)
        if "memory" in phases:
            measure_memory({name: server for name, server in fresh().items() if name != "bare"}, given.many)


if __name__ == "__main__":
    main()
