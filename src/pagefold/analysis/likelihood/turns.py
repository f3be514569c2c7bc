"""Chooses turns of recorded sessions, and makes every context that a recorded answer is scored after.

A turn is one whose history is larger than the window, so that the last policy sends something else, and fits the
model: elsewhere all contexts say the same, or one of them cannot be had. Sessions are drawn by a seed, and of each a
few turns spread over those that there are, so that one long session does not stand for all.
"""

import hashlib
from collections.abc import Iterable, Mapping, Sequence

from pagefold.analysis.replay import SessionReplay
from pagefold.analysis.replay_job import ReplayJob
from pagefold.analysis.transcript_text import heading, said, words
from pagefold.frozen import frozen
from pagefold.tokens import Counter, counter
from pagefold.wire.message import Message, Role
from pagefold.wire.transcripts import Session

ORIGINAL, LAST, NOTHING = "original", "last tokens", "nothing"

_MOST_A_SESSION = 6
_ANSWER_CHARS = 800
_SHORTEST = 20  # characters of an answer that is scored
_ASKS = f"{heading(Role.ASSISTANT)}\n"


@frozen
class ScoredTurn:
    """One recorded answer, and the contexts it is scored after, by name; `tokens` are theirs, counted as o200k."""

    session: str
    source: str
    place: int
    answer: str
    contexts: Mapping[str, str]
    tokens: Mapping[str, int]


def chosen_turns(
    sessions: Iterable[Session],
    job: ReplayJob,
    policies: Sequence[str],
    *,
    window: int,
    context: int,
    most: int,
    seed: int,
) -> list[ScoredTurn]:
    """Returns about `most` turns in groups by session. The same recordings and numbers give the same turns."""
    drawn: dict[str, list[ScoredTurn]] = {}
    for session in sessions:
        turns = turns_of(session, job, policies, window=window, context=context)
        if turns:
            drawn[_rank(session, seed)] = _spread(turns, _MOST_A_SESSION)
        while len(drawn) > 1 and sum(map(len, drawn.values())) - len(drawn[last := max(drawn)]) >= most:
            del drawn[last]
    return [turn for rank in sorted(drawn) for turn in drawn[rank]][:most]


def turns_of(
    session: Session, job: ReplayJob, policies: Sequence[str], *, window: int, context: int
) -> list[ScoredTurn]:
    """Returns every turn of a session that can be scored, with all of its contexts."""
    count = counter(job.tokens)
    ends = _answers(session, count, window, context)
    sent = {name: _requests(session, job, name, window, ends[-1]) for name in policies} if ends else {}
    return [turn for place in ends if (turn := _turn(session, place, sent, policies, count)) is not None]


def _answers(session: Session, count: Counter, window: int, context: int) -> list[int]:
    """The places of answers whose history is larger than the window and fits the model."""
    places: list[int] = []
    total = 0
    for place, message in enumerate(session.messages):
        if message.role is Role.ASSISTANT and total > window and len(words(message).strip()) >= _SHORTEST:
            places.append(place)
        total += count.count(said(message))
        if total > context:
            break
    return places


def _requests(
    session: Session, job: ReplayJob, policy: str, window: int, last: int
) -> Mapping[int, tuple[Message, ...]]:
    """What a policy sends at every turn up to the last one."""
    sent: tuple[Message, ...] = ()
    requests: dict[int, tuple[Message, ...]] = {}
    for turn, derived in SessionReplay(session, job.of(session).terms(policy, window=window)):
        if turn > last:
            break
        sent = requests[turn] = (*sent[: derived.keep], *derived.append)
    return requests


def _turn(
    session: Session,
    place: int,
    sent: Mapping[str, Mapping[int, tuple[Message, ...]]],
    policies: Sequence[str],
    count: Counter,
) -> ScoredTurn | None:
    history = session.messages[:place]
    final = sent[policies[-1]][place]
    if len(final) == len(history) and all(one.text == other.text for one, other in zip(final, history, strict=True)):
        return None
    whole = _context(history)
    contexts = {ORIGINAL: whole, **{name: _context(sent[name][place]) for name in policies}}
    contexts[LAST] = last_tokens(whole, count.count(contexts[policies[-1]]), count)
    contexts[NOTHING] = _ASKS
    tokens = {name: count.count(text) for name, text in contexts.items()}
    answer = words(session.messages[place]).strip()[:_ANSWER_CHARS]
    return ScoredTurn(session.id, session.source, place, answer, contexts, tokens)


def last_tokens(text: str, tokens: int, count: Counter) -> str:
    """Returns the longest end of a text that has at most so many tokens."""
    low, high = 0, len(text)  # the end that begins at `high` fits
    while low < high:
        middle = (low + high) // 2
        if count.count(text[middle:]) <= tokens:
            high = middle
        else:
            low = middle + 1
    return text[high:]


def _context(messages: Iterable[Message]) -> str:
    return "".join(f"{said(message)}\n\n" for message in messages) + _ASKS


def _spread(turns: Sequence[ScoredTurn], most: int) -> list[ScoredTurn]:
    if len(turns) <= most:
        return list(turns)
    return [turns[at * (len(turns) - 1) // (most - 1)] for at in range(most)]


def _rank(session: Session, seed: int) -> str:
    return hashlib.sha256(f"{seed} {session.source} {session.id}".encode("utf-8", "surrogatepass")).hexdigest()
