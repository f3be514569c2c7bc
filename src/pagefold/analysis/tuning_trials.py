"""What tuning does with the sessions, wherever it runs: what they say to be fitted, and what a trial costs on them.

Sessions are in three parts, by a hash of their names: what is learned on two of them is judged on the third.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, TypeAlias
from zlib import crc32

from pagefold.adapters import recordings
from pagefold.analysis.fit import Observed, observed, turns_of
from pagefold.analysis.replay import SessionReplay, Terms, expired
from pagefold.analysis.replay_figures import ReplayFigures
from pagefold.derive.arrival import Standings, arrive
from pagefold.derive.cost import Prices
from pagefold.derive.learned import SHIPPED, Forms, Learned
from pagefold.derive.policies import policy_named
from pagefold.tokens import counter
from pagefold.wire.message import Role
from pagefold.wire.transcripts import Format, Problem, Session

PARTS = 3

Each: TypeAlias = tuple[Learned, ...]
"""What is judged by each part of the sessions, learned without it; and last what is learned from all."""

_SURELY = 0.8  # of the size at which a session could be folded: below, no setting of a fold can matter


def part_of(name: str) -> int:
    """To which part of the sessions one belongs, by a hash of its name."""
    return (crc32(name.encode()) >> 8) % PARTS


def is_held(name: str) -> bool:
    """Whether a session judges instead of being fitted, where one division is enough."""
    return part_of(name) == 0


@dataclass(frozen=True, slots=True)
class Job:
    """In values that travel between processes. `trials` are judged on the sessions that are `sampled`."""

    prices: Prices
    tokens: str
    window: int
    format: Format | None
    max_line_bytes: int
    overhead: int = 0
    trials: tuple[Each, ...] = ()
    sampled: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class SessionEvidence:
    """What one session says to be fitted."""

    path: Path
    id: str = ""
    rows: Observed = field(default_factory=Counter)
    turns: int = 0
    used: Counter[tuple[str, str]] = field(default_factory=Counter)  # tool, codec -> results
    weight: Counter[tuple[str, str]] = field(default_factory=Counter)  # the same in tokens
    problem: Problem | None = None

    @property
    def part(self) -> int:
        return part_of(self.id)


@dataclass(frozen=True, slots=True)
class JudgedSession:
    """What a session costs as it is, and its figures under each trial."""

    path: Path
    id: str
    base: float
    figures: tuple[ReplayFigures, ...]


def see(batches: Sequence[recordings.LogBatch], job: Job) -> list[SessionEvidence]:
    found: list[SessionEvidence] = []
    for batch, item in _items(batches, job):
        if isinstance(item, Problem):
            found.append(SessionEvidence(batch.path, problem=item))
        else:
            used, weight = _codecs(item, job)
            found.append(
                SessionEvidence(batch.path, item.id, observed(item.messages), turns_of(item.messages), used, weight)
            )
    return found


def judge(batches: Sequence[recordings.LogBatch], job: Job) -> list[JudgedSession]:
    found: list[JudgedSession] = []
    for batch, item in _items(batches, job):
        if isinstance(item, Session) and item.id in job.sampled:
            plain = _figures(item, job, "identity", SHIPPED)
            found.append(JudgedSession(batch.path, item.id, plain.cost, tuple(_trials(item, job, plain.peak))))
    return found


def _items(batches: Sequence[recordings.LogBatch], job: Job) -> Iterator[tuple[recordings.LogBatch, Session | Problem]]:
    for batch in batches:
        for item in recordings.sessions(batch, max_bytes=job.max_line_bytes):
            yield batch, item


def _trials(session: Session, job: Job, peak: int) -> Iterator[ReplayFigures]:
    """Trials that differ in nothing that this session meets are replayed once."""
    tools = {block.name for message in session.messages for block in message.blocks}
    cools = any(expired(session, job.prices.ttl_seconds))
    known: dict[Any, ReplayFigures] = {}
    for trial in job.trials:
        mine = trial[part_of(session.id)]
        least = min(mine.folds.least, mine.folds.cold if cools else job.window, job.window)
        met = replace(mine, forms=_met(mine.forms, tools))
        if peak + job.overhead < _SURELY * least:
            met = Learned(forms=met.forms)
        if met not in known:
            known[met] = _figures(session, job, "economic", met)
        yield known[met]


def _met(forms: Forms, tools: set[str]) -> Forms:
    """What of them a session with these tools meets."""
    return Forms(tuple(pair for pair in forms.without if pair[0] in tools), forms.floor)


def _figures(session: Session, job: Job, name: str, learned: Learned) -> ReplayFigures:
    policy = policy_named(name, window=job.window, prices=job.prices, tokens=job.tokens, learned=learned)
    run = SessionReplay(session, Terms(policy, job.prices, counter(job.tokens), job.window, job.overhead))
    for _ in run:
        pass
    run.figures.tools.clear()
    return run.figures


def _codecs(session: Session, job: Job) -> tuple[Counter[tuple[str, str]], Counter[tuple[str, str]]]:
    standings, count = Standings(), counter(job.tokens).count
    used: Counter[tuple[str, str]] = Counter()
    weight: Counter[tuple[str, str]] = Counter()
    for message in session.messages:
        arrived = arrive(standings, message)
        standings = arrived.standings
        if message.role is Role.TOOL and arrived.codecs:
            size = count(message.text)
            for codec in set(arrived.codecs):
                used[message.blocks[0].name, codec] += 1
                weight[message.blocks[0].name, codec] += size
    return used, weight
