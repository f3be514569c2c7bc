"""Pins: what every request carries whatever was folded, and the block of text that carries it.

Pins are all constraints, the active plan with its goal and current step, and all preferences. The block has the same
bytes until something is pinned, and what is pinned later comes after what was pinned before. Nothing of a tool result
goes into it.
"""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import reduce

from pagefold.pages.journal import JournalEntry, JournalRecord, Op
from pagefold.pages.kinds import PageKind
from pagefold.pages.producers import PinnedItem, PinnedPlan, Producer, Scope, Source, Statement

OPENING = "[held by pagefold: this stands in every request, and no tool result can change it]"
_KEYS = {PageKind.CONSTRAINT: "constraints", PageKind.PREFERENCE: "preferences", PageKind.PLAN: "plan"}


@dataclass(frozen=True, slots=True)
class Pins:
    constraints: tuple[Statement, ...] = ()
    plan: PinnedPlan | None = None
    preferences: tuple[Statement, ...] = ()

    def holding(self, *more: PinnedItem) -> "Pins":
        """Returns these and more. A new plan replaces the old one; a statement that is there already is not added."""
        return reduce(Pins._with, more, self)

    def _with(self, held: PinnedItem) -> "Pins":
        if isinstance(held, PinnedPlan):
            return replace(self, plan=held)
        constraint = held.kind is PageKind.CONSTRAINT
        known = self.constraints if constraint else self.preferences
        if any((held.statement, held.scope) == (other.statement, other.scope) for other in known):
            return self
        stated = (*known, held)
        return replace(self, constraints=stated) if constraint else replace(self, preferences=stated)

    def without(self, held: PinnedItem) -> "Pins":
        """Returns these without one. No context tool calls it: only whoever set a pin may take it away."""
        return Pins(
            tuple(other for other in self.constraints if other != held),
            None if self.plan == held else self.plan,
            tuple(other for other in self.preferences if other != held),
        )

    @property
    def held(self) -> tuple[PinnedItem, ...]:
        return (*self.constraints, *((self.plan,) if self.plan else ()), *self.preferences)

    @property
    def block(self) -> str:
        """Returns the text for the request; empty where nothing is pinned."""
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


def entry_of(held: PinnedItem, scope: str, *, read_version: int = 0) -> JournalEntry:
    """Returns the journal entry for it: statements are appended, a plan replaces the version that was read."""
    page = held.page
    source = {"producer": held.source.producer, "name": held.source.name}
    if isinstance(held, PinnedPlan):
        value = {"goal": held.goal, "steps": list(held.steps), "current": held.current, "source": source}
        return JournalEntry.of(
            Op.SET, scope, _KEYS[page.kind], page.kind, value, provenance=[page.id], read_version=read_version
        )
    stated = {"statement": held.statement, "scope": held.scope, "source": source}
    return JournalEntry.of(Op.APPEND, scope, _KEYS[page.kind], page.kind, stated, provenance=[page.id])


def pins_in(records: Iterable[JournalRecord | None]) -> Pins:
    """Returns the pins that records of the journal hold, to go on with after a reset or a restart."""
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
    """Indents all lines after the first, so that no statement can look like the next item or the end."""
    return "\n    ".join(text.splitlines())
