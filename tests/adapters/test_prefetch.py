"""The driver of early calls: limits, order, shutdown; and a real filesystem server while another process writes.

The server is looked for in the folder that AGENTS_DIR names, else in `.agents` of the repository.
"""

import asyncio
import json
import os
import random
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from pagefold.adapters.prefetch import Prefetcher, witness
from pagefold.settings.tools import FollowUpLink, PrefetchSettings
from pagefold.tools.model import SideEffectClass, ToolValueModel
from pagefold.tools.planner import Planner
from pagefold.tools.registry import ToolRegistry

AGENTS = Path(os.environ.get("AGENTS_DIR") or Path(__file__).parents[2] / ".agents").absolute()
SERVER = AGENTS / "node_modules/.bin/mcp-server-filesystem"
LONG_AGO = time.time() - 100

READ = ToolValueModel(
    side_effect_class=SideEffectClass.READ_ONLY,
    open_world=True,
    rate_limit_host="h",
    value_class=ToolRegistry().find("Read").model.value_class,  # type: ignore[union-attr]
)
LIST = ToolValueModel(follow_up=(FollowUpLink("get", 1.0, "n", "n"),), side_effect_class=SideEffectClass.READ_ONLY)
FILE = ToolValueModel(side_effect_class=SideEffectClass.PURE, open_world=False, watch=("path",))


class World:
    """A server whose calls end when they are told to."""

    def __init__(self, **models: ToolValueModel) -> None:
        self.started: list[Any] = []
        self.most = self.now = self.cancelled = 0
        self.gate = asyncio.Event()
        self.fails = False
        registry = ToolRegistry({"list": LIST, "get": READ, **models}, learned=False)
        self.planner = Planner(registry, PrefetchSettings(hosts=("h",), budget_tokens=10**6, deadline_ms=200))
        self.driver: Prefetcher[Any] = Prefetcher(self.run, registry, self.planner)

    async def run(self, tool: str, arguments: Mapping[str, Any]) -> tuple[Any, bool]:
        self.started.append(arguments.get("n"))
        self.now += 1
        self.most = max(self.most, self.now)
        try:
            await self.gate.wait()
        except asyncio.CancelledError:
            self.cancelled += 1
            raise
        finally:
            self.now -= 1
        if self.fails:
            raise ConnectionError("gone")
        return f"{tool} {dict(arguments)}", False

    async def call(self, tool: str, arguments: Mapping[str, Any], body: Any = "") -> Any:
        """A real call, answered with `body` where nothing is at hand."""
        served = await self.driver.begin(tool, arguments)
        self.driver.end(tool, arguments, body if served is None else served, failed=False)
        return served

    async def list(self, *numbers: int) -> None:
        await self.call("list", {}, [{"n": number} for number in numbers])
        await asyncio.sleep(0)


async def settled(world: World) -> None:
    world.gate.set()
    while world.now:
        await asyncio.sleep(0.001)
    await asyncio.sleep(0.001)


def test_an_early_answer_is_served_once_to_the_identical_call() -> None:
    async def conversation() -> None:
        world = World()
        await world.list(1, 2)
        await settled(world)

        assert await world.call("get", {"n": 3}) is None
        assert await world.call("get", {"n": 1}) == "get {'n': 1}"
        assert await world.call("get", {"n": 1}) is None
        await world.driver.close()

    asyncio.run(conversation())


def test_at_most_three_run_side_by_side() -> None:
    async def conversation() -> None:
        world = World(
            list=ToolValueModel(follow_up=(FollowUpLink("get", 1.0, "n", "n"), FollowUpLink("see", 1.0, "n", "n"))),
            see=READ,
        )
        await world.list(1, 2, 3, 4, 5, 6)
        await settled(world)

        assert (len(world.started), world.most) == (3, 3)
        await world.driver.close()

    asyncio.run(conversation())


def test_a_real_call_ends_what_runs_early_except_what_it_asks_for() -> None:
    async def conversation() -> None:
        world = World()
        await world.list(1, 2, 3)
        asked = asyncio.ensure_future(world.driver.begin("get", {"n": 2}))
        await asyncio.sleep(0.01)
        assert (world.cancelled, world.now) == (2, 1)
        world.gate.set()

        assert await asked == "get {'n': 2}"
        assert sorted(world.started) == [1, 2, 3]
        await world.driver.close()

    asyncio.run(conversation())


def test_nothing_is_started_while_a_real_call_runs() -> None:
    async def conversation() -> None:
        world = World()
        await world.driver.begin("other", {})
        await world.list(1)
        assert world.started == []
        world.driver.end("other", {}, "", failed=False)
        await asyncio.sleep(0)

        # The other tool is unknown, so what the list said may be old; reading is asked for anew and is not.
        assert world.started == [1]
        world.gate.set()
        await world.driver.close()

    asyncio.run(conversation())


def test_what_takes_too_long_is_given_up_and_what_breaks_bothers_nobody() -> None:
    async def conversation() -> None:
        slow = World()
        await slow.list(1)
        await asyncio.sleep(0.3)
        assert (slow.started, slow.now) == ([1], 0)
        assert await slow.call("get", {"n": 1}) is None

        broken = World()
        broken.fails = True
        await broken.list(1)
        await settled(broken)
        assert (broken.started, broken.now) == ([1], 0)
        assert await broken.call("get", {"n": 1}) is None

    asyncio.run(conversation())


def test_closing_cancels_and_awaits_everything() -> None:
    async def conversation() -> None:
        world = World()
        world.planner.limits = replace(world.planner.limits, deadline_ms=60_000)
        await world.list(1, 2, 3)
        await asyncio.wait_for(world.driver.close(), 5)

        assert (world.cancelled, world.now) == (3, 0)
        await world.list(4)
        assert len(world.started) == 3
        assert len(asyncio.all_tasks()) == 1

    asyncio.run(conversation())


@pytest.mark.parametrize("writer", ["Bash", "put", "unheard_of"])
def test_a_write_that_overlaps_an_early_call_keeps_it_from_being_served(writer: str) -> None:
    async def conversation() -> None:
        world = World(put=ToolValueModel(side_effect_class=SideEffectClass.MUTATES_EXTERNAL))
        await world.list(1)
        await settled(world)
        await world.call(writer, {})

        assert await world.call("get", {"n": 1}) is None
        await world.driver.close()

    asyncio.run(conversation())


def test_a_host_answers_so_many_at_once_real_calls_included() -> None:
    async def conversation() -> None:
        world = World()
        world.planner.limits = replace(world.planner.limits, parallel=9, per_host=2)
        await world.list(1, 2, 3)
        assert len(world.started) == 2
        await world.driver.close()

    asyncio.run(conversation())


# ---- files that change -----------------------------------------------------------------------------------------------


def old(path: Path, text: str) -> Path:
    """A file that was not written just now. Its change time cannot be set, so it is waited for."""
    path.write_text(text)
    os.utime(path, (LONG_AGO, LONG_AGO))
    return path


def test_a_file_that_was_just_written_is_not_vouched_for(tmp_path: Path) -> None:
    path = old(tmp_path / "a", "x")

    assert witness(FILE, {"path": str(path)}, first=True) is None
    time.sleep(0.06)
    assert witness(FILE, {"path": str(path)}, first=True) is not None


@pytest.mark.parametrize("path", ["relative", "", "/no/such/file", "/dev/null", "/a\0b", 7])
def test_what_cannot_be_looked_at_is_not_vouched_for(path: Any) -> None:
    assert witness(FILE, {"path": path}) is None
    assert witness(FILE, {}) is None


@pytest.mark.parametrize("way", ["in place", "replaced", "same size, time set back", "removed"])
def test_every_write_shows(way: str, tmp_path: Path) -> None:
    path = old(tmp_path / "a", "one")
    time.sleep(0.06)
    before = witness(FILE, {"path": str(path)}, first=True)
    if way == "in place":
        path.write_text("two")
    elif way == "replaced":
        (tmp_path / "b").write_text("two")
        (tmp_path / "b").replace(path)
    elif way == "removed":
        path.unlink()
    else:
        path.write_text("two")
        os.utime(path, (LONG_AGO, LONG_AGO))

    assert before is not None
    assert witness(FILE, {"path": str(path)}) != before


# ---- a real server ---------------------------------------------------------------------------------------------------

WRITER = """
import os, random, sys, time
dice, folder = random.Random(7), sys.argv[1]
for version in range(1, 10**6):
    path = os.path.join(folder, dice.choice(["a.txt", "b.txt"]))
    text = b"%012d" % version
    if dice.random() < 0.5:
        with open(path, "r+b") as file:
            file.write(text)
    else:
        with open(path + ".new", "wb") as file:
            file.write(text)
        os.replace(path + ".new", path)
    time.sleep(dice.choice([0.001, 0.02, 0.15, 0.3]))
"""


@asynccontextmanager
async def filesystem_server(folder: Path) -> AsyncIterator[Any]:
    """Calls on a real filesystem server, by its tools' own names."""
    server = await asyncio.create_subprocess_exec(
        str(SERVER), str(folder), stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
    )
    waiting: dict[int, asyncio.Future[Any]] = {}
    assert server.stdin is not None
    assert server.stdout is not None
    stdin, stdout = server.stdin, server.stdout

    async def read() -> None:
        while line := await stdout.readline():
            message = json.loads(line)
            future = waiting.pop(message.get("id"), None)
            if future is not None and not future.done():
                future.set_result(message.get("result", {"isError": True}))

    async def ask(method: str, params: Any) -> Any:
        number = ask.number = ask.number + 1  # type: ignore[attr-defined]
        waiting[number] = asyncio.get_running_loop().create_future()
        stdin.write(json.dumps({"jsonrpc": "2.0", "id": number, "method": method, "params": params}).encode() + b"\n")
        return await waiting[number]

    ask.number = 0  # type: ignore[attr-defined]

    async def call(tool: str, arguments: Mapping[str, Any]) -> tuple[Any, bool]:
        name = tool.removeprefix("mcp__filesystem__")
        result = await ask("tools/call", {"name": name, "arguments": dict(arguments)})
        return result, bool(result.get("isError"))

    async with asyncio.TaskGroup() as group:
        reader = group.create_task(read())
        about = {"name": "test", "version": "1"}
        await ask("initialize", {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": about})
        stdin.write(b'{"jsonrpc":"2.0","method":"notifications/initialized"}\n')
        try:
            yield call
        finally:
            server.terminate()
            await server.wait()
            reader.cancel()


async def seen_by_an_agent(folder: Path, seconds: float) -> tuple[int, int, Prefetcher[Any]]:
    """An agent that lists and reads while files change under it: how many reads were served early, how many wrongly."""
    dice, served, false = random.Random(3), 0, 0
    registry = ToolRegistry()
    async with filesystem_server(folder) as call:
        driver: Prefetcher[Any] = Prefetcher(call, registry, Planner(registry))

        async def real(tool: str, **arguments: Any) -> tuple[Any, bool]:
            body = await driver.begin(tool, arguments)
            early = body is not None
            failed = False
            if body is None:
                body, failed = await call(tool, arguments)
            driver.end(tool, arguments, body, failed=failed)
            return body, early

        until = time.monotonic() + seconds
        while time.monotonic() < until:
            # A write of its own, so that it has reason to look again.
            await real("mcp__filesystem__write_file", path=str(folder / "own" / "c.txt"), content="x")
            await real("mcp__filesystem__list_directory", path=str(folder))
            await asyncio.sleep(dice.choice([0.01, 0.05, 0.1]))
            path = folder / dice.choice(["a.txt", "b.txt"])
            least = int(path.read_text())
            body, early = await real("mcp__filesystem__read_file", path=str(path))
            version = int(body["content"][0]["text"] or 0)
            served += early
            false += early and version < least
        await driver.close()
    return served, false, driver


@pytest.mark.skipif(not SERVER.exists(), reason=f"no {SERVER.name} in {AGENTS}: install it there, or set AGENTS_DIR")
def test_a_real_server_is_never_answered_for_with_what_another_process_has_overwritten(tmp_path: Path) -> None:
    (tmp_path / "own").mkdir()
    for name in ("a.txt", "b.txt"):
        (tmp_path / name).write_text("0" * 12)
    writer = subprocess.Popen([sys.executable, "-c", WRITER, str(tmp_path)])
    try:
        served, false, driver = asyncio.run(seen_by_an_agent(tmp_path, 6))
    finally:
        writer.kill()
        writer.wait()

    assert false == 0
    assert served >= 5
    assert driver.started > served
