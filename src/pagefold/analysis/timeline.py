"""One session over its turns: at which level every page stood, where it was folded and why, what was missed.

What a picture needs and nothing else: figures and labels, no text of any page.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

from pagefold.analysis.demand import DemandTracker
from pagefold.analysis.faults import observe
from pagefold.analysis.replay import SessionReplay, Terms
from pagefold.derive.arrival import label_of
from pagefold.derive.policy import Derived
from pagefold.pages.context_tools import RECALL
from pagefold.pages.kinds import ResidencyLevel
from pagefold.wire.message import BlockKind, Message, Role
from pagefold.wire.transcripts import Session

_RECALL = RECALL.name


class Mark(NamedTuple):
    """Something that happened before an answer: the answer's number, what it was, and why."""

    turn: int
    what: str
    why: str


@dataclass(frozen=True, slots=True)
class Track:
    """A page: its size as it came, since which answer it stood, and its levels from then on."""

    label: str
    tokens: int
    since: int
    levels: tuple[tuple[int, ResidencyLevel], ...]


@dataclass(frozen=True, slots=True)
class Timeline:
    """`before` and `after` are the tokens of each request as it was sent and as it would have been."""

    session: str
    source: str
    window: int
    before: tuple[int, ...]
    after: tuple[int, ...]
    tracks: tuple[Track, ...]
    folds: tuple[Mark, ...]
    faults: tuple[Mark, ...]
    misses: tuple[Mark, ...]
    recalls: tuple[Mark, ...]


def timeline(session: Session, plain: Terms, terms: Terms) -> Timeline:
    """The session under a policy, against the session as it was (`plain`)."""
    before = tuple(derived_tokens for _, _, derived_tokens in _sized(SessionReplay(session, plain)))
    run = SessionReplay(session, terms)
    requests: list[tuple[int, Derived]] = []
    after: list[int] = []
    for turn, derived, tokens in _sized(run):
        requests.append((turn, derived))
        after.append(tokens)
    _, faults = observe(session, iter(requests))
    number = {turn: index for index, (turn, _) in enumerate(requests)}
    return Timeline(
        session.id,
        session.source,
        terms.window,
        before,
        tuple(after),
        tuple(_tracks(session, requests, run, number)),
        tuple(Mark(number[turn], "fold", derived.reason) for turn, derived in requests if derived.reason),
        tuple(
            Mark(min(max(0, fault.turn - 1), len(after) - 1), str(fault.kind), fault.reason)
            for fault in faults
            if fault.kind.controllable
        ),
        tuple(_misses(session, requests, run)),
        tuple(_recalls(session)),
    )


def _sized(run: SessionReplay) -> Iterator[tuple[int, Derived, int]]:
    sent = 0
    for turn, derived in run:
        total, sent = run.figures.tokens - sent, run.figures.tokens
        yield turn, derived, total


def _tracks(
    session: Session, requests: list[tuple[int, Derived]], run: SessionReplay, number: dict[int, int]
) -> Iterator[Track]:
    levels: dict[int, list[tuple[int, ResidencyLevel]]] = {}
    heard = 0
    for turn, derived in requests:
        if derived.reason:
            for decision in derived.decisions:
                known = levels.setdefault(decision.place, [])
                if not known or known[-1][1] is not decision.level:
                    known.append((number[turn], decision.level))
        else:
            for place, message in zip(range(heard, turn), derived.append, strict=False):
                same = message.raw == session.messages[place].raw
                level = ResidencyLevel.FULL if same else ResidencyLevel.COMPRESSED
                levels.setdefault(place, []).append((number[turn], level))
        heard = turn
    calls: dict[str, str] = {}
    for place, message in enumerate(session.messages):
        calls.update((block.call_id, label_of(block)) for block in message.blocks if block.kind is BlockKind.CALL)
        if place in levels:
            yield Track(_labelled(message, calls), run.count(message), levels[place][0][0], tuple(levels[place]))


def _labelled(message: Message, calls: dict[str, str]) -> str:
    if message.role is Role.TOOL:
        return calls.get(message.blocks[0].call_id, message.blocks[0].name or "result")
    return f"the {message.role}"


def _misses(session: Session, requests: list[tuple[int, Derived]], run: SessionReplay) -> Iterator[Mark]:
    demand, sent, number = DemandTracker(), list[Message](), 0
    for message in session.messages:
        if message.role is not Role.ASSISTANT:
            demand.heard(message, run.count(message))
            continue
        _, derived = requests[number]
        demand.sent(sent[derived.keep :], derived.append)
        sent[derived.keep :] = derived.append
        needed = demand.answered(message)
        if needed.missed:
            yield Mark(number, "miss", f"{needed.missed} of {needed.demanded} facts that the answer used")
        number += 1


def _recalls(session: Session) -> Iterator[Mark]:
    """Recalls that the recording itself holds: of an agent that had pagefold."""
    turn = -1
    for message in session.messages:
        turn += message.role is Role.ASSISTANT
        for block in message.blocks:
            if block.kind is BlockKind.CALL and block.name.rpartition("__")[2] == _RECALL:
                yield Mark(max(0, turn), "recall", label_of(block))
