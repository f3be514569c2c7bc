"""Measures start-up: importing the package, `pagefold --version` and `pagefold config`, against a bare Python.

python bench/start.py [--runs 20]
"""

import argparse
import statistics
import subprocess
import sys
import time

COMMANDS = {
    "python -c pass": ["-c", "pass"],
    "import pagefold": ["-c", "import pagefold"],
    "pagefold --version": ["-m", "pagefold", "--version"],
    "pagefold config --json": ["-m", "pagefold", "config", "--json"],
}


def milliseconds(arguments: list[str], runs: int) -> float:
    taken = []
    for _ in range(runs):
        started = time.perf_counter()
        subprocess.run([sys.executable, *arguments], capture_output=True, check=True)
        taken.append(1000 * (time.perf_counter() - started))
    return statistics.median(taken)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=20)
    runs = parser.parse_args().runs
    bare = milliseconds(COMMANDS["python -c pass"], runs)
    for name, arguments in COMMANDS.items():
        taken = milliseconds(arguments, runs)
        print(f"{name:24} {taken:6.1f} ms   {taken / bare:4.1f} x a bare Python")


if __name__ == "__main__":
    main()
