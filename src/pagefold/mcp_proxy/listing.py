"""The list of tools as the client gets it: the servers' own, smaller where that is asked for, and ours behind them.

A tool that is not changed stays as the bytes that came. A name that a server has already is the server's.
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
"""What the instructions of a server say of us."""

STRUCTURED_ALONE = frozenset({"claude-code", "codex-mcp-client"})
"""Clients that show their model `structuredContent` and not the texts beside it, by the names they give themselves."""


@dataclass(frozen=True, slots=True)
class ToolListing:
    """`slim` makes a page of tools smaller; `whole` then keeps what the server said, by name."""

    slim: Callable[[Sequence[Any]], list[Any]] | None = None
    tools: Sequence[ContextTool] = CONTEXT_TOOLS
    whole: dict[str, str] = field(default_factory=dict)
    with_parameters: Callable[[Any], tuple[Any, dict[str, str]]] | None = None
    wanted: Sequence[str] = ()
    """Patterns of the tools that get parameters of ours."""
    names: dict[str, dict[str, str]] = field(default_factory=dict)
    """By which names each tool has them."""

    def __call__(self, result: str, page: ListPage) -> str:
        """The result of `tools/list` as JSON text, changed."""
        start, end = json_text.find(result, ("tools",))
        spots = json_text.elements(result, start)
        given = [spot.value for spot in spots]
        wanted = given if self.slim is None else self.slim(given)
        changes = [
            (spot.start, spot.end, json_text.dumps(less))
            for spot, less in zip(spots, (self._with_ours(_without_twin(tool, page)) for tool in wanted), strict=True)
            if less != spot.value
        ]
        if self.slim is not None:
            self.whole.update((named(spot.value), result[spot.start : spot.end]) for spot in spots)
        if page.last:
            taken = {named(tool) for tool in given}
            ours = ",".join(described(tool) for tool in self.tools if tool.name not in taken)
            changes.append((end - 1, end - 1, "," + ours if spots and ours else ours))
        return json_text.splice(result, changes)

    def _with_ours(self, tool: Any) -> Any:
        name = named(tool)
        if self.with_parameters is None or not any(fnmatchcase(name, pattern) for pattern in self.wanted):
            return tool
        schema, self.names[name] = self.with_parameters(tool.get("inputSchema"))
        return {**tool, "inputSchema": schema}


def named(tool: Any) -> str:
    return as_string(as_object(tool).get("name"))


def _without_twin(tool: Any, page: ListPage) -> Any:
    """Where the client gets a text in place of `structuredContent`, no schema asks for that."""
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
