"""Does tuning's work on one session: collects the evidence for a fit, and replays the session under each trial.

Tuning is a cross-validation in three parts. A hash of its name puts a session into one of them; what is fitted on two
parts is judged on the third. ("Fold" is not used for these parts: here it always means a context fold, at which older
messages of a request are shortened.)
"""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import TypeAlias
from zlib import crc32

from pagefold.analysis.fit import Observed, observed, turns_of
from pagefold.analysis.replay import expired, replay
from pagefold.analysis.replay_figures import ReplayFigures
from pagefold.analysis.replay_job import ReplayJob
from pagefold.derive.entry import Standings, arrive
from pagefold.derive.learned import Forms, Learned
from pagefold.tokens import counter
from pagefold.wire.message import Role
from pagefold.wire.transcripts import Session

PARTS = 3

Trial: TypeAlias = tuple[Learned, ...]
"""The fits for one candidate value: trial[i] was fitted without part i and is used to judge part i; trial[-1] was
fitted on everything."""

ByCodec: TypeAlias = Counter[tuple[str, str]]
"""A count for each tool and codec."""

_FOLD_MARGIN = 0.8
"""A session whose peak stays below 80% of the smallest fold threshold never folds: fold settings are ignored for it."""


def part_of(name: str) -> int:
    """Returns the part of the cross-validation to which a session belongs, from 0: a hash of its name."""
    return (crc32(name.encode()) >> 8) % PARTS


def is_held_out(name: str) -> bool:
    """Whether a session is in the test set when a single train/test split is used."""
    return part_of(name) == 0


@dataclass(frozen=True, slots=True)
class SessionEvidence:
    """What one session contributes to a fit. `used` counts results by codec, `weight` their tokens."""

    id: str
    rows: Observed
    turns: int
    used: ByCodec
    weight: ByCodec

    @property
    def part(self) -> int:
        return part_of(self.id)


@dataclass(frozen=True, slots=True)
class JudgedSession:
    """`base` is what a session costs without pagefold; `figures` has its replay under each trial, in order."""

    id: str
    base: float
    figures: tuple[ReplayFigures, ...]


def collect_evidence(session: Session, job: ReplayJob) -> SessionEvidence:
    messages = session.messages
    return SessionEvidence(session.id, observed(messages), turns_of(messages), *_codecs_used(session, job))


def judge_session(
    session: Session, job: ReplayJob, *, trials: tuple[Trial, ...], sampled: tuple[str, ...]
) -> JudgedSession | None:
    """Replays a session without pagefold and under each trial. Returns None for one that is not among `sampled`."""
    if session.id not in sampled:
        return None
    job = job.of(session).with_head_of(session)
    plain = replay(session, job.terms("identity"))
    return JudgedSession(session.id, plain.cost, tuple(_under_trials(session, job, trials, plain.peak)))


def _under_trials(session: Session, job: ReplayJob, trials: tuple[Trial, ...], peak: int) -> Iterator[ReplayFigures]:
    """Yields the figures of each trial. Trials that cannot differ for this session share a replay."""
    tools = {block.name for message in session.messages for block in message.blocks}
    cache_expires = any(expired(session, job.prices.life))
    replayed: dict[Learned, ReplayFigures] = {}
    for trial in trials:
        learned = trial[part_of(session.id)]
        cold_threshold = learned.folds.cold if cache_expires else job.window
        fold_threshold = min(learned.folds.least, cold_threshold, job.window)
        relevant = replace(learned, forms=_relevant_forms(learned.forms, tools))
        if peak + job.overhead < _FOLD_MARGIN * fold_threshold:
            relevant = Learned(forms=relevant.forms)
        if relevant not in replayed:
            replayed[relevant] = replay(session, job.terms("economic", learned=relevant))
            # Tuning compares costs only, and the figures of each tool would be sent between processes.
            replayed[relevant].tools.clear()
        yield replayed[relevant]


def _relevant_forms(forms: Forms, tools: set[str]) -> Forms:
    """Returns the settings of forms that can make a difference to a session with these tools."""
    return Forms(tuple(pair for pair in forms.without if pair[0] in tools), forms.floor)


def _codecs_used(session: Session, job: ReplayJob) -> tuple[ByCodec, ByCodec]:
    """Returns how many results each codec encoded, and their tokens."""
    standings, count = Standings(), counter(job.tokens).count
    used: ByCodec = Counter()
    weight: ByCodec = Counter()
    for message in session.messages:
        arrived = arrive(standings, message)
        standings = arrived.standings
        if message.role is Role.TOOL and arrived.codecs:
            size = count(message.text)
            for codec in set(arrived.codecs):
                used[message.blocks[0].name, codec] += 1
                weight[message.blocks[0].name, codec] += size
    return used, weight
