"""`pagefold lab`: studies, tests of how a model reads forms and solves tasks, and a provider to try agents against.

provider serves Anthropic Messages, OpenAI Chat Completions and OpenAI Responses on loopback, and refuses, drops and
bills as the real providers do by their documentation (docs/provider.md). It answers by a script and prints what it
counted when it ends.

clawvm runs four seeded families of workloads under six budgets and six policies, with and without the smaller budgets
that the paper gave its baselines, and takes the parts of typed pages away one at a time. "every pin" also counts each
request without its bootstrap and constraint pages against policies that pin nothing; "strict" is thrash with every
recall counted as a fault. Policies that let no fault happen are run with and without a memory of calls, which is
what thrash depends on. Half a minute; no network, no key.

reading asks a model exact questions about tool results of recorded sessions, as they were and in their forms, and says
by codec how many answers are right in each (docs/reading.md). What --logs names is sent to the endpoint.

likelihood asks a local model how likely recorded answers are after the history as it was, after what policies would
have sent, and after as many plain last tokens (docs/evidence.md). It needs an endpoint that echoes log-probabilities.

solve has an agent solve small tasks with long histories, with pagefold and without, and compares solve rates and bills
run by run (docs/evidence.md). It says first what it will cost about. --simulate needs no model and no key.

Examples:
  pagefold lab solve --endpoint https://api.anthropic.com --model claude-sonnet-5 --quick --html verdict.html
  pagefold lab solve --simulate --arms "as it is,economic,compaction" --sizes 12k,32k --resume runs.jsonl
  pagefold lab reading --endpoint http://127.0.0.1:8080/v1 --model local --resume answers.jsonl
  pagefold lab reading --endpoint https://api.anthropic.com --model claude-sonnet-5 --logs ~/.claude/projects
  pagefold lab likelihood --endpoint http://127.0.0.1:8399 --model local --logs ~/.claude/projects --resume kept.jsonl
  pagefold lab provider --port 8399 --script turns.json --json
  pagefold lab clawvm
  pagefold lab clawvm --seeds 1 --svg faults.svg
  pagefold lab clawvm --json | jq '.summary[] | {policy, faults}'
"""

import argparse
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

from pagefold import charts
from pagefold.analysis.clawvm import matrix
from pagefold.analysis.clawvm.matrix import MatrixRow, Summary
from pagefold.analysis.clawvm.workloads import BUDGETS, SEEDS
from pagefold.cli import lab_endpoint, lab_likelihood, lab_provider, lab_reading, lab_solve, output
from pagefold.cli.command_parser import tokens
from pagefold.cli.layout import Table
from pagefold.errors import ConfigError
from pagefold.pages.faults import FaultKind

_MOST_SEEDS = 100


def add_arguments(command: argparse.ArgumentParser) -> None:
    command.add_argument("study", choices=list(_STUDIES), help="which of them to run")
    seeds = f"a family, or of every task (default: {len(SEEDS)} for clawvm, 1 for solve)"
    command.add_argument("--seeds", type=int, metavar="N", help=seeds)
    command.add_argument("--budgets", type=tokens, nargs="+", metavar="N", default=BUDGETS, help="in tokens")
    command.add_argument("--svg", metavar="FILE", help="write a picture of faults by budget")
    lab_provider.add_arguments(command)
    lab_endpoint.add_arguments(command)
    lab_reading.add_arguments(command)
    lab_likelihood.add_arguments(command)
    lab_solve.add_arguments(command)


def run(options: argparse.Namespace) -> int:
    return _STUDIES[options.study](options)


def _clawvm(options: argparse.Namespace) -> int:
    options.seeds = len(SEEDS) if options.seeds is None else options.seeds
    if not 1 <= options.seeds <= _MOST_SEEDS:
        raise ConfigError(f"--seeds {options.seeds}: expected 1 to {_MOST_SEEDS}")
    if min(options.budgets) < 1:
        raise ConfigError(f"--budgets {min(options.budgets)}: expected 1 token or more")
    seeds = range(1, options.seeds + 1)
    rows = matrix.matrix(seeds=seeds, budgets=sorted(set(options.budgets)))
    handicapped = matrix.handicapped(rows)
    remembered = matrix.by_memory(seeds=seeds, budgets=sorted(set(options.budgets)))
    removed = matrix.ablations(seeds=seeds)
    if options.svg:
        _draw(Path(options.svg), rows)
    if options.json:
        output.print_json(
            {
                "seeds": options.seeds,
                "summary": [asdict(one) for one in matrix.summaries(rows)],
                "summary_with_handicap": [asdict(one) for one in matrix.summaries(handicapped)],
                "summary_by_memory": [asdict(one) for one in matrix.summaries(remembered)],
                "ablation": {part: asdict(matrix.summaries(of_part)[0]) for part, of_part in removed.items()},
                "rows": [asdict(row) for row in rows],
            }
        )
        return 0
    output.show(_table("equal budgets", matrix.summaries(rows)))
    output.show("")
    output.show(_table("with the paper's handicap of its baselines", matrix.summaries(handicapped)))
    output.show("")
    output.show(_table("with and without a memory of calls", matrix.summaries(remembered)))
    output.show("")
    output.show(_by_budget(rows))
    output.show("")
    output.show(_ablations(removed, options.seeds))
    return 0


def _draw(path: Path, rows: Sequence[MatrixRow]) -> None:
    try:
        path.write_text(charts.faults_by_budget(matrix.by_budget(rows)), encoding="utf-8")
    except OSError as error:
        raise ConfigError(f"--svg {path}: cannot be written ({error.strerror})") from error
    output.to_stderr(f"wrote {path}")


def _table(title: str, summaries: Sequence[Summary]) -> Table:
    kinds = [
        kind for kind in FaultKind if kind.controllable and any(summary.by_kind.get(kind) for summary in summaries)
    ]
    columns = (
        "policy",
        "faults",
        *(kind.replace("_", " ") for kind in kinds),
        "every pin",
        "thrash",
        "strict",
        "recalls",
    )
    rows = [
        (
            summary.policy,
            f"{summary.faults:.2f}",
            *(f"{summary.by_kind.get(kind, 0) / summary.rows:.2f}" for kind in kinds),
            f"{summary.strict_faults:.1f}",
            f"{summary.thrash:.3f}",
            f"{summary.strict_thrash:.3f}",
            f"{summary.recalls:.1f}",
        )
        for summary in summaries
    ]
    return output.table(f"mean of a row ({summaries[0].rows} rows a policy), {title}", columns, rows)


def _by_budget(rows: Sequence[MatrixRow]) -> Table:
    series = matrix.by_budget(rows)
    budgets = [str(budget) for budget, _ in next(iter(series.values()))]
    lines = [(name, *(f"{faults:.1f}" for _, faults in points)) for name, points in series.items()]
    return output.table("mean faults by budget, equal budgets", ("policy", *budgets), lines)


def _ablations(removed: dict[str, list[MatrixRow]], seeds: int) -> Table:
    lines = []
    for part, rows in removed.items():
        summary = matrix.summaries(rows)[0]
        kinds = ", ".join(f"{count} {kind}" for kind, count in summary.by_kind.items()) or "-"
        lines.append((part, f"{sum(row.faults for row in rows) / seeds:.1f}", kinds))
    title = f"faults of typed pages without a part, at {matrix.ABLATION_BUDGET} tokens, summed over the families"
    return output.table(title, ("taken away", "a seed", "of which kinds, all seeds"), lines)


_STUDIES = {
    "clawvm": _clawvm,
    "provider": lab_provider.run,
    "reading": lab_reading.run,
    "likelihood": lab_likelihood.run,
    "solve": lab_solve.run,
}
