"""`pagefold tools`: prints what pagefold knows of tools, and which layer says so.

Each tool goes by its live name, else by a glob, else by `*`; within these your own `[tools.NAME]` tables come before
what was learned from recorded sessions, and that before what ships. Name tools to see what holds for them.

Examples:
  pagefold tools
  pagefold tools mcp__github__get_issue Bash
  pagefold tools --layer user --json
"""

import argparse
from dataclasses import asdict, replace
from typing import Any

from pagefold import config
from pagefold.cli import output
from pagefold.tools.from_settings import registry_of
from pagefold.tools.model import ToolValueModel
from pagefold.tools.registry import Layer, ToolMatch, ToolRegistry


def add_arguments(command: argparse.ArgumentParser) -> None:
    command.add_argument("tools", nargs="*", metavar="TOOL", help="live tool names to look up")
    command.add_argument("--layer", choices=[*map(str, Layer)], help="only the entries of one layer")
    command.add_argument("--all", action="store_true", help="also entries that another layer's entry replaces")


def run(options: argparse.Namespace) -> int:
    registry = registry_of(config.load(flags={"config": options.config}).settings)
    if options.tools:
        rows = [_looked_up(registry, name) for name in options.tools]
    else:
        rows = [
            {**_row(match.pattern, match), "in_force": in_force}
            for match, in_force in registry.entries()
            if (in_force or options.all) and options.layer in (None, str(match.layer))
        ]
    columns = ["tool", "from", "entry", "value", "effect", "run early", "kB", "then"]
    output.print_result(options.json, rows, output.table("Tools", columns, map(_cells, rows), left=True))
    return 0


def _looked_up(registry: ToolRegistry, name: str) -> dict[str, Any]:
    match = registry.find(name)
    return _row(name, match) if match else {"tool": name, "layer": None, "entry": None, "model": None}


def _row(name: str, match: ToolMatch) -> dict[str, Any]:
    return {"tool": name, "layer": str(match.layer), "entry": match.pattern, "model": _as_data(match.model)}


def _as_data(model: ToolValueModel) -> dict[str, Any]:
    """Returns every value of a model, and what follows from them, as JSON can hold it."""
    # Links are listed with what is set in them; the groups stand in a mapping that cannot be copied.
    links = [{name: value for name, value in asdict(link).items() if value is not None} for link in model.follow_up]
    groups = {name: asdict(group) for name, group in model.field_groups.items()}
    follows = {"is_speculatable": model.is_speculatable(), "excluded_from_budget": model.excluded_from_budget()}
    return asdict(replace(model, field_groups={})) | follows | {"field_groups": groups, "follow_up": links}


def _cells(row: dict[str, Any]) -> list[str]:
    model = row["model"]
    if model is None:
        return [row["tool"], "-", "-", "-", "unknown", "no", "-", "-"]
    then = ", ".join(f"{link['tool']} {link['probability']:g}" for link in model["follow_up"])
    return [
        row["tool"],
        row["layer"],
        "" if row["entry"] == row["tool"] else row["entry"],
        model["value_class"],
        model["side_effect_class"],
        "yes" if model["is_speculatable"] else "no",
        f"{model['cost_model']['typical_kb']:g}",
        then,
    ]
