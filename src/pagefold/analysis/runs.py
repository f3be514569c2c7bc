"""Replays of many recordings on all cores, in bounded memory: results come one session at a time, in order.

At most a few batches a process are under way; nothing is kept of a session but its figures. A small input is replayed
in this process, where starting others would take longer than the work.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from pagefold.adapters import recordings
from pagefold.analysis.engine import Engine, spread
from pagefold.analysis.replay import SessionReplay, Terms, emitted
from pagefold.analysis.replay_figures import ReplayFigures
from pagefold.derive.cost import Prices
from pagefold.derive.learned import SHIPPED, Learned
from pagefold.derive.policies import policy_named
from pagefold.tokens import counter
from pagefold.wire import json_text
from pagefold.wire.transcripts import Format, Problem


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
    overhead: int = 0  # tokens before all messages that recordings lack
    learned: Learned = SHIPPED


@dataclass(frozen=True, slots=True)
class Outcome:
    """One session's figures, or a problem without a session."""

    path: Path
    id: str = ""
    source: str = ""
    figures: ReplayFigures = field(default_factory=ReplayFigures)
    emitted: bytes = b""
    problem: Problem | None = None


def outcomes(paths: Sequence[Path], job: Job, *, jobs: int = 0, engine: Engine | None = None) -> Iterator[Outcome]:
    """Every session of every file, in order. `jobs` processes, 0 for one a core, where no engine is named."""
    yield from spread(
        paths,
        replay_batches,
        job,
        engine=engine or Engine(jobs=jobs),
        given=job.format,
        max_bytes=job.max_line_bytes,
    )


def replay_batches(batches: Sequence[recordings.LogBatch], job: Job) -> list[Outcome]:
    return [outcome for batch in batches for outcome in replay_batch(batch, job)]


def replay_batch(batch: recordings.LogBatch, job: Job) -> list[Outcome]:
    policy = policy_named(
        job.policy, window=job.window, prices=job.prices, tokens=job.tokens, learned=job.learned, offline=True
    )
    terms = Terms(policy, job.prices, counter(job.tokens), job.window, job.overhead)
    found: list[Outcome] = []
    for item in recordings.sessions(batch, max_bytes=job.max_line_bytes):
        if isinstance(item, Problem):
            found.append(Outcome(batch.path, problem=item))
            continue
        run = SessionReplay(item, terms)
        lines = [emitted(item, turn, derived) if job.emit else "" for turn, derived in run]
        source = item.source or batch.path.name.partition(".")[0]
        found.append(Outcome(batch.path, item.id, source, run.figures, json_text.bytes_of("".join(lines))))
    return found
