"""What benches share: where recordings, scorer and rivals lie, how they are read, and tables.

All of it lies in `shared` beside the project. Benches that use this are run as modules: `python -m bench.replay`.
"""

import importlib.util
import zlib
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any

from pagefold.analysis.engine import sessions_of
from pagefold.analysis.replay_job import ReplayJob
from pagefold.derive.cost import ASSUMED
from pagefold.wire.transcripts import Session

PROJECT = Path(__file__).resolve().parent.parent
SHARED = PROJECT.parent / "shared"
TRACES, ADAPTERS, SCORER = SHARED / "traces", SHARED / "peers", SHARED / "score" / "score.py"
JOB = ReplayJob(ASSUMED, "o200k", 200_000, max_line_bytes=1 << 30)


def family(name: str) -> Path:
    return TRACES / f"{name}.jsonl.xz"


def families(names: str = "") -> list[Path]:
    """Returns the recorded families, or those that a flag names. Exits where there are none."""
    wanted = [name for name in names.split(",") if name]
    paths = [path for path in sorted(TRACES.glob("[!p]*.jsonl.xz")) if not wanted or name_of(path) in wanted]
    if not paths:
        raise SystemExit(f"no recordings in {TRACES}")
    return paths


def name_of(path: Path) -> str:
    return path.name.partition(".")[0]


def sessions(path: Path) -> Iterator[Session]:
    return sessions_of([path], JOB)


def in_half(session: str, half: int) -> bool:
    """Whether a session is in this half (0 or 1) of the recordings, by a hash of its id."""
    return zlib.crc32(session.encode()) % 2 == half


@cache
def scorer() -> ModuleType:
    spec = importlib.util.spec_from_file_location("score", SCORER)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def table(rows: Sequence[Mapping[str, Any]]) -> str:
    """Returns rows as a Markdown table that is also readable as it is."""
    head = list(dict.fromkeys(key for row in rows for key in row))
    cells = [head, *([cell(row.get(key, "")) for key in head] for row in rows)]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    lines = ["| " + " | ".join(c.rjust(w) for c, w in zip(line, widths, strict=True)) + " |" for line in cells]
    return "\n".join([lines[0], "|" + "|".join("-" * (width + 1) + ":" for width in widths) + "|", *lines[1:]])


def cell(value: Any) -> str:
    if isinstance(value, float):
        return f"{value:,.3f}" if value < 10 else f"{value:,.1f}"
    return f"{value:,}" if isinstance(value, int) else str(value)
