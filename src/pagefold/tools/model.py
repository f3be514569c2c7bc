"""What is known about one tool: worth, cost, what it invalidates, what usually follows, and what running it does.

A model is a value without behaviour beyond telling its own facts. It promises that what nobody stated is the careful
answer: an effect that is not stated is indeterminate, and a reach that is not stated counts as the network.
`is_speculatable` tells the class and never more than the class; whether a call may in fact be run early is decided
in one place only, `prefetch.may_dispatch`.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from types import MappingProxyType

MAX_PROJECTIONS_PER_LINK = 3


class ValueClass(StrEnum):
    """How much an answer matters. What is only for the record is kept out of every budget."""

    CRITICAL = "critical"
    SUPPORTING = "supporting"
    OPTIONAL = "optional"
    AUDIT_ONLY = "audit_only"


class SideEffectClass(StrEnum):
    """What running a tool does. Pure: the same answer until something is written. Read-only: changes nothing itself."""

    PURE = "pure"
    READ_ONLY = "read_only"
    MUTATES_LOCAL = "mutates_local"
    MUTATES_EXTERNAL = "mutates_external"
    INDETERMINATE = "indeterminate"


READING = frozenset({SideEffectClass.PURE, SideEffectClass.READ_ONLY})


@dataclass(frozen=True, slots=True)
class ToolFieldGroup:
    """Fields of an answer that are wanted, or dropped, together."""

    fields: tuple[str, ...] = ()
    estimated_value: float = 0.5
    default_include: bool = True


@dataclass(frozen=True, slots=True)
class CostModel:
    """What an answer costs. A kB is 1,024 bytes; the numbers are priors that logs refine."""

    typical_kb: float = 1.0
    max_kb: float | None = None
    latency_ms_p50: int | None = None
    dollars: float | None = None
    freshness_ttl_s: int | None = None


@dataclass(frozen=True, slots=True)
class FollowUpLink:
    """A call that often comes next, and how its arguments follow from the one before.

    `projection` names what is looked for in the answer (see `projection`), `projection_arg` the argument it becomes.
    `keep` are arguments taken over from the call before, `constants` are the same every time. `limit` bounds how many
    calls one answer leads to, and `most` how many an answer may offer at all: of a long list nobody knows which.
    """

    tool: str = ""
    probability: float = 0.5
    projection: str | None = None
    projection_arg: str | None = None
    keep: tuple[str, ...] = ()
    constants: tuple[tuple[str, str | int | float | bool], ...] = ()
    limit: int = MAX_PROJECTIONS_PER_LINK
    most: int | None = None


@dataclass(frozen=True, slots=True)
class ToolValueModel:
    """One tool. Beyond the priors: `open_world` says whether it reaches beyond this machine (None: nobody said),
    `watch` which arguments name the files that its answer is made of, `memoise` whether a repeat may be answered
    without running it.
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
    def audit_only(cls) -> "ToolValueModel":
        """A tool whose calls are for the record: outside every budget, and of unknown effect."""
        return cls(value_class=ValueClass.AUDIT_ONLY)

    def is_speculatable(self) -> bool:
        """Whether its class allows running it early. No setting makes a tool that writes, or may write, one of them."""
        return self.side_effect_class in READING and self.speculate is not False

    def excluded_from_budget(self) -> bool:
        return self.value_class is ValueClass.AUDIT_ONLY

    def is_local(self) -> bool:
        """Whether it was stated that it stays on this machine."""
        return self.open_world is False
