"""A store in Postgres against one in a file: what a call costs, and how a large store is copied each way.

Stores are steady ones, as `serve` has them. The server is one that this starts, on loopback, with fsync on. Exit code 1
where a copy is not equal, or where a put costs over a millisecond more.
Usage: python -m bench.postgres_store [--pages N]
"""

import argparse
import random
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

from pagefold.adapters.store_copy import copy_store
from pagefold.adapters.stores import open_steady_store, open_store, rows_of
from pagefold.pages.store import Store
from tests.postgres import running_postgres

WORDS = [f"word{n}" for n in range(5000)]
CALLS = 400


def content(chance: random.Random, words: int) -> bytes:
    return " ".join(chance.choices(WORDS, k=words)).encode()


def timed(step: Callable[[int], object], calls: int = CALLS) -> list[float]:
    times = []
    for n in range(calls):
        began = time.perf_counter()
        step(n)
        times.append(1e6 * (time.perf_counter() - began))
    return sorted(times)


def calls_of(store: Store, chance: random.Random) -> dict[str, list[float]]:
    contents = [content(chance, 900) for _ in range(CALLS)]
    pages = [store.pages.put(content(chance, 900), history="before") for _ in range(20)]
    return {
        "put of 7 KB": timed(lambda n: store.pages.put(contents[n], history="h", now=float(n))),
        "put again": timed(lambda n: store.pages.put(contents[n], history="h", now=float(n))),
        "get": timed(lambda n: store.pages.get(pages[n % 20])),
        "hold": timed(lambda n: store.pages.hold(pages[n % 20], f"h{n}")),
        "decision": timed(lambda n: store.notes.put_if_absent(f"note{n}", b"decided")),
        "newest note": timed(lambda n: store.notes.newest(f"note{n}")),
    }


def fill(path: Path, count: int) -> None:
    chance = random.Random(1)
    with closing(open_store(path)) as store:
        for n in range(count):
            store.pages.put(content(chance, 60), history=f"h{n % 500}", now=float(n))


def main() -> int:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--pages", type=int, default=100_000)
    given = options.parse_args()
    with running_postgres(sync=True) as server, tempfile.TemporaryDirectory() as folder:
        first, back, url = Path(folder, "a.db"), Path(folder, "b.db"), server.new_schema()
        slower = 0.0
        with closing(open_steady_store(Path(folder, "calls.db"))) as store:
            here = calls_of(store, random.Random(2))
        with closing(open_steady_store(server.new_schema())) as store:
            there = calls_of(store, random.Random(2))
        print("microseconds: median (99th) of a call        file            Postgres")
        for name in here:
            medians = [statistics.median(times[name]) for times in (here, there)]
            last = [times[name][int(0.99 * CALLS)] for times in (here, there)]
            print(f"{name:32} {medians[0]:12,.0f} ({last[0]:,.0f}) {medians[1]:12,.0f} ({last[1]:,.0f})")
            slower = max(slower, medians[1] - medians[0])
        print(f"the slowest call takes {slower:,.0f} µs more (wanted: at most 1,000)")
        fill(first, given.pages)
        digests = []
        for source, target in ((first, url), (url, back)):
            began = time.perf_counter()
            with closing(rows_of(source)) as rows, closing(rows_of(target)) as into:
                copied = copy_store(rows, into)
                digests.append(copied.digest)
                seconds = time.perf_counter() - began
                print(f"{copied.rows['pages']:,} pages copied to {into.where.split(':')[0]} in {seconds:.1f} s")
        print(f"equal by hash: {digests[0] == digests[1]} ({digests[0][:16]})")
    return int(digests[0] != digests[1] or slower > 1000)


if __name__ == "__main__":
    sys.exit(main())
