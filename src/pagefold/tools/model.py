"""The value model of one tool: value, cost, side effects, what it invalidates, and what usually follows.

What nobody stated is taken the careful way: an effect that is not stated is indeterminate, and a tool of which nobody
said that it stays on this machine may reach the network. `is_speculatable` only looks at the effect; whether a call may
in fact be run early is decided in one place, `prefetch.may_dispatch`.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from enum import StrEnum
from types import MappingProxyType

from pagefold.settings.tools import FollowUpLink, ToolFieldGroup, ToolTable


class ValueClass(StrEnum):
    """How much an answer matters. Calls that are only for the record are left out of every budget."""

    CRITICAL = "critical"
    SUPPORTING = "supporting"
    OPTIONAL = "optional"
    AUDIT_ONLY = "audit_only"


class SideEffectClass(StrEnum):
    """What running a tool does.

    Pure: changes nothing, and gives the same answer until something is written. Read-only: changes nothing, but its
    answer may change by itself.
    """

    PURE = "pure"
    READ_ONLY = "read_only"
    MUTATES_LOCAL = "mutates_local"
    MUTATES_EXTERNAL = "mutates_external"
    INDETERMINATE = "indeterminate"


READING = frozenset({SideEffectClass.PURE, SideEffectClass.READ_ONLY})

FRESH_SECONDS = 60
"""How long an answer from beyond this machine stays fresh where its model says nothing."""


@dataclass(frozen=True, slots=True)
class CostModel:
    """What an answer costs. A kB is 1,024 bytes. The figures are estimates."""

    typical_kb: float = 1.0
    max_kb: float | None = None
    latency_ms_p50: int | None = None
    dollars: float | None = None
    freshness_ttl_s: int | None = None


@dataclass(frozen=True, slots=True)
class ToolValueModel:
    """What is known about one tool.

    `open_world` tells whether it reaches beyond this machine (None: nobody said), `watch` which arguments name the
    files that its answer is made of, `memoise` whether a repeated call may be answered without running it.
    """

    value_class: ValueClass = ValueClass.CRITICAL
    field_groups: Mapping[str, ToolFieldGroup] = field(default_factory=lambda: MappingProxyType({}))
    cost_model: CostModel = field(default_factory=CostModel)
    follow_up: tuple[FollowUpLink, ...] = ()
    invalidates: tuple[str, ...] = ()
    fail_fast_after_n: int | None = None
    side_effect_class: SideEffectClass = SideEffectClass.INDETERMINATE
    rate_limit_host: str | None = None
    speculate: bool | None = None
    open_world: bool | None = None
    watch: tuple[str, ...] = ()
    memoise: bool = False

    @classmethod
    def of(cls, table: ToolTable) -> "ToolValueModel":
        """Returns the model that a `[tools.NAME]` table describes. What the table leaves out has the type's default."""
        given = {item.name: value for item in fields(table) if (value := getattr(table, item.name)) is not None}
        del given["name"]
        costs = {item.name: getattr(table.cost_model, item.name) for item in fields(table.cost_model)}
        return cls(
            **given
            | {
                "value_class": ValueClass(table.value_class or ValueClass.CRITICAL),
                "side_effect_class": SideEffectClass(table.side_effect_class or SideEffectClass.INDETERMINATE),
                "field_groups": dict(table.field_groups or ()),
                "cost_model": CostModel(**{name: cost for name, cost in costs.items() if cost is not None}),
            }
        )

    def is_speculatable(self) -> bool:
        """Tells whether its effect allows running it early. No setting allows that for a tool that may write."""
        return self.side_effect_class in READING and self.speculate is not False

    def excluded_from_budget(self) -> bool:
        return self.value_class is ValueClass.AUDIT_ONLY

    def is_local(self) -> bool:
        """Tells whether somebody stated that it stays on this machine."""
        return self.open_world is False

    def freshness_seconds(self) -> float | None:
        """Returns how long an answer may wait before it is old; None where only a write makes it old."""
        ttl = self.cost_model.freshness_ttl_s
        return FRESH_SECONDS if ttl is None and not self.is_local() else ttl
