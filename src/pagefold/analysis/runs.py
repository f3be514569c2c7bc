"""Replays of many recordings on all cores, in bounded memory: results come one session at a time, in order.

At most a few batches a process are under way; nothing is kept of a session but its figures. A small input is replayed
in this process, where starting others would take longer than the work.
"""

import os
from collections import deque
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from dataclasses import dataclass, field
from multiprocessing import get_context
from pathlib import Path

from pagefold.adapters import recordings
from pagefold.analysis.figures import Figures
from pagefold.analysis.replay import Run, Terms, emitted
from pagefold.derive.cost import Prices
from pagefold.derive.policies import policy_named
from pagefold.tokens import counter
from pagefold.wire import json_text
from pagefold.wire.transcripts import Format, Problem

_SMALL_BYTES = 2_000_000
_AHEAD = 3


@dataclass(frozen=True, slots=True)
class Job:
    """What to do with every recording, in values that travel between processes."""

    policy: str
    prices: Prices
    tokens: str
    window: int
    format: Format | None
    max_line_bytes: int
    emit: bool = False


@dataclass(frozen=True, slots=True)
class Outcome:
    """One session's figures, or a problem without a session."""

    path: Path
    id: str = ""
    source: str = ""
    figures: Figures = field(default_factory=Figures)
    emitted: bytes = b""
    problem: Problem | None = None


def outcomes(paths: Sequence[Path], job: Job, *, jobs: int = 0) -> Iterator[Outcome]:
    """Every session of every file, in order. `jobs` processes, 0 for one a core."""
    workers = jobs or os.cpu_count() or 1
    work = (
        batch for path in paths for batch in recordings.batches(path, given=job.format, max_bytes=job.max_line_bytes)
    )
    if workers == 1 or sum(path.stat().st_size for path in paths if path.exists()) < _SMALL_BYTES:
        for batch in work:
            yield from replay_batch(batch, job)
        return
    # Spawned, not forked: a progress display runs in a thread of this process.
    with ProcessPoolExecutor(workers, mp_context=get_context("spawn")) as pool:
        waiting: deque[Future[list[Outcome]]] = deque()
        for batch in work:
            waiting.append(pool.submit(replay_batch, batch, job))
            if len(waiting) >= workers * _AHEAD:
                yield from waiting.popleft().result()
        while waiting:
            yield from waiting.popleft().result()


def replay_batch(batch: recordings.Batch, job: Job) -> list[Outcome]:
    terms = Terms(policy_named(job.policy), job.prices, counter(job.tokens), job.window)
    found: list[Outcome] = []
    for item in recordings.sessions(batch, max_bytes=job.max_line_bytes):
        if isinstance(item, Problem):
            found.append(Outcome(batch.path, problem=item))
            continue
        run = Run(item, terms)
        lines = [emitted(item, turn, derived) if job.emit else "" for turn, derived in run]
        source = item.source or batch.path.name.partition(".")[0]
        found.append(Outcome(batch.path, item.id, source, run.figures, json_text.bytes_of("".join(lines))))
    return found
