"""Measures start-up: importing the package and its names, `pagefold --version` and `pagefold config`, in turns with a
bare Python; the time that passes, and the processor's, user and system. On a busy machine only the ratios count.
Modules are compiled before the first turn, into a folder of this run; the medians are of fresh processes.

python bench/start.py [--runs 15]
"""

import argparse
import os
import resource
import statistics
import subprocess
import sys
import tempfile
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


def milliseconds(arguments: list[str], compiled: str) -> tuple[float, float]:
    """The time that passes, and the processor's."""
    environment = os.environ | {"PYTHONPYCACHEPREFIX": compiled, "PYTHONDONTWRITEBYTECODE": ""}
    before, started = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    subprocess.run([sys.executable, *arguments], capture_output=True, check=True, env=environment)
    taken = 1000 * (time.perf_counter() - started)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return taken, 1000 * (after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=15)
    runs = parser.parse_args().runs
    with tempfile.TemporaryDirectory() as compiled:
        rounds = [
            {name: milliseconds(arguments, compiled) for name, arguments in COMMANDS.items()} for _ in range(runs + 1)
        ][1:]
    bare = statistics.median(each[next(iter(COMMANDS))][1] for each in rounds)
    for name in COMMANDS:
        taken, worked = (statistics.median(each[name][at] for each in rounds) for at in (0, 1))
        print(f"{name:24} {taken:6.1f} ms   {worked:6.1f} ms CPU   {worked / bare:4.1f} x a bare Python's")


if __name__ == "__main__":
    main()
