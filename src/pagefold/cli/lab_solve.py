"""`pagefold lab solve`: whether an agent solves as many tasks behind pagefold as without it, and for how much.

Tasks are paired: every one is worked on in every arm, in an order that favours none. See docs/evidence.md.
"""

import argparse
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from pagefold.adapters.model_prices import ModelPrices
from pagefold.cli import logs, output
from pagefold.cli.command_parser import tokens
from pagefold.cli.lab_endpoint import endpoint_of
from pagefold.cli.progress import progress
from pagefold.errors import ConfigError, UpstreamError
from pagefold.number_format import money, several, short
from pagefold.solve.arms import AS_IT_IS, arm_named
from pagefold.solve.budget import SolveBudget
from pagefold.solve.experiment import MODEL, Job, Kept, estimated_usd, jobs_for, results_of, simulate
from pagefold.solve.figures import COLUMNS, figures_of, sample_told
from pagefold.solve.kinds import KINDS
from pagefold.solve.live import solve_live
from pagefold.solve.page import Experiment, markdown, page
from pagefold.solve.project import DOMAINS
from pagefold.solve.transcripts import Transcripts
from pagefold.solve.verdict import Result

_ARMS, _SIZES = f"{AS_IT_IS},economic", "12k,32k,128k"
_QUICK_DOMAINS, _USD, _MOST_SEEDS = 2, 25.0, 1_000


def add_arguments(command: argparse.ArgumentParser) -> None:
    group = command.add_argument_group("solve")
    group.add_argument("--simulate", action="store_true", help="a simulated agent in place of a model")
    group.add_argument(
        "--arms", metavar="NAMES", default=_ARMS, help='any policies, with windows if you like (default: "%(default)s")'
    )
    group.add_argument("--sizes", metavar="N,N", default=_SIZES, help="tokens of a history (default: %(default)s)")
    group.add_argument("--kinds", metavar="NAMES", help=f"of tasks (default: {', '.join(KINDS)})")
    group.add_argument("--domains", metavar="NAMES", help=f"of tasks (default: {', '.join(DOMAINS)})")
    group.add_argument("--quick", action="store_true", help="12k, the first two arms, every kind in two domains")
    group.add_argument(
        "--budget-usd", type=float, metavar="N", default=_USD, help="of this call; 0 is no limit (default: %(default)s)"
    )
    group.add_argument("--transcripts", metavar="DIR", help="keep the conversation of every run here")
    group.add_argument("--html", metavar="FILE", help="write the verdict as a page")
    group.add_argument("--markdown", metavar="FILE", help="write the verdict as Markdown")


def run(options: argparse.Namespace) -> int:
    jobs = _jobs(options)
    kept = Kept(Path(options.resume) if options.resume else None)
    left = [job for job in jobs if job.key not in kept.known]
    budget = SolveBudget(options.budget or 0, 0.0 if options.simulate else options.budget_usd)
    work = _simulated(options) if options.simulate else _live(options, budget)
    pairs = len({(job.kind, job.domain, job.seed, job.size) for job in jobs})
    output.to_stderr(f"{several(len(jobs), 'run')}, {len(left):,} of them to be made. {sample_told(pairs)}")
    if not options.simulate:
        _tell_price(options, left)
    results: list[Result] = []
    ended, code = "", 0
    try:
        with progress("solving", len(jobs)) as advance:
            for result in results_of(jobs, kept, work):
                results.append(result)
                advance(len(results), f"{result.task}, {result.arm}")
        ended = budget.why_ended if len(results) < len(jobs) else ""
    except KeyboardInterrupt:
        ended, code = "interrupted", 130
    except UpstreamError as error:
        ended, code = str(error), 1
    prices = ModelPrices().prices(MODEL if options.simulate else options.model)
    _print(options, Experiment("" if options.simulate else options.model, results, len(jobs), prices.source, ended))
    return code


def _jobs(options: argparse.Namespace) -> list[Job]:
    """What is to be run. Raises ConfigError where a flag names what there is not."""
    if options.simulate == bool(options.endpoint and options.model):
        raise ConfigError("lab solve: expected --simulate, or --endpoint URL and --model NAME")
    seeds = 1 if options.seeds is None else options.seeds
    if not 1 <= seeds <= _MOST_SEEDS:
        raise ConfigError(f"--seeds {seeds}: expected 1 to {_MOST_SEEDS:,}")
    if options.budget_usd < 0:
        raise ConfigError(f"--budget-usd {options.budget_usd}: expected 0 or more")
    arms = [arm_named(name) for name in options.arms.split(",")]
    kinds = _named("kinds", options.kinds, tuple(KINDS))
    domains = _named("domains", options.domains, tuple(DOMAINS))
    try:
        sizes = [tokens(size.strip()) for size in options.sizes.split(",")]
    except argparse.ArgumentTypeError as error:
        raise ConfigError(f"--sizes {error}") from error
    if min(sizes) < 1_000:
        raise ConfigError(f"--sizes {min(sizes)}: expected 1000 tokens or more")
    if options.quick:
        arms, sizes, domains = arms[:2], [12_000], domains if options.domains else domains[:_QUICK_DOMAINS]
    return jobs_for(arms, sizes, range(1, seeds + 1), domains, kinds, "" if options.simulate else options.model)


def _named(flag: str, text: str | None, known: Sequence[str]) -> list[str]:
    names = [name.strip() for name in text.split(",")] if text else list(known)
    if unknown := next((name for name in names if name not in known), None):
        raise ConfigError(f"--{flag} {unknown!r}: expected names among {', '.join(known)}")
    return names


_Work = Callable[[Sequence[Job]], Iterator[tuple[Job, Result]]]


def _simulated(options: argparse.Namespace) -> _Work:
    transcripts = Transcripts(Path(options.transcripts) if options.transcripts else None)

    def work(jobs: Sequence[Job]) -> Iterator[tuple[Job, Result]]:
        for job in jobs:
            yield (
                job,
                simulate(job, keep=lambda job, result, outcome: transcripts.add(job.key, result, outcome.messages)),
            )

    return work


def _live(options: argparse.Namespace, budget: SolveBudget) -> _Work:
    endpoint, models = endpoint_of(options), ModelPrices(tell=lambda line: output.to_stderr(f"pagefold: {line}"))
    transcripts = Transcripts(Path(options.transcripts) if options.transcripts else None, endpoint.without_key)

    def work(jobs: Sequence[Job]) -> Iterator[tuple[Job, Result]]:
        for job in jobs:
            result = solve_live(job, endpoint, budget, models, transcripts)
            if result is None:
                return
            yield job, result

    return work


def _tell_price(options: argparse.Namespace, jobs: Sequence[Job]) -> None:
    prices = ModelPrices().prices(options.model)
    usd = estimated_usd(jobs, options.model)
    limits = [money(options.budget_usd)] if options.budget_usd else []
    limits += [f"{short(options.budget)} tokens"] if options.budget else []
    output.to_stderr(
        f"About {money(usd)} (prices: {prices.source}), if {options.model} goes about it as the simulated agent does; "
        f"more if it takes more turns. It ends at {' or '.join(limits) if limits else 'no limit'}."
    )


def _print(options: argparse.Namespace, experiment: Experiment) -> None:
    for path, write in ((options.html, page), (options.markdown, markdown)):
        if path:
            logs.write(Path(path), write(experiment))
            output.to_stderr(f"wrote {path}")
    sizes = figures_of(experiment.results)
    if options.json:
        told = {
            "model": experiment.model or "simulated agent",
            "planned": experiment.planned,
            "runs": len(experiment.results),
            "ended": experiment.ended,
            "prices": experiment.prices,
            "sizes": [figures.to_dict() for figures in sizes],
        }
        output.print_json(told)
        return
    for figures in sizes:
        output.show(output.table(figures.title, COLUMNS, [arm.cells() for arm in figures.arms]))
        for line in figures.sentences():
            output.show(line)
        output.show("")
    for note in experiment.notes():
        output.show(note)
