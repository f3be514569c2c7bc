"""Measures what the MCP proxy costs, against no proxy and against FastMCP's, all in one run.

    python bench/mcp.py [--servers FOLDER] [--calls 300] [--soak N] [--kills N]

Latency of one call over stdio and over HTTP with results of 1 KB and 40 KB; a thousand calls in flight; the time until
a client is greeted. Servers, proxies and client share one machine, and each round asks all of them in turn, so that a
busy moment meets all: read differences and ratios. FOLDER is where `make agents` puts servers; FastMCP is looked for
there in `venv-fastmcp`. `--soak` makes that many calls through one proxy and watches memory and open files; `--kills`
kills the server in mid-call that many times.
"""

import argparse
import asyncio
import json
import os
import random
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import aiohttp

PAGEFOLD = [sys.executable, "-m", "pagefold", "mcp"]
HELLO = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "bench", "version": "1"}}
ACCEPT = {"Accept": "application/json, text/event-stream", "Content-Type": "application/json"}
FASTMCP = "from fastmcp.server import create_proxy; create_proxy({target!r}).run({how})"


def result(size: int) -> str:
    rows: list[object] = []
    while len(json.dumps(rows)) < size:
        number = len(rows)
        rows.append({"id": number, "title": f"Row {number} of many", "state": "open", "comments": number % 7})
    return json.dumps(rows)


SMALL, LARGE = result(1000), result(40_000)


# ---- the server: the least that can answer, over stdio or HTTP ------------------------------------------------------


def answer(message: dict[str, Any]) -> dict[str, Any] | None:
    method, params = message.get("method"), message.get("params") or {}
    if "id" not in message:
        return None
    if method == "initialize":
        said: dict[str, Any] = {"protocolVersion": params["protocolVersion"], "capabilities": {"tools": {}}}
        said["serverInfo"] = {"name": "bench", "version": "1"}
    elif method == "tools/list":
        schema = {"type": "object", "properties": {"size": {"type": "string"}}}
        said = {"tools": [{"name": "get", "description": "Gets", "inputSchema": schema}]}
    elif method == "tools/call":
        text = LARGE if (params.get("arguments") or {}).get("size") == "large" else SMALL
        # No two answers are the same, so that nobody gains by remembering.
        text = text.replace("of many", f"of {time.monotonic_ns() % 10**9}")
        said = {"content": [{"type": "text", "text": text}], "isError": False}
    elif method == "server/discover":
        return {"jsonrpc": "2.0", "id": message["id"], "error": {"code": -32601, "message": "Method not found"}}
    else:
        said = {}
    return {"jsonrpc": "2.0", "id": message["id"], "result": said}


def serve_stdio() -> None:
    for line in sys.stdin:
        if (told := answer(json.loads(line))) is not None:
            sys.stdout.write(json.dumps(told) + "\n")
            sys.stdout.flush()


def serve_http() -> None:
    from aiohttp import web  # noqa: PLC0415 - the server that speaks stdio starts without it

    async def handle(request: web.BaseRequest) -> web.StreamResponse:
        if request.method != "POST":
            return web.Response(status=405)
        message = json.loads(await request.read())
        told = answer(message)
        headers = {"Mcp-Session-Id": "bench"} if message.get("method") == "initialize" else {}
        return web.json_response(told, headers=headers) if told else web.Response(status=202)

    async def main() -> None:
        runner = web.ServerRunner(web.Server(handle))
        await runner.setup()
        site = web.TCPSite(runner, "127.0.0.1", 0, backlog=2048)
        await site.start()
        print(json.dumps({"url": f"http://127.0.0.1:{runner.addresses[0][1]}/mcp"}), flush=True)
        await asyncio.Event().wait()

    asyncio.run(main())


# ---- clients -------------------------------------------------------------------------------------------------------


class Stdio:
    """A client that writes lines and wakes whoever waits for an answer."""

    def __init__(self, command: list[str], environment: dict[str, str]) -> None:
        self._command, self._environment = command, environment
        self._waiting: dict[int, asyncio.Future[dict[str, Any]]] = {}
        self._number = 0

    async def __aenter__(self) -> "Stdio":
        self.process = await asyncio.create_subprocess_exec(
            *self._command,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.DEVNULL,
            env=self._environment,
            limit=1 << 24,
        )
        self._reading = asyncio.ensure_future(self._read())
        await self.ask("initialize", HELLO)
        self.send({"jsonrpc": "2.0", "method": "notifications/initialized"})
        return self

    async def __aexit__(self, *error: object) -> None:
        assert self.process.stdin is not None
        self.process.stdin.close()
        with suppress(TimeoutError):
            await asyncio.wait_for(self.process.wait(), 8)
        if self.process.returncode is None:
            self.process.kill()
            await self.process.wait()
        self._reading.cancel()

    async def _read(self) -> None:
        assert self.process.stdout is not None
        async for line in self.process.stdout:
            message = json.loads(line)
            if (waiting := self._waiting.pop(message.get("id"), None)) is not None:
                waiting.set_result(message)

    def send(self, message: dict[str, Any]) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(json.dumps(message).encode() + b"\n")

    async def ask(self, method: str, params: dict[str, Any]) -> dict[str, Any]:
        self._number += 1
        waiting = self._waiting[self._number] = asyncio.get_running_loop().create_future()
        self.send({"jsonrpc": "2.0", "id": self._number, "method": method, "params": params})
        answered: dict[str, Any] = await waiting
        return answered


class Http:
    def __init__(self, url: str) -> None:
        self._url, self._number, self._headers = url, 0, dict(ACCEPT)

    async def __aenter__(self) -> "Http":
        self._session = aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0))
        await self.ask("initialize", HELLO)
        async with self._session.post(
            self._url, json={"jsonrpc": "2.0", "method": "notifications/initialized"}, headers=self._headers
        ):
            return self

    async def __aexit__(self, *error: object) -> None:
        await self._session.close()

    async def ask(self, method: str, params: dict[str, Any]) -> dict[str, Any]:
        self._number += 1
        body = {"jsonrpc": "2.0", "id": self._number, "method": method, "params": params}
        async with self._session.post(self._url, json=body, headers=self._headers) as response:
            if "Mcp-Session-Id" in response.headers:
                self._headers["Mcp-Session-Id"] = response.headers["Mcp-Session-Id"]
            text = await response.text()
        if text.startswith("{"):
            return dict(json.loads(text))
        lines = [line[5:].strip() for line in text.splitlines() if line.startswith("data:")]
        return next(found for line in lines if line and (found := json.loads(line)).get("id") == self._number)


async def call(client: Stdio | Http, size: str) -> float:
    began = time.perf_counter()
    told = await client.ask("tools/call", {"name": "get", "arguments": {"size": size}})
    assert "content" in told["result"], told
    return 1000 * (time.perf_counter() - began)


def cpu_seconds(client: Stdio | Http) -> float:
    """What a proxy has worked so far: unlike the time that passes it does not depend on what else a machine does."""
    if isinstance(client, Http):
        return 0.0
    fields = Path(f"/proc/{client.process.pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


async def latency(clients: dict[str, Stdio | Http], calls: int, what: str) -> None:
    for client in clients.values():
        await client.ask("tools/list", {})
        for _ in range(20):
            await call(client, "small")
    taken: dict[tuple[str, str], list[float]] = {}
    spent: dict[str, float] = {}
    for size in ("small", "large"):
        before = {name: cpu_seconds(client) for name, client in clients.items()}
        for _ in range(calls):
            for name, client in clients.items():
                taken.setdefault((name, size), []).append(await call(client, size))
                await asyncio.sleep(0.002)
        for name, client in clients.items():
            spent[f"{name} {size}"] = 1000 * (cpu_seconds(client) - before[name]) / calls
    for size, words in (("small", "1 KB"), ("large", "40 KB")):
        direct = statistics.median(taken["direct", size])
        for name in clients:
            ordered = sorted(taken[name, size])
            p50, p99 = statistics.median(ordered), ordered[int(0.99 * len(ordered))]
            work = f"   {spent[f'{name} {size}']:6.2f} ms of work" if what == "stdio" and name != "direct" else ""
            print(
                f"{what:6} {words:>5}  {name:9} p50 {p50:7.2f} p99 {p99:7.2f} ms   added {p50 - direct:7.2f} ms{work}"
            )


async def in_flight(client: Stdio | Http, many: int, what: str) -> None:
    began = time.perf_counter()
    taken = await asyncio.gather(*(call(client, "small") for _ in range(many)))
    print(f"{what:18} {len(taken):,} in flight, all answered, {many / (time.perf_counter() - began):,.0f} a second")


async def greeted(command: list[str], environment: dict[str, str]) -> float:
    began = time.perf_counter()
    async with Stdio(command, environment):
        return 1000 * (time.perf_counter() - began)


async def soak(calls: int, environment: dict[str, str]) -> None:
    async with Stdio([*PAGEFOLD, "--", sys.executable, __file__, "stdio"], environment) as client:
        for part in range(10):
            for _ in range(calls // 10 // 100):
                await asyncio.gather(*(call(client, random.choice(["small", "small", "large"])) for _ in range(100)))
            memory = Path(f"/proc/{client.process.pid}/status").read_text().split("VmRSS:")[1].split()[0]
            files = len(list(Path(f"/proc/{client.process.pid}/fd").iterdir()))
            done = (part + 1) * calls // 10
            print(f"soak: {done:7,} calls, {int(memory) // 1000} MB, {files} open files", flush=True)


async def kills(times: int, environment: dict[str, str]) -> None:
    async with Stdio([*PAGEFOLD, "--no-tools", "--", sys.executable, __file__, "stdio"], environment) as client:
        answered = failed = 0
        for _ in range(times):
            waiting = [
                asyncio.ensure_future(client.ask("tools/call", {"name": "get", "arguments": {}})) for _ in range(20)
            ]
            await asyncio.sleep(random.uniform(0, 0.01))
            children = Path(f"/proc/{client.process.pid}/task/{client.process.pid}/children").read_text().split()
            for child in children:
                with suppress(ProcessLookupError):
                    os.kill(int(child), 9)
            for told in await asyncio.wait_for(asyncio.gather(*waiting), 60):
                answered, failed = answered + ("result" in told), failed + ("error" in told)
        print(f"kills: {times} in mid-call, {answered:,} calls answered, {failed:,} failed cleanly, 0 lost")


def url_of(command: list[str], environment: dict[str, str], children: list[Any]) -> str:
    child = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, stdin=subprocess.DEVNULL, env=environment
    )
    children.append(child)
    assert child.stdout is not None
    return str(json.loads(child.stdout.readline())["url"])


async def http_clients(environment: dict[str, str], fastmcp: Path, children: list[Any]) -> dict[str, Stdio | Http]:
    direct = url_of([sys.executable, __file__, "http"], environment, children)
    urls = {"direct": direct, "pagefold": url_of([*PAGEFOLD, "--json", "--http", "0", direct], environment, children)}
    if fastmcp.exists():
        port = random.randint(20_000, 40_000)
        how = f"transport='http', host='127.0.0.1', port={port}, show_banner=False"
        script = FASTMCP.format(target=direct, how=how)
        children.append(
            subprocess.Popen(
                [str(fastmcp), "-c", script], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=environment
            )
        )
        urls["fastmcp"] = f"http://127.0.0.1:{port}/mcp"
    clients: dict[str, Stdio | Http] = {}
    for name, url in urls.items():
        for _ in range(100):
            client = Http(url)
            try:
                clients[name] = await client.__aenter__()
                break
            except (aiohttp.ClientError, OSError):
                await client.__aexit__()
                await asyncio.sleep(0.2)
    return clients


async def main(options: argparse.Namespace) -> None:
    with tempfile.TemporaryDirectory() as home:
        environment = {**os.environ, "HOME": home, "XDG_DATA_HOME": home}
        server = [sys.executable, __file__, "stdio"]
        if options.soak:
            await soak(options.soak, environment)
        if options.kills:
            await kills(options.kills, environment)
        if options.soak or options.kills:
            return
        fastmcp = Path(options.servers) / "venv-fastmcp" / "bin" / "python"
        commands = {"direct": server, "pagefold": [*PAGEFOLD, "--", *server]}
        if fastmcp.exists():
            target = {"mcpServers": {"x": {"command": server[0], "args": server[1:]}}}
            script = FASTMCP.format(target=target, how="show_banner=False")
            commands["fastmcp"] = [str(fastmcp), "-c", script]
        began: dict[str, list[float]] = {}
        for _ in range(options.starts):
            for name, command in commands.items():
                if name != "fastmcp" or len(began.get(name, [])) < 2:
                    began.setdefault(name, []).append(await greeted(command, environment))
        for name, taken in began.items():
            added = statistics.median(taken) - statistics.median(began["direct"])
            print(f"greeted: {name:9} after {statistics.median(taken):7.0f} ms   added {added:7.0f} ms")
        clients: dict[str, Stdio | Http] = {
            name: await Stdio(command, environment).__aenter__() for name, command in commands.items()
        }
        await latency(clients, options.calls, "stdio")
        await in_flight(clients["pagefold"], 1000, "pagefold, stdio")
        for client in clients.values():
            await client.__aexit__()
        children: list[Any] = []
        try:
            clients = await http_clients(environment, fastmcp, children)
            await latency(clients, options.calls // 2, "HTTP")
            await in_flight(clients["pagefold"], 1000, "pagefold, HTTP")
            for client in clients.values():
                await client.__aexit__()
        finally:
            for child in children:
                child.terminate()
                child.wait()


ROLES: dict[str, Callable[[], None]] = {"stdio": serve_stdio, "http": serve_http}

if __name__ == "__main__":
    if len(sys.argv) == 2 and sys.argv[1] in ROLES:
        ROLES[sys.argv[1]]()
    else:
        parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
        parser.add_argument("--servers", default=".agents")
        parser.add_argument("--calls", type=int, default=300)
        parser.add_argument("--starts", type=int, default=7)
        parser.add_argument("--soak", type=int, default=0)
        parser.add_argument("--kills", type=int, default=0)
        asyncio.run(main(parser.parse_args()))
