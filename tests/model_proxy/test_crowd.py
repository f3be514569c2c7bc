"""Two thousand streams at once: all of them open together, each passed on as it comes, and memory bounded."""

import asyncio
import json
import resource
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from pagefold.adapters.asgi import Event, Receive, Send
from pagefold.derive.policies import policy_named
from pagefold.model_proxy.conversations import Conversations
from pagefold.model_proxy.proxy import Proxy
from pagefold.model_proxy.server import running
from pagefold.model_proxy.upstreams import Upstreams
from tests.model_proxy.conversation import body, history
from tests.model_proxy.upstream import EVENTS

STREAMS = 2_000
SOCKETS = 4 * STREAMS + 500  # client, both sides of the proxy and upstream are one process here
PIECES = 4
BYTES_OF_EACH = 150_000
"""What a stream may take in client, proxy and upstream together. That it does not grow with what passes through it is
seen with fewer and longer streams, in test_faults.py."""
PIECE = (
    b'event: content_block_delta\ndata: {"type":"content_block_delta","index":0,"delta":{"type":"text_delta",'
    b'"text":"' + b"x" * 2_000 + b'"}}\n\n'
)


class Crowded:
    """Begins every stream and goes on with none before all of them have begun."""

    def __init__(self, streams: int) -> None:
        self.streams, self.open = streams, 0
        self.all_here: asyncio.Event | None = None

    async def __call__(self, scope: Event, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await receive()
            self.all_here = asyncio.Event()
            await send({"type": "lifespan.startup.complete"})
            await receive()
            await send({"type": "lifespan.shutdown.complete"})
            return
        while (await receive()).get("more_body"):
            pass
        headers = [(b"content-type", b"text/event-stream")]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        await send({"type": "http.response.body", "body": EVENTS[0], "more_body": True})
        assert self.all_here is not None
        self.open += 1
        if self.open == self.streams:
            self.all_here.set()
        await self.all_here.wait()
        for data in (*[PIECE] * PIECES, *EVENTS[1:]):
            await send({"type": "http.response.body", "body": data, "more_body": True})
        await send({"type": "http.response.body"})


@pytest.fixture
def many_sockets() -> Iterator[None]:
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    if before[1] != resource.RLIM_INFINITY and before[1] < SOCKETS:
        pytest.skip(f"this user may open {before[1]:,} files at once, and {STREAMS:,} streams take {SOCKETS:,}")
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(before[0], SOCKETS), before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, before)


async def drained(url: str, data: bytes, gate: asyncio.Semaphore) -> int:
    """How many bytes of events arrive."""
    parts = urlsplit(url)
    async with gate:  # connecting all at once would try the kernel's backlog
        reader, writer = await asyncio.open_connection(parts.hostname, parts.port, limit=1 << 16)
    head = b"POST /v1/messages HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\ncontent-length: %d\r\n\r\n"
    writer.write(head % len(data) + data)
    while (await reader.readline()).strip():
        pass
    length = 0
    while size := int((await reader.readline()).strip() or b"0", 16):
        left = size
        while left:
            left -= len(await reader.read(left))
        await reader.readline()
        length += size
    writer.close()
    return length


def peak_of(url: str, data: bytes) -> tuple[list[int], int]:
    """What every stream brought, and the most memory that the process held meanwhile."""

    async def crowd() -> tuple[list[int], int]:
        gate, peak = asyncio.Semaphore(100), 0
        waiting = [asyncio.ensure_future(drained(url, data, gate)) for _ in range(STREAMS)]
        everyone = asyncio.gather(*waiting)
        while not everyone.done():
            peak = max(peak, resident())
            await asyncio.wait([everyone], timeout=0.05)
        return everyone.result(), peak

    return asyncio.run(crowd())


def resident() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize()


@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="memory is read from /proc")
@pytest.mark.usefixtures("many_sockets")
def test_two_thousand_streams_at_once_are_bounded_in_memory() -> None:
    data = body(history(1))
    with running(Crowded(STREAMS)) as upstream:
        proxy = Proxy(Upstreams({"anthropic": upstream}), Conversations(policy_named("lossless")))
        with running(proxy) as url:
            before = resident()
            lengths, peak = peak_of(url, data)
        assert set(lengths) == {PIECES * len(PIECE) + sum(map(len, EVENTS))}
        assert (peak - before) / STREAMS < BYTES_OF_EACH
    totals = proxy.totals
    assert (totals.requests, totals.streamed, totals.failed, totals.faults) == (STREAMS, STREAMS, 0, 0)
    assert json.loads(totals.to_json())["usage"]["output"] == STREAMS * 2
