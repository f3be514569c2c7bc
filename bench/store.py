"""Measures the SQLite store against a bare sqlite3 and zstd loop, and checks that it loses nothing when killed.

    python bench/store.py [--blobs 4000] [--kills 200]

Both sides get the same contents of 2 to 40 KB in the same run, in rounds on new files, and take turns item by item. A
ratio is the median over the rounds of our seconds divided by the bare loop's. Ours checks every content against its id
when it gets it; so does the bare loop, except in the row that says otherwise.
"""

import argparse
import hashlib
import json
import random
import sqlite3
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable
from contextlib import closing
from itertools import accumulate
from pathlib import Path
from time import perf_counter
from typing import TypeAlias, TypeVar

from pagefold import zstd
from pagefold.adapters.sqlite.pages import SqlitePages
from pagefold.errors import StoreError
from pagefold.pages.page import PageId, id_of

ROUND = 250
RUNS_PER_FILE = 10
HISTORY = "0" * 64
TARGET = 1.5

T = TypeVar("T")
Seconds: TypeAlias = tuple[float, float]


class Bare:
    """The least that does the same: one table, WAL, NORMAL, level 3, sha256 as the id, a commit per put."""

    def __init__(self, path: Path) -> None:
        self.db = sqlite3.connect(path, isolation_level=None)
        self.db.execute("PRAGMA journal_mode = WAL")
        self.db.execute("PRAGMA synchronous = NORMAL")
        self.db.execute("CREATE TABLE pages (id TEXT PRIMARY KEY, content BLOB)")
        self.compressor = zstd.ZstdCompressor(level=3)

    def put(self, content: bytes) -> str:
        page = hashlib.sha256(content).hexdigest()
        packed = self.compressor.compress(content, zstd.ZstdCompressor.FLUSH_FRAME)
        self.db.execute("INSERT OR IGNORE INTO pages VALUES (?, ?)", (page, packed))
        return page

    def get(self, page: str) -> bytes:
        row = self.db.execute("SELECT content FROM pages WHERE id = ?", (page,)).fetchone()
        return zstd.decompress(row[0])

    def checked(self, page: str) -> bytes:
        content = self.get(page)
        assert hashlib.sha256(content).hexdigest() == page
        return content

    def close(self) -> None:
        self.db.close()


class Writing:
    """Contents as tools give them: records, logs, listings and prose of common and rare words."""

    def __init__(self, seed: int) -> None:
        self.dice = random.Random(seed)
        letters = "etaoinshrdlucmfwypvbgkjqxz"
        self.words = [
            "".join(self.dice.choices(letters, range(26, 0, -1), k=self.dice.randint(2, 9))) for _ in range(3000)
        ]
        self.weights = list(accumulate(1 / rank for rank in range(1, 3001)))

    def content(self) -> bytes:
        length = self.dice.randint(2_000, 40_000)
        line = self.dice.choice([self.record, self.log, self.listing, self.prose])
        text = ""
        n = 0
        while len(text) < length:
            text += line(n) + "\n"
            n += 1
        return text[:length].encode()

    def some(self, count: int, separator: str = " ") -> str:
        return separator.join(self.dice.choices(self.words, cum_weights=self.weights, k=count))

    def record(self, n: int) -> str:
        fields = {
            "id": n,
            "name": self.some(2),
            "status": self.dice.choice(["open", "done"]),
            "path": self.some(3, "/"),
        }
        return json.dumps(fields)

    def log(self, n: int) -> str:
        level = self.dice.choice(["INFO", "INFO", "WARN"])
        return f"2026-01-01T10:{n // 60 % 60:02}:{n % 60:02}Z {level} {self.some(1)}.{self.some(1)}: {self.some(6)}"

    def listing(self, n: int) -> str:
        return f"{n:6}\t    {self.some(1)} = {self.some(1, '.')}({self.some(3, ', ')})"

    def prose(self, n: int) -> str:
        return self.some(12)


def taking_turns(ours: Callable[[T], object], bare: Callable[[T], object], items: list[T]) -> Seconds:
    """The seconds each side takes for all items. They take turns item by item, so that a busy machine slows both."""
    sides = [(0, ours), (1, bare)]
    took = [0.0, 0.0]
    for item in items:
        sides.reverse()
        for side, action in sides:
            start = perf_counter()
            action(item)
            took[side] += perf_counter() - start
    return took[0], took[1]


def seconds_by_operation(folder: Path, contents: list[bytes]) -> dict[str, Seconds]:
    pages = [id_of(content) for content in contents]
    with (
        closing(SqlitePages(folder / "ours.db")) as ours,
        closing(SqlitePages(folder / "ours listing.db")) as listing,
        closing(Bare(folder / "bare.db")) as bare,
        closing(Bare(folder / "bare for listing.db")) as bare_for_listing,
    ):
        return {
            "put": taking_turns(ours.put, bare.put, contents),
            "put under a history": taking_turns(
                lambda content: listing.put(content, history=HISTORY), bare_for_listing.put, contents
            ),
            "put again": taking_turns(lambda content: ours.put(content, now=1.0), bare.put, contents),
            "get": taking_turns(ours.get, bare.checked, pages),
            "get, bare unchecked": taking_turns(ours.get, bare.get, pages),
        }


def measure(blobs: int) -> bool:
    """Print the table; whether put and get are within the target."""
    writing = Writing(seed=1)
    contents = [writing.content() for _ in range(blobs)]
    kilobytes = sum(map(len, contents)) / 1000
    packed = sum(len(zstd.compress(content, 3)) for content in contents) / 1000
    print(f"{blobs} contents, {kilobytes / blobs:.1f} KB on average, {kilobytes / packed:.2f} x with zstd 3")
    rounds: list[dict[str, Seconds]] = []
    for start in range(0, blobs, ROUND):
        with tempfile.TemporaryDirectory() as folder:
            rounds.append(seconds_by_operation(Path(folder), contents[start : start + ROUND]))
    ratios = {}
    print(f"{'':22} {'pagefold /s':>12} {'bare /s':>10} {'ratio':>7}")
    for name in rounds[0]:
        ratios[name] = statistics.median(ours / bare for ours, bare in (took[name] for took in rounds))
        ours, bare = (blobs / sum(took[name][side] for took in rounds) for side in (0, 1))
        print(f"{name:22} {ours:12,.0f} {bare:10,.0f} {ratios[name]:7.2f}")
    return max(ratios["put"], ratios["get"]) <= TARGET


def write(path: Path, seed: int) -> None:
    """Put until killed and print what was acknowledged, with holds, scrap and collections in between."""
    writing = Writing(seed)
    print("ready", flush=True)
    store = SqlitePages(path)
    while True:
        content = writing.content()
        store.hold(id_of(content), HISTORY)
        print(store.put(content, history=HISTORY), flush=True)
        if writing.dice.random() < 0.2:
            store.put(writing.content())
        if writing.dice.random() < 0.05:
            store.collect(max_bytes=0)


def acknowledged_by_a_killed_writer(path: Path, seed: int, lines: int) -> set[PageId]:
    command = [sys.executable, __file__, "--write", str(path), "--seed", str(seed)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        printed = [process.stdout.readline() for _ in range(lines)]
        process.kill()
        printed += process.stdout.readlines()
    return {PageId(line[:-1]) for line in printed[1:] if line.endswith("\n")}


def lost_of(path: Path, pages: set[PageId]) -> int:
    lost = 0
    with closing(SqlitePages(path)) as store:
        for page in pages:
            try:
                lost += id_of(store.get(page) or b"") != page
            except StoreError as error:
                print(error)
                lost += 1
    return lost


def kill(runs: int) -> bool:
    """Print what killed writers had acknowledged and what of it was lost; whether that was nothing."""
    dice = random.Random()
    total = lost = 0
    for first in range(0, runs, RUNS_PER_FILE):
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "pages.db"
            pages: set[PageId] = set()
            for seed in range(first, min(first + RUNS_PER_FILE, runs)):
                pages |= acknowledged_by_a_killed_writer(path, seed, lines=dice.randint(1, 60))
                lost += lost_of(path, pages)
            total += len(pages)
    print(f"{runs} writers killed with SIGKILL: {total} pages acknowledged, {lost} lost")
    return lost == 0


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--blobs", type=int, default=4000, help="how many contents to put and get; 0 leaves it out")
    parser.add_argument("--kills", type=int, default=0, help="how many writers to kill")
    parser.add_argument("--write", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("--seed", type=int, default=0, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.write:
        write(arguments.write, arguments.seed)
    fast = measure(arguments.blobs) if arguments.blobs else True
    safe = kill(arguments.kills) if arguments.kills else True
    return 0 if fast and safe else 1


if __name__ == "__main__":
    sys.exit(main())
