"""Measures how long DuckDB takes to add up the decisions of ten thousand sessions, against a bare scan of the rows.

    python -m bench.aggregate [--sessions 10000]

The sessions are those of a recorded family, exported once and repeated under other names. Prints seconds of the clock
and of all processors, rows, bytes a row of the export itself, and the ratio to a bare scan in the same run.
"""

import argparse
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from bench.recorded import JOB, family
from pagefold.adapters import parquet
from pagefold.analysis.engine import Engine, SessionResult, run_on_sessions
from pagefold.analysis.export import BY_LEVEL, BY_TOOL, DECISIONS, SESSIONS, export_session, session_rows

FAMILY = family("mcp-servers")
SCAN = (
    "SELECT sum(tokens + coalesce(shown_tokens, 0) + place + request + length(reason) + length(session)) FROM decisions"
)


def timed(work: Callable[[], Any]) -> tuple[float, float]:
    clock, busy = time.perf_counter(), time.process_time()
    work()
    return time.perf_counter() - clock, time.process_time() - busy


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sessions", type=int, default=10_000)
    wanted = parser.parse_args().sessions
    if not FAMILY.exists():
        raise SystemExit(f"{FAMILY}: no such recordings")
    work = partial(export_session, policies=("economic",))
    results = run_on_sessions([FAMILY], work, JOB, Engine())
    found = [result for result in results if isinstance(result, SessionResult)]
    with tempfile.TemporaryDirectory() as name:
        once, many = Path(name, "once"), Path(name, "many")
        with parquet.tables(once, sessions=SESSIONS, decisions=DECISIONS) as tables:
            for one in found:
                tables["sessions"].add(session_rows(one, JOB))
                tables["decisions"].add(one.value.decisions)
        many.mkdir()
        times = -(-wanted // len(found))
        with parquet.duckdb().connect() as database:
            database.execute(
                f"COPY (SELECT * REPLACE (session || '-' || number AS session) FROM '{once}/decisions-*.parquet', "
                f"range({times}) AS many(number)) TO '{many}/decisions-00001.parquet' (FORMAT parquet)"
            )
        (rows,) = parquet.query(many, "SELECT count(*) AS n FROM decisions", ["decisions"])
        size = sum(path.stat().st_size for path in once.glob("decisions-*"))
        scan = timed(lambda: parquet.query(many, SCAN, ["decisions"]))
        added = timed(lambda: [parquet.query(many, sql, ["decisions"]) for sql in (BY_TOOL, BY_LEVEL)])
    print(f"{times * len(found):,} sessions, {rows['n']:,} decisions, {size / rows['n'] * times:.1f} bytes each")
    print(f"scan        {scan[0]:5.2f} s, {scan[1]:5.2f} s of processors")
    print(
        f"by tool and by level {added[0]:5.2f} s, {added[1]:5.2f} s of processors: {added[1] / scan[1]:.1f} x the scan"
    )


if __name__ == "__main__":
    main()
