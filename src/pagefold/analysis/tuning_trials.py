"""What tuning does with one session: collects what can be fitted, and replays it under each trial.

Sessions are in three parts, by a hash of their names: what is learned on two of them is judged on the third.
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
from pagefold.derive.arrival import Standings, arrive
from pagefold.derive.learned import Forms, Learned
from pagefold.tokens import counter
from pagefold.wire.message import Role
from pagefold.wire.transcripts import Session

PARTS = 3

Trial: TypeAlias = tuple[Learned, ...]
"""One value of a setting: as each part of the sessions judges it, learned without that part; last, learned from all."""

ByCodec: TypeAlias = Counter[tuple[str, str]]
"""A count for each tool and codec."""

_SURELY = 0.8  # of the size at which a session could be folded: below, no setting of a fold can matter


def part_of(name: str) -> int:
    """Returns the part of the sessions to which one belongs, by a hash of its name."""
    return (crc32(name.encode()) >> 8) % PARTS


def is_held(name: str) -> bool:
    """Whether a session judges instead of being fitted, where one division is enough."""
    return part_of(name) == 0


@dataclass(frozen=True, slots=True)
class SessionEvidence:
    """What one session contributes to a fit. `used` counts results, `weight` their tokens."""

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
    """What a session costs as it is, and its figures under each trial."""

    id: str
    base: float
    figures: tuple[ReplayFigures, ...]


def collect_evidence(session: Session, job: ReplayJob) -> SessionEvidence:
    messages = session.messages
    return SessionEvidence(session.id, observed(messages), turns_of(messages), *_codecs_used(session, job))


def judge_session(
    session: Session, job: ReplayJob, *, trials: tuple[Trial, ...], sampled: tuple[str, ...]
) -> JudgedSession | None:
    """Returns nothing for a session that is not among those `sampled`."""
    if session.id not in sampled:
        return None
    plain = replay(session, job.terms("identity"))
    return JudgedSession(session.id, plain.cost, tuple(_under_trials(session, job, trials, plain.peak)))


def _under_trials(session: Session, job: ReplayJob, trials: tuple[Trial, ...], peak: int) -> Iterator[ReplayFigures]:
    """Trials that differ in nothing that this session meets are replayed once."""
    tools = {block.name for message in session.messages for block in message.blocks}
    cools = any(expired(session, job.prices.ttl_seconds))
    replayed: dict[Learned, ReplayFigures] = {}
    for trial in trials:
        learned = trial[part_of(session.id)]
        least = min(learned.folds.least, learned.folds.cold if cools else job.window, job.window)
        met = replace(learned, forms=_forms_met(learned.forms, tools))
        if peak + job.overhead < _SURELY * least:
            met = Learned(forms=met.forms)
        if met not in replayed:
            replayed[met] = replay(session, job.terms("economic", learned=met))
            replayed[met].tools.clear()
        yield replayed[met]


def _forms_met(forms: Forms, tools: set[str]) -> Forms:
    """The part of the forms that a session with these tools meets."""
    return Forms(tuple(pair for pair in forms.without if pair[0] in tools), forms.floor)


def _codecs_used(session: Session, job: ReplayJob) -> tuple[ByCodec, ByCodec]:
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
