"""Measures what encryption at rest costs a put and a get, through the pages of a store as the proxies use them.

    python bench/encryption.py [--pages 2000] [--rounds 5] [--json]

A plain and an encrypted store get the same contents of 2 to 40 KB, taking turns item by item, in rounds on new files;
then every content is got in the same way, once from a warm cache and once after the store was opened again. A ratio is
that of the medians over all items, since on a busy machine a sum tells only who had to wait. CPU is the sum of what the
thread itself used. Exit code 1 above 1.3.
"""

import argparse
import json
import random
import statistics
import sys
import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path
from time import perf_counter, thread_time
from typing import TypeVar

from pagefold.adapters.sqlite.pages import SqlitePages
from pagefold.pages.page import id_of

KEYS = {"plain": "", "encrypted": "5e" * 32}
WHAT = ("put", "get", "get after opening")
TARGET = 1.3
WORDS = [f"word{number}" for number in range(4000)]


T = TypeVar("T")


def contents(count: int, dice: random.Random) -> list[bytes]:
    """Texts that pack about as well as source does."""
    return [" ".join(dice.choices(WORDS, k=dice.randint(250, 5000))).encode() for _ in range(count)]


class Times:
    """What each kind of call took, in seconds of the clock and of the processor."""

    def __init__(self) -> None:
        self.wall: dict[tuple[str, str], list[float]] = {(what, name): [] for what in WHAT for name in KEYS}
        self.cpu = dict.fromkeys(self.wall, 0.0)

    def taken(self, what: str, name: str, call: Callable[[], T]) -> T:
        began, began_cpu = perf_counter(), thread_time()
        answer = call()
        self.cpu[what, name] += thread_time() - began_cpu
        self.wall[what, name].append(perf_counter() - began)
        return answer

    def figures(self) -> dict[str, float]:
        median = {key: statistics.median(times) for key, times in self.wall.items()}
        shown = {f"{what}, {name}, us": 1e6 * median[what, name] for what, name in median}
        ratios = {what: median[what, "encrypted"] / median[what, "plain"] for what in WHAT}
        cpu = {f"{what}, CPU": self.cpu[what, "encrypted"] / self.cpu[what, "plain"] for what in WHAT}
        return {name: round(value, 2) for name, value in (shown | ratios | cpu).items()}


def one_round(folder: Path, texts: list[bytes], times: Times) -> None:
    def open_both() -> dict[str, SqlitePages]:
        return {name: SqlitePages(folder / f"{name}.sqlite3", key=key) for name, key in KEYS.items()}

    stores = open_both()
    for at, text in enumerate(texts):
        for name in sorted(KEYS, reverse=bool(at % 2)):
            times.taken("put", name, partial(stores[name].put, text, history="h", now=1.0))
    for what in WHAT[1:]:
        for at, text in enumerate(texts):
            for name in sorted(KEYS, reverse=bool(at % 2)):
                assert times.taken(what, name, partial(stores[name].get, id_of(text))) == text
        for store in stores.values():
            store.close()
        stores = open_both()
    for store in stores.values():
        store.close()


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pages", type=int, default=2000)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    dice, times = random.Random(1), Times()
    for _ in range(options.rounds):
        with tempfile.TemporaryDirectory() as folder:
            one_round(Path(folder), contents(options.pages, dice), times)
    figures = times.figures()
    print(json.dumps(figures) if options.json else "\n".join(f"{name}: {value}" for name, value in figures.items()))
    return 0 if max(figures[what] for what in WHAT) <= TARGET else 1


if __name__ == "__main__":
    sys.exit(main())
