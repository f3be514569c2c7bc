"""What tuning does with the sessions, wherever it runs: what they say to be fitted, and what a trial costs on them.

Two sessions in three are fitted, by a hash of their names; the third judges, and nothing of it is fitted.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any
from zlib import crc32

from pagefold.adapters import recordings
from pagefold.analysis.figures import Figures
from pagefold.analysis.fit import Observed, observed, turns_of
from pagefold.analysis.replay import Run, Terms
from pagefold.derive.arrival import Standings, arrive
from pagefold.derive.cost import Prices
from pagefold.derive.learned import SHIPPED, Forms, Learned
from pagefold.derive.policies import policy_named
from pagefold.tokens import FRAME, counter
from pagefold.wire.message import Role
from pagefold.wire.transcripts import Format, Problem, Session

_SMALL = 3_000  # tokens: a session that never gets larger is never folded


def is_held(name: str) -> bool:
    """Whether a session judges instead of being fitted: one in three, by a hash of its name."""
    return (crc32(name.encode()) >> 8) % 3 == 0


@dataclass(frozen=True, slots=True)
class Job:
    """In values that travel between processes. `trials` are judged on the sessions held back, or on the `sampled` of
    the fitted ones where these are named; there, `alternatives` to the forms that ship are tried too."""

    prices: Prices
    tokens: str
    window: int
    format: Format | None
    max_line_bytes: int
    overhead: int = 0
    trials: tuple[Learned, ...] = ()
    alternatives: tuple[Forms, ...] = ()
    sampled: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Seen:
    """What one session says to be fitted."""

    path: Path
    id: str = ""
    held: bool = False
    rows: Observed = field(default_factory=Counter)
    turns: int = 0
    used: Counter[tuple[str, str]] = field(default_factory=Counter)  # tool, codec -> results
    weight: Counter[tuple[str, str]] = field(default_factory=Counter)  # the same in tokens
    problem: Problem | None = None


@dataclass(frozen=True, slots=True)
class Judged:
    """What a session costs as it is, and its figures under each trial."""

    path: Path
    id: str
    base: float
    figures: tuple[Figures, ...]


@dataclass(frozen=True, slots=True)
class Tried:
    """What a fitted session costs in the forms that ship, and what less in each alternative."""

    path: Path
    cost: float
    less: tuple[float, ...]


def see(batches: Sequence[recordings.Batch], job: Job) -> list[Seen]:
    found: list[Seen] = []
    for batch, item in _items(batches, job):
        if isinstance(item, Problem):
            found.append(Seen(batch.path, problem=item))
        elif is_held(item.id):
            found.append(Seen(batch.path, item.id, held=True))
        else:
            used, weight = _codecs(item, job)
            rows, turns = observed(item.messages), turns_of(item.messages)
            found.append(Seen(batch.path, item.id, False, rows, turns, used, weight))
    return found


def judge(batches: Sequence[recordings.Batch], job: Job) -> list[Judged]:
    found: list[Judged] = []
    for batch, item in _items(batches, job):
        if isinstance(item, Session) and (item.id in job.sampled if job.sampled else is_held(item.id)):
            plain = _figures(item, job, "identity", SHIPPED)
            found.append(Judged(batch.path, item.id, plain.cost, tuple(_trials(item, job, plain.peak))))
    return found


def attempt(batches: Sequence[recordings.Batch], job: Job) -> list[Tried]:
    found: list[Tried] = []
    for batch, item in _items(batches, job):
        if isinstance(item, Session) and item.id in job.sampled:
            tools = {block.name for message in item.messages for block in message.blocks}
            cost = _lossless(item, job, Forms())
            met = [_met(forms, tools) for forms in job.alternatives]
            less = (cost - _lossless(item, job, forms) if forms != Forms() else 0.0 for forms in met)
            found.append(Tried(batch.path, cost, tuple(less)))
    return found


def _items(batches: Sequence[recordings.Batch], job: Job) -> Iterator[tuple[recordings.Batch, Session | Problem]]:
    for batch in batches:
        for item in recordings.sessions(batch, max_bytes=job.max_line_bytes):
            yield batch, item


def _trials(session: Session, job: Job, peak: int) -> Iterator[Figures]:
    """Trials that differ in nothing that this session meets are replayed once."""
    tools = {block.name for message in session.messages for block in message.blocks}
    known: dict[Any, Figures] = {}
    for trial in job.trials:
        forms = _met(trial.forms, tools)
        small = peak + job.overhead < min(_SMALL, trial.folds.least, trial.folds.cold)
        met = replace(trial, forms=forms) if not small else Learned(forms=forms)
        if met not in known:
            known[met] = _figures(session, job, "economic", met)
        yield known[met]


def _met(forms: Forms, tools: set[str]) -> Forms:
    """What of them a session with these tools meets."""
    return Forms(tuple(pair for pair in forms.without if pair[0] in tools), forms.floor)


def _figures(session: Session, job: Job, name: str, learned: Learned) -> Figures:
    policy = policy_named(name, window=job.window, prices=job.prices, tokens=job.tokens, learned=learned)
    run = Run(session, Terms(policy, job.prices, counter(job.tokens), job.window, job.overhead))
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


def _lossless(session: Session, job: Job, forms: Forms) -> float:
    """What the session costs in lossless forms while the cache is warm: written once, read at every later turn."""
    standings, count, prices = Standings(), counter(job.tokens).count, job.prices
    left = turns_of(session.messages)
    cost = 0.0
    for message in session.messages:
        if message.role is Role.ASSISTANT:
            left -= 1
        arrived = arrive(standings, message, forms=forms)
        standings = arrived.standings
        if left:
            size = count(arrived.message.text) + FRAME
            cost += prices.cost(size * (left - 1), size)
    return cost
