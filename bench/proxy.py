"""Measures what the model proxy costs against a bare pass-through of the same stack, in one run, as ratios.

Upstream, proxies and client are six processes on one machine. A request is 84 KB of Messages of which the last two
messages are new, as in a real session; the answer is a stream of 8 KB in 6 pieces. One agent pauses between its
requests, as real ones do, and is timed to the last byte; 32 connections do not, and measure the work. Each phase is
bounded in count and in time, and what was sent before it is counted before it begins. `observe` counts, `pagefold`
derives by `lossless` what it leaves as it is, `folded` the same with a history in which every result was shortened and
has to be shortened again, `served` is what `pagefold serve` runs without a word: `pagefold` with a store and the
dashboard, which nobody looks at.
"""

import argparse
import asyncio
import json
import random
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import aiohttp

from pagefold.adapters.asgi import App, Event, Receive, Send
from pagefold.adapters.library import Library
from pagefold.cli import serve_setup, telemetry_setup
from pagefold.derive.policies import policy_named
from pagefold.model_proxy.conversations import Conversations
from pagefold.model_proxy.proxy import Proxy
from pagefold.model_proxy.server import run
from pagefold.model_proxy.upstreams import Upstreams
from pagefold.settings.sections import ServeSettings, Settings, StoreSettings

ROLES = ("bare", "observe", "pagefold", "served")
PAUSE = 0.01
SETTLE = 0.3
CONNECTIONS = 32
LINE = "    def recorded(self, page: Page, level: Level) -> History:  # 17 lines further down, see docs/concepts.md\n"


class Agent:
    """A conversation of about 84 KB that grows by a short turn with every request, as one does. What its tools say is
    `plain` words, which no policy touches, or files with numbered lines."""

    def __init__(self, name: str, *, plain: bool = True) -> None:
        tools = [{"name": f"tool_{n}", "description": LINE * 12, "input_schema": {"type": "object"}} for n in range(20)]
        self.rest = {"model": "claude-sonnet-4-5", "max_tokens": 100, "stream": True, "tools": tools}
        self.messages: list[object] = [{"role": "user", "content": f"I am {name}."}]
        words = random.Random(name)
        for turn in range(30 if plain else 26):
            call = {"type": "tool_use", "id": f"{name}{turn}", "name": "Read", "input": {"path": f"src/{turn}.py"}}
            lines = [
                " ".join(f"{words.randrange(10**9):x}" for _ in range(10)) if plain else f"{number}\t{LINE.strip()}"
                for number in range(1, 19)
            ]
            result = {"type": "tool_result", "tool_use_id": f"{name}{turn}", "content": "\n".join(lines)}
            self.messages += [{"role": "assistant", "content": [call]}, {"role": "user", "content": [result]}]

    def request(self) -> bytes:
        number = len(self.messages)
        self.messages += [{"role": "assistant", "content": f"Answer {number}."}, {"role": "user", "content": "And?"}]
        return json.dumps({**self.rest, "messages": self.messages}).encode()


def pieces() -> list[bytes]:
    # About what such a request would cost: were nothing read from the cache, every turn would be noted as a cold one.
    usage = {"input_tokens": 9, "cache_read_input_tokens": 40_000, "cache_creation_input_tokens": 30}
    start = {"type": "message_start", "message": {"model": "claude-sonnet-4-5", "usage": usage}}
    block = {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}}
    text = {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": LINE * 36}}
    end = {"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {"output_tokens": 9}}
    events: list[dict[str, Any]] = [start, block, text, text, end, {"type": "message_stop"}]
    return [f"event: {event['type']}\ndata: {json.dumps(event)}\n\n".encode() for event in events]


class Bare:
    """Passes a request on and the answer back, and looks at nothing."""

    def __init__(self, upstream: str) -> None:
        self.upstream = upstream

    async def __call__(self, scope: Event, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await receive()
            connector = aiohttp.TCPConnector(limit=0)
            async with aiohttp.ClientSession(connector=connector, auto_decompress=False) as self.session:
                await send({"type": "lifespan.startup.complete"})
                await receive()
            await send({"type": "lifespan.shutdown.complete"})
            return
        body = await whole(receive)
        headers = [(name.decode(), value.decode()) for name, value in scope["headers"] if name != b"host"]
        async with self.session.post(self.upstream + scope["path"], data=body, headers=headers) as response:
            kept = [(name, value) for name, value in response.raw_headers if name.lower() != b"transfer-encoding"]
            await send({"type": "http.response.start", "status": response.status, "headers": kept})
            async for piece in response.content.iter_any():
                await send({"type": "http.response.body", "body": piece, "more_body": True})
            await send({"type": "http.response.body"})


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
        await whole(receive)
        headers = [(b"content-type", b"text/event-stream")]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        for piece in self.pieces:
            await send({"type": "http.response.body", "body": piece, "more_body": True})
        await send({"type": "http.response.body"})


async def whole(receive: Receive) -> bytes:
    body, more = b"", True
    while more:
        event = await receive()
        body, more = body + event["body"], event["more_body"]
    return body


@contextmanager
def process(role: str, upstream: str = "") -> Iterator[tuple[str, int]]:
    child = subprocess.Popen([sys.executable, __file__, "--play", role, upstream], stdout=subprocess.PIPE, text=True)
    try:
        assert child.stdout is not None
        yield f"http://127.0.0.1:{int(child.stdout.readline())}", child.pid
    finally:
        child.terminate()
        child.wait()


def play(role: str, upstream: str) -> None:
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        run(app_for(role, upstream, folder), "127.0.0.1", 0, started=lambda port: print(port, flush=True))


def app_for(role: str, upstream: str, folder: str) -> App:
    match role:
        case "upstream":
            return Upstream()
        case "bare":
            return Bare(upstream)
        case "observe":
            return Proxy(Upstreams({"anthropic": upstream}))
        case "pagefold":
            return Proxy(Upstreams({"anthropic": upstream}), Conversations(policy_named("lossless")))
    settings = Settings(serve=ServeSettings(anthropic_url=upstream), store=StoreSettings(path=f"{folder}/store.db"))
    library = Library.open_steady(
        Path(settings.store.path),
        settings.sink,
        deadline=settings.store.deadline_seconds,
        report=lambda kind, sentence: print(f"{role}: {sentence}", file=sys.stderr, flush=True),
    )
    proxy = serve_setup.proxy_for(settings, library)
    telemetry_setup.attach(proxy, settings)
    return proxy


def asked(agents: list[Agent], requests: int) -> list[list[bytes]]:
    """What each agent sends: a request that nothing has been seen of before, and its share of those that count."""
    return [[agent.request() for _ in range(requests // len(agents) + 1)] for agent in agents]


async def measure(
    url: str, pid: int, bodies: list[list[bytes]], seconds: float, pause: float = 0
) -> tuple[list[float], float, float]:
    """Seconds of each request, requests a second, and CPU seconds of a request in the process that was asked.

    The first request of an agent is not counted.
    """
    took = list[float]()

    async def ask(session: aiohttp.ClientSession, body: bytes) -> float:
        before = time.perf_counter()
        async with session.post(f"{url}/v1/messages", data=body) as response:
            assert len(await response.read()) > 8000
        return time.perf_counter() - before

    async def work(session: aiohttp.ClientSession, bodies: list[bytes]) -> None:
        for body in bodies:
            if time.perf_counter() - started > seconds:
                return
            took.append(await ask(session, body))
            await asyncio.sleep(pause)

    connector = aiohttp.TCPConnector(limit=0)
    async with aiohttp.ClientSession(connector=connector) as session:
        for own in bodies:
            await ask(session, own.pop(0))
        await asyncio.sleep(SETTLE)
        worked = cpu_seconds(pid)
        started = time.perf_counter()
        async with asyncio.TaskGroup() as group:
            for own in bodies:
                group.create_task(work(session, own))
        rate = len(took) / (time.perf_counter() - started)
        return took, rate, (cpu_seconds(pid) - worked) / len(took)


def cpu_seconds(pid: int) -> float:
    """What all threads of a process have worked so far."""
    threads = Path(f"/proc/{pid}/task").glob("*/schedstat")
    return sum(int(thread.read_text().split()[0]) for thread in threads) / 1e9


def percentile(values: list[float], share: float) -> float:
    return sorted(values)[min(len(values) - 1, int(share * len(values)))] * 1000


def main(requests: int, seconds: float, rounds: int) -> None:
    single: dict[str, list[float]] = {}
    many: dict[str, list[float]] = {}
    rates: dict[str, list[float]] = {}
    work: dict[str, list[float]] = {}
    with ExitStack() as stack:
        direct = stack.enter_context(process("upstream"))
        proxies = {role: stack.enter_context(process(role, direct[0])) for role in ROLES}
        urls = {"direct": direct, **proxies, "folded": proxies["pagefold"]}
        for round_ in range(rounds):
            crowds = {}
            for name, (url, pid) in urls.items():
                plain = name != "folded"
                one = asked([Agent(f"{name}{round_}", plain=plain)], requests // 6 // rounds)
                single.setdefault(name, []).extend(asyncio.run(measure(url, pid, one, seconds, PAUSE))[0])
                crowd = [Agent(f"{name}{round_}-{n}", plain=plain) for n in range(CONNECTIONS)]
                crowds[name] = asked(crowd, requests // rounds)
            # At once, and another first each time, so that a slow moment of the machine meets all of them alike.
            for name in [*urls][round_ % len(urls) :] + [*urls][: round_ % len(urls)]:
                took, rate, cpu = asyncio.run(measure(*urls[name], crowds[name], seconds))
                work.setdefault(name, []).append(cpu)
                many.setdefault(name, []).extend(took)
                rates.setdefault(name, []).append(rate)
    print(f"{len(Agent('x').request()) / 1000:.0f} KB up, {sum(map(len, pieces())) / 1000:.1f} KB down in 6 pieces")
    for name in urls:
        p50, p99 = percentile(single[name], 0.5), percentile(single[name], 0.99)
        rate, p99_many = statistics.median(rates[name]), percentile(many[name], 0.99)
        print(f"{name:9} one agent: p50 {p50:5.2f} p99 {p99:6.2f} ms   32: {rate:6.0f}/s p99 {p99_many:6.1f} ms")
    for name in (*ROLES[1:], "folded"):
        p50, p99 = (percentile(single[name], share) - percentile(single["bare"], share) for share in (0.5, 0.99))
        ratios = sorted(ours / bare for ours, bare in zip(rates[name], rates["bare"], strict=True))
        ratio, quarter = statistics.median(ratios), len(ratios) // 4
        cpu, bare_cpu = (statistics.median(work[which]) * 1000 for which in (name, "bare"))
        print(f"{name:9} over bare: p50 {p50:5.2f} p99 {p99:6.2f} ms   32: {ratio:.2f} x its requests a second", end="")
        print(f" (half of the rounds {ratios[quarter]:.2f} to {ratios[-1 - quarter]:.2f})", end="")
        print(f"   CPU {cpu:.2f} ms a request, bare {bare_cpu:.2f}")


def run_as_asked() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--requests", type=int, default=6400, help="at 32 connections, over all rounds (default: 6400)")
    parser.add_argument("--seconds", type=float, default=3.0, help="what a phase takes at most (default: 3)")
    parser.add_argument("--rounds", type=int, default=12, help="how often each is measured, in turns (default: 12)")
    parser.add_argument("--play", nargs=2, metavar=("ROLE", "UPSTREAM"), help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.play:
        play(*given.play)
    else:
        main(given.requests, given.seconds, given.rounds)


if __name__ == "__main__":
    run_as_asked()
