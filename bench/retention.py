"""Makes a 400-day-old store, has it collected unattended as `serve` does, and puts into it meanwhile.

    python bench/retention.py                1 GB
    python bench/retention.py --bytes 50000000 --json
    chrt -f 1 python bench/retention.py      on a machine where others work: their share of it is not measured

Prints how large the file was and is, how long puts took while it was collected, how long the same puts took at the
same time into another store that nobody collects (what the machine alone makes them wait), and whether all handles of a
conversation that is still going on can be recalled. Exit code 1 where a put took longer than 50 ms and than the longest
beside, the file did not shrink or a live page was lost.
"""

import argparse
import json
import os
import random
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

from pagefold.adapters.retention import DAY, Limits, Retention
from pagefold.adapters.sqlite.pages import SqlitePages
from pagefold.pages.kinds import PageKind
from pagefold.pages.page import PageId

_CONTENT = 12_000
_PER_HISTORY = 40
_LIVE = 25  # one in so many conversations is still going on
_LIMIT = 0.050


def made(path: Path, length: int, now: float) -> tuple[dict[PageId, bytes], int]:
    """Fills a store as 400 days of conversations do; returns the pages of those that still go on, and the count."""
    dice, pages = random.Random(1), SqlitePages(path)
    live: dict[PageId, bytes] = {}
    count = length // _CONTENT
    histories = max(1, count // _PER_HISTORY)
    for number in range(histories):
        began = now - 400 * DAY * (1 - number / histories)
        for turn in range(_PER_HISTORY):
            content = b"%d %d " % (number, turn) + dice.randbytes(_CONTENT)
            page = pages.put(content, history=f"h{number}", now=began + turn, kind=PageKind.EVIDENCE, name="Read")
            pages.hold(page, f"h{number}")
            if number % _LIVE == 0 and turn % 10 == 0:
                live[page] = content
        pages.renew(f"h{number}", now - DAY if number % _LIVE == 0 else began + _PER_HISTORY)
    pages.close()
    return live, histories * _PER_HISTORY


def puts(path: Path, until: threading.Event, times: list[float]) -> None:
    """Puts as a proxy does, over a connection of its own, until told to stop; notes how long each took."""
    pages, dice, number = SqlitePages(path), random.Random(2), 0
    while not until.wait(0.05):
        content = b"new %d " % number + dice.randbytes(8000)
        began = time.perf_counter()
        page = pages.put(content, history="new", now=time.time())
        pages.hold(page, "new")
        times.append(time.perf_counter() - began)
        number += 1
    pages.close()


def floor(path: Path) -> int:
    """The same puts into a store that nobody collects, until standard input ends; prints how long each took."""
    times: list[float] = []
    stop = threading.Event()
    putting = threading.Thread(target=puts, args=(path, stop, times))
    putting.start()
    sys.stdin.read()
    stop.set()
    putting.join()
    print(json.dumps(times))
    return 0


def measured(path: Path, retention: Retention, seconds: float, ended: threading.Event) -> tuple[list[float], ...]:
    """The times of puts while the store is collected, and of the same puts at the same time into another store."""
    times: list[float] = []
    stop = threading.Event()
    putting = threading.Thread(target=puts, args=(path, stop, times))
    other = path.with_name("floor.sqlite3")
    command = [sys.executable, __file__, "--floor", str(other)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as beside:
        putting.start()
        retention.start()
        ended.wait(seconds)
        stop.set()
        putting.join()
        alone: list[float] = json.loads(beside.communicate()[0])
    return alone, times


def summed(times: list[float]) -> dict[str, float]:
    in_turn = sorted(times)
    return {
        "puts": len(times),
        "median, ms": round(1e3 * in_turn[len(times) // 2], 1),
        "99th, ms": round(1e3 * in_turn[int(0.99 * len(times))], 1),
        "longest, ms": round(1e3 * in_turn[-1], 1),
        "over 50 ms": sum(seconds > _LIMIT for seconds in times),
    }


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bytes", type=int, default=1_000_000_000)
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--seconds", type=float, default=1200.0, help="the longest that the collection may take")
    parser.add_argument("--floor", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.floor:
        return floor(options.floor)
    with tempfile.TemporaryDirectory() as folder:
        path, now = Path(folder) / "store.sqlite3", time.time()
        live, count = made(path, options.bytes, now)
        before = path.stat().st_size
        ended = threading.Event()
        said: list[str] = []

        def opened() -> SqlitePages:
            pages = SqlitePages(path)
            close = pages.close

            def closing() -> None:
                close()
                ended.set()

            pages.close = closing  # type: ignore[method-assign]
            return pages

        began = time.monotonic()
        retention = Retention(opened, Limits(30, 2_000_000_000), said.append, first_seconds=0.5)
        alone, meanwhile = measured(path, retention, options.seconds, ended)
        took = time.monotonic() - began
        retention.close()
        pages = SqlitePages(path)
        lost = sum(pages.get(page) != content for page, content in live.items())
        left = pages.stats().pages
        pages.close()
        after = path.stat().st_size
    figures = {
        "pages": count, "pages left": left, "live pages lost": lost, "live pages asked": len(live),
        "file before": before, "file after": after, "seconds": round(took, 1),
        "puts beside, not collected": summed(alone), "puts meanwhile": summed(meanwhile),
        "load": os.getloadavg(), "said": said,
    }  # fmt: skip
    print(json.dumps(figures) if options.json else "\n".join(f"{name}: {value}" for name, value in figures.items()))
    return 0 if max(meanwhile) <= max(_LIMIT, *alone) and after < before / 2 and not lost else 1


if __name__ == "__main__":
    sys.exit(main())
