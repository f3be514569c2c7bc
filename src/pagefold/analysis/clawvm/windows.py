"""Chooses what a request holds under a budget, by this package's selection or the paper's one-pass greedy selector."""

from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from typing import Protocol

from pagefold.analysis.clawvm.policies import PolicyFlags, Score
from pagefold.analysis.clawvm.workloads import Need, WorkPage
from pagefold.derive.selection import Candidate, Offer, Reason, floor_at, select
from pagefold.pages.kinds import PageKind, ResidencyLevel
from pagefold.pages.page import PageId

PINNED = (PageKind.BOOTSTRAP, PageKind.CONSTRAINT)
_LEVELS = tuple(ResidencyLevel)
_SHARES = (1.0, 0.9, 0.6, 0.2)  # of a page's worth at each level
_DECAY = 0.88
_FAINT = 1e-4

Levels = dict[PageId, ResidencyLevel]


class Window(Protocol):
    def fit(
        self, shown: Sequence[WorkPage], needs: Sequence[Need], ahead: Sequence[Need], gone: Iterable[PageId]
    ) -> tuple[Levels, Collection[PageId]]:
        """Returns the pages of the next request with their levels, and the required pages that did not fit."""
        ...


def window(policy: PolicyFlags, budget: int) -> Window:
    return SelectionWindow(policy, budget) if policy.exact else GreedyWindow(policy, budget)


class SelectionWindow:
    """Chooses by the selection that also makes the fold. Values fade alike; a need adds a page's value anew."""

    def __init__(self, policy: PolicyFlags, budget: int) -> None:
        self.policy = policy
        self.budget = budget
        self.pages: dict[PageId, WorkPage] = {}
        self.weights: dict[PageId, float] = {}

    def fit(
        self, shown: Sequence[WorkPage], needs: Sequence[Need], ahead: Sequence[Need], gone: Iterable[PageId]
    ) -> tuple[Levels, Collection[PageId]]:
        del ahead
        for page in gone:
            self.pages.pop(page, None)
        self.weights = {page: self.weights[page] * _DECAY for page in self.pages}
        for work in shown:
            self.pages.pop(work.page.id, None)
            self.pages[work.page.id] = work
            self.weights[work.page.id] = 1.0
        needed: dict[PageId, ResidencyLevel] = {}
        for need in needs:
            page = need.page.page.id
            if page in self.pages:
                self.weights[page] += 1.0
                needed[page] = min(need.level, needed.get(page, need.level), key=_place)
        candidates = [self._candidate(work, needed.get(page)) for page, work in self.pages.items()]
        selected = select(candidates, self.budget)
        short = {one.page for one in selected.refusals if one.reason is Reason.PHYSICAL_INSUFFICIENCY}
        levels = {page: offer.level for page, offer in zip(self.pages, selected.offers, strict=True) if offer}
        return levels, {page for page in self.pages if page in short}

    def _candidate(self, work: WorkPage, needed: ResidencyLevel | None) -> Candidate:
        worth = 0.0 if self.policy.score is Score.NONE else work.utility + 0.4 * work.recompute
        worth *= self.weights[work.page.id]
        kind = work.page.kind
        offers = tuple(
            Offer(level, cost, worth * _SHARES[_place(level)])
            for level, cost in work.costs.items()
            if self.policy.pointers or level is not ResidencyLevel.POINTER
        )
        pinned = kind.min_fidelity() if self.policy.pins and kind in PINNED else None
        wanted = [level for level in (needed, pinned) if level is not None]
        floor = floor_at(offers, min(wanted, key=_place)) if wanted else None
        return Candidate(work.page.id, offers, floor, kind)


class GreedyWindow:
    """The paper's selector: required pages, then pointers, then one pass over all upgrades by score a token."""

    def __init__(self, policy: PolicyFlags, budget: int) -> None:
        self.policy = policy
        self.budget = budget
        self.pages: dict[PageId, WorkPage] = {}
        self.recency: dict[PageId, float] = {}

    def fit(
        self, shown: Sequence[WorkPage], needs: Sequence[Need], ahead: Sequence[Need], gone: Iterable[PageId]
    ) -> tuple[Levels, Collection[PageId]]:
        for page in gone:
            self.pages.pop(page, None)
            self.recency.pop(page, None)
        self.recency = {page: recency * _DECAY for page, recency in self.recency.items() if recency > _FAINT}
        for work in [*shown, *(need.page for need in needs)]:
            self.pages[work.page.id] = work
            self.recency[work.page.id] = self.recency.get(work.page.id, 0.0) + 1.0
        levels: Levels = {}
        left, short = self._require(levels, needs)
        if self.policy.pointers:
            left = self._point(levels, left)
        if self.policy.score is not Score.NONE:
            self._upgrade(levels, left, Counter(need.page.page.id for need in ahead))
        return levels, short

    def _require(self, levels: Levels, needs: Sequence[Need]) -> tuple[int, set[PageId]]:
        wanted: dict[PageId, int] = {}
        if self.policy.pins:
            pinned = (work for work in self.pages.values() if work.page.kind in PINNED)
            wanted = {work.page.id: _place(work.page.kind.min_fidelity()) for work in pinned}
        for need in needs:
            page, least = need.page.page, _place(need.page.page.kind.min_fidelity())
            wanted[page.id] = min(wanted.get(page.id, least), _place(need.level), least)
        left, short = self.budget, set()
        for page_id in sorted(wanted, key=self._rank):
            costs = self.pages[page_id].costs
            level = next(level for level in reversed(_LEVELS[: wanted[page_id] + 1]) if level in costs)
            if costs[level] <= left:
                levels[page_id] = level
                left -= costs[level]
            else:
                short.add(page_id)
        return left, short

    def _point(self, levels: Levels, left: int) -> int:
        absent = [work for page, work in self.pages.items() if page not in levels]
        for work in sorted(absent, key=lambda work: (work.recompute, work.utility), reverse=True):
            cost = work.costs.get(ResidencyLevel.POINTER)
            if cost is not None and cost <= left:
                levels[work.page.id] = ResidencyLevel.POINTER
                left -= cost
        return left

    def _upgrade(self, levels: Levels, left: int, ahead: Counter[PageId]) -> None:
        steps = []
        for page, work in self.pages.items():
            worth = self._score(work, ahead)
            below: ResidencyLevel | None = None
            for above in reversed(work.page.kind.degradation_path()):
                cost = work.costs[above] - (work.costs[below] if below else 0)
                if cost > 0:
                    steps.append((worth / cost, page, -_place(above), cost, below, above))
                below = above
        steps.sort(key=lambda step: step[:3], reverse=True)
        for _, page, _, cost, below, above in steps:
            if levels.get(page) is below and cost <= left:
                levels[page] = above
                left -= cost

    def _score(self, work: WorkPage, ahead: Counter[PageId]) -> float:
        recency = self.recency.get(work.page.id, 0.0)
        if self.policy.score is Score.LRU:
            return recency
        if self.policy.score is Score.RECENCY:
            return work.utility + 0.9 * recency + 0.1 * work.recompute
        pin = 2.0 if work.page.kind in PINNED else 0.0
        return work.utility + pin + 0.6 * recency + 0.4 * work.recompute + 2.2 * ahead[work.page.id]

    def _rank(self, page: PageId) -> tuple[int, float, PageId]:
        work = self.pages[page]
        order = PINNED.index(work.page.kind) if work.page.kind in PINNED else len(PINNED)
        return order, -work.utility, page


def _place(level: ResidencyLevel) -> int:
    return _LEVELS.index(level)
