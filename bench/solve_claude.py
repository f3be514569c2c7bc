"""A dry run of `pagefold lab solve` with real Claude Code: five tasks, as it is and behind pagefold.

    python -m bench.solve_claude [--kinds a,b] [--out DIR]

The provider is the one that enforces its rules; what the model answers is the simulated agent's, with the tools and
paths of Claude Code. So it shows that the whole way works (the agent's own requests, folds, bills, transcripts, the
verdict) and says nothing about models. Needs what `make agents` installs and the kit that drives agents. Exit code 1: a
request was refused, or a task was not solved.
"""

import argparse
import os
import shutil
import subprocess
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from pagefold.adapters.library import Library
from pagefold.adapters.model_prices import ModelPrices
from pagefold.adapters.stores import open_store
from pagefold.derive.policies import policy_named
from pagefold.model_proxy.conversations import Conversations
from pagefold.model_proxy.proxy import Proxy
from pagefold.model_proxy.recall_service import PageKeeper, RecallAnswers
from pagefold.model_proxy.server import running
from pagefold.model_proxy.upstreams import Upstreams
from pagefold.provider.answer import Answer
from pagefold.provider.billing import Charge
from pagefold.provider.referee import Referee
from pagefold.provider.reply import RequestRecord
from pagefold.provider.server import ProviderApp
from pagefold.solve.arms import AS_IT_IS, Arm
from pagefold.solve.experiment import MODEL
from pagefold.solve.kinds import tasks
from pagefold.solve.page import Experiment, markdown, page
from pagefold.solve.simulated import SimulatedAgent
from pagefold.solve.task import Task
from pagefold.solve.verdict import Result
from pagefold.solve.workspace import Workspace
from pagefold.wire.message import Usage
from tests.agents.kit import FOLDER, KIT, PROGRAMS

KINDS = "several-edits,failing-tests,change-of-mind,early-fact,long-log"
SIZE, WINDOW = 32_000, 50_000  # Claude Code sends 26,000 more than the plain loop


@dataclass
class PlannedModel:
    """The simulated agent as Claude Code's model: paths are below `root`, and side requests get a word."""

    agent: SimulatedAgent
    root: Path
    turns: int = 0

    def __call__(self, number: int, request: Mapping[str, Any]) -> Answer:
        if "Edit" not in {tool.get("name") for tool in request.get("tools") or ()}:
            return Answer("ok")
        self.turns += 1
        answer = self.agent(number, request)
        calls = [replace(call, arguments=self._placed(call.arguments)) for call in answer.calls]
        return replace(answer, calls=calls)

    def _placed(self, arguments: Mapping[str, Any]) -> Mapping[str, Any]:
        if "file_path" not in arguments:
            return {**arguments, "description": "a step of the plan"}
        return {**arguments, "file_path": str(self.root / arguments["file_path"])}


def drive(url: str, work: Path, state: Path, prompt: str, *more: str) -> None:
    command = ["bash", str(KIT / "drive_claude.sh"), url, str(work), prompt, "", *more]
    settings = {"AGENT_BIN": str(PROGRAMS["claude-code"][1]), "AGENTS_DIR": str(FOLDER), "STATE_DIR": str(state)}
    environment = {"PATH": os.environ["PATH"], "TIME_LIMIT": "300", "MODEL": MODEL, **settings}
    driven = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    if driven.returncode:
        raise RuntimeError(driven.stdout + driven.stderr)


def price(model: str, charge: Charge) -> float:
    used = Usage(charge.fresh, charge.read, sum(charge.written.values()), charge.output)
    return ModelPrices().prices(model).bill(used)


def work_on(task: Task, url: str, workspace: Workspace, state: Path) -> None:
    for number, ask in enumerate(task.asks):
        for path in ask.removed:
            workspace.remove(path)
        drive(url, workspace.root, state, ask.text, *(["--continue"] if number else []))


def solved_with(task: Task, arm: Arm, out: Path) -> tuple[Result, list[RequestRecord]]:
    """Works on a task in an arm. Claude Code's own transcript goes to `out`."""
    records: list[RequestRecord] = []
    with Workspace(task) as workspace, tempfile.TemporaryDirectory() as folder:
        model = PlannedModel(SimulatedAgent(task.asks), workspace.root)
        referee = Referee(price=price, answers=model)
        folds = 0
        with running(ProviderApp(referee, seen=lambda record, body: records.append(record))) as provider:
            state = Path(folder) / "state"
            if arm.policy == AS_IT_IS:
                work_on(task, provider, workspace, state)
            else:
                library = Library(open_store(Path(folder) / "store.sqlite3"))
                conversations = Conversations(
                    policy_named(arm.policy), store=library.store, window=arm.window, known=ModelPrices()
                )
                upstreams = Upstreams({"anthropic": provider, "openai": provider})
                proxy = Proxy(upstreams, conversations, put=PageKeeper(library), answers=RecallAnswers(library))
                with running(proxy) as url:
                    work_on(task, url, workspace, state)
                folds = proxy.totals.work.folds
                library.close()
        solved = workspace.is_solved()
        kept = out / f"{task.name}-{arm.name.replace(' ', '-')}"
        for number, file in enumerate(sorted((state / "config" / "projects").rglob("*.jsonl"))):
            kept.mkdir(parents=True, exist_ok=True)
            shutil.copy(file, kept / f"{number}.jsonl")
    result = Result(
        task.name,
        task.kind,
        task.seed,
        SIZE,
        arm.name,
        solved,
        model.turns,
        referee.totals.usd,
        model.agent.looked_again,
        model.agent.failed_edits,
        max(record.tokens for record in records),
        folds,
        "" if solved else "the check failed",
    )
    return result, records


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kinds", default=KINDS)
    parser.add_argument("--out", metavar="DIR", default="solve-claude", help="for transcripts and the verdict page")
    options = parser.parse_args()
    if "claude-code" not in PROGRAMS:
        print("Claude Code is not installed: make agents, or AGENTS_DIR")
        return 2
    out = Path(options.out)
    results: list[Result] = []
    refused = 0
    work = [(task, arm) for task in tasks(SIZE, 1, options.kinds.split(","), ["shop"]) for arm in ARMS]
    for task, arm in work:
        result, records = solved_with(task, arm, out)
        results.append(result)
        refusals = [record.reason for record in records if record.rule]
        refused += len(refusals)
        print(f"{result}\n  {len(records)} requests, {len(refusals)} refused {refusals[:1]}", flush=True)
    experiment = Experiment("the simulated agent in Claude Code", results, len(work), MODEL)
    out.mkdir(parents=True, exist_ok=True)
    (out / "verdict.html").write_text(page(experiment))
    (out / "verdict.md").write_text(markdown(experiment))
    print(markdown(experiment))
    return int(bool(refused) or not all(result.solved for result in results))


ARMS = (Arm(), Arm("economic", WINDOW))

if __name__ == "__main__":
    raise SystemExit(main())
