"""Finds the value model of a tool by the name that an agent calls it by.

An entry under exactly that name comes first, then the glob that spells out most, then `*`. Among entries that match
equally well, the user's come before the learned ones, and those before the shipped ones; an entry replaces one of the
same name as a whole. So a broad glob of the user never overrides what is known about one tool by its name.

Agents spell the tool T of the MCP server S in different ways (`mcp__S__T`, `S-T`, `S_T`, `S.T`, `S/T`). Entries stand
under the first spelling; the others lead to the same entry.
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
_MAX_REMEMBERED = 4096


class Layer(StrEnum):
    """Where an entry comes from."""

    SHIPPED = "shipped"
    LEARNED = "learned"
    USER = "user"


@dataclass(frozen=True, slots=True)
class ToolMatch:
    """The model of a tool, and the layer and the name of the entry that it comes from."""

    model: ToolValueModel
    layer: Layer
    pattern: str

    @property
    def by_name(self) -> bool:
        """Tells whether the entry names one tool, and is no glob."""
        return not _is_glob(self.pattern)

    @property
    def for_every_tool(self) -> bool:
        """Tells whether the entry's name spells out nothing, like `*`: it says nothing about any tool in particular."""
        return self.pattern.strip("*?[]!-_. ") == ""


class ToolRegistry:
    """The user's, the learned and the shipped models as one table. Lookups are remembered."""

    def __init__(self, user: Mapping[str, ToolValueModel] | None = None, *, learned: bool = True) -> None:
        own = {name: ToolMatch(model, Layer.USER, name) for name, model in (user or {}).items()}
        lower = _lower_layers(learned)
        self._layers: Sequence[Mapping[str, ToolMatch]] = (own, *lower)
        self._exact: dict[str, ToolMatch] = {**_by_name(learned)}
        self._exact.update((name, match) for name, match in own.items() if match.by_name)
        self._spellings: dict[str, tuple[str, str]] = {**_spellings(learned)}
        for name, match in own.items():
            if match.by_name:
                self._spellings.update(_other_spellings(name))
        # Entries that spell out more come first, `*` last; the sort is stable, so a nearer layer stays before.
        globs = [match for layer in self._layers for match in layer.values() if not match.by_name]
        self._globs = sorted(globs, key=lambda match: -len(re.sub(r"[*?]|\[.*?\]", "", match.pattern)))
        self._remembered: dict[str, ToolMatch | None] = {}

    def find(self, tool: str) -> ToolMatch | None:
        """Returns the model in force, or None where no entry matches, not even `*`."""
        if tool not in self._remembered:
            if len(self._remembered) >= _MAX_REMEMBERED:
                self._remembered.clear()
            self._remembered[tool] = self._look_up(tool)
        return self._remembered[tool]

    def _look_up(self, tool: str) -> ToolMatch | None:
        if tool in self._exact:
            return self._exact[tool]
        if tool in self._spellings:
            return self._exact[self._spellings[tool][0]]
        return next((match for match in self._globs if fnmatchcase(tool, match.pattern)), None)

    def next_tool(self, tool: str, following: str) -> str:
        """Returns the name of a tool that a link of `tool` leads to, in the spelling that `tool` has."""
        spelled = self._spellings.get(tool)
        parts = _MCP.fullmatch(following) if spelled and tool not in self._exact else None
        return f"{parts[1]}{spelled[1]}{parts[2]}" if spelled and parts else following

    def server(self, tool: str) -> str | None:
        """Returns the MCP server that a tool belongs to, or None where its name does not say."""
        parts = _MCP.fullmatch(self._spellings.get(tool, (tool, ""))[0])
        return parts[1] if parts else None

    def entries(self) -> Iterator[tuple[ToolMatch, bool]]:
        """Yields every entry of every layer, sorted by name, each with whether it is in force.

        It is not where an entry of the same name in a nearer layer replaces it.
        """
        nearest = {name: match for layer in reversed(self._layers) for name, match in layer.items()}
        rows = [(match, nearest[name] is match) for layer in self._layers for name, match in layer.items()]
        yield from sorted(rows, key=lambda row: (row[0].pattern, not row[1]))


@cache
def _lower_layers(learned: bool) -> tuple[Mapping[str, ToolMatch], ...]:
    """Returns the layers below the user's, which are the same for everybody and never change."""
    layers = (
        (Layer.LEARNED, learned_tool_value_models() if learned else {}),
        (Layer.SHIPPED, default_tool_value_models()),
    )
    return tuple({name: ToolMatch(model, layer, name) for name, model in models.items()} for layer, models in layers)


@cache
def _by_name(learned: bool) -> Mapping[str, ToolMatch]:
    return {name: match for layer in reversed(_lower_layers(learned)) for name, match in layer.items() if match.by_name}


@cache
def _spellings(learned: bool) -> Mapping[str, tuple[str, str]]:
    return {other: named for name in _by_name(learned) for other, named in _other_spellings(name)}


def _other_spellings(name: str) -> Iterator[tuple[str, tuple[str, str]]]:
    """Yields the other spellings of an MCP tool, each with the entry's name and the separator that it uses."""
    if parts := _MCP.fullmatch(name):
        for separator in _SEPARATORS:
            yield f"{parts[1]}{separator}{parts[2]}", (name, separator)


def _is_glob(name: str) -> bool:
    return any(mark in name for mark in "*?[")
