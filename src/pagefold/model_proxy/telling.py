"""What an exchange has to tell, as one event of the decision trace: figures and hashes, and the faults it shows.

Levels are read off the request itself: a text that carries a handle is lossy, one that was changed and carries none is
lossless. Tokens are divided among messages by their characters, which costs a turn next to nothing. What is remembered
of a conversation, to tell a call that is made again, is hashes and places, for the conversations heard of last.
"""

import hashlib
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import NamedTuple

from pagefold.derive.policy import Decision
from pagefold.model_proxy.deriving import Derivation, Sent
from pagefold.model_proxy.reading import Reading
from pagefold.model_proxy.totals import Seen
from pagefold.pages import faults
from pagefold.pages.faults import FaultObserver
from pagefold.pages.kinds import PageKind, ResidencyLevel
from pagefold.pages.page import HANDLE, PageId, handle_of, id_of
from pagefold.telemetry.events import (
    LEVELS,
    Decided,
    Event,
    Fault,
    Recall,
    Result,
    Turn,
    agent_name,
    model_name,
    tool_name,
)
from pagefold.tools.defaults import default_tool_value_models
from pagefold.wire.message import Block, BlockKind, Message, Role

_CONVERSATIONS = 1000
_SAYS_SOMETHING = 80
_MOST_BANDS = 48
_RECALL = "context_recall"
_WHERE = re.compile(r'"handle"\s*:\s*"(pf-[a-z2-7]{10})"')
_HEAD_PARTS = ("system", "developer", "tools")


class Told(NamedTuple):
    """What an exchange knows at its end: the request as it came, the messages it was derived from with the link of
    each, what was derived, by which policy, and what was decided at a fold point."""

    reading: Reading
    messages: Sequence[Message]
    links: Sequence[bytes]
    derivation: Derivation | None
    policy: str
    decisions: tuple[Decision, ...]
    inline: bool


@dataclass(slots=True)
class _Watched:
    """A conversation as far as it was seen: `link` stands for its first `seen` messages."""

    link: bytes = b""
    seen: int = 0
    observer: FaultObserver = field(default_factory=FaultObserver)
    calls: dict[str, tuple[str, str]] = field(default_factory=dict)
    pages: dict[PageId, int] = field(default_factory=dict)


@dataclass(slots=True)
class _News:
    """What came with the messages of one turn."""

    results: list[Result] = field(default_factory=list)
    recalls: list[Recall] = field(default_factory=list)
    faults: list[Fault] = field(default_factory=list)


class Teller:
    """Makes an event of every exchange that was read, for `see`. `spelled` names all tools as they are."""

    def __init__(self, see: Callable[[Event], None], *, spelled: bool = False) -> None:
        self._see, self._spelled = see, spelled
        self._watched: dict[str, _Watched] = {}

    def tell(self, told: Told, seen: Seen, *, user_agent: str, began: float, now: float) -> None:
        links = told.reading.links
        if not links:
            return
        first = _first_answer(told.reading.request.messages)
        session = links[first].hex() if first < len(links) else links[-1].hex()
        news = self._news(session, told)
        tokens = max(0, sum(seen.estimated.values()))
        head = min(tokens, sum(seen.estimated.get(part, 0) for part in _HEAD_PARTS))
        levels, bands = divided(told, tokens, head) if tokens else ({}, ())
        usage, work = seen.usage, seen.work
        reason = told.derivation.reason if told.derivation and work.folds else ""
        self._see(
            Turn(
                at=now,
                session=session,
                began=links[first - 1].hex() if 0 < first < len(links) else "",
                agent=agent_name(user_agent),
                api=seen.api,
                model=model_name(seen.model, answered=usage is not None),
                policy=told.policy,
                status=seen.status,
                ending=str(seen.ending),
                error=seen.error,
                seconds=max(0.0, now - began),
                messages=seen.messages,
                tokens=tokens,
                head=head,
                saved=work.saved,
                fresh=usage.fresh if usage else 0,
                cache_read=usage.cache_read if usage else 0,
                cache_write=usage.cache_write if usage else 0,
                output=usage.output if usage else 0,
                cost=seen.reckoned.real,
                cold=bool(seen.reckoned.cold),
                kept=seen.prefix.kept,
                moved=seen.prefix.moved,
                shrunk=bool(work.shrunk),
                fold=reason,
                levels=levels,
                bands=bands,
                decisions=tuple(Decided(one.place, str(one.level), one.reason) for one in told.decisions)
                if reason
                else (),
                results=tuple(news.results),
                recalls=tuple(news.recalls),
                faults=tuple(news.faults),
            )
        )

    def _news(self, session: str, told: Told) -> _News:
        """What the messages since the last request of this conversation bring, and the faults they show."""
        news, links = _News(), told.links
        watched = self._watched.pop(session, None)
        if watched is None or watched.seen > len(links) or links[watched.seen - 1] != watched.link:
            # Never heard of, or edited since: what is old news is only taken note of.
            watched, old = _Watched(), _last_answer(told.messages)
        else:
            old = watched.seen
        levels = _levels_from(told, watched.seen)
        for place in range(watched.seen, len(links)):
            for block in told.messages[place].blocks:
                if block.kind is BlockKind.CALL:
                    self._call(watched, block, news if place >= old else None, inline=told.inline)
                elif block.kind is BlockKind.RESULT:
                    level, after = levels.get(place, (ResidencyLevel.FULL, {}))
                    self._result(watched, block, place, level, after, news if place >= old else None)
        if told.derivation is not None and told.derivation.reason:
            _folded(watched, told.derivation)
        news.faults += _told_of(watched.observer.see(faults.Requested()))
        watched.seen, watched.link = len(links), links[-1]
        self._watched[session] = watched
        while len(self._watched) > _CONVERSATIONS:
            del self._watched[next(iter(self._watched))]
        return news

    def _call(self, watched: _Watched, block: Block, news: _News | None, *, inline: bool) -> None:
        signature = hashlib.sha256(faults.signature_of(block.name, block.text).encode("utf-8", "replace")).hexdigest()
        watched.calls[block.call_id] = (signature, block.name)
        if news is not None and block.name.endswith(_RECALL):
            found = _WHERE.search(block.text)
            how = "answered inside the turn" if inline else "asked for by MCP"
            news.recalls.append(Recall(found[1] if found else "", how))

    def _result(
        self,
        watched: _Watched,
        block: Block,
        place: int,
        level: ResidencyLevel,
        after: Mapping[str, int],
        news: _News | None,
    ) -> None:
        signature, tool = watched.calls.get(block.call_id, ("", ""))
        if news is not None:
            name = tool_name(tool, _shipped(), spelled=self._spelled)
            news.results.append(Result(name, len(block.text), after.get(block.call_id, len(block.text))))
        if len(block.text) < _SAYS_SOMETHING:
            return
        page = id_of(block.text.encode("utf-8", "surrogatepass"))
        found = watched.observer.see(faults.Called(signature, page)) if signature else ()
        if news is not None:
            news.faults += _told_of(found)
        watched.observer.see(faults.Shown(page, PageKind.EVIDENCE, level))
        watched.pages[page] = place


def divided(told: Told, tokens: int, head: int) -> tuple[dict[str, int], tuple[tuple[str, int], ...]]:
    """How the tokens of a request divide among levels, and the same as bands in the order of the request."""
    sent = told.derivation.sent if told.derivation is not None and told.derivation.changed else None
    runs: list[tuple[str, int]] = [(LEVELS[0], 0)]
    if sent is None:
        runs.append((LEVELS[0], sum(len(message.raw) for message in told.messages)))
    else:
        for one in sent:
            runs.append((_level_of(one), len(one.message.raw)))
    characters = sum(count for _, count in runs)
    scale = (tokens - head) / characters if characters else 0.0
    levels: dict[str, float] = {LEVELS[0]: float(head)}
    bands: list[tuple[str, float]] = [(LEVELS[0], float(head))]
    for level, count in runs:
        levels[level] = levels.get(level, 0.0) + count * scale
        if bands[-1][0] == level:
            bands[-1] = (level, bands[-1][1] + count * scale)
        else:
            bands.append((level, count * scale))
    return {level: round(count) for level, count in levels.items() if count}, _fewer(bands)


def _fewer(bands: Sequence[tuple[str, float]]) -> tuple[tuple[str, int], ...]:
    """At most so many bands: the smallest are taken for a part of the one before."""
    least = 0.0
    if len(bands) > _MOST_BANDS:
        least = sorted((count for _, count in bands), reverse=True)[_MOST_BANDS - 1]
    merged: list[tuple[str, float]] = []
    for level, count in bands:
        if merged and (count < least or merged[-1][0] == level):
            merged[-1] = (merged[-1][0], merged[-1][1] + count)
        else:
            merged.append((level, count))
    return tuple((level, round(count)) for level, count in merged if round(count))


def _level_of(sent: Sent) -> str:
    if sent.place < 0:
        return LEVELS[2] if HANDLE.search(sent.message.raw) else LEVELS[0]
    if not sent.edits:
        return LEVELS[0]
    lossy = any("pf-" in text and HANDLE.search(text) for _, text in sent.edits)
    return LEVELS[2] if lossy else LEVELS[1]


def _levels_from(told: Told, place: int) -> dict[int, tuple[ResidencyLevel, dict[str, int]]]:
    """Of the messages from a place on, at which level they stand and how long each of their results is there."""
    if told.derivation is None or not told.derivation.changed:
        return {}
    found: dict[int, tuple[ResidencyLevel, dict[str, int]]] = {}
    for one in reversed(told.derivation.sent):
        if 0 <= one.place < place:
            break
        if one.edits:
            after = {one.message.blocks[index].call_id: len(text) for index, text in one.edits}
            found[one.place] = (ResidencyLevel(_level_of(one)), after)
    return found


def _folded(watched: _Watched, derivation: Derivation) -> None:
    """After a fold point: at which level every page of the conversation stands now."""
    standing = {one.place: ResidencyLevel(_level_of(one)) for one in derivation.sent if one.place >= 0}
    handles = any(one.place < 0 and HANDLE.search(one.message.raw) for one in derivation.sent)
    for page, place in watched.pages.items():
        level = standing.get(place, ResidencyLevel.POINTER if handles else None)
        gone = faults.Dropped(page) if level is None else faults.Shown(page, PageKind.EVIDENCE, level)
        watched.observer.see(gone)


def _told_of(found: Iterable[faults.Fault]) -> list[Fault]:
    return [Fault(str(one.kind), handle_of(one.page) if one.page else "", one.reason) for one in found]


def _first_answer(messages: Sequence[Message]) -> int:
    return next((at for at, message in enumerate(messages) if message.role is Role.ASSISTANT), len(messages))


def _last_answer(messages: Sequence[Message]) -> int:
    return next((at for at in range(len(messages) - 1, -1, -1) if messages[at].role is Role.ASSISTANT), 0)


@cache
def _shipped() -> frozenset[str]:
    return frozenset(default_tool_value_models())
