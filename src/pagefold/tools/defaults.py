"""Reads the tool models that ship with pagefold: shipped.toml and learned.toml beside this module.

Both files write a tool as a user does in `[tools.NAME]`. The shipped models are priors taken from a large corpus; the
learned ones come from recorded sessions. They are kept apart, so that a listing can say which is which.
"""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from pagefold.package_data import package_toml
from pagefold.settings.knobs import tool_tables
from pagefold.settings.tools import ToolCost, ToolTable
from pagefold.tools.model import ToolValueModel

# No recording has times: a call on this machine is taken to be as slow as Read, one elsewhere as WebFetch.
_LOCAL_MS, _REMOTE_MS = 50, 800


def default_tool_value_models() -> dict[str, ToolValueModel]:
    """Returns the seventeen shipped models by tool name, as a mapping that the caller may change."""
    content = package_toml(__package__, "shipped.toml")
    return {table.name: ToolValueModel.of(table) for table in tool_tables(content["tools"])}


def learned_tool_value_models() -> dict[str, ToolValueModel]:
    """Returns the learned models by tool name, as a mapping that the caller may change.

    MCP tools are named `mcp__server__tool`.
    """
    content = package_toml(__package__, "learned.toml")
    tables = {table.name: table for server in content["servers"] for table in _server_tools(server)}
    for table in tool_tables(content["tools"]):
        line = tables.get(table.name)
        tables[table.name] = replace(line, watch=table.watch, follow_up=table.follow_up) if line else table
    return {name: ToolValueModel.of(table) for name, table in tables.items()}


def _server_tools(server: Mapping[str, Any]) -> Iterator[ToolTable]:
    """Yields the tools of a `[[servers]]` entry as the tables that a user would have written for them."""
    host = server.get("host")
    latency = _LOCAL_MS if host is None else _REMOTE_MS
    for name in server["names"]:
        for tool, (effect, *sizes) in server["tools"].items():
            typical, largest = sizes or (None, None)
            yield ToolTable(
                name=f"mcp__{name}__{tool}",
                value_class="supporting",
                side_effect_class=effect,
                open_world=host is not None,
                rate_limit_host=host or None,
                cost_model=ToolCost(typical_kb=typical, max_kb=largest, latency_ms_p50=latency),
            )
