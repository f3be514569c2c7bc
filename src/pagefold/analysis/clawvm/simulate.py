"""Simulates one workload under one policy and budget, turn by turn, and counts faults by the one fault observer.

Handles are resolved for real: pages lie in a store under their hash, and a recall that returns nothing, or another
page, is a fault. Write-back goes through a journal with its rules; the memory of calls is the MCP proxy's. A need is
met by what the last request held, or by a recall where the policy can; an agent that has neither calls its tool again.
For a policy without pins only a bootstrap page that is missing right after a boundary is a fault, as in the paper; with
`strict` every request without its bootstrap and constraint pages is one.
"""

from collections.abc import Iterable
from dataclasses import dataclass

from pagefold.analysis.clawvm.policies import PolicyFlags
from pagefold.analysis.clawvm.windows import PINNED, Levels, window
from pagefold.analysis.clawvm.workloads import Need, Workload, WorkPage, WorkTurn
from pagefold.pages import faults
from pagefold.pages.faults import FaultObserver, RecallOutcome, outcome_of
from pagefold.pages.journal import Boundary, JournalEntry, Op, Rules, Schema, flush
from pagefold.pages.kinds import PageKind, ResidencyLevel
from pagefold.pages.memory_store import MemoryStore
from pagefold.pages.page import PageId, handle_of
from pagefold.pages.recall import recall
from pagefold.pages.store import Store
from pagefold.tools.call_memo import CallMemo
from pagefold.tools.model import SideEffectClass, ToolValueModel
from pagefold.tools.prefetch import WriteEpochs
from pagefold.tools.registry import ToolRegistry

_PRIVATE = (PageKind.EVIDENCE, PageKind.CONVERSATION)
_LEVELS = tuple(ResidencyLevel)
_TOOL = "read"
_KNOWN = ToolRegistry({_TOOL: ToolValueModel(side_effect_class=SideEffectClass.PURE, open_world=False, memoise=True)})
_RULES = Rules({"note": Schema("note", {"text": "string"}, many=True)}, frozenset({"project"}))


@dataclass(frozen=True, slots=True)
class SimulationOutcome:
    """`observer` holds the counts; `short` is the number of requests that could not hold what they had to."""

    observer: FaultObserver
    short: int


def simulate(
    workload: Workload, policy: PolicyFlags, budget: int, *, strict: bool = False, store: Store | None = None
) -> SimulationOutcome:
    run = _Simulation(workload, policy, budget, strict, store or MemoryStore())
    for number, turn in enumerate(workload.turns):
        run.turn(turn, run.ahead(number))
    return SimulationOutcome(run.observer, run.short)


class _Simulation:
    def __init__(self, workload: Workload, policy: PolicyFlags, budget: int, strict: bool, store: Store) -> None:
        self.workload = workload
        self.policy = policy
        self.strict = strict
        self.window = window(policy, budget)
        self.observer = FaultObserver()
        self.store = store
        self.journal = store.open_journal(_RULES)
        self.memory: CallMemo[PageId] = CallMemo(_KNOWN, WriteEpochs(_KNOWN))
        self.levels: Levels = {}
        self.pages: dict[PageId, WorkPage] = {}
        self.dirty: dict[PageId, WorkPage] = {}
        self.lost: set[PageId] = set()
        self.committed: set[PageId] = set()
        self.short = 0

    def ahead(self, number: int) -> list[Need]:
        coming = self.workload.turns[number + 1 : number + 1 + self.policy.foresight]
        return [need for turn in coming for need in turn.needs]

    def turn(self, turn: WorkTurn, ahead: list[Need]) -> None:
        see = self.observer.see
        gone = self._cross(turn.boundary) if turn.boundary else []
        new = {work.page.id for work in turn.shown}
        for need in turn.needs:
            if need.page.page.id not in new and need.page.page.id in self.pages:
                self._need(need)
        for work in turn.shown:
            self._show(work)
        needs = [need for need in turn.needs if need.page.page.id in self.pages]
        for need in needs:
            if need.page.page.id in new:
                self._need(need)
        for work in turn.repeated:
            if work.page.id in self.pages:
                self._repeat(work)
        for work in turn.dirtied:
            self.dirty[work.page.id] = work
            self.lost.discard(work.page.id)
            see(faults.Dirtied(work.page.id))
        self.levels, short = self.window.fit(turn.shown, needs, ahead, gone)
        self.short += bool(short)
        see(faults.Requested(dict(self.levels), short))
        if turn.boundary and not (self.policy.pins or self.strict):
            for work in self._pinned():
                see(faults.Unpinned(work.page.id))

    def _cross(self, boundary: Boundary) -> list[PageId]:
        """Writes back what the policy writes back, empties the window, and returns the pages that a reset ended."""
        if not (self.policy.pins or self.strict):
            for work in self._pinned():
                if work.page.kind is PageKind.BOOTSTRAP:
                    self.observer.see(faults.Pinned(work.page.id, work.page.kind))
        writes = self.policy.writes_at_reset if boundary is Boundary.RESET else self.policy.writes_at_compaction
        if writes:
            self._write_back(boundary)
        self.lost |= self.dirty.keys()
        self.dirty.clear()
        self.observer.see(faults.Crossed(boundary))
        self.levels = {}
        if boundary is not Boundary.RESET:
            return []
        gone = [page for page, work in self.pages.items() if work.page.kind in _PRIVATE]
        for page in gone:
            del self.pages[page]
        return gone

    def _write_back(self, boundary: Boundary) -> None:
        for page, work in self.dirty.items():
            entry = JournalEntry.of(
                Op.APPEND, "project", work.page.name, "note", {"text": work.page.text}, provenance=[page]
            )
            self.journal.stage(entry)
        for line in flush(self.journal, boundary).committed:
            for page in line.entry.provenance:
                self.committed.add(page)
                self.dirty.pop(page, None)
                self.observer.see(faults.Committed(page))

    def _need(self, need: Need) -> None:
        work = need.page
        page, level = work.page.id, self.levels.get(work.page.id)
        if level is not None and _LEVELS.index(level) <= _LEVELS.index(need.level):
            self.observer.see(faults.Demanded(page, need.level))
        elif page in self.lost:
            pass  # never written back: counted when it was lost, and nothing can bring it
        elif self.policy.resolves:
            self._recall(work)
        elif work.signature and need.same_call:
            self.observer.see(faults.CallReturned(work.signature, page))
        elif page in self.committed:
            self.observer.see(faults.RecallEnded(RecallOutcome.FOUND, RecallOutcome.FOUND, page))
        else:
            self.observer.see(faults.Demanded(page, need.level, resolves=False))

    def _recall(self, work: WorkPage) -> None:
        """Recalls a page from the store by its handle. `recall` itself checks the answer against the hash."""
        answer = recall(self.store.pages, handle_of(work.page.id))
        outcome = outcome_of(answer)
        self.observer.see(faults.RecallEnded(outcome, outcome, work.page.id))
        if outcome is not RecallOutcome.FOUND:
            self.observer.see(faults.Demanded(work.page.id, resolves=False))
        elif getattr(answer, "content", None) != work.page.content:
            self.observer.see(faults.Mismatched(work.page.id, "the handle brought another page"))

    def _show(self, work: WorkPage) -> None:
        page = work.page
        self.pages[page.id] = work
        self.levels[page.id] = ResidencyLevel.FULL
        self.store.pages.put(page.content)
        if work.signature:
            self.observer.see(faults.CallReturned(work.signature, page.id))
            self.memory.remember(_TOOL, _arguments(work), page.id, 0.0, failed=False)
        self.observer.see(faults.PageShown(page.id, page.kind))
        if page.kind in PINNED and not (self.policy.pins or self.strict):
            self.observer.see(faults.Unpinned(page.id))

    def _repeat(self, work: WorkPage) -> None:
        """Repeats a call out of habit: answered from memory, or by its handle if the request lacks the result."""
        page, resolves = work.page.id, self.policy.resolves
        remembered = self.policy.memory and self.memory.recall(_TOOL, _arguments(work), 0.0) == page
        if remembered or (resolves and page not in self.levels):
            self.observer.see(faults.Served(page))
        else:
            self.observer.see(faults.CallReturned(work.signature, page, resolves))

    def _pinned(self) -> Iterable[WorkPage]:
        return [work for work in self.pages.values() if work.page.kind in PINNED]


def _arguments(work: WorkPage) -> dict[str, str]:
    return {"call": work.signature}
