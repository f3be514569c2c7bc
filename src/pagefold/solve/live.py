"""The arms of a comparison in front of a real endpoint: straight to it, or through a pagefold proxy on loopback.

The proxy is the one that `pagefold serve` runs, with a store of its own that goes with the run. Time is real here: an
idle hour of a task is not waited for.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from pagefold.adapters.library import Library
from pagefold.adapters.model_endpoint import ModelEndpoint
from pagefold.adapters.model_prices import ModelPrices
from pagefold.adapters.stores import open_store
from pagefold.errors import UpstreamError
from pagefold.model_proxy.conversations import Conversations
from pagefold.model_proxy.proxy import Proxy
from pagefold.model_proxy.recall_service import PageKeeper, RecallAnswers
from pagefold.model_proxy.server import running
from pagefold.model_proxy.upstreams import Upstreams
from pagefold.solve.arms import AS_IT_IS, Arm, policy_of
from pagefold.solve.budget import SolveBudget
from pagefold.solve.experiment import Job, most_turns
from pagefold.solve.loop import STOPPED, Outcome, RefusedError, run
from pagefold.solve.transcripts import Transcripts
from pagefold.solve.verdict import Result
from pagefold.wire.message import Usage

_REFUSALS = (400, 413, 422)  # the request is at fault; with anything else the endpoint is


@dataclass(slots=True)
class Live:
    """A real model as a `Send`. `usages` has what the endpoint reported, request by request."""

    endpoint: ModelEndpoint
    budget: SolveBudget
    models: ModelPrices
    usd: float = 0.0
    largest: int = 0
    folds: int = 0
    usages: list[Mapping[str, Any]] = field(default_factory=list)

    def __call__(self, body: bytes, now: float) -> Mapping[str, Any]:
        request = json.loads(body)
        del request["model"]  # the endpoint's own is sent
        try:
            message = self.endpoint.message(request)
        except UpstreamError as error:
            if error.status in _REFUSALS:
                raise RefusedError(str(error)) from error
            raise
        told = message.get("usage") or {}
        usage = Usage(
            told.get("input_tokens") or 0,
            told.get("cache_read_input_tokens") or 0,
            told.get("cache_creation_input_tokens") or 0,
            told.get("output_tokens") or 0,
        )
        usd = self.models.prices(self.endpoint.model).bill(usage)
        self.usages.append(told)
        self.usd += usd
        self.largest = max(self.largest, usage.prompt)
        self.budget.count(usage.prompt + usage.output, usd)
        return message


@contextmanager
def reached(live: Live, arm: Arm) -> Iterator[None]:
    """While the block runs, requests reach the endpoint as they do in this arm. At its end `live` has its folds."""
    if arm.policy == AS_IT_IS:
        yield
        return
    with TemporaryDirectory(prefix="pagefold-solve-") as folder:
        library = Library(open_store(Path(folder) / "store.sqlite3"))
        try:
            conversations = Conversations(policy_of(arm), store=library.store, window=arm.window, known=live.models)
            upstreams = Upstreams({"anthropic": live.endpoint.url, "openai": live.endpoint.url})
            proxy = Proxy(upstreams, conversations, put=PageKeeper(library), answers=RecallAnswers(library))
            with running(proxy) as url:
                live.endpoint = replace(live.endpoint, url=url)
                yield
            live.folds = proxy.totals.work.folds
        finally:
            library.close()


def solve_live(
    job: Job, endpoint: ModelEndpoint, budget: SolveBudget, models: ModelPrices, transcripts: Transcripts
) -> Result | None:
    """Makes one run with a real model; None where the budget was used up before its end. Its conversation is kept in
    any case, also where the run is cut off. Raises UpstreamError where the endpoint fails."""
    task, outcome, send = job.task(), Outcome(reason="cut off"), Live(endpoint, budget, models)
    try:
        with reached(send, job.arm):
            run(task, endpoint.model, send, outcome, most_turns=most_turns(task), stop=lambda: budget.is_used_up)
    finally:
        result = Result(
            task.name,
            task.kind,
            job.seed,
            job.size,
            job.name,
            outcome.solved,
            outcome.turns,
            send.usd,
            read_again(outcome.messages),
            failed_edits(outcome.messages),
            send.largest,
            send.folds,
            outcome.reason,
        )
        transcripts.add(job.key, result, outcome.messages, send.usages)
    return None if outcome.reason == STOPPED else result


def read_again(messages: Sequence[Mapping[str, Any]]) -> int:
    """How many times a file was read that had been read before."""
    paths = [call["input"].get("file_path") for call in _calls(messages) if call["name"] == "Read"]
    return len(paths) - len(set(map(str, paths)))


def failed_edits(messages: Sequence[Mapping[str, Any]]) -> int:
    """How many edits did not fit the file. Those that the user refused, or that hit a lock, are not counted."""
    edits = {call["id"] for call in _calls(messages) if call["name"] == "Edit"}
    results = [
        block
        for message in messages
        if message["role"] == "user"
        for block in message["content"]
        if block.get("type") == "tool_result" and block.get("is_error") and block["tool_use_id"] in edits
    ]
    return sum(str(result["content"]).startswith("Error: the text to replace") for result in results)


def _calls(messages: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    return [
        block
        for message in messages
        if message["role"] == "assistant"
        for block in message["content"]
        if block.get("type") == "tool_use"
    ]
