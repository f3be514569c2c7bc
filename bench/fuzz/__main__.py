"""Fuzzes everything that reads what others write, from a small corpus that is kept, and says what it found.

    python -m bench.fuzz [--minutes 30] [--target streams,mcp] [--seed 1] [--keep]

`--minutes` is processor time, shared evenly by the targets: requests, answers and streams of all APIs cut anywhere, MCP
framing, recordings and the hook; forms, codecs' gates and the literal reader; cursors and queries of a recall; the
journal in memory and on disk; settings. An input fails where code raises anything but its documented errors, or where
bytes are lost. Codecs that a gate had to catch are counted. With `--keep`, what fails is added to the corpus in
bench/fuzz/corpus, which the test suite runs.
Exit code 1 where anything failed.
"""

import argparse
import hashlib
import os
import sys
import time
import traceback
from collections import Counter
from collections.abc import Iterable
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field

from hypothesis import HealthCheck, Phase, given, seed, settings

from bench.fuzz import page_targets, wire_targets
from bench.fuzz.mutating import inputs
from bench.fuzz.target import CORPUS, Target

TARGETS = {target.name: target for target in (*wire_targets.TARGETS, *page_targets.TARGETS)}
_ROUND = 1_000  # inputs of one run of hypothesis


@dataclass(frozen=True, slots=True)
class Found:
    """What a target's share of the time gave: what was worth counting, and inputs that failed, each with its error."""

    target: str
    cases: int
    seconds: float
    counts: Counter[str]
    failed: tuple[tuple[bytes, str], ...]


def fuzz(name: str, seconds: float, first_seed: int) -> Found:
    """Runs one target for so many seconds of processor time, or up to its first failure."""
    began, cases, number, counts = time.process_time(), 0, first_seed, Counter[str]()
    failed: tuple[tuple[bytes, str], ...] = ()
    while time.process_time() - began < seconds and not failed:
        last = _Last(began + seconds)
        try:
            _round(TARGETS[name], number, last)
        except Exception:  # noqa: BLE001 - the find of a fuzzer, told with its trace
            failed = ((last.data, traceback.format_exc(limit=-6)),)
        cases, number, counts = cases + last.cases, number + 1, counts + last.counts
    return Found(name, cases, time.process_time() - began, counts, failed)


@dataclass(slots=True)
class _Last:
    """The input that was checked last, and how many were. From `end` on, in processor time, only what failed is made
    smaller, for a minute."""

    end: float
    cases: int = 0
    data: bytes = b""
    counts: Counter[str] = field(default_factory=Counter)


def _round(target: Target, number: int, last: _Last) -> None:
    failing = False

    @seed(number)
    @settings(
        max_examples=_ROUND,
        deadline=None,
        database=None,
        phases=(Phase.generate, Phase.shrink),
        suppress_health_check=list(HealthCheck),
        report_multiple_bugs=False,
    )
    @given(inputs(target))
    def check(data: bytes) -> None:
        nonlocal failing
        if time.process_time() > last.end + 60 * failing:
            return
        last.cases, last.data, failing = last.cases + 1, data, True
        last.counts.update(target.run(data))
        failing = False

    check()


def tell(found: Iterable[Found], *, keep: bool) -> bool:
    """Prints what each target found, and returns whether nothing failed."""
    cases, seconds, failures = 0, 0.0, 0
    for one in found:
        cases, seconds, failures = cases + one.cases, seconds + one.seconds, failures + len(one.failed)
        told = "".join(f", {name} {count}" for name, count in sorted(one.counts.items()))
        print(
            f"{one.target:<11} {one.cases:>9,} inputs  {one.seconds:>5.0f} s  {len(one.failed)} failed{told}",
            flush=True,
        )
        for data, trace in one.failed:
            print(f"{trace}\n  input: {data[:600]!r}", flush=True)
            if keep:
                name = hashlib.sha256(data).hexdigest()[:10]
                (CORPUS / one.target / name).write_bytes(data)
    print(f"{cases:,} inputs in {seconds / 60:.1f} minutes of processor time, {failures} failed")
    return not failures


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=float, default=30, help="of processor time (default: 30)")
    parser.add_argument("--target", default=",".join(TARGETS), help="some of them, with commas (default: all)")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--keep", action="store_true", help="add what fails to the corpus")
    asked = parser.parse_args()
    names = asked.target.split(",")
    if unknown := [name for name in names if name not in TARGETS]:
        parser.error(f"--target {unknown[0]}: expected some of {', '.join(TARGETS)}")
    share = asked.minutes * 60 / len(names)
    # Several short turns for each target, so that what comes first is not all that is seen of a run broken off.
    turns = max(1, round(share / 60))
    tasks = [(name, share / turns, (asked.seed * 1000 + turn) * 1_000_003) for turn in range(turns) for name in names]
    with ProcessPoolExecutor(os.cpu_count()) as pool:
        ok = tell(pool.map(fuzz, *zip(*tasks, strict=True)), keep=asked.keep)
    sys.exit(0 if ok else 1)


if __name__ == "__main__":
    main()
