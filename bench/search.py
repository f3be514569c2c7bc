"""Measures how fast search is against a plain scan for the words in the same run, and what its index costs.

    python bench/search.py [--pages 3000]

Contents are those of bench/store.py, 2 to 40 KB each. The scan reads every page from the same store and looks for the
words; SQLite's LIKE runs over the same texts in an ordinary table. Queries take turns, and a ratio is the median over
the queries of the other's seconds divided by ours. The names asked for stand in one page each, the words in many.
"""

import argparse
import random
import runpy
import sqlite3
import statistics
import tempfile
from collections.abc import Callable
from contextlib import closing
from functools import partial
from pathlib import Path
from time import perf_counter, process_time
from typing import Any, TypeVar

from pagefold.adapters.sqlite.pages import SqlitePages
from pagefold.adapters.sqlite.search import SqliteSearch
from pagefold.pages.page import PageId

Writing: Any = runpy.run_path(str(Path(__file__).with_name("store.py")))["Writing"]
T = TypeVar("T")


def timed(action: Callable[[], T]) -> tuple[float, T]:
    start = perf_counter()
    found = action()
    return perf_counter() - start, found


def scan(store: SqlitePages, pages: list[PageId], query: str) -> list[PageId]:
    needle = query.encode()
    return [page for page in pages if needle in (store.get(page) or b"")]


def like(table: sqlite3.Connection, query: str) -> list[str]:
    words = "%" + query.replace("_", r"\_") + "%"
    return [row[0] for row in table.execute(r"SELECT id FROM texts WHERE text LIKE ? ESCAPE '\' LIMIT 10", (words,))]


def fill(store: SqlitePages, table: sqlite3.Connection, count: int, names: dict[int, str]) -> tuple[list[PageId], int]:
    """The pages and how many bytes they are; the same texts go into the table."""
    writing = Writing(seed=2)
    table.execute("CREATE TABLE texts (id TEXT, text TEXT)")
    pages, length = [], 0
    for n in range(count):
        content = writing.content() + f" {names.get(n, '')} ".encode()
        pages.append(store.put(content, history=f"h{n % 7}", name=f"Read {writing.some(3, '/')}"))
        table.execute("INSERT INTO texts VALUES (?, ?)", (pages[-1], content.decode()))
        length += len(content)
    return pages, length


def ask(
    what: str,
    queries: list[str],
    index: SqliteSearch,
    store: SqlitePages,
    table: sqlite3.Connection,
    pages: list[PageId],
) -> None:
    took: list[tuple[float, float, float]] = []
    for query in queries:
        ours, found = timed(partial(index.search, query))
        plain, scanned = timed(partial(scan, store, pages, query))
        liked, _ = timed(partial(like, table, query))
        took.append((ours, plain, liked))
        assert len(scanned) != 1 or found[0].page == scanned[0], query
    mine = [ours * 1000 for ours, _, _ in took]
    ratios = [statistics.median(one[side] / one[0] for one in took) for side in (1, 2)]
    print(f"{what:20} {statistics.median(mine):10.2f} {max(mine):10.2f} {ratios[0]:8.0f} {ratios[1]:8.0f}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pages", type=int, default=3000)
    parser.add_argument("--queries", type=int, default=20)
    options = parser.parse_args()
    writing, dice = Writing(seed=4), random.Random(3)
    places = dice.sample(range(options.pages), options.queries)
    names = {place: f"find_{writing.some(1)}_{n}" for n, place in enumerate(places)}
    words = [writing.some(2) for _ in places]
    with (
        tempfile.TemporaryDirectory() as folder,
        closing(SqlitePages(Path(folder) / "store.db")) as store,
        closing(SqliteSearch(store)) as index,
        closing(sqlite3.connect(":memory:")) as table,
    ):
        pages, length = fill(store, table, options.pages, names)
        cpu = process_time()
        index.refresh()
        cpu = process_time() - cpu
        index.close()
        stored, indexed = store.stats().stored_bytes, index.path.stat().st_size
        print(f"{options.pages:,} pages, {length / 1e6:.0f} MB, stored in {stored / 1e6:.0f} MB")
        print(
            f"index: {length / 1e6 / cpu:.0f} MB a second of processor time, {indexed / length:.2f} of the texts' size"
        )
        print(f"{'':20} {'median ms':>10} {'worst ms':>10} {'scan x':>8} {'LIKE x':>8}")
        with closing(SqliteSearch(store)) as opened:
            ask("a name in one page", list(names.values()), opened, store, table, pages)
            ask("two words", words, opened, store, table, pages)


if __name__ == "__main__":
    main()
