"""Which tools of a user's own show and change files, in plain values, as a policy writes them down."""

from collections.abc import Iterable
from dataclasses import fields
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from pagefold.settings.tools import FileToolTable

OwnTools: TypeAlias = tuple[tuple[str, tuple[tuple[str, tuple[str, ...]], ...]], ...]
"""Tool, then setting and names."""


def own_tools(tables: Iterable["FileToolTable"]) -> OwnTools:
    """The tables of the user's settings as a policy writes them down."""
    return tuple((table.name, tuple(_stated(table))) for table in tables)


def _stated(table: "FileToolTable") -> Iterable[tuple[str, tuple[str, ...]]]:
    for item in fields(table):
        value = getattr(table, item.name)
        if item.name != "name" and value is not None:
            yield item.name, (value,) if isinstance(value, str) else tuple(value)
