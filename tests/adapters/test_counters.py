"""Counts of many processes in one file: sums that hold, and a file that will not do said in words."""

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from pagefold.adapters.local_files import LocalFiles
from pagefold.adapters.sqlite.counters import Counted, add, read
from pagefold.errors import StoreError


def test_counts_add_up_by_day_and_surface(tmp_path: Path) -> None:
    path = LocalFiles(tmp_path / "data" / "store.sqlite3").counters
    assert path.name == "store.counts.sqlite3"
    assert read(path) == []
    add(path, "mcp", "2026-11-15", {"calls": 2, "faults": 0})
    add(path, "mcp", "2026-11-16", {"calls": 3})
    add(path, "mcp", "2026-11-16", {"calls": 4})
    add(path, "serve", "2026-11-16", {"calls": 1})
    assert read(path, since="2026-11-16") == [
        Counted("mcp", "2026-11-16", "calls", 7),
        Counted("serve", "2026-11-16", "calls", 1),
    ]
    assert len(read(path)) == 3
    assert path.stat().st_mode & 0o077 == 0


def test_many_writers_lose_nothing(tmp_path: Path) -> None:
    path = tmp_path / "counts"
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda _: add(path, "mcp", "2026-11-16", {"calls": 1}), range(64)))
    assert read(path)[0].count == 64


def test_a_file_of_somebody_else_is_said_in_words(tmp_path: Path) -> None:
    path = tmp_path / "counts"
    path.write_text("not a database, but long enough to be taken for one " * 10)
    with pytest.raises(StoreError, match="cannot be written"):
        add(path, "mcp", "2026-11-16", {"calls": 1})
    with pytest.raises(StoreError, match="cannot be read"):
        read(path)
