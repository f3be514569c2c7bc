"""A statement that takes long ends when the thread that waits for it is interrupted, and otherwise is as any other."""

import signal
import sqlite3
import time
from pathlib import Path
from types import FrameType

import pytest

from pagefold.adapters.sqlite.database import Connection, connect_to
from pagefold.adapters.sqlite.long_statements import execute_interruptibly

KEYS = ["", "7" * 64]
LONG = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 300000000) SELECT max(i) FROM n"


def opened(path: Path, key: str) -> Connection:
    if key:
        pytest.importorskip("apsw")
    return connect_to(path, key, 1.0)


def interrupt(_: int, __: FrameType | None) -> None:
    raise KeyboardInterrupt


@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="there are no timers by signal here")
@pytest.mark.parametrize("key", KEYS)
def test_an_interrupt_ends_a_statement_and_the_connection_goes_on(tmp_path: Path, key: str) -> None:
    db = opened(tmp_path / "file.db", key)
    before, began = signal.signal(signal.SIGALRM, interrupt), time.monotonic()
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.2)
        with pytest.raises(KeyboardInterrupt):
            execute_interruptibly(db, LONG)
    finally:
        signal.signal(signal.SIGALRM, before)

    assert time.monotonic() - began < 5  # the whole of it takes half a minute
    assert db.execute("SELECT 7").fetchone() == (7,)
    db.close()


@pytest.mark.parametrize("key", KEYS)
def test_rows_and_errors_are_those_of_the_statement(tmp_path: Path, key: str) -> None:
    db = opened(tmp_path / "file.db", key)

    assert execute_interruptibly(db, "SELECT ?, 2", (1,)) == [(1, 2)]
    assert execute_interruptibly(db, "PRAGMA integrity_check(5)") == [("ok",)]
    with pytest.raises(sqlite3.OperationalError, match="no such table"):
        execute_interruptibly(db, "SELECT * FROM absent")
    db.close()
