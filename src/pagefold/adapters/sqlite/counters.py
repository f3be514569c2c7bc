"""Daily counts of the proxies, in one small SQLite file that many processes share.

It holds only sums under names that pagefold itself chose: no text of a tool, a client or a model. A file that cannot be
used raises StoreError, and whoever counts goes on without it.
"""

import sqlite3
from collections import Counter
from collections.abc import Mapping
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from pagefold.adapters.private_files import make_private
from pagefold.errors import StoreError

_BUSY_SECONDS = 5.0
_TABLE = """
    CREATE TABLE IF NOT EXISTS counts (surface TEXT, day TEXT, name TEXT, count INTEGER NOT NULL,
        PRIMARY KEY (surface, day, name)) WITHOUT ROWID
"""
_ADD = """
    INSERT INTO counts (surface, day, name, count) VALUES (?, ?, ?, ?)
    ON CONFLICT (surface, day, name) DO UPDATE SET count = count + excluded.count
"""


@dataclass(frozen=True, slots=True)
class Counted:
    """`surface` is the proxy that counted; `day` as 2026-11-16."""

    surface: str
    day: str
    name: str
    count: int


def add(path: Path, surface: str, day: str, counts: Mapping[str, int]) -> None:
    """Adds to what was counted that day. Raises StoreError."""
    rows = [(surface, day, name, count) for name, count in counts.items() if count]
    if not rows:
        return
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        path.touch(mode=0o600, exist_ok=True)
        make_private(path)
        with closing(sqlite3.connect(path, timeout=_BUSY_SECONDS)) as db, db:
            db.execute(_TABLE)
            db.executemany(_ADD, rows)
    except (sqlite3.Error, OSError) as error:
        raise StoreError(f"the counts {path} cannot be written ({error}): move the file away") from error


def fresh(counts: Counter[str], written: Counter[str]) -> Mapping[str, int]:
    """Returns what was counted since the last call, and adds it to `written`."""
    since = Counter({name: count - written[name] for name, count in counts.items()})
    written.update(since)
    return since


def read(path: Path, since: str = "") -> list[Counted]:
    """Returns all counts from a day on, in order. Raises StoreError."""
    if not path.exists():
        return []
    try:
        make_private(path)
        with closing(sqlite3.connect(path, timeout=_BUSY_SECONDS)) as db:
            db.execute(_TABLE)
            rows = db.execute(
                "SELECT surface, day, name, count FROM counts WHERE day >= ? ORDER BY surface, day, name", (since,)
            )
            return [Counted(*row) for row in rows]
    except (sqlite3.Error, OSError) as error:
        raise StoreError(f"the counts {path} cannot be read ({error}): move the file away") from error
