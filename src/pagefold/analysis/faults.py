"""Counts the faults of a policy on a recorded session: what the agent would have had to fetch, call or ask again.

The recorded agent read the whole history. A page counts as needed where the recorded answer used a fact that this page
was the last to hold, and as missing where the policy's request for that answer holds neither the fact nor a handle that
recalls it. A recorded call that returned the same bytes as before is a duplicate where the policy had dropped them.
"""

from collections import Counter
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, field

from pagefold.derive.policy import Derived
from pagefold.pages.facts import facts_of, opened
from pagefold.pages.faults import (
    CallReturned,
    ContextEvent,
    Crossed,
    Demanded,
    Dropped,
    FaultObserver,
    PageFault,
    PageShown,
    Requested,
    signature_of,
)
from pagefold.pages.journal import Boundary
from pagefold.pages.kinds import PageKind, ResidencyLevel, classify
from pagefold.pages.page import HANDLE, Page, PageId, handle_of
from pagefold.wire.message import BlockKind, Message
from pagefold.wire.transcripts import Session


def observe(session: Session, requests: Iterable[tuple[int, Derived]]) -> tuple[FaultObserver, tuple[PageFault, ...]]:
    """Returns all faults of a session under a policy, in order, and the observer that counted them.

    `requests` are what the policy sent, by the turn it was sent at: a `replay.SessionReplay`.
    """
    observer, recording = FaultObserver(), FaultEvents()
    return observer, tuple(fault for event in recording.events(session, requests) for fault in observer.see(event))


@dataclass(slots=True)
class _RecordedPage:
    """A page of the recording: the messages it came in, and the facts it holds."""

    kind: PageKind
    raws: set[str]
    facts: frozenset[str]


@dataclass(slots=True)
class FaultEvents:
    """Turns a recorded session and a policy's requests into events for a fault observer."""

    _pages: dict[PageId, _RecordedPage] = field(default_factory=dict)
    _last_page: dict[str, PageId] = field(default_factory=dict)  # of each fact, the last page that held it
    _calls: dict[str, str] = field(default_factory=dict)
    _sent: list[Message] = field(default_factory=list)
    _raws: Counter[str] = field(default_factory=Counter)  # how often the last request holds each message
    _facts: Counter[str] = field(default_factory=Counter)
    _handles: Counter[str] = field(default_factory=Counter)
    _recalled: dict[str, frozenset[str]] = field(default_factory=dict)

    def events(self, session: Session, requests: Iterable[tuple[int, Derived]]) -> Iterator[ContextEvent]:
        heard = 0
        for turn, derived in requests:
            for message in session.messages[heard:turn]:
                yield from self._arrived(message)
            heard = turn + 1
            yield from self._requested(derived)
            yield from self._answered(session.messages[turn])

    def _arrived(self, message: Message) -> Iterator[ContextEvent]:
        kind = classify(message)
        for block in message.blocks:
            if block.kind not in (BlockKind.RESULT, BlockKind.TEXT):
                continue
            page, facts = Page.of(kind, block.text).id, facts_of(opened(block.text))
            # Results without facts are all alike.
            if block.kind is BlockKind.RESULT and facts and block.call_id in self._calls:
                if page in self._pages:
                    yield self._level_event(page)
                yield CallReturned(self._calls[block.call_id], page)
            self._pages.setdefault(page, _RecordedPage(kind, set(), facts)).raws.add(message.raw)
            self._last_page.update(dict.fromkeys(facts, page))
            yield PageShown(page, kind)

    def _requested(self, derived: Derived) -> Iterator[ContextEvent]:
        gone = self._sent[derived.keep :]
        for message in gone:
            self._count(message, -1)
        for message in derived.append:
            self._count(message, 1)
        self._sent[derived.keep :] = derived.append
        self._recalled.update((page.handle, facts_of(opened(page.text))) for page in derived.pages)
        if gone:
            # After a fold point every pinned page has to be in the request again.
            yield Crossed(Boundary.COMPACTION, destroyed=())
            pinned = (page for page, recorded in self._pages.items() if recorded.kind is PageKind.BOOTSTRAP)
            yield from map(self._level_event, list(pinned))
        yield Requested()

    def _answered(self, answer: Message) -> Iterator[ContextEvent]:
        needed: dict[PageId, set[str]] = {}
        for fact in sorted(facts_of(opened(answer.text)) & self._last_page.keys()):
            needed.setdefault(self._last_page[fact], set()).add(fact)
        for page, facts in needed.items():
            yield self._level_event(page, facts)
            yield Demanded(page)
        for block in answer.blocks:
            if block.kind is BlockKind.CALL:
                self._calls[block.call_id] = signature_of(block.name, block.text)

    def _level_event(self, page: PageId, needed: set[str] | None = None) -> ContextEvent:
        """Returns the event that says at which level the last request holds a page, or what is needed of it."""
        recorded = self._pages[page]
        if any(self._raws[raw] > 0 for raw in recorded.raws):
            return PageShown(page, recorded.kind)
        if all(self._facts[fact] > 0 for fact in recorded.facts) and recorded.facts:
            return PageShown(page, recorded.kind, _allowed_level(recorded.kind, ResidencyLevel.COMPRESSED))
        if needed and all(self._facts[fact] > 0 for fact in needed):
            return PageShown(page, recorded.kind, ResidencyLevel.STRUCTURED)
        if self._handles[handle_of(page)] > 0 or self._in_recall(needed or recorded.facts):
            # The observer counts a page that may not be a pointer as missing.
            return PageShown(page, recorded.kind, ResidencyLevel.POINTER)
        return Dropped(page)

    def _in_recall(self, facts: Collection[str]) -> bool:
        """Whether a page that one handle of the last request recalls holds all of these facts."""
        return any(self._handles[handle] > 0 and held.issuperset(facts) for handle, held in self._recalled.items())

    def _count(self, message: Message, by: int) -> None:
        text = opened(message.text)
        self._raws[message.raw] += by
        for fact in facts_of(text):
            self._facts[fact] += by
        for handle in set(HANDLE.findall(text)):
            self._handles[handle] += by


def _allowed_level(kind: PageKind, level: ResidencyLevel) -> ResidencyLevel:
    return level if kind.allows(level) else ResidencyLevel.STRUCTURED
