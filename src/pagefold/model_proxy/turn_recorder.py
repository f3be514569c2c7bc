"""Makes one event of the decision trace of every exchange: figures and hashes, and the faults that it shows.

Levels are read off the request itself: a text that carries a handle is lossy, one that was changed and carries none is
lossless. Tokens are divided among messages by their characters. Of the conversations seen last, hashes and places are
remembered, to recognise a call that is made again. A turn costs what is new in it; only a fold point makes everything
be looked at again.
"""

import re
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import NamedTuple, TypeAlias

from pagefold.log import Log
from pagefold.model_proxy.derivation import Derivation, Sent
from pagefold.model_proxy.request_cache import ParsedRequest
from pagefold.model_proxy.totals import Seen
from pagefold.pages import faults
from pagefold.pages.faults import FaultObserver
from pagefold.pages.kinds import PageKind, ResidencyLevel
from pagefold.pages.page import HANDLE, PageId, handle_of, id_of
from pagefold.telemetry.events import (
    LEVELS,
    TracedDecision,
    TracedFault,
    TracedRecall,
    TracedResult,
    TraceEvent,
    TurnEvent,
    agent_name,
    model_name,
    tool_name,
)
from pagefold.tools.defaults import default_tool_value_models
from pagefold.wire.message import Block, BlockKind, Message, Role, Usage

_CONVERSATIONS = 1000
_WAITING = 64
_SAYS_SOMETHING = 80
_MOST_BANDS = 64
_RECALL = "context_recall"
_WHERE = re.compile(r'"handle"\s*:\s*"(pf-[a-z2-7]{10})"')
_HEAD_PARTS = ("system", "developer", "tools")
_NO_USAGE = Usage()


class ExchangeRecord(NamedTuple):
    """What an exchange knows at its end: the request as it came, the messages it was derived from with their prefix
    hashes, what was derived, by which policy, and whether context tools are answered inside the turn."""

    parsed: ParsedRequest
    messages: Log[Message]
    prefix_hashes: Log[bytes]
    derivation: Derivation | None
    policy: str
    inline: bool


@dataclass(slots=True)
class _Watched:
    """A conversation as far as it was seen: `prefix_hash` stands for its first `seen` messages, which have so many
    `characters`.

    The observer is told of results only when one of them looks like a fault: `waiting` are those it has not heard of.
    Pages and calls have names of this process, and a page gets its own when a fault names it.
    """

    prefix_hash: bytes = b""
    seen: int = 0
    characters: int = 0
    observer: FaultObserver = field(default_factory=FaultObserver)
    calls: dict[str, tuple[str, str]] = field(default_factory=dict)
    places: dict[PageId, int] = field(default_factory=dict)
    made: set[str] = field(default_factory=set)
    waiting: list[tuple[str, PageId, ResidencyLevel]] = field(default_factory=list)
    drawn: "_Drawn | None" = None

    def tell(self) -> None:
        """Brings the observer up to date."""
        for signature, page, level in self.waiting:
            if signature:
                self.observer.see(faults.CallReturned(signature, page))
            self.observer.see(faults.PageShown(page, PageKind.EVIDENCE, level))
        self.waiting.clear()


class _Drawn(NamedTuple):
    """How a request that a policy changed divides, in characters; `last` is the place of its last message, of
    `sent`."""

    policy: str
    sent: int
    last: int
    levels: tuple[int, ...]
    bands: tuple[tuple[str, int], ...]


_News: TypeAlias = tuple[list[TracedResult], list[TracedRecall], list[TracedFault]]
"""What came with the messages of one turn."""


class TurnRecorder:
    """Makes an event of every exchange that was read, for `see`. `spelled` names all tools as they are.

    Exchanges wait until `flush` is called, or until they are many: made one after another, events take a third less
    than one by one between turns.
    """

    def __init__(self, see: Callable[[TraceEvent], None], *, spelled: bool = False) -> None:
        self._see, self._spelled = see, spelled
        self._watched: dict[str, _Watched] = {}
        self._waiting: deque[tuple[ExchangeRecord, Seen, str, float, float]] = deque()

    def tell(self, record: ExchangeRecord, seen: Seen, *, user_agent: str, began: float, now: float) -> None:
        self._waiting.append((record, seen, user_agent, began, now))
        if len(self._waiting) >= _WAITING:
            self.flush()

    def flush(self) -> None:
        while self._waiting:
            self._made(*self._waiting.popleft())

    def _made(self, record: ExchangeRecord, seen: Seen, user_agent: str, began: float, now: float) -> None:
        parsed = record.parsed
        if not parsed.prefix_hashes.length:
            return
        session = (parsed.answered or parsed.prefix_hashes[-1]).hex()
        watched, continued = self._watch(session, record.prefix_hashes)
        results, recalls, shown = self._news(watched, record, continued=continued)
        derivation = record.derivation
        tokens, head, levels, bands = _measured(watched, record, seen)
        usage, work, reckoned = seen.usage or _NO_USAGE, seen.work, seen.reckoned
        reason = derivation.reason if derivation and work.folds else ""
        turn = TurnEvent(  # in their order: by their names it takes twice as long
            now,
            session,
            parsed.prefix_hashes[parsed.first - 1].hex() if parsed.answered and parsed.first else "",
            agent_name(user_agent),
            seen.api,
            model_name(seen.model, answered=seen.usage is not None),
            record.policy,
            seen.status,
            str(seen.ending),
            seen.error,
            max(0.0, now - began),
            seen.messages,
            tokens,
            head,
            work.saved,
            usage.fresh,
            usage.cache_read,
            usage.cache_write,
            usage.output,
            reckoned.real,
            bool(reckoned.cold),
            seen.prefix.kept,
            seen.prefix.moved,
            bool(work.shrunk),
            reason,
            levels,
            bands,
            _decided(derivation) if derivation and derivation.decisions else (),
            tuple(results),
            tuple(recalls),
            tuple(shown),
            reckoned.usd,
            reckoned.usd_saved,
            reckoned.windows,
            *((seen.limits.hours.used, seen.limits.hours.resets) if seen.limits.hours else (0.0, 0.0)),
            seen.cached.life,
            seen.cached.warm_usd,
            seen.cached.cold_usd,
            derivation.begun_anew if derivation and work.changed else "",
        )
        self._see(turn)

    def _watch(self, session: str, hashes: Log[bytes]) -> tuple[_Watched, bool]:
        """The conversation that this goes on with, and whether it does: not where it is new or was edited."""
        watched = self._watched.pop(session, None)
        continued = (
            watched is not None and watched.seen <= hashes.length and hashes[watched.seen - 1] == watched.prefix_hash
        )
        if watched is None or not continued:
            watched = _Watched()
        self._watched[session] = watched
        if len(self._watched) > _CONVERSATIONS:
            del self._watched[next(iter(self._watched))]
        return watched, continued

    def _news(self, watched: _Watched, record: ExchangeRecord, *, continued: bool) -> _News:
        """What the messages since the last request of this conversation bring, and the faults they show."""
        news: _News = ([], [], [])
        seen, derivation = watched.seen, record.derivation
        old = seen if continued else _last_answer(record.messages)  # what is before is only taken note of
        changed = _changed_from(derivation, seen) if derivation is not None and derivation.changed else {}
        for place, message in enumerate(record.messages.since(seen), seen):
            watched.characters += len(message.raw)
            for index, block in enumerate(message.blocks):
                if block.kind is BlockKind.CALL:
                    self._call(watched, block, news if place >= old else None, inline=record.inline)
                elif block.kind is BlockKind.RESULT:
                    self._result(watched, block, (place, index), changed.get(place), news if place >= old else None)
        if derivation is not None and derivation.moved:
            _folded(watched, derivation)
        watched.seen, watched.prefix_hash = record.prefix_hashes.length, record.prefix_hashes[-1]
        return news

    def _call(self, watched: _Watched, block: Block, news: _News | None, *, inline: bool) -> None:
        # As it is spelled: a model that makes a call again spells it again, and reading it is dear.
        watched.calls[block.call_id] = (f"{hash((block.name, block.text)):x}", block.name)
        if news is not None and block.name.endswith(_RECALL):
            handle = _WHERE.search(block.text)
            how = "answered inside the turn" if inline else "asked for by MCP"
            news[1].append(TracedRecall(handle[1] if handle else "", how))

    def _result(
        self, watched: _Watched, block: Block, at: tuple[int, int], sent: Sent | None, news: _News | None
    ) -> None:
        signature, tool = watched.calls.get(block.call_id, ("", ""))
        place, index = at
        if news is not None:
            after = block.text
            for edited, text in sent.edits if sent else ():
                if edited == index:
                    after = text
            name = tool_name(tool, _shipped(), spelled=self._spelled)
            news[0].append(TracedResult(name, len(block.text), len(after)))
        if len(block.text) < _SAYS_SOMETHING:
            return
        page = PageId(f"{hash(block.text):x}")
        if (page in watched.places or signature in watched.made) and signature:
            watched.tell()
            fault_events = watched.observer.see(faults.CallReturned(signature, page))
            if news is not None:
                real = handle_of(id_of(block.text.encode("utf-8", "surrogatepass"))) if fault_events else ""
                news[2].extend(TracedFault(str(fault.kind), real, fault.reason) for fault in fault_events)
            signature = ""  # of this one the observer has heard
        else:
            watched.made.add(signature)
        watched.places[page] = place
        watched.waiting.append((signature, page, ResidencyLevel(_level_of(sent)) if sent else ResidencyLevel.FULL))


def _decided(derivation: Derivation) -> tuple[TracedDecision, ...]:
    return tuple(TracedDecision(place, str(level), why, part) for place, level, why, part in derivation.decisions)


def _drawn(derivation: Derivation, policy: str, before: _Drawn | None) -> _Drawn:
    """How a request divides among levels. `before` is the request that it may extend."""
    sent, length = derivation.sent, derivation.sent.length
    levels, bands, start = [0] * len(LEVELS), tuple[tuple[str, int], ...](), 0
    if (
        before is not None
        and not derivation.moved
        and before.policy == policy
        and 0 < before.sent <= length
        and sent[before.sent - 1].place == before.last
    ):
        levels, bands, start = list(before.levels), before.bands, before.sent
    for message in sent.since(start):
        level, characters = _level_of(message), len(message.message.raw)
        levels[LEVELS.index(level)] += characters
        if bands and bands[-1][0] == level:
            bands = (*bands[:-1], (level, bands[-1][1] + characters))
        else:
            bands = (*bands, (level, characters))
    return _Drawn(policy, length, sent[-1].place if length else 0, tuple(levels), _fewer(bands))


def _in_tokens(drawn: _Drawn, tokens: int, head: int) -> dict[str, int]:
    """Tokens by level; the head, which nobody changes, is whole."""
    characters = sum(drawn.levels)
    scale = (tokens - head) / characters if characters else 0.0
    changed = {level: int(count * scale) for level, count in zip(LEVELS[1:], drawn.levels[1:], strict=True) if count}
    return {LEVELS[0]: head + int(drawn.levels[0] * scale), **changed}


def _fewer(bands: tuple[tuple[str, int], ...]) -> tuple[tuple[str, int], ...]:
    """Where there are too many bands, half of them: the smallest become a part of the one before."""
    if len(bands) <= _MOST_BANDS:
        return bands
    least = sorted((count for _, count in bands), reverse=True)[_MOST_BANDS // 2]
    merged: list[tuple[str, int]] = []
    for level, count in bands:
        if merged and (count <= least or merged[-1][0] == level):
            merged[-1] = (merged[-1][0], merged[-1][1] + count)
        else:
            merged.append((level, count))
    return tuple(merged)


def _level_of(sent: Sent) -> str:
    if sent.place < 0:
        return LEVELS[2] if HANDLE.search(sent.message.raw) else LEVELS[0]
    if not sent.edits:
        return LEVELS[0]
    # A line with a handle stands for a text that is left out; what is longer is a lossless form, or trimmed.
    for _, text in sent.edits:
        if "\n" in text or not HANDLE.search(text):
            return LEVELS[1]
    return LEVELS[3]


def _changed_from(derivation: Derivation, place: int) -> dict[int, Sent]:
    """Of the messages from a place on, those that go on other than they came."""
    changed: dict[int, Sent] = {}
    for sent in reversed(derivation.sent):
        if 0 <= sent.place < place:
            break
        if sent.edits:
            changed[sent.place] = sent
    return changed


def _folded(watched: _Watched, derivation: Derivation) -> None:
    """After a fold point: at which level every page of the conversation stands now."""
    levels = {sent.place: ResidencyLevel(_level_of(sent)) for sent in derivation.sent if sent.place >= 0}
    handles = any(sent.place < 0 and HANDLE.search(sent.message.raw) for sent in derivation.sent)
    watched.tell()
    for page, place in watched.places.items():
        level = levels.get(place, ResidencyLevel.POINTER if handles else None)
        gone = faults.Dropped(page) if level is None else faults.PageShown(page, PageKind.EVIDENCE, level)
        watched.observer.see(gone)


def _last_answer(messages: Sequence[Message]) -> int:
    places = reversed(range(len(messages)))
    return next((place for place in places if messages[place].role is Role.ASSISTANT), 0)


@cache
def _shipped() -> frozenset[str]:
    return frozenset(default_tool_value_models())


def _measured(
    watched: _Watched, record: ExchangeRecord, seen: Seen
) -> tuple[int, int, dict[str, int], tuple[tuple[str, int], ...]]:
    """The tokens of a request and of its head, and those that stand at each level, in sum and in order."""
    estimated, derivation = seen.estimated, record.derivation
    tokens = max(0, sum(estimated.values()))
    if not tokens:
        return 0, 0, {}, ()
    head = min(tokens, sum([estimated[part] for part in _HEAD_PARTS if part in estimated]))
    if derivation is not None and derivation.changed:
        drawn = watched.drawn = _drawn(derivation, record.policy, watched.drawn)
        return tokens, head, _in_tokens(drawn, tokens, head), drawn.bands
    watched.drawn = None
    return tokens, head, {"full": tokens}, (("full", watched.characters),)
