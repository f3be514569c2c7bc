"""Makes constraint, plan and preference pages, and their text at the structured level.

Such a page comes from a call of the library, from one of the agent's context tools, or from a configured instruction
file, and says which. Tool results are never read for one.

A page's content is JSON with the statement (or the goal and the steps), its scope and its source. What cannot be held
is refused with a reason, never shortened.
"""

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, TypeAlias

from pagefold.pages.kinds import PageKind
from pagefold.pages.page import Page

LONGEST = 4_000
"""Characters in one statement, goal or step of the library or the agent. A section of a file is as long as it is."""
MOST_STEPS = 50


class Scope(StrEnum):
    """How far a statement reaches: this conversation, or every one in the project."""

    SESSION = "session"
    PROJECT = "project"


class Producer(StrEnum):
    LIBRARY = "library"
    TOOL = "tool"
    FILE = "file"


@dataclass(frozen=True, slots=True)
class Source:
    """Where a page came from. `name` is the tool, the file with its line, or what the library's caller says."""

    producer: Producer
    name: str = ""

    def __str__(self) -> str:
        """On one line, whatever a file is called."""
        return " ".join([self.producer, *self.name.split()])


LIBRARY = Source(Producer.LIBRARY)


class RefusalReason(StrEnum):
    EMPTY = "empty"
    TOO_LONG = "too_long"
    TOO_MANY = "too_many"
    WRONG_TYPE = "wrong_type"
    UNKNOWN_ARGUMENT = "unknown_argument"
    UNKNOWN_SCOPE = "unknown_scope"
    NO_SUCH_STEP = "no_such_step"
    UNKNOWN_TOOL = "unknown_tool"


@dataclass(frozen=True, slots=True)
class Refused:
    """Nothing was held. `text` is what to tell whoever asked."""

    reason: RefusalReason
    text: str


@dataclass(frozen=True, slots=True)
class Statement:
    """A constraint or a preference."""

    kind: PageKind
    statement: str
    scope: Scope
    source: Source

    @property
    def page(self) -> Page:
        said = {str(self.kind): self.statement, "scope": self.scope, "source": _source(self.source)}
        return Page.of(self.kind, _spelled(said), str(self.source))

    @property
    def structured(self) -> str:
        return f"{self.kind} ({self.scope}, from {self.source}): {self.statement}"


@dataclass(frozen=True, slots=True)
class PinnedPlan:
    """A goal, the steps to it, and at which of them the work is: from 1, or 0 where there are no steps."""

    goal: str
    steps: tuple[str, ...]
    current: int
    source: Source

    @property
    def page(self) -> Page:
        said = {"plan": self.goal, "steps": self.steps, "current": self.current, "source": _source(self.source)}
        return Page.of(PageKind.PLAN, _spelled(said), str(self.source))

    @property
    def step(self) -> str:
        return self.steps[self.current - 1] if self.current else ""

    @property
    def structured(self) -> str:
        """The goal and the current step: what an active plan never goes below."""
        at = f"; step {self.current} of {len(self.steps)}: {self.step}" if self.current else ""
        return f"plan (from {self.source}): {self.goal}{at}"


PinnedItem: TypeAlias = Statement | PinnedPlan


def constrain(statement: str, *, scope: Scope | str = Scope.SESSION, source: Source = LIBRARY) -> Statement | Refused:
    """Makes a rule that every request has to carry."""
    return _stated(PageKind.CONSTRAINT, statement, scope, source)


def prefer(statement: str, *, scope: Scope | str = Scope.PROJECT, source: Source = LIBRARY) -> Statement | Refused:
    """Makes a preference of the user or the project. It may degrade; a constraint may not."""
    return _stated(PageKind.PREFERENCE, statement, scope, source)


def plan(goal: str, steps: Sequence[str] = (), *, current: int = 1, source: Source = LIBRARY) -> PinnedPlan | Refused:
    if refused := _text_refusal("goal", goal):
        return refused
    if len(steps) > MOST_STEPS:
        return Refused(RefusalReason.TOO_MANY, f"A plan has at most {MOST_STEPS} steps; this one has {len(steps)}.")
    for number, step in enumerate(steps, start=1):
        if refused := _text_refusal(f"step {number}", step):
            return refused
    if steps and not 1 <= current <= len(steps):
        return Refused(RefusalReason.NO_SUCH_STEP, f"There is no step {current}: the plan has 1 to {len(steps)}.")
    return PinnedPlan(goal.strip(), tuple(step.strip() for step in steps), current if steps else 0, source)


_LINE = re.compile(r"[^\n]*\n|[^\n]+")
_HEADING = re.compile(r"#{1,6}\s")
_FENCE = re.compile(r" {0,3}(`{3,}|~{3,})")


def constraints_in(text: str, file: str) -> tuple[Statement, ...]:
    """Makes a constraint for the project of each section of an instruction file: all of the text and nothing else.

    A section begins at a heading. Which of its sentences are rules is left to the model.
    """
    constraints = []
    for line, section in _sections(text):
        if section.strip():
            blank = len(section) - len(section.lstrip())
            source = Source(Producer.FILE, f"{file}:{line + section[:blank].count(chr(10))}")
            constraints.append(Statement(PageKind.CONSTRAINT, section.strip(), Scope.PROJECT, source))
    return tuple(constraints)


def held_in(page: Page) -> PinnedItem | None:
    """Parses a page of these kinds; None where no producer made it."""
    try:
        said = json.loads(page.text)
        source = Source(Producer(said["source"]["producer"]), said["source"]["name"])
        if page.kind is PageKind.PLAN:
            held: PinnedItem = PinnedPlan(said["plan"], tuple(said["steps"]), said["current"], source)
        else:
            held = Statement(page.kind, said[page.kind], Scope(said["scope"]), source)
        made = held.page
    except (ValueError, KeyError, TypeError, RecursionError):
        return None
    return held if made == page else None


def structured(page: Page) -> str | None:
    """Returns the structured level of a constraint, preference or plan page; None for any other page."""
    held = held_in(page)
    return None if held is None else held.structured


def _stated(kind: PageKind, statement: str, scope: Scope | str, source: Source) -> Statement | Refused:
    if refused := _text_refusal("statement", statement):
        return refused
    if scope not in Scope.__members__.values():
        return Refused(RefusalReason.UNKNOWN_SCOPE, f"scope {scope!r}: expected one of {', '.join(Scope)}.")
    return Statement(kind, statement.strip(), Scope(scope), source)


def _text_refusal(what: str, text: str) -> Refused | None:
    if not text.strip():
        return Refused(RefusalReason.EMPTY, f"The {what} is empty: there is nothing to hold.")
    if len(text) > LONGEST:
        return Refused(
            RefusalReason.TOO_LONG,
            f"The {what} has {len(text)} characters; at most {LONGEST} are held: say it shorter.",
        )
    return None


def _sections(text: str) -> list[tuple[int, str]]:
    """Cuts the text before every heading, with the line each piece begins at. Fenced code has no headings."""
    pieces: list[tuple[int, list[str]]] = [(1, [])]
    fence = ""
    for number, line in enumerate(_LINE.findall(text), start=1):
        mark = _FENCE.match(line)
        if fence:
            if mark and mark[1].startswith(fence) and not line.strip().strip(fence[0]):
                fence = ""
        elif mark:
            fence = mark[1]
        elif _HEADING.match(line):
            pieces.append((number, []))
        pieces[-1][1].append(line)
    return [(line, "".join(lines)) for line, lines in pieces]


def _source(source: Source) -> dict[str, str]:
    return {"producer": source.producer, "name": source.name}


def _spelled(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)
