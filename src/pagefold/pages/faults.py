"""Finds page faults: moments at which the agent needed a page that was not in its context.

`FaultObserver` gets the events of a session in order and returns the faults that each event shows, with page, reason
and turn. It keeps no text and counts the same online and over a recording. Six kinds are faults that a policy could
have avoided. Wrong content and physical insufficiency are counted apart, because no choice of levels avoids them. A
repeated call whose result is still in the context is an alert and no fault; one that brings another result is neither.
Callers leave out empty results, which are all alike.
"""

import json
from collections import Counter
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TypeAlias

from pagefold.pages.journal import Boundary
from pagefold.pages.kinds import PageKind, ResidencyLevel
from pagefold.pages.page import PageId
from pagefold.pages.recall import Denied, Failed, RecallAnswer, Unknown


class FaultKind(StrEnum):
    REFETCH = "refetch"
    DUPLICATE_TOOL = "duplicate_tool"
    PINNED_INVARIANT_MISS = "pinned_invariant_miss"
    POST_COMPACTION_BOOTSTRAP = "post_compaction_bootstrap"
    SILENT_RECALL = "silent_recall"
    FLUSH_MISS = "flush_miss"
    WRONG_CONTENT = "wrong_content"
    PHYSICAL_INSUFFICIENCY = "physical_insufficiency"
    DUPLICATE_ALERT = "duplicate_alert"

    @property
    def controllable(self) -> bool:
        """Whether a policy could have avoided it. Only these are counted as faults in figures."""
        return self not in _APART


_APART = (FaultKind.WRONG_CONTENT, FaultKind.PHYSICAL_INSUFFICIENCY, FaultKind.DUPLICATE_ALERT)


class RecallOutcome(StrEnum):
    FOUND = "found"
    NO_MATCH = "no_match"
    DENIED = "denied"
    BACKEND_ERROR = "backend_error"


@dataclass(frozen=True, slots=True)
class PageFault:
    kind: FaultKind
    page: PageId | None
    reason: str
    turn: int


@dataclass(frozen=True, slots=True)
class PageEvent:
    """An event that only names a page."""

    page: PageId


class Dropped(PageEvent):
    """The page left the context."""


class Unpinned(PageEvent):
    """Requests need not carry the page any more."""


class Served(PageEvent):
    """A repeated call was answered from what is kept, without running it."""


class Dirtied(PageEvent):
    """The page holds something that must outlive the window and is not committed yet."""


class Committed(PageEvent):
    """What the page holds was committed to the journal."""


@dataclass(frozen=True, slots=True)
class PageShown:
    """A page is in the context at this level from now on: it is new there, or its level changed."""

    page: PageId
    kind: PageKind
    level: ResidencyLevel = ResidencyLevel.FULL


@dataclass(frozen=True, slots=True)
class Pinned:
    """Every request has to carry this page. Bootstrap and constraint pages are pinned when they are first shown."""

    page: PageId
    kind: PageKind


@dataclass(frozen=True, slots=True)
class CallReturned:
    """A call was made and brought this page. `signature` is the same for equivalent calls.

    `resolves`: the context has a handle of the earlier result that would have given it back. Callers that do not know
    leave it out.
    """

    signature: str
    page: PageId
    resolves: bool = False


@dataclass(frozen=True, slots=True)
class Demanded:
    """The agent needed a page, at this level at least. `resolves`: its handle gives the whole text back."""

    page: PageId
    level: ResidencyLevel = ResidencyLevel.STRUCTURED
    resolves: bool = True


@dataclass(frozen=True, slots=True)
class RecallEnded:
    """A recall or a search ended with `outcome`, and the model was told `told`."""

    outcome: RecallOutcome
    told: RecallOutcome
    page: PageId | None = None


@dataclass(frozen=True, slots=True)
class Mismatched:
    """What was shown or committed for a page is not what the page says."""

    page: PageId
    reason: str


@dataclass(frozen=True, slots=True)
class Crossed:
    """A boundary was crossed and destroyed these pages; None for all that stood in the context."""

    boundary: Boundary
    destroyed: Collection[PageId] | None = None


@dataclass(frozen=True, slots=True)
class Requested:
    """A request was sent. `pages` is all it carried, if known; `short` are pages that could not have fitted."""

    pages: Mapping[PageId, ResidencyLevel] | None = None
    short: Collection[PageId] = ()


ContextEvent: TypeAlias = (
    PageShown
    | Dropped
    | Pinned
    | Unpinned
    | CallReturned
    | Served
    | Demanded
    | RecallEnded
    | Mismatched
    | Dirtied
    | Committed
    | Crossed
    | Requested
)

_RANK = {level: rank for rank, level in enumerate(ResidencyLevel)}
_WHOLE = (ResidencyLevel.FULL, ResidencyLevel.COMPRESSED)
_PINNED_KINDS = (PageKind.BOOTSTRAP, PageKind.CONSTRAINT)


@dataclass(slots=True)
class FaultObserver:
    """`counts` by kind, `hits` (needs that were met), `recalls` (the hits that took a recall), `turn` (requests)."""

    counts: Counter[FaultKind] = field(default_factory=Counter)
    hits: int = 0
    recalls: int = 0
    turn: int = 0
    _resident: dict[PageId, ResidencyLevel] = field(default_factory=dict)
    _known: set[PageId] = field(default_factory=set)
    _pinned: dict[PageId, PageKind] = field(default_factory=dict)
    _calls: dict[str, PageId] = field(default_factory=dict)
    _dirty: dict[PageId, None] = field(default_factory=dict)
    _owed: set[PageId] = field(default_factory=set)
    _short: Collection[PageId] = ()

    def see(self, event: ContextEvent) -> tuple[PageFault, ...]:
        """Counts and returns the faults that this event shows."""
        faults = self._seen(event)
        for fault in faults:
            self.counts[fault.kind] += 1
        return tuple(faults)

    @property
    def faults(self) -> int:
        return sum(count for kind, count in self.counts.items() if kind.controllable)

    @property
    def alerts(self) -> int:
        return self.counts[FaultKind.DUPLICATE_ALERT]

    @property
    def thrash(self) -> float:
        """Faults and alerts per need that was met: F / (H + 1). A pointer that resolves is a hit."""
        return (self.faults + self.alerts) / (self.hits + 1)

    @property
    def strict_thrash(self) -> float:
        """The same, where every recall counts as a fault and not as a hit."""
        return (self.faults + self.alerts + self.recalls) / (self.hits - self.recalls + 1)

    def _seen(self, event: ContextEvent) -> list[PageFault]:  # noqa: C901 - one arm an event, each a line or two
        match event:
            case PageShown():
                self._shown(event)
            case Dropped(page):
                self._resident.pop(page, None)
                return self._lost([page], "it was dropped")
            case Pinned(page, kind):
                self._pinned[page] = kind
            case Unpinned(page):
                self._pinned.pop(page, None)
            case CallReturned():
                return self._called(event)
            case Served():
                self.hits += 1
            case Demanded():
                return self._demanded(event)
            case RecallEnded():
                return self._recalled(event)
            case Mismatched(page, reason):
                return [self._fault(FaultKind.WRONG_CONTENT, page, reason)]
            case Dirtied(page):
                self._dirty[page] = None
            case Committed(page):
                self._dirty.pop(page, None)
            case Crossed():
                return self._crossed(event)
            case Requested():
                return self._requested(event)
        return []

    def _shown(self, event: PageShown) -> None:
        self._resident[event.page] = event.level
        if event.page not in self._known:
            self._known.add(event.page)
            if event.kind in _PINNED_KINDS:
                self._pinned[event.page] = event.kind

    def _called(self, event: CallReturned) -> list[PageFault]:
        before, page = self._calls.get(event.signature), event.page
        self._calls[event.signature] = page
        level = self._resident.get(page)
        if before == page:
            if level in _WHOLE or (level is not None and event.resolves):
                reason = f"called again while its result stands at {level}"
                return [self._fault(FaultKind.DUPLICATE_ALERT, page, reason)]
            reason = f"called again: {_absence(level)}"
            return [self._fault(self._cause(page, FaultKind.DUPLICATE_TOOL), page, reason)]
        if page in self._known and level is None:
            reason = f"brought back by another call: {_absence(level)}"
            return [self._fault(self._cause(page, FaultKind.REFETCH), page, reason)]
        return []

    def _demanded(self, event: Demanded) -> list[PageFault]:
        page = event.page
        if page not in self._known:
            return []
        level = self._resident.get(page)
        if level is not None and _RANK[level] <= _RANK[event.level]:
            self.hits += 1
            return []
        if level is not None and event.resolves:
            self.hits += 1
            self.recalls += 1
            return []
        reason = f"needed at {event.level}: {_absence(level)}" + (
            "" if level is None else " and its handle does not resolve"
        )
        return [self._fault(self._cause(page, FaultKind.REFETCH), page, reason)]

    def _recalled(self, event: RecallEnded) -> list[PageFault]:
        if event.told is event.outcome:
            found = event.outcome is RecallOutcome.FOUND
            self.hits += found
            self.recalls += found
            return []
        reason = f"the model was told {event.told}, but the recall ended in {event.outcome}"
        if event.told is RecallOutcome.FOUND:
            return [self._fault(FaultKind.WRONG_CONTENT, event.page, reason)]
        # After an error the model may ask again; after an empty answer it does not.
        silent = event.told is RecallOutcome.NO_MATCH
        return [self._fault(FaultKind.SILENT_RECALL, event.page, reason)] if silent else []

    def _crossed(self, event: Crossed) -> list[PageFault]:
        gone = list(self._resident) if event.destroyed is None else list(event.destroyed)
        # What was never shown may still be dirty: a plan that only the library holds.
        dirty = list(self._dirty) if event.destroyed is None else gone
        for page in gone:
            self._resident.pop(page, None)
        if event.boundary is not Boundary.SHUTDOWN:
            self._owed |= {page for page, kind in self._pinned.items() if kind is PageKind.BOOTSTRAP}
        return self._lost(dirty, f"the {event.boundary} came before its commit")

    def _requested(self, event: Requested) -> list[PageFault]:
        self.turn += 1
        self._short = event.short
        if event.pages is not None:
            self._resident = dict(event.pages)
            self._known |= event.pages.keys()
        found = []
        for page, kind in self._pinned.items():
            level = self._resident.get(page)
            if level is not None and kind.allows(level):
                self._owed.discard(page)
                continue
            owed = page in self._owed
            missed = FaultKind.POST_COMPACTION_BOOTSTRAP if owed else FaultKind.PINNED_INVARIANT_MISS
            reason = f"a pinned {kind} page: {_absence(level)}"
            found.append(self._fault(self._cause(page, missed), page, reason))
        return found

    def _lost(self, pages: Collection[PageId], why: str) -> list[PageFault]:
        """Counts the dirty ones among these pages, which can never be committed any more, once each."""
        lost = [page for page in dict.fromkeys(pages) if page in self._dirty]
        for page in lost:
            del self._dirty[page]
        return [self._fault(FaultKind.FLUSH_MISS, page, f"not committed when {why}") for page in lost]

    def _cause(self, page: PageId, fault: FaultKind) -> FaultKind:
        return FaultKind.PHYSICAL_INSUFFICIENCY if page in self._short else fault

    def _fault(self, kind: FaultKind, page: PageId | None, reason: str) -> PageFault:
        return PageFault(kind, page, reason, self.turn)


def outcome_of(answer: RecallAnswer) -> RecallOutcome:
    match answer:
        case Unknown():
            return RecallOutcome.NO_MATCH
        case Denied():
            return RecallOutcome.DENIED
        case Failed():
            return RecallOutcome.BACKEND_ERROR
    return RecallOutcome.FOUND


def signature_of(tool: str, arguments: str) -> str:
    """Returns the same text for equivalent calls: tool and arguments, whatever their order and spacing in JSON."""
    try:
        arguments = json.dumps(json.loads(arguments), sort_keys=True, separators=(",", ":"))
    except (ValueError, RecursionError):
        arguments = arguments.strip()
    return f"{tool} {arguments}"


def _absence(level: ResidencyLevel | None) -> str:
    return "it is not in the context" if level is None else f"it stands only at {level}"
