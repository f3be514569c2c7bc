"""The user's `[tools.NAME]` tables as models.

What a table leaves out is what nobody knows: the type's default, and not what a shipped model of that name says. So an
entry that states no effect states none, and its tool is never run early.
"""

from collections.abc import Iterable
from dataclasses import replace

from pagefold.settings import FollowUp, Settings, ToolTable
from pagefold.tools.model import CostModel, FollowUpLink, SideEffectClass, ToolFieldGroup, ToolValueModel, ValueClass
from pagefold.tools.planner import PrefetchBudget
from pagefold.tools.registry import ToolRegistry


def registry_of(settings: Settings) -> ToolRegistry:
    """Everything known with these settings: the user's entries over what was learned and what ships.

    What tune learned of a tool changes what follows it, and nothing else; the user's own entry is the user's.
    """
    own = models_of(settings.tools)
    registry = ToolRegistry(own)
    for table in settings.learned:
        found = registry.find(table.name)
        if table.follow_up is not None and table.name not in own and found is not None:
            own[table.name] = replace(found.model, follow_up=tuple(map(_link, table.follow_up)))
    return ToolRegistry(own) if settings.learned else registry


def budget_of(settings: Settings) -> PrefetchBudget:
    prefetch = settings.prefetch
    return PrefetchBudget(prefetch.budget_tokens, prefetch.parallel, prefetch.per_host, prefetch.min_probability)


def models_of(tables: Iterable[ToolTable]) -> dict[str, ToolValueModel]:
    return {table.name: _model(table) for table in tables}


def _link(link: FollowUp) -> FollowUpLink:
    return FollowUpLink(
        link.tool,
        link.probability,
        link.projection,
        link.projection_arg,
        link.keep,
        link.constants,
        link.limit,
        link.most,
    )


def _model(table: ToolTable) -> ToolValueModel:
    cost = table.cost_model
    return ToolValueModel(
        value_class=ValueClass(table.value_class or ValueClass.CRITICAL),
        field_groups={
            group.name: ToolFieldGroup(group.fields, group.estimated_value, group.default_include)
            for group in table.field_groups or ()
        },
        cost_model=CostModel(
            1.0 if cost.typical_kb is None else cost.typical_kb,
            cost.max_kb,
            cost.latency_ms_p50,
            cost.dollars,
            cost.freshness_ttl_s,
        ),
        follow_up=tuple(map(_link, table.follow_up or ())),
        invalidates=table.invalidates or (),
        fail_fast_after_n=table.fail_fast_after_n,
        side_effect_class=SideEffectClass(table.side_effect_class or SideEffectClass.INDETERMINATE),
        rate_limit_host=table.rate_limit_host,
        speculate=table.speculate,
        open_world=table.open_world,
        watch=table.watch or (),
        memoise=bool(table.memoise),
    )
