"""Which model is in force for a live tool name, and which layer it comes from.

A live name first, then a glob (the one that spells out most), then `*`; within each of these the user's layer before
the learned one before the shipped one. A user's entry replaces an entry of its name as a whole. So a broad glob of the
user never speaks over what is known of one tool by its name.

Agents spell the tool T of the MCP server S in their own ways (`mcp__S__T`, `S-T`, `S_T`, `S.T`, `S/T`); entries are
kept under the first, and the others are known as the same tool.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from fnmatch import fnmatchcase
from functools import cache

from pagefold.tools.defaults import default_tool_value_models, learned_tool_value_models
from pagefold.tools.model import ToolValueModel

_SEPARATORS = ("-", "_", ".", "/", "__")
_MCP = re.compile(r"mcp__(.+?)__(.+)")
_REMEMBERED = 4096


class Layer(StrEnum):
    SHIPPED = "shipped"
    LEARNED = "learned"
    USER = "user"


@dataclass(frozen=True, slots=True)
class ToolMatch:
    """The model in force for a tool, the entry it was found under, and that entry's layer."""

    model: ToolValueModel
    layer: Layer
    pattern: str

    @property
    def by_name(self) -> bool:
        """Whether the entry names the tool, and not one of many by a glob."""
        return not _is_glob(self.pattern)

    @property
    def for_every_tool(self) -> bool:
        """Whether the entry's name spells out nothing: such an entry says what no tool does."""
        return self.pattern.strip("*?[]!-_. ") == ""


@dataclass(frozen=True, slots=True)
class ListedTool:
    """A line of the listing: what an entry says, and whether another layer's entry of its name stands in its place."""

    name: str
    layer: Layer
    model: ToolValueModel
    in_force: bool


class ToolRegistry:
    """The layers as one table. Looking a name up a second time costs nothing."""

    def __init__(self, user: Mapping[str, ToolValueModel] | None = None, *, learned: bool = True) -> None:
        own = {name: ToolMatch(model, Layer.USER, name) for name, model in (user or {}).items()}
        below = _below(learned)
        self._layers: Sequence[Mapping[str, ToolMatch]] = (own, *below)
        self._exact: dict[str, ToolMatch] = {**_by_name(learned)}
        self._exact.update((name, found) for name, found in own.items() if found.by_name)
        self._spelled: dict[str, tuple[str, str]] = {**_spellings(learned)}
        for name, found in own.items():
            if found.by_name:
                self._spelled.update(_spelled_otherwise(name))
        # Entries that spell out more come first, `*` last; the sort is stable, so a nearer layer stays before.
        globs = [found for layer in self._layers for found in layer.values() if not found.by_name]
        self._globs = sorted(globs, key=lambda found: -len(re.sub(r"[*?]|\[.*?\]", "", found.pattern)))
        self._seen: dict[str, ToolMatch | None] = {}

    def find(self, tool: str) -> ToolMatch | None:
        """The model in force, or None where no entry matches, not even `*`."""
        if tool not in self._seen:
            if len(self._seen) >= _REMEMBERED:
                self._seen.clear()
            self._seen[tool] = self._looked_up(tool)
        return self._seen[tool]

    def _looked_up(self, tool: str) -> ToolMatch | None:
        if tool in self._exact:
            return self._exact[tool]
        if tool in self._spelled:
            return self._exact[self._spelled[tool][0]]
        return next((found for found in self._globs if fnmatchcase(tool, found.pattern)), None)

    def next_tool(self, tool: str, following: str) -> str:
        """The live name of a tool that a link of `tool` names, spelled the way that `tool` is spelled."""
        spelled = self._spelled.get(tool)
        parts = _MCP.fullmatch(following) if spelled and tool not in self._exact else None
        return f"{parts[1]}{spelled[1]}{parts[2]}" if spelled and parts else following

    def server(self, tool: str) -> str | None:
        """The MCP server that a tool belongs to, where its name says so."""
        parts = _MCP.fullmatch(self._spelled.get(tool, (tool, ""))[0])
        return parts[1] if parts else None

    def entries(self) -> Iterator[ListedTool]:
        """Every entry of every layer, by name."""
        nearest: dict[str, Layer] = {}
        for layer in self._layers:
            for name, found in layer.items():
                nearest.setdefault(name, found.layer)
        rows = [
            ListedTool(name, found.layer, found.model, nearest[name] is found.layer)
            for layer in self._layers
            for name, found in layer.items()
        ]
        yield from sorted(rows, key=lambda row: (row.name, not row.in_force))


@cache
def _below(learned: bool) -> tuple[Mapping[str, ToolMatch], ...]:
    """What lies under the user's layer; the same for everybody, and never changed."""
    layers = (
        (Layer.LEARNED, learned_tool_value_models() if learned else {}),
        (Layer.SHIPPED, default_tool_value_models()),
    )
    return tuple({name: ToolMatch(model, layer, name) for name, model in models.items()} for layer, models in layers)


@cache
def _by_name(learned: bool) -> Mapping[str, ToolMatch]:
    return {name: found for layer in reversed(_below(learned)) for name, found in layer.items() if found.by_name}


@cache
def _spellings(learned: bool) -> Mapping[str, tuple[str, str]]:
    return {other: named for name in _by_name(learned) for other, named in _spelled_otherwise(name)}


def _spelled_otherwise(name: str) -> Iterator[tuple[str, tuple[str, str]]]:
    if parts := _MCP.fullmatch(name):
        for separator in _SEPARATORS:
            yield f"{parts[1]}{separator}{parts[2]}", (name, separator)


def _is_glob(name: str) -> bool:
    return any(mark in name for mark in "*?[")
