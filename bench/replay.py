"""Measures how long a replay takes, against json.loads of the same lines and counting the same text: the floor.

    python -m bench.replay [RECORDINGS ...]        default: the recorded families beside the project

Both read the same compressed files in one process, one after another in the same run; then the replay on all cores, and
the memory of a process that replays everything twice over. Prints ratios.
"""

import argparse
import json
import subprocess
import sys
import time
from collections.abc import Sequence
from functools import partial
from pathlib import Path

from bench.recorded import JOB, families
from pagefold.adapters import recordings
from pagefold.analysis.engine import Engine, SessionResult, run_on_sessions
from pagefold.analysis.replay_job import replay_session
from pagefold.tokens import counter


def floor(paths: Sequence[recordings.LogPath]) -> tuple[float, float, int]:
    """Seconds for decompression with json.loads, seconds for counting, tokens counted once."""
    count = counter("o200k")._count  # noqa: SLF001 - without the cache that the replay fills
    reading = counting = 0.0
    tokens = 0
    for path in paths:
        started = time.perf_counter()
        with recordings.opened(path) as file:
            sessions = [json.loads(line) for line in file]
        reading += time.perf_counter() - started
        started = time.perf_counter()
        for session in sessions:
            for message in session["messages"]:
                calls = [
                    f"{c['function']['name']} {c['function']['arguments']}" for c in message.get("tool_calls") or ()
                ]
                tokens += count("\n".join([message["content"] or "", *calls]))
        counting += time.perf_counter() - started
    return reading, counting, tokens


def ours(paths: Sequence[recordings.LogPath], jobs: int) -> tuple[float, int]:
    started = time.perf_counter()
    results = run_on_sessions(paths, partial(replay_session, policy="identity"), JOB, Engine(jobs=jobs))
    requests = sum(result.value.figures.requests for result in results if isinstance(result, SessionResult))
    return time.perf_counter() - started, requests


def peak() -> int:
    """Peak megabytes of this process. Not ru_maxrss: on Linux a child begins with its parent's."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("VmHWM"):
            return int(line.split()[1]) // 1024
    raise SystemExit("no VmHWM: run this on Linux")


def memory(paths: Sequence[recordings.LogPath], times: int) -> int:
    """Peak megabytes of a fresh process that replays the paths this often."""
    command = [sys.executable, "-m", "bench.replay", "--repeat", str(times), *map(str, paths)]
    return int(subprocess.run(command, capture_output=True, text=True, check=True).stdout)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("recordings", nargs="*")
    parser.add_argument("--repeat", type=int, help="only replay this often in one process, and print its peak memory")
    given = parser.parse_args()
    paths = recordings.find(given.recordings) if given.recordings else families()
    if given.repeat:
        ours(list(paths) * given.repeat, 1)
        print(peak())
        return
    counter("o200k").count("warm")
    reading, counting, tokens = floor(paths)
    single, requests = ours(paths, 1)
    parallel, _ = ours(paths, 0)
    base = reading + counting
    print(f"{len(paths)} files, {tokens / 1e6:.1f} M tokens, {requests:,} requests")
    print(f"floor       {base:6.2f} s   (decompress and json.loads {reading:.2f} s, count {counting:.2f} s)")
    print(f"one process {single:6.2f} s   {single / base:.2f} x the floor")
    print(f"all cores   {parallel:6.2f} s   {parallel / base:.2f} x the floor")
    once, thrice = memory(paths, 1), memory(paths, 3)
    print(f"memory      {once} MB for all files, {thrice} MB for all of them three times")


if __name__ == "__main__":
    main()
