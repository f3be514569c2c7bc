"""Calls of MCP tools in a crowd: hundreds in flight while one server hangs and one floods, against direct connections.

Three servers answer after 0.5 to 1.5 s, as tools do that have 500 calls in flight; each has 100 callers, who call again
when they were answered. A fourth never answers its 100 calls, a fifth answers its 100 and floods with notifications.
The same five run once directly and once behind one `pagefold mcp`, in turn. Printed is how long a call of the three
took, and p99 as a ratio. With `--at-once` the three answer at once: then a call costs what passing it on costs, and the
ratio tells how many times that is what a pipe costs.

  python -m bench.mcp_crowd --rounds 3
"""

import argparse
import asyncio
import json
import os
import random
import statistics
import sys
import tempfile
import threading
import time
from collections.abc import Mapping
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

from bench.mcp import PAGEFOLD, Stdio, answer

GOOD, EACH = ("a", "b", "c"), 100
_NOISE = json.dumps(
    {"jsonrpc": "2.0", "method": "notifications/message", "params": {"level": "info", "data": "x" * 900}}
)


def serve(kind: str) -> None:
    """A server over stdio that answers after a while or at once, hangs or floods."""
    writing = threading.Lock()

    def write(line: str) -> None:
        with writing:
            sys.stdout.write(line + "\n")
            sys.stdout.flush()

    def flood() -> None:
        while True:
            write(_NOISE)

    flooding = False
    for line in sys.stdin:
        message = json.loads(line)
        is_call = message.get("method") == "tools/call"
        if kind == "flood" and is_call and not flooding:
            flooding = True
            threading.Thread(target=flood, daemon=True).start()
        if (told := answer(message)) is None or (kind == "hang" and is_call):
            continue
        if is_call and kind != "at-once":
            threading.Timer(random.uniform(0.5, 1.5), write, (json.dumps(told),)).start()
        else:
            write(json.dumps(told))


def command(kind: str) -> list[str]:
    return [sys.executable, "-m", "bench.mcp_crowd", "--serve", kind]


async def crowd(clients: Mapping[str, tuple[Stdio, str]], calls: int) -> list[float]:
    """How long each call of a server that answers took, in ms; `clients` are by server, each with its tool's name."""
    taken: list[float] = []

    async def caller(name: str, times: int) -> None:
        client, tool = clients[name]
        for _ in range(times):
            began = time.perf_counter()
            told = await client.ask("tools/call", {"name": tool, "arguments": {}})
            assert "result" in told, told
            if name in GOOD:
                taken.append(1000 * (time.perf_counter() - began))

    lost = [asyncio.ensure_future(caller(name, 1)) for name in ("hang", "flood") for _ in range(EACH)]
    await asyncio.sleep(1.0)  # the flood has begun
    try:
        await asyncio.gather(*(caller(name, calls) for name in GOOD for _ in range(EACH)))
    finally:
        for call in lost:
            call.cancel()
        await asyncio.gather(*lost, return_exceptions=True)
    return taken


async def directly(environment: dict[str, str], calls: int, answers: str) -> list[float]:
    async with AsyncExitStack() as stack:
        clients = {}
        for name in (*GOOD, "hang", "flood"):
            client = await stack.enter_async_context(Stdio(command(answers if name in GOOD else name), environment))
            clients[name] = (client, "get")
        return await crowd(clients, calls)


async def behind_pagefold(environment: dict[str, str], folder: Path, calls: int, answers: str) -> list[float]:
    servers = {}
    for name in (*GOOD, "hang", "flood"):
        program, *arguments = command(answers if name in GOOD else name)
        servers[name] = {"command": program, "args": arguments}
    config = folder / "servers.json"
    config.write_text(json.dumps({"mcpServers": servers}))
    async with Stdio([*PAGEFOLD, "--config", str(config)], environment) as client:
        listed: dict[str, Any] = await client.ask("tools/list", {})
        tools = [tool["name"] for tool in listed["result"]["tools"]]
        of = {name: next(tool for tool in tools if name in tool and tool.endswith("get")) for name in servers}
        await asyncio.sleep(2.0)  # what it loads once its client is greeted
        return await crowd({name: (client, tool) for name, tool in of.items()}, calls)


def p99(taken: list[float]) -> float:
    return sorted(taken)[int(0.99 * len(taken))]


async def main(rounds: int, calls: int, answers: str) -> int:
    ratios: list[float] = []
    with tempfile.TemporaryDirectory() as home:
        environment = {**os.environ, "HOME": home, "XDG_DATA_HOME": home}
        for _ in range(rounds):
            direct = await directly(environment, calls, answers)
            behind = await behind_pagefold(environment, Path(home), calls, answers)
            ratios.append(p99(behind) / p99(direct))
            for name, taken in (("direct", direct), ("pagefold", behind)):
                p50 = statistics.median(taken)
                print(f"{name:9} {len(taken):6,} calls   p50 {p50:8.1f} ms   p99 {p99(taken):8.1f} ms")
            print(f"p99 {ratios[-1]:.2f} x direct", flush=True)
    return int(statistics.median(ratios) > 3.0)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--serve", default="")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--calls", type=int, default=5, help="calls of each of the 300 callers (default: 5)")
    parser.add_argument("--at-once", dest="answers", action="store_const", const="at-once", default="answer")
    options = parser.parse_args()
    if options.serve:
        serve(options.serve)
    else:
        raise SystemExit(asyncio.run(main(options.rounds, options.calls, options.answers)))
