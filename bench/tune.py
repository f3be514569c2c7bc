"""Measures what tune gains: learned on one half of each family's sessions, scored on the other by the scorer.

    python -m bench.tune [--family coding-bash,mcp-servers] [--half 0] [--jobs 2] [--every 1]

One row a family: the effective ratio of the economic policy on the half that tune never saw, as shipped and as learned,
in the same run, with what was missed and the dearest session. `--half` is the half that is scored; `--every` takes
every nth session of either. The recordings and the scorer lie beside the project.
"""

import argparse
import json
import tempfile
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

from bench.policies import requests_of
from bench.recorded import JOB, families, in_half, name_of, scorer
from pagefold.analysis.engine import Engine
from pagefold.analysis.tune import Tuned, tune
from pagefold.derive.learned import SHIPPED, Learned
from pagefold.derive.policies import policy_named
from pagefold.wire.transcripts import parse_line

WINDOW = JOB.window


def scored(task: tuple[str, tuple[Learned, ...]]) -> list[Any]:
    """The scorer's tallies of one session: as it is, then under the policy as shipped and as learned."""
    line, learned = task
    score, row = scorer(), json.loads(line)
    session = parse_line(line, name=row["id"])
    prices, seen = (WINDOW, 0, 0.1, 1.25, 300), score.Seen()
    tallies = [score.Tally()]
    score.score_session(row, score.identity(row), prices, seen, tallies[0])
    for one in learned:
        requests = list(requests_of(session, policy_named("economic", window=WINDOW, learned=one), WINDOW))
        tallies.append(score.Tally())
        score.score_session(row, requests, prices, seen, tallies[-1])
    return [dict(tally) for tally in tallies]


def halves(path: Path, half: int, every: int) -> tuple[list[str], list[str]]:
    """Lines to learn from, and lines to be scored on."""
    with scorer().opener(str(path)) as file:
        lines = [line for line in file if line.strip()][::every]
    parts: tuple[list[str], list[str]] = ([], [])
    for line in lines:
        parts[in_half(json.loads(line)["id"], half)].append(line)
    return parts


def learned_from(lines: list[str], jobs: int) -> Tuned:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "half.jsonl")
        path.write_text("".join(lines), encoding="utf-8")
        return tune([path], JOB, engine=Engine(jobs=jobs))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--family", default="")
    parser.add_argument("--half", type=int, default=0, choices=(0, 1))
    parser.add_argument("--jobs", type=int, default=0)
    parser.add_argument("--every", type=int, default=1)
    options = parser.parse_args()
    paths = families(options.family)
    columns = ("family", "shipped", "learned", "change", *("missed", "learned", "lines missed", "learned"))
    print(f"| {' | '.join((*columns, 'worst', 'learned', 'what was taken'))} |\n|---|{'--:|' * 9}---|", flush=True)
    better = 0
    with ProcessPoolExecutor(options.jobs or None) as pool:
        for path in paths:
            fitted, judged = halves(path, options.half, options.every)
            tuned = learned_from(fitted, options.jobs)
            pair = (SHIPPED, tuned.learned)
            score = scorer()
            totals, worst = [score.Tally() for _ in range(3)], [0.0, 0.0]
            for tallies in pool.map(scored, [(line, pair) for line in judged], chunksize=2):
                for total, tally in zip(totals, tallies, strict=True):
                    total.add(tally)
                if tallies[0]["requests"] >= 10:
                    dear = [(one["cost"] + one.get("penalty", 0)) / tallies[0]["cost"] for one in tallies[1:]]
                    worst = list(map(max, worst, dear))
            before, after = (score.report(total, totals[0]) for total in totals[1:])
            exact = [(total["cost"] + total["penalty"]) / totals[0]["cost"] for total in totals[1:]]
            change = exact[1] / exact[0] - 1
            better += change < 0
            taken = "; ".join(f"{one.what} {one.after}" for one in tuned.changes if one.taken) or "nothing"
            print(
                f"| {name_of(path)} | {exact[0]:.4f} | {exact[1]:.4f} | {change:+.2%} "
                f"| {before['miss_rate']:.2%} | {after['miss_rate']:.2%} "
                f"| {before['line_miss_rate']:.2%} | {after['line_miss_rate']:.2%} "
                f"| {worst[0]:.2f} | {worst[1]:.2f} | {taken} |",
                flush=True,
            )
    print(f"\nbetter in {better} of {len(paths)}")


if __name__ == "__main__":
    main()
