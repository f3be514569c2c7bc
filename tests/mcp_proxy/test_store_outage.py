"""The MCP proxy's store is locked: nobody waits for it for long, and what was shown meanwhile is stored afterwards."""

import sqlite3
import time
from collections import Counter
from contextlib import closing
from pathlib import Path

from pagefold.adapters.library import Library
from pagefold.adapters.stores import open_store
from pagefold.mcp_proxy.result_store import ResultStore
from pagefold.settings.sections import SinkSettings

DEADLINE, PATIENCE = 0.1, 20.0


def test_results_of_an_outage_are_stored_when_the_store_is_back(tmp_path: Path) -> None:
    path, counts = tmp_path / "store.sqlite3", Counter[str]()
    told: list[str] = []

    def opened() -> Library:
        return Library.open_steady(path, SinkSettings(), deadline=DEADLINE, report=lambda kind, line: told.append(kind))

    results = ResultStore(opened, "h", counts)
    assert results.keep_now("before", "get")
    with closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute("BEGIN EXCLUSIVE")
        assert not results.keep_now("cut", "get")  # so that it is not cut
        began = time.monotonic()
        for number in range(20):
            assert not results.keep_now(f"cut {number}", "get")
            results.keep(f"meanwhile {number}", "get")
        assert time.monotonic() - began < 10 * DEADLINE
        other.execute("ROLLBACK")
    due = time.monotonic() + PATIENCE
    shown = {b"before", *(f"meanwhile {number}".encode() for number in range(20))}
    stored: set[bytes | None] = set()
    while not shown <= stored and time.monotonic() < due:
        time.sleep(0.05)
        with closing(open_store(path)) as other_process:
            stored = {other_process.pages.get(page) for page in other_process.pages.listed("h")}
    results.close()
    assert stored - shown <= {b"cut"}  # the one call that had begun when the deadline passed
    assert shown <= stored
    assert (counts["pages not kept"], "store back" in told) == (0, True)
    assert told[0] in ("store late", "store locked")  # a new process waits until the database itself says that it is
