"""Follows one session over its turns: at which level every page stood, where it was folded and why, what was missed.

A `Timeline` holds what its chart needs and nothing else: figures and labels, no text of any page.
"""

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from pagefold.analysis.demand import demands
from pagefold.analysis.faults import observe
from pagefold.analysis.replay import SessionReplay, Terms
from pagefold.charts import Mark, Timeline, Track
from pagefold.derive.entry import label_of
from pagefold.derive.policy import Derived
from pagefold.pages.context_tools import RECALL
from pagefold.pages.kinds import ResidencyLevel
from pagefold.wire.message import BlockKind, Message, Role
from pagefold.wire.transcripts import Session

_RECALL = RECALL.name


class LevelChange(NamedTuple):
    """When a page changed its level, why, and which parts of a digest hold it. `shown` is the message as it arrived,
    None at a fold."""

    request: int
    place: int
    level: ResidencyLevel
    reason: str
    shown: Message | None = None
    part: str = ""


def timeline(session: Session, plain: Terms, terms: Terms) -> Timeline:
    """The session under a policy, against the session as it was (`plain`)."""
    before = tuple(tokens for _, _, tokens in _sized(SessionReplay(session, plain)))
    replay = SessionReplay(session, terms)
    sized = list(_sized(replay))
    requests = [(turn, derived) for turn, derived, _ in sized]
    needs = enumerate(demands(session, (derived for _, derived in requests), replay.count))
    _, faults = observe(session, iter(requests))
    return Timeline(
        session.id,
        session.source,
        terms.window,
        before,
        tuple(tokens for _, _, tokens in sized),
        tuple(_tracks(session, requests, replay)),
        tuple(Mark(number, "fold", derived.reason) for number, (_, derived) in enumerate(requests) if derived.reason),
        tuple(
            Mark(min(max(0, fault.turn - 1), len(requests) - 1), str(fault.kind), fault.reason)
            for fault in faults
            if fault.kind.controllable
        ),
        tuple(
            Mark(number, "miss", f"{needed.missed} of {needed.demanded} facts that the answer used")
            for number, needed in needs
            if needed.missed
        ),
        tuple(_recalls(session)),
    )


def _sized(replay: SessionReplay) -> Iterator[tuple[int, Derived, int]]:
    """Every request with its tokens."""
    sent = 0
    for turn, derived in replay:
        total, sent = replay.figures.tokens - sent, replay.figures.tokens
        yield turn, derived, total


def level_changes(session: Session, requests: Iterable[tuple[int, Derived]]) -> Iterator[LevelChange]:
    """Yields every page on arrival, and again at every fold that decided about it."""
    heard = 0
    for number, (turn, derived) in enumerate(requests):
        if derived.reason:
            for decision in derived.decisions:
                if decision.place < turn:
                    yield LevelChange(number, decision.place, decision.level, decision.reason, part=decision.part)
        else:
            for place, message in zip(range(heard, turn), derived.append, strict=False):
                if message.raw == session.messages[place].raw:
                    yield LevelChange(number, place, ResidencyLevel.FULL, "as it came", message)
                else:
                    reason = "a lossless form is cheaper"
                    yield LevelChange(number, place, ResidencyLevel.COMPRESSED, reason, message)
        heard = turn


def _tracks(session: Session, requests: list[tuple[int, Derived]], replay: SessionReplay) -> Iterator[Track]:
    levels: dict[int, list[tuple[int, ResidencyLevel]]] = {}
    for change in level_changes(session, requests):
        so_far = levels.setdefault(change.place, [])
        if not so_far or so_far[-1][1] is not change.level:
            so_far.append((change.request, change.level))
    calls: dict[str, str] = {}
    for place, message in enumerate(session.messages):
        calls.update((block.call_id, label_of(block)) for block in message.blocks if block.kind is BlockKind.CALL)
        if place in levels:
            yield Track(_labelled(message, calls), replay.count(message), levels[place][0][0], tuple(levels[place]))


def _labelled(message: Message, calls: dict[str, str]) -> str:
    if message.role is Role.TOOL:
        return calls.get(message.blocks[0].call_id, message.blocks[0].name or "result")
    return f"the {message.role}"


def _recalls(session: Session) -> Iterator[Mark]:
    """Recalls that the recording itself holds: of an agent that had pagefold."""
    turn = -1
    for message in session.messages:
        turn += message.role is Role.ASSISTANT
        for block in message.blocks:
            if block.kind is BlockKind.CALL and block.name.rpartition("__")[2] == _RECALL:
                yield Mark(max(0, turn), "recall", label_of(block))
