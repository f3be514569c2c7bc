"""Proves the instrument of `pagefold lab solve`: planted faults are found, and the same arm twice is not.

    python -m bench.solve [--seeds 4] [--again 12] [--experiments 100] [--resume FILE]

Every task is worked on by the simulated agent, which errs now and then (SLIPS). A fault is planted in one arm and the
verdict is asked about it: `found` are the measures that it calls worse. A null experiment compares two runs of every
task in the same arm: a pool of runs is made, and every experiment draws two different ones for each task. Half an hour
on one processor. Exit code 1: a fault was not found, or more than 5 of 100 null experiments raised an alarm.
"""

import argparse
import random
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from pagefold.solve.arms import AS_IT_IS, Arm
from pagefold.solve.experiment import Job, Kept, results_of, simulate
from pagefold.solve.faults import FAULTS
from pagefold.solve.kinds import KINDS
from pagefold.solve.project import DOMAINS
from pagefold.solve.verdict import Difference, Finding, Result, compared

SIZE, SLIPS = 1_500, 0.02


def jobs(seeds: int, fault: str = "", again: int = 0) -> list[Job]:
    """Every task once, with slips of its own."""
    return [
        Job(kind, domain, seed, SIZE, Arm(), fault, SLIPS, again)
        for kind in KINDS
        for domain in DOMAINS
        for seed in range(1, seeds + 1)
    ]


def made(wanted: Sequence[Job], kept: Kept) -> list[Result]:
    def work(left: Sequence[Job]) -> Iterator[tuple[Job, Result]]:
        for job in left:
            yield job, simulate(job)

    return list(results_of(wanted, kept, work))


def told(differences: Sequence[Difference]) -> str:
    worse = [found for found in differences if found.finding is Finding.WORSE]
    return ", ".join(f"{found.measure} ({found.low:+.2f} to {found.high:+.2f})" for found in worse) or "nothing"


def hurt_kinds(before: Sequence[Result], after: Sequence[Result]) -> str:
    """The kinds of tasks that are solved less often by a quarter or more."""
    counts = Counter(dict.fromkeys(KINDS, 0))
    for sign, runs in ((1, before), (-1, after)):
        for run in runs:
            counts[run.kind] += sign * run.solved
    tasks = len(before) / len(KINDS)
    return ", ".join(kind for kind, lost in counts.items() if lost >= tasks / 4) or "-"


def planted(before: Sequence[Result], seeds: int, kept: Kept) -> bool:
    """Prints what the verdict says about each fault; whether it found all."""
    found_all = True
    print(f"{'planted fault':30} {'pairs':>5} {'solved before, after':>21}  kinds it hurts; found worse")
    for fault in FAULTS:
        after = made(jobs(seeds, fault), kept)
        differences = compared([*before, *after], AS_IT_IS, f"{AS_IT_IS} with {fault}")
        rates = f"{differences[0].before:.1%}, {differences[0].after:.1%}"
        worse = told(differences)
        print(f"{fault:30} {len(after):5} {rates:>21}  {hurt_kinds(before, after)}; {worse}", flush=True)
        found_all = found_all and worse != "nothing"
    return found_all


def nulls(pool: Sequence[Sequence[Result]], experiments: int) -> int:
    """How many experiments without any difference called an arm worse. Prints also how many called it better."""
    dice = random.Random(27)
    findings: Counter[tuple[str, str]] = Counter()
    alarms = better = 0
    for _ in range(experiments):
        drawn: list[Result] = []
        for alike in zip(*pool, strict=True):
            first, second = dice.sample(alike, 2)
            drawn += [replace(first, arm="once"), replace(second, arm="twice")]
        differences = compared(drawn, "once", "twice")
        findings.update((found.measure, str(found.finding)) for found in differences)
        alarms += any(found.finding is Finding.WORSE for found in differences)
        better += any(found.finding is Finding.BETTER for found in differences)
    print(f"\n{experiments} null experiments of {len(pool[0])} pairs, from {len(pool)} runs of every task:")
    print(f"worse by any measure: {alarms}; better by any measure: {better}")
    for (measure, finding), count in sorted(findings.items()):
        print(f"  {measure:20} {finding:12} {count:4}")
    return alarms


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=4, help="of every task: 4 make 200 pairs")
    parser.add_argument("--again", type=int, default=12, help="runs of every task for null experiments")
    parser.add_argument("--experiments", type=int, default=100)
    parser.add_argument("--resume", metavar="FILE", help="keep every run here, and go on from them")
    options = parser.parse_args()
    kept = Kept(Path(options.resume) if options.resume else None)
    first = by_job(made(jobs(options.seeds), kept))
    found = planted(first, options.seeds, kept)
    pool = [first, *(by_job(made(jobs(options.seeds, again=again), kept)) for again in range(1, options.again))]
    alarms = nulls(pool, options.experiments)
    return int(not found or alarms > options.experiments // 20)


def by_job(runs: Sequence[Result]) -> list[Result]:
    """Runs in one order, whatever order they were made in."""
    return sorted(runs, key=lambda run: run.pair)


if __name__ == "__main__":
    raise SystemExit(main())
