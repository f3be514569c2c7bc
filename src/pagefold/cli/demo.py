"""`pagefold demo`: tells on the bundled session what pagefold does: shorter results, a fold, recall, the proxy.

It needs no key and no network, and leaves no files.

Example:
  pagefold demo
"""

import argparse
import json
import tempfile
import time
import urllib.request
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeAlias

from pagefold.adapters import recordings
from pagefold.adapters.stores import open_store
from pagefold.analysis.engine import sessions_of
from pagefold.analysis.replay_job import ReplayJob
from pagefold.analysis.session_bill import LARGE_HEAD, Bill
from pagefold.analysis.session_report import ReportOptions, SessionReport, session_report
from pagefold.cli import output
from pagefold.cli.demo_model import DemoModel
from pagefold.context import Context
from pagefold.derive.cost import ASSUMED
from pagefold.derive.policies.lossless import Lossless
from pagefold.derive.working_set.parts import OPENING as DIGEST
from pagefold.model_proxy.proxy import Proxy
from pagefold.model_proxy.server import running
from pagefold.model_proxy.upstreams import Upstreams
from pagefold.number_format import money, several, share, short
from pagefold.pages.kinds import classify
from pagefold.pages.page import HANDLE, Page
from pagefold.pages.recall import Recalled, recall
from pagefold.tokens import counter
from pagefold.wire.message import BlockKind, Role
from pagefold.wire.transcripts import Session

_SMALL = 9_000
_TAGGED = 60  # characters in which a digest says that it is one
_SHOWN = 96  # characters of a line
Show: TypeAlias = Callable[..., None]
"""Prints a paragraph, as `output.show` does."""
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
    told = tell(_silent if options.json else output.show)
    if options.json:
        output.print_json(told)
    return 0


def _silent(shown: str, *, lead: str = "", whole: bool = False) -> None:
    del shown, lead, whole  # figures alone were asked for


def tell(show: Show) -> dict[str, Any]:
    """Tells the whole story, and returns its figures."""
    job = ReplayJob(ASSUMED, "o200k", 200_000, by_model=True, fitted=frozenset(("tokens",)))
    (session,) = sessions_of([recordings.example()], job)
    known, tokens = session_report(session, job, options=ReportOptions()), job.of(session).tokens
    told = {
        "replay": _as_it_is(known, show),
        "lossless": _lossless(session, known.bill, tokens, show),
        "fold": _fold(session, show),
        "store": _store(session, show),
        "proxy": _proxy(show),
    }
    show("", lead="\nNext")
    show(
        "  source .venv/bin/activate   in a checkout: the command pagefold\n"
        "  pagefold report --days 30   what your own last sessions cost, and what they would have cost\n"
        "  pagefold run claude         your agent behind pagefold; codex, opencode and others as well"
    )
    return told


def _as_it_is(known: SessionReport, show: Show) -> dict[str, Any]:
    figures, cost = known.figures["identity"], known.bill.happened.both
    show(
        lead="1. What an agent pays for. ",
        shown=f"In a recorded session an agent mends a small program in "
        f"{several(figures.requests, 'request')}. Each request sends the whole history again: {short(figures.tokens)} "
        f"tokens, though only {short(figures.new_tokens)} are new. "
        f"{share(figures.result_tokens, figures.history_tokens, digits=0)} of the history are results of tools. With "
        f"the provider's cache all of it costs {money(cost)}, at the prices of {known.prices}.",
    )
    return {"requests": figures.requests, "tokens": figures.tokens, "usd": round(cost, 4)}


def _lossless(session: Session, bill: Bill, tokens: str, show: Show) -> dict[str, Any]:
    """Tells what the session costs with every result in its cheapest lossless form, and shows the one that gained
    most."""
    saved, least = bill.share_saved("lossless"), bill.least_share_saved("lossless")
    policy, state = Lossless(), Lossless().begin()
    best = ("", "", "")
    for message in session.messages:
        state = policy.step(state, message)
        shown = state.waiting[-1]
        if message.role is Role.TOOL and len(message.text) - len(shown.text) > len(best[1]) - len(best[2]):
            best = (message.blocks[0].name, message.text, shown.text)
    count = counter(tokens).count
    show(
        lead="\n2. The same, written shorter. ",
        shown="Every result enters the history in the cheapest form that decodes to "
        f"the same: the session costs {saved:.0%} less, or {least:.0%} with a system prompt of {LARGE_HEAD:,} tokens, "
        f"which the recording lacks. A result of {best[0]}, {count(best[1]):,} tokens, begins",
    )
    _excerpt(show, best[1], 3)
    show(f"and is read by the agent like this, {count(best[2]):,} tokens:")
    _excerpt(show, best[2], 6)
    return {"saved": round(saved, 4), "saved_with_a_large_head": round(least, 4)}


def _fold(session: Session, show: Show) -> dict[str, Any]:
    """Runs the session in a window that is too small for it, and shows what replaces its beginning."""
    context = Context(_SMALL)
    request: list[dict[str, Any]] = []
    for message in session.messages:
        if message.role is Role.ASSISTANT:
            request = context.request(cold=False)
        context.add(message)
    done = context.report()
    whole, now = done.plain_tokens / done.requests, done.tokens / done.requests
    show(
        lead="\n3. When the window is full, the history is folded. ",
        shown=f"In a window of {_SMALL:,} tokens the same "
        f"session takes {now:,.0f} tokens a request instead of {whole:,.0f}, and costs {done.saved:.0%} less. One "
        "message stands for the beginning: what was said, what was done, the files as they are now, and a handle for "
        "everything that was left out:",
    )
    texts = [str(one["content"]) for one in request if DIGEST in str(one["content"])[:_TAGGED]]
    _excerpt(show, "\n".join(texts), 12)
    handle = HANDLE.search("\n".join(texts))
    listed = (context.recall(handle[0]) if handle else "").count("pf-")
    return {"requests": done.requests, "folds": done.folds, "saved": round(done.saved, 4), "handles": listed}


def _store(session: Session, show: Show) -> dict[str, Any]:
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
    show(
        lead="\n4. Nothing is lost. ",
        shown=f"All {len(pages)} results were stored, recalled by their handles (such as "
        f"{largest.handle}) and compared: {exact} came back byte for byte.",
    )
    return {"results": len(pages), "pages": held.pages, "exact": exact, "handle": largest.handle}


def _proxy(show: Show) -> dict[str, Any]:
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
    show(
        lead="\n5. In front of the model. ",
        shown=f"{several(totals.requests, 'request')} went through a proxy on this "
        f"computer that only watches, to a model that plays a script: {same} arrived byte for byte, "
        f"{several(totals.faults, 'fault')} of pagefold's own.",
    )
    return {"requests": totals.requests, "identical": same, "faults": totals.faults}


def _excerpt(show: Show, text: str, lines: int) -> None:
    shown, rest = text.split("\n")[:lines], text.count("\n") + 1 - lines
    for line in shown:
        show(f"    {line[:_SHOWN]}{'…' if len(line) > _SHOWN else ''}", whole=True)
    if rest > 0:
        show(f"    … {several(rest, 'more line')}")


_TOOLS = [{"name": name, "input_schema": {"type": "object"}} for name in ("Read", "Bash")]


def _ask(url: str, body: bytes) -> None:
    headers = {"content-type": "application/json", "x-api-key": "none"}
    request = urllib.request.Request(f"{url}/v1/messages", body, headers)  # noqa: S310 - our own loopback address
    with urllib.request.urlopen(request, timeout=30) as answer:  # noqa: S310 - the same
        answer.read()


def _result(call_id: str) -> dict[str, Any]:
    return {"type": "tool_result", "tool_use_id": call_id, "content": "…"}
