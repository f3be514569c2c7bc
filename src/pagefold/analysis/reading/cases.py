"""Puts questions into the conversations that they stand in: as recorded, and as the lossless policy shows them.

Both contexts hold the same messages: the result that is asked about with its call, the results that its form refers to
with theirs, and as many messages before it as fit. So a reference in the form can be followed, and the only difference
between the two is the form of results.
"""

import hashlib
import random
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from pagefold.analysis.reading.data_questions import data_questions
from pagefold.analysis.reading.line_questions import line_questions
from pagefold.analysis.reading.question import Question
from pagefold.analysis.reading.text_questions import outcome_question, text_questions
from pagefold.analysis.transcript_text import said
from pagefold.derive.entry import Standings, arrive
from pagefold.encode.mcp_text_view import view_of
from pagefold.frozen import frozen
from pagefold.tokens import counter
from pagefold.wire.message import Block, BlockKind, Message, Role, arguments_of
from pagefold.wire.transcripts import Session

_TITLES = re.compile(r"^\[R(\d+)(?=[\].,: ])", re.MULTILINE)
_REFERS = re.compile(
    r"^= lines? .* of (?:the \w+ you wrote for )?R(\d+)|^> \[(?:ref: |near-ref: )?R(\d+)|changed since R(\d+)",
    re.MULTILINE,
)
_FRAME = re.compile(r"(?:[^\n]*\n){0,6}?(?:Output:\n|<output>\n?)|=== STDOUT ===\n")
_FRAME_END = re.compile(r"\n=== EXECUTION INFO ===\n(?:[^\n]*\n?){0,4}\Z|</output>\Z")
_SHORTEST = 120  # characters of a result that is asked about


@frozen
class ReadingCase:
    """A question, and the conversation up to the result that it is about: as recorded and as shown.

    `codecs` made that result's form. `tokens` are those of the two contexts, `result_tokens` those of the result alone.
    """

    id: str
    session: str
    source: str
    tool: str
    codecs: tuple[str, ...]
    question: Question
    original: str
    form: str
    tokens: tuple[int, int]
    result: str
    shown_result: str


@dataclass(slots=True)
class _Shown:
    """A message as recorded and as shown, with what its form is called and what it refers to."""

    message: Message
    shown: Message
    codecs: tuple[str, ...]
    titles: frozenset[int]
    refers: frozenset[int]


def cases_of(session: Session, *, context: int, seed: int) -> Iterator[ReadingCase]:
    """Yields every question that the rules make about the encoded results of a session, within `context` tokens.

    The same session, context and seed give the same cases.
    """
    history: list[_Shown] = []
    standings = Standings()
    for message in session.messages:
        arrived = arrive(standings, message)
        standings = arrived.standings
        history.append(_entry(message, arrived.message, arrived.codecs))
        if message.role is Role.TOOL and arrived.codecs and len(message.text) >= _SHORTEST:
            yield from _cases_at(session, history, context, seed)


def _entry(message: Message, shown: Message, codecs: tuple[str, ...]) -> _Shown:
    if message.role is not Role.TOOL:
        return _Shown(message, shown, (), frozenset(), frozenset())
    text = shown.text
    refers = frozenset(int(next(filter(None, match.groups()))) for match in _REFERS.finditer(text))
    titles = frozenset(int(number) for number in _TITLES.findall(text))
    return _Shown(message, shown, codecs, titles, refers - titles)


def _cases_at(session: Session, history: Sequence[_Shown], context: int, seed: int) -> Iterator[ReadingCase]:
    place = len(history) - 1
    entry = history[-1]
    if len(entry.message.blocks) != 1:
        return
    block, call = entry.message.blocks[0], _call_of(history, place)
    places: list[int] | None = None
    for number, question in enumerate(_questions(block, call, entry.shown.text, f"{seed} {session.id} {place}")):
        if places is None:
            places = _messages_for(history, place, context)
        if not places:
            return
        original, form = (_transcript(history, places, shown=shown) for shown in (False, True))
        key = hashlib.sha256(f"{session.source} {session.id} {place} {number} {question.text}".encode()).hexdigest()
        count = counter("o200k").count
        yield ReadingCase(
            key[:16],
            session.id,
            session.source,
            call.name if call else block.name,
            tuple(dict.fromkeys(entry.codecs)),
            question,
            original,
            form,
            (count(original), count(form)),
            block.text,
            entry.shown.text,
        )


def without_frame(text: str) -> str:
    """What a tool returned without the lines that its client puts around every result: a form says those in its header,
    so that no line of them comes next after a line."""
    frame = _FRAME.match(text)
    return _FRAME_END.sub("", text[frame.end() if frame else 0 :]).strip()


def _questions(block: Block, call: Block | None, form: str, seed: str) -> Iterator[Question]:
    dice = random.Random(seed)  # noqa: S311 - a draw of questions, not a secret
    whole = view_of(block.text).text
    inside = without_frame(whole)
    yield from filter(None, line_questions(inside, form, dice))
    yield from filter(None, data_questions(inside, dice))
    yield from filter(None, text_questions(inside, dice))
    script = arguments_of(call).get("command", arguments_of(call).get("cmd", "")) if call else ""
    outcome = outcome_question(whole, failed=block.failed, script=script if isinstance(script, str) else "")
    if outcome is not None:
        yield outcome


def _call_of(history: Sequence[_Shown], place: int) -> Block | None:
    """Returns the call whose result a message is."""
    called = history[place].message.blocks[0].call_id
    for at in range(place - 1, -1, -1):
        for block in history[at].message.blocks:
            if block.kind is BlockKind.CALL and block.call_id == called:
                return block
    return None


def _messages_for(history: Sequence[_Shown], place: int, context: int) -> list[int]:
    """Returns the places of the messages of a context, in order; none where what is needed does not fit."""
    needed = _needed(history, place)
    if needed is None:
        return []
    left = context - sum(_size(history[at]) for at in needed)
    if left < 0:
        return []
    titles = {title for at in needed for title in history[at].titles}
    at = place - 1
    while at >= 0:
        if at not in needed:
            size = _size(history[at])
            if size > left or not history[at].refers <= titles:
                break
            left -= size
            needed.add(at)
            titles |= history[at].titles
        at -= 1
    return sorted(needed)


def _needed(history: Sequence[_Shown], place: int) -> set[int] | None:
    """Returns a result, its call, and all that its form refers to; None where a reference leads nowhere."""
    needed: set[int] = set()
    waiting = [place]
    while waiting:
        at = waiting.pop()
        needed.add(at)
        if history[at].message.role is Role.TOOL:
            needed |= _calling(history, at)
        for title in history[at].refers:
            named = next((it for it in range(at) if title in history[it].titles), None)
            if named is None:
                return None
            if named not in needed:
                waiting.append(named)
    return needed


def _calling(history: Sequence[_Shown], place: int) -> set[int]:
    called = {block.call_id for block in history[place].message.blocks}
    for at in range(place - 1, -1, -1):
        if any(block.kind is BlockKind.CALL and block.call_id in called for block in history[at].message.blocks):
            return {at}
    return set()


def _size(entry: _Shown) -> int:
    return counter("o200k").count(said(entry.message)) + 1


def _transcript(history: Sequence[_Shown], places: Sequence[int], *, shown: bool) -> str:
    parts: list[str] = []
    last = -1
    for at in places:
        if at > last + 1:
            parts.append("(messages left out)")
        parts.append(said(history[at].shown if shown else history[at].message))
        last = at
    return "\n\n".join(parts)
