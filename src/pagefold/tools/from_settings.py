"""Turns the user's settings into the registry of tools that the rest of this folder works with."""

from dataclasses import replace

from pagefold.settings.sections import Settings
from pagefold.tools.model import ToolValueModel
from pagefold.tools.registry import ToolRegistry


def registry_of(settings: Settings) -> ToolRegistry:
    """Returns the registry with the user's `[tools.NAME]` tables laid over the learned and the shipped models.

    A `[learned.NAME]` table, which `pagefold tune` writes, only replaces the follow-ups of a tool, and only where the
    user has no `[tools.NAME]` table.
    """
    models = {table.name: ToolValueModel.of(table) for table in settings.tools}
    registry = ToolRegistry(models)
    for table in settings.learned:
        match = registry.find(table.name)
        if table.follow_up is not None and table.name not in models and match is not None:
            models[table.name] = replace(match.model, follow_up=table.follow_up)
    return ToolRegistry(models) if settings.learned else registry
