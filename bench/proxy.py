"""What observing costs: the proxy against a bare pass-through of the same stack, in one run, as ratios.

    python bench/proxy.py [REQUESTS]

Upstream, proxies and client are four processes on one machine. A request is 84 KB of Messages of which the last message
is new, as in a real session; the answer is a stream of 8 KB in 6 pieces. One agent pauses between its requests, as real
ones do, and is timed to the last byte; 32 connections do not, and measure the work. Each phase is bounded in count and
in time.
"""

import asyncio
import json
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

import aiohttp

from pagefold.model_proxy.http import Event, Receive, Send, Upstreams
from pagefold.model_proxy.server import App, Proxy, run

REQUESTS = 1200
SECONDS = 6.0
ROUNDS = 3
PAUSE = 0.01
CONNECTIONS = 32
LINE = "    def recorded(self, page: Page, level: Level) -> History:  # 17 lines further down, see docs/concepts.md\n"


def request(number: int) -> bytes:
    """The conversation so far, and a new message of 1 KB."""
    tools = [{"name": f"tool_{n}", "description": LINE * 12, "input_schema": {"type": "object"}} for n in range(20)]
    turns: list[object] = []
    for turn in range(24):
        call = {"type": "tool_use", "id": f"t{turn}", "name": "Read", "input": {"path": f"src/{turn}.py"}}
        result = {"type": "tool_result", "tool_use_id": f"t{turn}", "content": f"{turn}\n" + LINE * 19}
        turns += [{"role": "assistant", "content": [call]}, {"role": "user", "content": [result]}]
    turns.append({"role": "user", "content": f"{number} " * (1000 // (len(str(number)) + 1))})
    return json.dumps({"model": "claude-sonnet-4-5", "stream": True, "tools": tools, "messages": turns}).encode()


def pieces() -> list[bytes]:
    start = {"type": "message_start", "message": {"model": "claude-sonnet-4-5", "usage": {"input_tokens": 9}}}
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
def process(role: str, upstream: str = "") -> Iterator[str]:
    child = subprocess.Popen([sys.executable, __file__, role, upstream], stdout=subprocess.PIPE, text=True)
    try:
        assert child.stdout is not None
        yield f"http://127.0.0.1:{int(child.stdout.readline())}"
    finally:
        child.terminate()
        child.wait()


def play(role: str, upstream: str) -> None:
    app: App = Upstream() if role == "upstream" else Bare(upstream)
    if role == "pagefold":
        app = Proxy(Upstreams(upstream))
    run(app, "127.0.0.1", 0, started=lambda port: print(port, flush=True))


async def measure(url: str, bodies: list[bytes], connections: int, pause: float = 0) -> tuple[list[float], float]:
    """Seconds of each request, and requests a second."""
    waiting, took = iter(bodies), list[float]()
    started = time.perf_counter()

    async def ask(session: aiohttp.ClientSession) -> None:
        for body in waiting:
            before = time.perf_counter()
            if before - started > SECONDS:
                return
            async with session.post(f"{url}/v1/messages", data=body) as response:
                assert len(await response.read()) > 8000
            took.append(time.perf_counter() - before)
            await asyncio.sleep(pause)

    connector = aiohttp.TCPConnector(limit=0)
    async with aiohttp.ClientSession(connector=connector) as session, asyncio.TaskGroup() as group:
        for _ in range(connections):
            group.create_task(ask(session))
    return took, len(took) / (time.perf_counter() - started)


def percentile(values: list[float], share: float) -> float:
    return sorted(values)[min(len(values) - 1, int(share * len(values)))] * 1000


def main(requests: int) -> None:
    numbers = iter(range(10**9))
    single: dict[str, list[float]] = {}
    many: dict[str, list[float]] = {}
    rates: dict[str, list[float]] = {}
    with ExitStack() as stack:
        direct = stack.enter_context(process("upstream"))
        urls = {"direct": direct} | {role: stack.enter_context(process(role, direct)) for role in ("bare", "pagefold")}
        for url in urls.values():
            asyncio.run(measure(url, [request(next(numbers)) for _ in range(50)], 1))
        for _ in range(ROUNDS):  # in turns, so that a busy moment of the machine meets all of them
            for name, url in urls.items():
                bodies = [request(next(numbers)) for _ in range(requests // ROUNDS)]
                single.setdefault(name, []).extend(asyncio.run(measure(url, bodies[::4], 1, PAUSE))[0])
                took, rate = asyncio.run(measure(url, bodies, CONNECTIONS))
                many.setdefault(name, []).extend(took)
                rates.setdefault(name, []).append(rate)
    print(f"{len(request(0)) / 1000:.0f} KB up, {sum(map(len, pieces())) / 1000:.1f} KB down in 6 pieces")
    for name in urls:
        p50, p99 = percentile(single[name], 0.5), percentile(single[name], 0.99)
        rate, p99_many = statistics.median(rates[name]), percentile(many[name], 0.99)
        print(f"{name:9} one agent: p50 {p50:5.2f} p99 {p99:6.2f} ms   32: {rate:6.0f}/s p99 {p99_many:6.1f} ms")
    for share in (0.5, 0.99):
        ours, bare, without = (percentile(single[name], share) for name in ("pagefold", "bare", "direct"))
        print(f"p{share * 100:.0f}: {ours / bare:.2f} x bare; {ours - without:.2f} ms added, bare {bare - without:.2f}")
    ratio = statistics.median(rates["pagefold"]) / statistics.median(rates["bare"])
    print(f"requests a second at 32 connections: {ratio:.2f} x bare")


if __name__ == "__main__":
    if len(sys.argv) > 2:
        play(*sys.argv[1:3])
    else:
        main(int(sys.argv[1]) if len(sys.argv) > 1 else REQUESTS)
