"""One result of `tools/call` is parsed once and its text and form are counted once, whichever way it takes."""

import asyncio
import json
import sys
from collections import Counter
from types import FrameType
from typing import Any

import pytest

from pagefold.mcp_proxy.connection import ConnectionFactory
from pagefold.mcp_proxy.http import HttpSession
from pagefold.mcp_proxy.prefetch_driver import PrefetchDriver
from pagefold.mcp_proxy.specs import Spec
from pagefold.settings.sections import Settings
from pagefold.wire import jsonrpc

ROWS = [{"id": n, "title": f"Row {n} {n * 7919 % 1009} {n * 104729 % 9973}", "state": "open"} for n in range(160)]
PARSERS = frozenset(("parse", "opened", "members", "elements", "find", "top"))
LONG = 600


class Upstream:
    """A server that only notes what it is sent."""

    def __init__(self) -> None:
        self.sent: list[dict[str, Any]] = []

    async def send(self, data: bytes, *, now: bool = False) -> None:
        self.sent.append(json.loads(data))

    async def ready(self) -> None: ...

    async def close(self, grace_seconds: float) -> None: ...


def line(**members: Any) -> bytes:
    return json.dumps({"jsonrpc": "2.0", **members}).encode()


class Work:
    """Counts, while it is watched, how often a long message is scanned as JSON and how often a long text is counted."""

    def __init__(self) -> None:
        self.done: Counter[str] = Counter()

    def __call__(self, frame: FrameType, event: str, argument: object) -> None:
        code, caller = frame.f_code, frame.f_back
        if event != "call" or len(str(frame.f_locals.get("text", ""))) < LONG or caller is None:
            return
        if code.co_filename.endswith("wire/json_text.py") and code.co_name in PARSERS:
            self.done["parsed"] += not caller.f_code.co_filename.endswith("wire/json_text.py")
        if code.co_filename.endswith("pagefold/tokens.py") and code.co_name == "count":
            self.done["counted"] += "self" not in frame.f_locals  # the method only looks into its memory


async def work_of_one_result(names: list[str], *, http: bool, shared: bool) -> Counter[str]:
    settings, counts = Settings(), Counter[str]()
    factory = ConnectionFactory(
        [Spec(name, ("server",)) for name in names],
        settings.mcp,
        lambda environment: environment,
        open_prefetch=lambda: PrefetchDriver(settings, counts),
        counts=counts,
    )

    async def tell(data: bytes, message: object) -> None: ...

    client = HttpSession(factory, shared=shared) if http else None
    session = client.session if client else factory.session(tell)
    upstreams = {name: Upstream() for name in names}
    session.upstreams.update(upstreams)

    async def ask(**members: Any) -> None:
        data = line(**members)
        await (client.ask(jsonrpc.parse(data), data) if client else session.asked(data))

    async def answer(name: str, result: Any) -> None:
        await session.heard(name, line(id=upstreams[name].sent[-1]["id"], result=result))

    hello = {"clientInfo": {"name": "claude-code"}, "protocolVersion": "2025-11-25"}
    await ask(id=0, method="initialize", params=hello)
    for name in names:
        await answer(name, {"protocolVersion": "2025-11-25", "capabilities": {"tools": {}}})
    await ask(id=1, method="tools/list", params={})
    for name in names:
        await answer(name, {"tools": [{"name": f"get_{name}"}]})
    await asyncio.to_thread(session.processor._load)
    work = Work()
    await ask(id=2, method="tools/call", params={"name": f"get_{names[0]}", "arguments": {}})
    text = json.dumps(ROWS).replace("Row", f"Row of {names} {http} {shared}")
    sys.setprofile(work)
    try:
        await answer(names[0], {"content": [{"type": "text", "text": text}]})
    finally:
        sys.setprofile(None)
    assert counts["texts"] == 1
    return work.done


@pytest.mark.parametrize(
    ("names", "http", "shared"),
    [(["a"], False, False), (["a", "b"], False, False), (["a"], True, False), (["a"], True, True)],
    ids=["stdio", "several servers", "HTTP", "HTTP, stateless"],
)
def test_a_result_is_parsed_once_and_its_text_and_form_counted_once(names: list[str], http: bool, shared: bool) -> None:
    work = asyncio.run(work_of_one_result(names, http=http, shared=shared))
    assert work == {"parsed": 1, "counted": 2}
