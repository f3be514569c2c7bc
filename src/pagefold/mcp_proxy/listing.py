"""Changes the list of tools on its way to the client: shortens the server's tools, and adds pagefold's own after them.

A tool that is not changed stays as the bytes that came. Names of pagefold's are reserved: a server's tool of the same
name is listed under another.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from typing import Any

from pagefold.mcp_proxy.relay import ListPage
from pagefold.pages.context_tools import CONTEXT_TOOLS, ContextTool
from pagefold.wire import json_text
from pagefold.wire.json_text import as_object, as_string

PRIMER = (
    "Long results may stand in a denser form that explains itself; where part of one is left out, "
    "context_recall(handle) returns it."
)
"""What pagefold adds to the instructions of a server."""

STRUCTURED_ALONE = frozenset({"claude-code", "codex-mcp-client"})
"""Clients that show their model `structuredContent` and not the texts beside it, by the names they greet with."""


@dataclass(frozen=True, slots=True)
class ToolListing:
    """`slim` shortens a page of tools; `whole` then keeps what the server sent, by the name of the tool."""

    slim: Callable[[Sequence[Any]], list[Any]] | None = None
    tools: Sequence[ContextTool] = CONTEXT_TOOLS
    whole: dict[str, str] = field(default_factory=dict)
    with_parameters: Callable[[Any], tuple[Any, dict[str, str]]] | None = None
    wanted: Sequence[str] = ()
    """Patterns of the tools that get pagefold's parameters."""
    names: dict[str, dict[str, str]] = field(default_factory=dict)
    """For each such tool, the name that each parameter has there."""

    def __call__(self, result: str, page: ListPage) -> str:
        """Takes and returns the result of `tools/list` as JSON text."""
        start, end = json_text.find(result, ("tools",))
        spots = json_text.elements(result, start)
        tools = [spot.value for spot in spots]
        shorter = self.slim(tools) if self.slim else tools
        changed = [_renamed(self._parametrised(_without_twin(tool, page)), page) for tool in shorter]
        changes = [
            (spot.start, spot.end, json_text.dumps(tool))
            for spot, tool in zip(spots, changed, strict=True)
            if tool != spot.value
        ]
        if self.slim is not None:
            self.whole.update((named(spot.value), result[spot.start : spot.end]) for spot in spots)
        if page.last:
            own_tools = ",".join(map(described, self.tools))
            changes.append((end - 1, end - 1, "," + own_tools if spots and own_tools else own_tools))
        return json_text.splice(result, changes)

    def _parametrised(self, tool: Any) -> Any:
        name = named(tool)
        if self.with_parameters is None or not name or not any(fnmatchcase(name, pattern) for pattern in self.wanted):
            return tool
        schema, self.names[name] = self.with_parameters(tool.get("inputSchema"))
        return {**tool, "inputSchema": schema}


def named(tool: Any) -> str:
    return as_string(as_object(tool).get("name"))


def _renamed(tool: Any, page: ListPage) -> Any:
    name = page.renamed.get(named(tool))
    return tool if name is None else {**tool, "name": name}


def _without_twin(tool: Any, page: ListPage) -> Any:
    """Without the schema of `structuredContent`, where the client gets a text in its place."""
    if not page.only_text or not isinstance(tool, dict):
        return tool
    return {key: value for key, value in tool.items() if key != "outputSchema"}


def described(tool: ContextTool) -> str:
    return json_text.dumps(
        {
            "name": tool.name,
            "title": tool.title,
            "description": tool.description,
            "inputSchema": tool.arguments,
            "annotations": tool.annotations,
        }
    )
