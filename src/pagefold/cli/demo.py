"""`pagefold demo`: shows replay, fold, store, recall and proxy on the bundled session.

It needs no key and no network, and leaves no files.

Example:
  pagefold demo
"""

import argparse
import json
import tempfile
import time
import urllib.request
from functools import partial
from pathlib import Path
from typing import Any

from rich.console import Console

from pagefold.adapters import recordings
from pagefold.adapters.stores import open_store
from pagefold.analysis.engine import Engine, run_on_sessions, sessions_of
from pagefold.analysis.replay import replay
from pagefold.analysis.replay_job import ReplayJob, replay_session
from pagefold.cli import output
from pagefold.cli import replay as replaying
from pagefold.cli.demo_model import DemoModel
from pagefold.context import Context
from pagefold.derive.cost import ASSUMED
from pagefold.derive.policies.lossless import Lossless
from pagefold.derive.working_set.parts import OPENING as DIGEST
from pagefold.model_proxy.proxy import Proxy
from pagefold.model_proxy.server import running
from pagefold.model_proxy.upstreams import Upstreams
from pagefold.number_format import short
from pagefold.pages.kinds import classify
from pagefold.pages.page import HANDLE, Page
from pagefold.pages.recall import Recalled, recall
from pagefold.tokens import counter
from pagefold.wire.message import BlockKind, Role
from pagefold.wire.transcripts import Session

_SMALL = 9_000
_TAGGED = 60  # characters in which a digest says that it is one
_TURNS: tuple[list[dict[str, Any]], ...] = (
    [
        {"type": "text", "text": "I will look at it."},
        {"type": "tool_use", "id": "call_1_0", "name": "Read", "input": {"path": "loans.py"}},
    ],
    [
        {"type": "text", "text": "And the tests."},
        {"type": "tool_use", "id": "call_3_0", "name": "Read", "input": {"path": "test_loans.py"}},
        {"type": "tool_use", "id": "call_3_1", "name": "Bash", "input": {"command": "ls"}},
    ],
    [{"type": "text", "text": "Done: the desk grants three renewals."}],
)


def add_arguments(command: argparse.ArgumentParser) -> None:
    del command  # it has no flags of its own


def run(options: argparse.Namespace) -> int:
    console = Console(quiet=True) if options.json else output.console()
    path = recordings.example()
    job = ReplayJob(ASSUMED, "o200k", 200_000)
    (session,) = sessions_of([path], job)

    console.print("[bold]1. Replay[/]: a recorded Claude Code session, as it was sent.\n")
    report = replaying.ReplayPrinter(job, "identity", as_json=False)
    for result in run_on_sessions([path], partial(replay_session, policy="identity"), job, Engine(jobs=1)):
        report.add(result)
    if not options.json:
        report.finish()

    saved = _lossless(session, job, report.totals.total.cost, console)
    folded = _fold(session, console)
    stored = _store(session, console)
    passed = _proxy(console)
    if options.json:
        total = report.totals.to_dict()["total"]
        output.print_json({"replay": total, "lossless": saved, "fold": folded, "store": stored, "proxy": passed})
    console.print("\nNext: [bold]pagefold replay[/] shows the same for your own sessions.")
    return 0


def _lossless(session: Session, job: ReplayJob, cost: float, console: Console) -> dict[str, Any]:
    """Replays the session with every result in its cheapest lossless form, and shows the result that gained most."""
    console.print(
        "\n[bold]2. Lossless[/]: the same session, every result in its cheapest form that decodes to the same.\n"
    )
    figures = replay(session, job.terms("lossless"))
    policy, state = Lossless(), Lossless().begin()
    best = ("", "", "")
    for message in session.messages:
        state = policy.step(state, message)
        shown = state.waiting[-1]
        if message.role is Role.TOOL and len(message.text) - len(shown.text) > len(best[1]) - len(best[2]):
            best = (message.blocks[0].name, message.text, shown.text)
    ratio = figures.cost / cost
    console.print(f"It costs {short(figures.cost)} instead of {short(cost)}: {1 - ratio:.0%} saved.")
    count = counter("o200k").count
    console.print(f"Most was saved on a result of {best[0]}, {count(best[1]):,} tokens, now {count(best[2]):,}:")
    for line in best[2].split("\n")[:6]:
        console.print(f"    {line[:100]}", markup=False)
    return {"cost": figures.cost, "ratio": round(ratio, 4)}


def _fold(session: Session, console: Console) -> dict[str, Any]:
    """Runs the session in a window that is too small for it, and shows what replaces its beginning."""
    console.print(f"\n[bold]3. Fold[/]: the same session in a window of {_SMALL:,} tokens.\n")
    context = Context(_SMALL)
    request: list[dict[str, Any]] = []
    for message in session.messages:
        if message.role is Role.ASSISTANT:
            request = context.request(cold=False)
        context.add(message)
    done = context.report()
    whole, now = done.plain_tokens / done.requests, done.tokens / done.requests
    folds = f"{done.folds} fold point{'s' if done.folds != 1 else ''}"
    console.print(
        f"{done.requests} requests, {folds}: {now:,.0f} tokens a request instead of {whole:,.0f}, at "
        f"{done.saved:.0%} less cost. The beginning became one message: what was said, what was done, the files:"
    )
    texts = [str(one["content"]) for one in request if DIGEST in str(one["content"])[:_TAGGED]]
    for line in "\n".join(texts).split("\n")[:14]:
        console.print(f"    {line[:100]}", markup=False)
    handle = HANDLE.search("\n".join(texts))
    back = context.recall(handle[0]) if handle else ""
    listed = back.count("pf-")
    console.print(f"Recalled by its handle: a list of what was folded, with {listed} handles of its own.")
    return {"requests": done.requests, "folds": done.folds, "saved": round(done.saved, 4)}


def _store(session: Session, console: Console) -> dict[str, Any]:
    console.print("\n[bold]4. Store and recall[/]: every tool result becomes a page that comes back byte for byte.\n")
    with tempfile.TemporaryDirectory() as folder:
        store = open_store(Path(folder, "store.sqlite3"))
        pages = [
            Page.of(classify(message), block.text, block.name)
            for message in session.messages
            for block in message.blocks
            if block.kind is BlockKind.RESULT
        ]
        for page in pages:
            store.pages.put(page.content, history=session.id, now=time.time())
        exact = sum(
            recall(store.pages, page.handle, within=session.id) == Recalled(page.id, page.content) for page in pages
        )
        held = store.pages.stats()
        store.close()
    largest = max(pages, key=lambda page: len(page.content))
    console.print(
        f"{len(pages)} results are {held.pages} pages: {short(held.bytes)} bytes, "
        f"{short(held.stored_bytes)} on disk. The largest, a result of {largest.name}, is {largest.handle}."
    )
    console.print(f"Recalled and compared: {exact} of {len(pages)} exact.")
    return {"results": len(pages), "pages": held.pages, "exact": exact, "handle": largest.handle}


def _proxy(console: Console) -> dict[str, Any]:
    console.print("\n[bold]5. Proxy[/]: a scripted model behind pagefold serve --observe, streaming.\n")
    model = DemoModel(_TURNS)
    sent: list[bytes] = []
    with running(model) as upstream:
        proxy = Proxy(Upstreams({"anthropic": upstream}))
        with running(proxy) as url:
            messages: list[dict[str, Any]] = [{"role": "user", "content": "Why does the desk grant four renewals?"}]
            for turn in _TURNS:
                body = {"model": "scripted", "max_tokens": 500, "stream": True, "messages": messages, "tools": _TOOLS}
                sent.append(json.dumps(body).encode())
                _ask(url, sent[-1])
                results = [_result(block["id"]) for block in turn if block["type"] == "tool_use"]
                messages += [{"role": "assistant", "content": turn}, {"role": "user", "content": results or "thanks"}]
    same = sum(arrived == body for arrived, body in zip(model.requests, sent, strict=True))
    totals = proxy.totals
    console.print(
        f"{totals.requests} requests passed, {same} of them byte for byte; {totals.prefix.kept} messages stood where "
        f"they had been sent before, {totals.prefix.moved} had moved."
    )
    console.print(
        f"The model reported {totals.usage.prompt:,} prompt tokens; {totals.faults} faults of pagefold's own."
    )
    return {"requests": totals.requests, "identical": same, "faults": totals.faults}


_TOOLS = [{"name": name, "input_schema": {"type": "object"}} for name in ("Read", "Bash")]


def _ask(url: str, body: bytes) -> None:
    headers = {"content-type": "application/json", "x-api-key": "none"}
    request = urllib.request.Request(f"{url}/v1/messages", body, headers)  # noqa: S310 - our own loopback address
    with urllib.request.urlopen(request, timeout=30) as answer:  # noqa: S310 - the same
        answer.read()


def _result(call_id: str) -> dict[str, Any]:
    return {"type": "tool_result", "tool_use_id": call_id, "content": "…"}
