"""Turns the rows of a table back into objects, from the rules in its header and the cells of each row."""

from collections.abc import Sequence
from itertools import repeat
from typing import Any

from pagefold.encode.notation.json_value import ABSENT, Members, Number, number

Path = tuple[str, ...]
ColumnRule = tuple[Path, str, Any]
"""A path, a kind, and what the kind needs: a constant or a first number."""


class RowReader:
    """Makes objects from cells. `width` is how many cells a row has."""

    def __init__(self, columns: Sequence[ColumnRule]) -> None:
        self._given: list[int] = []
        self._counting: list[tuple[int, int]] = []
        self._always: list[Any] = [None] * len(columns)
        self._paths = [path for path, _, _ in columns]
        self._level = _level(self._paths)
        self._apart = _stand_apart(self._level)
        for at, (_, kind, needs) in enumerate(columns):
            if kind == "constant":
                self._always[at] = needs
            elif kind == "counting":
                self._counting.append((at, needs))
            else:
                self._given.append(at)
        self.width = len(self._given)

    def row(self, cells: Sequence[Any], place: int) -> Members:
        """Makes the object of the row at a place of the table."""
        values = self._always.copy()
        for at, cell in zip(self._given, cells, strict=True):
            values[at] = cell
        for at, first in self._counting:
            values[at] = Number(first + place)
        if self._apart:
            there = [at for at, value in enumerate(values) if value is not ABSENT]
            return _members(_level([self._paths[at] for at in there]), [values[at] for at in there])
        return _members(self._level, values)

    def rows(self, cells: Sequence[Sequence[Any]], count: int) -> list[Any]:
        """Makes all objects at once, from whole columns without empty cells."""
        columns: list[Sequence[Any]] = [[value] * count for value in self._always]
        for at, column in zip(self._given, cells, strict=True):
            columns[at] = column
        for at, first in self._counting:
            columns[at] = list(map(number, map(str, range(first, first + count))))
        return _columns(self._level, columns)


def _columns(level: Sequence[tuple[str, Any]], columns: Sequence[Sequence[Any]]) -> list[Any]:
    keys = [key for key, _ in level]
    below = [columns[place] if type(place) is int else _columns(place, columns) for _, place in level]
    return list(map(Members, map(zip, repeat(keys), zip(*below, strict=True))))


def _level(paths: Sequence[Path]) -> list[tuple[str, Any]]:
    """Arranges paths as a tree: keys with their column, or with the level below them."""
    root: list[tuple[str, Any]] = []
    for at, path in enumerate(paths):
        level = root
        for key in path[:-1]:
            if not level or level[-1][0] != key or type(level[-1][1]) is int:
                level.append((key, []))
            level = level[-1][1]
        level.append((path[-1], at))
    return root


def _stand_apart(level: Sequence[tuple[str, Any]]) -> bool:
    """Whether columns below one key have others between them: a row that lacks those has them in one object."""
    below = [(key, inner) for key, inner in level if type(inner) is not int]
    return len({key for key, _ in below}) < len(below) or any(_stand_apart(inner) for _, inner in below)


def _members(level: Sequence[tuple[str, Any]], values: Sequence[Any]) -> Members:
    members: list[tuple[str, Any]] = []
    for key, place in level:
        if type(place) is int:
            if values[place] is not ABSENT:
                members.append((key, values[place]))
        elif inner := _members(place, values):
            members.append((key, inner))
    return Members(members)
