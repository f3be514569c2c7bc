"""Measures start-up: importing the package and its names, `pagefold --version` and `pagefold config`, against a bare
Python; the time that passes, and the processor's. Modules have to be compiled: with
PYTHONDONTWRITEBYTECODE it takes 1.7 times as long.

python bench/start.py [--runs 20]
"""

import argparse
import resource
import statistics
import subprocess
import sys
import time

COMMANDS = {
    "python -c pass": ["-c", "pass"],
    "import pagefold": ["-c", "import pagefold"],
    "pagefold.Context": ["-c", "import pagefold; pagefold.Context"],
    "pagefold.Context()": ["-c", "import pagefold; pagefold.Context()"],
    "pagefold.wrap": ["-c", "import pagefold; pagefold.wrap"],
    "pagefold --version": ["-m", "pagefold", "--version"],
    "pagefold config --json": ["-m", "pagefold", "config", "--json"],
}


def milliseconds(arguments: list[str], runs: int) -> tuple[float, float]:
    """The median of the time that passes, and of the processor's."""
    taken, worked = [], []
    for _ in range(runs):
        before, started = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
        subprocess.run([sys.executable, *arguments], capture_output=True, check=True)
        taken.append(1000 * (time.perf_counter() - started))
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        worked.append(1000 * (after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime))
    return statistics.median(taken), statistics.median(worked)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=20)
    runs = parser.parse_args().runs
    bare, _ = milliseconds(COMMANDS["python -c pass"], runs)
    for name, arguments in COMMANDS.items():
        taken, worked = milliseconds(arguments, runs)
        print(f"{name:24} {taken:6.1f} ms   {worked:6.1f} ms CPU   {taken / bare:4.1f} x a bare Python")


if __name__ == "__main__":
    main()
