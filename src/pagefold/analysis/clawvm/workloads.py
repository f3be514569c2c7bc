"""Generates four families of seeded workloads: what an agent is shown, calls, needs and changes, turn by turn.

They know nothing of policies, and were not adjusted to any policy's outcome. Costs are tokens, as small as the budgets
of the matrix. A workload is a pure function of its family and seed.
"""

import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from pagefold.pages.journal import Boundary
from pagefold.pages.kinds import PageKind, ResidencyLevel
from pagefold.pages.page import Page

FULL, COMPRESSED, STRUCTURED, POINTER = ResidencyLevel
POINTER_COST = 4


@dataclass(frozen=True, slots=True)
class WorkPage:
    """A page with what its levels cost. `signature` is the call that brings it; `utility` and `recompute` its worth."""

    page: Page
    costs: Mapping[ResidencyLevel, int]
    utility: float
    recompute: float
    signature: str = ""


@dataclass(frozen=True, slots=True)
class Need:
    """A page that this turn needs. `same_call`: an agent that finds it gone repeats the call that brought it."""

    page: WorkPage
    level: ResidencyLevel = STRUCTURED
    same_call: bool = True


@dataclass(slots=True)
class WorkTurn:
    """`boundary` comes before everything else in the turn; `repeated` are calls that the agent repeats out of habit."""

    boundary: Boundary | None = None
    shown: list[WorkPage] = field(default_factory=list)
    needs: list[Need] = field(default_factory=list)
    repeated: list[WorkPage] = field(default_factory=list)
    dirtied: list[WorkPage] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Workload:
    family: str
    seed: int
    turns: tuple[WorkTurn, ...]


# Worth by kind: rules before plans, plans before evidence, conversation last.
_UTILITY = {
    PageKind.BOOTSTRAP: 8.0,
    PageKind.CONSTRAINT: 7.0,
    PageKind.PLAN: 6.0,
    PageKind.EVIDENCE: 5.0,
    PageKind.PREFERENCE: 4.0,
    PageKind.CONVERSATION: 2.0,
}
_WHOLE = {
    PageKind.BOOTSTRAP: (24, 36),
    PageKind.CONSTRAINT: (14, 22),
    PageKind.PLAN: (20, 30),
    PageKind.EVIDENCE: (24, 70),
    PageKind.PREFERENCE: (12, 20),
    PageKind.CONVERSATION: (12, 40),
}
_WORDS = (
    "ledger",
    "parser",
    "socket",
    "header",
    "fixture",
    "branch",
    "cursor",
    "budget",
    "schema",
    "kernel",
    "invoice",
    "tenant",
    "metric",
    "region",
    "queue",
)


class _PageMaker:
    """Makes the pages of one workload, each with a running number in its name."""

    def __init__(self, family: str, seed: int) -> None:
        self.dice = random.Random(f"{family} {seed}")  # noqa: S311 - seeded, so that everybody gets the same
        self.family = family
        self.count = 0

    def page(self, kind: PageKind, *, whole: int | None = None) -> WorkPage:
        self.count += 1
        name = f"{self.family}/{kind}-{self.count}"
        size = self.dice.randint(*_WHOLE[kind]) if whole is None else whole
        text = f"{name}: " + " ".join(self.dice.choices(_WORDS, k=size))
        sizes = {
            FULL: size,
            COMPRESSED: max(POINTER_COST + 2, round(size * 0.7)),
            STRUCTURED: max(POINTER_COST + 1, round(size * 0.3)),
            POINTER: POINTER_COST,
        }
        costs = {level: sizes[level] for level in kind.degradation_path()}
        evidence = kind is PageKind.EVIDENCE
        recompute = self.dice.choice([6.0, 8.0, 8.0, 12.0]) if evidence else 0.0
        return WorkPage(Page.of(kind, text, name), costs, _UTILITY[kind], recompute, f"read {name}" if evidence else "")

    def need(self, page: WorkPage) -> Need:
        """Mostly the structured level of a page is enough; now and then nearly all of it is needed."""
        deep = page.page.kind is PageKind.EVIDENCE and self.dice.random() < 0.15
        return Need(page, COMPRESSED if deep else STRUCTURED, same_call=self.dice.random() < 0.7)

    def some(self, pages: list[WorkPage], *, newest: int, old: float) -> WorkPage:
        """Picks one of the newest pages, or with probability `old` any earlier one."""
        if len(pages) > newest and self.dice.random() < old:
            return self.dice.choice(pages[:-newest])
        return self.dice.choice(pages[-newest:])


def multi_session(seed: int) -> Workload:
    """Four sessions of fourteen turns with resets between: plans and preferences outlive them, evidence does not."""
    make = _PageMaker("multi-session", seed)
    held = [make.page(PageKind.BOOTSTRAP), make.page(PageKind.CONSTRAINT)]
    preferences: list[WorkPage] = []
    turns: list[WorkTurn] = []
    for session in range(4):
        evidence: list[WorkPage] = []
        plan = make.page(PageKind.PLAN)
        for number in range(14):
            turn = WorkTurn()
            if number == 0:
                turn.boundary = Boundary.RESET if session else None
                turn.shown += [*(held if not session else []), plan]
                turn.dirtied.append(plan)
            elif number == 7:
                turn.boundary = Boundary.COMPACTION
            evidence.append(make.page(PageKind.EVIDENCE))
            turn.shown += [evidence[-1], make.page(PageKind.CONVERSATION)]
            turn.needs.append(make.need(make.some(evidence, newest=3, old=0.4)))
            if number % 4 == 3:
                turn.needs.append(Need(plan))
                turn.dirtied.append(plan)
            if number == 9:
                preferences.append(make.page(PageKind.PREFERENCE))
                turn.shown.append(preferences[-1])
                turn.dirtied.append(preferences[-1])
            if number == 3 and preferences:
                turn.needs.append(Need(make.dice.choice(preferences), POINTER))
            if make.dice.random() < 0.2:
                turn.repeated.append(make.dice.choice(evidence))
            turns.append(turn)
    return Workload(make.family, seed, tuple(turns))


def tool_loop(seed: int) -> Workload:
    """Sixty turns of calls on one task, many of them the same again, with a compaction every fifteen."""
    make = _PageMaker("tool-loop", seed)
    held = [make.page(PageKind.BOOTSTRAP), make.page(PageKind.CONSTRAINT), make.page(PageKind.PLAN)]
    evidence: list[WorkPage] = []
    turns: list[WorkTurn] = []
    for number in range(60):
        turn = WorkTurn(Boundary.COMPACTION if number and number % 15 == 0 else None)
        if number == 0:
            turn.shown += held
        if not evidence or make.dice.random() < 0.75:
            evidence.append(make.page(PageKind.EVIDENCE))
            turn.shown.append(evidence[-1])
        for _ in range(make.dice.choice([1, 1, 2])):
            turn.needs.append(make.need(make.some(evidence, newest=4, old=0.35)))
        if make.dice.random() < 0.3:
            turn.repeated.append(make.some(evidence, newest=6, old=0.3))
        if number % 10 == 4:
            turn.needs.append(Need(held[2]))
            turn.dirtied.append(held[2])
        if number % 3 == 1:
            turn.shown.append(make.page(PageKind.CONVERSATION))
        turns.append(turn)
    return Workload(make.family, seed, tuple(turns))


def requirements(seed: int) -> Workload:
    """Requirement documents as constraints, amended now and then, while results come and go around them."""
    make = _PageMaker("requirements", seed)
    documents = [make.page(PageKind.CONSTRAINT) for _ in range(3)]
    held = [make.page(PageKind.BOOTSTRAP), *documents]
    evidence: list[WorkPage] = []
    notes: list[WorkPage] = []
    turns: list[WorkTurn] = []
    for number in range(48):
        turn = WorkTurn(Boundary.COMPACTION if number and number % 12 == 0 else None)
        if number == 0:
            turn.shown += held
        for _ in range(make.dice.choice([1, 1, 2])):
            evidence.append(make.page(PageKind.EVIDENCE))
            turn.shown.append(evidence[-1])
        turn.needs.append(make.need(make.some(evidence, newest=2, old=0.5)))
        if number % 8 == 5:
            notes.append(make.page(PageKind.PREFERENCE))
            turn.shown.append(notes[-1])
            turn.dirtied.append(notes[-1])
        if number % 8 == 2:
            turn.dirtied.append(make.dice.choice(documents))
        if notes and make.dice.random() < 0.2:
            turn.needs.append(Need(make.dice.choice(notes), POINTER))
        if make.dice.random() < 0.15:
            turn.repeated.append(make.some(evidence, newest=5, old=0.5))
        turns.append(turn)
    return Workload(make.family, seed, tuple(turns))


def adversarial(seed: int) -> Workload:
    """Starvation, churn and a cascade of resets, one after the other."""
    make = _PageMaker("adversarial", seed)
    held = [make.page(PageKind.BOOTSTRAP), make.page(PageKind.CONSTRAINT), make.page(PageKind.PLAN)]
    first = [make.page(PageKind.EVIDENCE, whole=24) for _ in range(3)]
    turns = [WorkTurn(shown=[*held, *first], needs=[Need(first[0])])]
    # Starvation: what is large and new floods the window, and what was small and early is needed after all.
    for number in range(16):
        turn = WorkTurn(Boundary.COMPACTION if number == 8 else None)
        turn.shown.append(make.page(PageKind.EVIDENCE, whole=make.dice.randint(60, 110)))
        turn.shown.append(make.page(PageKind.CONVERSATION, whole=40))
        if number % 3 == 2:
            turn.needs.append(make.need(make.dice.choice(first)))
        turns.append(turn)
    # Churn: around and around a ring of pages that is larger than the window, the worst for whoever keeps the newest.
    ring = [make.page(PageKind.EVIDENCE) for _ in range(12)]
    turns.append(WorkTurn(shown=list(ring)))
    for number in range(24):
        turn = WorkTurn(needs=[Need(ring[number % len(ring)], same_call=number % 2 == 0)])
        if number % 6 == 5:
            turn.repeated.append(ring[(number + 6) % len(ring)])
        turns.append(turn)
    # Cascade: dirty pages, a compaction, a reset and another, with hardly a turn between.
    for boundary in (Boundary.COMPACTION, Boundary.RESET, Boundary.COMPACTION, Boundary.RESET):
        note = make.page(PageKind.PREFERENCE)
        turns.append(WorkTurn(shown=[note], dirtied=[note, held[2]], needs=[Need(held[2])]))
        turns.append(WorkTurn(boundary, needs=[Need(note, POINTER)]))
    return Workload(make.family, seed, tuple(turns))


FAMILIES: Mapping[str, Callable[[int], Workload]] = {
    "multi-session": multi_session,
    "tool-loop": tool_loop,
    "requirements": requirements,
    "adversarial": adversarial,
}
BUDGETS = (120, 180, 240, 300, 380, 500)
SEEDS = (1, 2, 3)
