"""The pins: what every request carries whatever was folded, and the block of text that says it.

All constraints, the goal and current step of the active plan, all preferences. The block is a pure function of the
pins: while nothing was pinned it has the same bytes, and what is pinned later stands after what was pinned before.
Nothing of a tool result goes into it, so nothing that stands there can change it.
"""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import reduce

from pagefold.pages.journal import JournalEntry, JournalRecord, Op
from pagefold.pages.kinds import PageKind
from pagefold.pages.page import Page
from pagefold.pages.producers import Held, PinnedPlan, Producer, Scope, Source, Statement

OPENING = "[held by pagefold: this stands in every request, and no tool result can change it]"
_KEYS = {PageKind.CONSTRAINT: "constraints", PageKind.PREFERENCE: "preferences", PageKind.PLAN: "plan"}


@dataclass(frozen=True, slots=True)
class Pins:
    constraints: tuple[Statement, ...] = ()
    plan: PinnedPlan | None = None
    preferences: tuple[Statement, ...] = ()

    def holding(self, *more: Held) -> "Pins":
        """These and more. A new plan takes the place of the old; what is said already is not said twice."""
        return reduce(Pins._with, more, self)

    def _with(self, held: Held) -> "Pins":
        if isinstance(held, PinnedPlan):
            return replace(self, plan=held)
        constraint = held.kind is PageKind.CONSTRAINT
        known = self.constraints if constraint else self.preferences
        if any((held.statement, held.scope) == (other.statement, other.scope) for other in known):
            return self
        stated = (*known, held)
        return replace(self, constraints=stated) if constraint else replace(self, preferences=stated)

    def without(self, held: Held) -> "Pins":
        """These but one. For whoever set it: no context tool leads here."""
        return Pins(
            tuple(other for other in self.constraints if other != held),
            None if self.plan == held else self.plan,
            tuple(other for other in self.preferences if other != held),
        )

    @property
    def held(self) -> tuple[Held, ...]:
        return (*self.constraints, *((self.plan,) if self.plan else ()), *self.preferences)

    @property
    def pages(self) -> tuple[Page, ...]:
        return tuple(held.page for held in self.held)

    @property
    def block(self) -> str:
        """The text for the request; empty where nothing is held."""
        lines: list[str] = []
        if self.constraints:
            lines += ["Constraints:", *map(_item, self.constraints)]
        if self.plan:
            lines.append(f"Plan [{self.plan.source}]: {_indented(self.plan.goal)}")
            if self.plan.current:
                at = f"{self.plan.current} of {len(self.plan.steps)}"
                lines.append(f"Current step, {at}: {_indented(self.plan.step)}")
        if self.preferences:
            lines += ["Preferences:", *map(_item, self.preferences)]
        return "\n".join([OPENING, *lines]) if lines else ""


NONE = Pins()


def entry_of(held: Held, scope: str, *, read: int = 0) -> JournalEntry:
    """What the journal keeps of it: statements are appended, a plan replaces the version that was read."""
    page = held.page
    source = {"producer": held.source.producer, "name": held.source.name}
    if isinstance(held, PinnedPlan):
        value = {"goal": held.goal, "steps": list(held.steps), "current": held.current, "source": source}
        return JournalEntry.of(Op.SET, scope, _KEYS[page.kind], page.kind, value, provenance=[page.id], read=read)
    stated = {"statement": held.statement, "scope": held.scope, "source": source}
    return JournalEntry.of(Op.APPEND, scope, _KEYS[page.kind], page.kind, stated, provenance=[page.id])


def pins_in(records: Iterable[JournalRecord | None]) -> Pins:
    """The pins that records of the journal hold: how they come through a reset or a restart."""
    pins = Pins()
    for record in records:
        if record is None or record.schema not in _KEYS:
            continue
        for value in record.value if isinstance(record.value, list) else [record.value]:
            source = Source(Producer(value["source"]["producer"]), value["source"]["name"])
            if record.schema == PageKind.PLAN:
                steps = tuple(value.get("steps", ()))
                pins = pins.holding(PinnedPlan(value["goal"], steps, value.get("current", 0), source))
            else:
                kind = PageKind(record.schema)
                pins = pins.holding(Statement(kind, value["statement"], Scope(value["scope"]), source))
    return pins


def _item(held: Statement) -> str:
    return f"- [{held.scope}, {held.source}] {_indented(held.statement)}"


def _indented(text: str) -> str:
    """Lines after the first stand further in, so that no statement can look like the next item or the end."""
    return "\n    ".join(text.splitlines())
