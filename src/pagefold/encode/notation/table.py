"""Turns arrays of similar objects into tables, and finds columns that a rule in the header can replace.

A nested object becomes dotted columns. An empty cell means that the row has no such key; null is `null`. A column that
is constant or counts up gets a rule in the header; any other value stands whole in its row. A row whose keys come in
another order stays an object, and so does the last one where a list breaks off in it; such a row counts as well.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import chain
from typing import Any, NamedTuple

from pagefold.encode.notation.json_value import ABSENT, Members, Number

LEAST_ROWS = 2
FEW = 8
"""Rows from which on looking at them by columns is faster."""
_DEPTH = 6
_COUNTED = 4
_KEY_COST = 2  # cells that a key costs which a row names itself
_WHOLE = re.compile(r"0|-?[1-9]\d{0,15}")

Path = tuple[str, ...]
TableColumns = list[tuple[Path, Sequence[Any]]]


class Column(NamedTuple):
    """`kind` is plain, constant or counting (up from `value`)."""

    path: Path
    kind: str = "plain"
    value: Any = None


class ObjectTable(NamedTuple):
    """`lacking` counts empty cells. Where no cell is empty, `cells` has them column by column, in place of `rows`."""

    columns: Sequence[Column]
    length: int
    rows: Sequence[Sequence[Any] | Members] = ()
    lacking: int = 0
    cells: Sequence[Sequence[Any]] = ()


@dataclass(slots=True, eq=False)
class _KeyPath:
    """A key below others. There is one object for each path, so that rows are compared by identity."""

    path: Path = ()
    below: dict[str, "_KeyPath"] = field(default_factory=dict)
    column: int = -1

    def flatten(self, row: Members, places: list["_KeyPath"], values: list[Any]) -> bool:
        """Collects the values of a row and the key path of each; a nested object is flattened. Returns whether no key
        stands twice."""
        once = len(dict(row)) == len(row)
        for key, value in row:
            place = self.below.get(key)
            if place is None:
                place = self.below[key] = _KeyPath((*self.path, key))
            if type(value) is Members and value and len(place.path) < _DEPTH:
                once = place.flatten(value, places, values) and once
            else:
                places.append(place)
                values.append(value)
        return once


def table_of(array: Sequence[Any], alike: TableColumns | None = None) -> ObjectTable | None:
    """Returns the table of an array, or None where there is none worth writing. `alike` are its columns, if known."""
    if alike is None:
        if len(array) < LEAST_ROWS or not all(type(row) is Members and row for row in array):
            return None
        alike = alike_of(array)
    if alike is not None:
        paths, cells = zip(*alike, strict=True)
        return ObjectTable(list(_columns(paths, cells, range(len(array)))), len(array), cells=cells)
    root = _KeyPath()
    flat: list[tuple[list[_KeyPath], list[Any]]] = []
    for row in array:
        flat.append(([], []))
        if not root.flatten(row, *flat[-1]):
            return None
    order = _order([places for places, _ in flat], 3 * max(len(values) for _, values in flat) + 8)
    if order is None:
        return None
    for index, place in enumerate(order):
        place.column = index
    rows = [values if places == order else _cells(places, values, len(order)) for places, values in flat]
    if _spoils_constants(rows):
        rows[-1] = None
    whole = [row for row in rows if row is not None]
    if len(whole) < 0.8 * len(rows):
        return None
    given = sum(len(values) for (_, values), row in zip(flat, rows, strict=True) if row is not None)
    where = [at for at, row in enumerate(rows) if row is not None]
    columns = list(_columns([place.path for place in order], list(zip(*whole, strict=True)), where))
    kept = [array[index] if row is None else row for index, row in enumerate(rows)]
    return ObjectTable(columns, len(array), kept, len(whole) * len(order) - given)


def _spoils_constants(rows: Sequence[Sequence[Any] | None]) -> bool:
    """Whether the last row, of a list that breaks off there, lacks so many columns that are constant without it that it
    better stays an object."""
    last = rows[-1]
    if last is None or ABSENT not in last or len(rows) <= _COUNTED:
        return False
    others = [row for row in rows[:-1] if row is not None]
    columns = list(zip(*others, strict=True))
    spoiled = sum(1 for cell, column in zip(last, columns, strict=False) if cell is ABSENT and _constant(column))
    return spoiled * len(others) > _KEY_COST * (len(last) - list(last).count(ABSENT))


def pairs_of(rows: Sequence[Members]) -> list[Any]:
    """Returns the keys and values of rows in turn, one row after the other."""
    return list(chain.from_iterable(chain.from_iterable(rows)))


def alike_of(rows: Sequence[Members], above: Path = (), items: list[Any] | None = None) -> TableColumns | None:
    """Returns the columns of rows that all have the same keys in the same order; None for other or few rows."""
    width = len(rows[0])
    if len(rows) < FEW or set(map(len, rows)) != {width}:
        return None
    items = items or pairs_of(rows)
    keys = items[: 2 * width : 2]
    if len(set(keys)) < width or items[::2] != keys * len(rows):
        return None
    columns: TableColumns = []
    for at, key in enumerate(keys):
        column = items[2 * at + 1 :: 2 * width]
        path = (*above, key)
        if Members not in set(map(type, column)) or len(path) >= _DEPTH:
            columns.append((path, column))
            continue
        below = alike_of(column, path) if all(type(cell) is Members and cell for cell in column) else None
        if below is None:
            return None
        columns += below
    return columns


def _order(rows: Sequence[list[_KeyPath]], most: int) -> list[_KeyPath] | None:
    """Orders all columns, each after the one it follows in its row. None where they are too many."""
    order: list[_KeyPath] = []
    ordered: set[_KeyPath] = set()
    last: list[_KeyPath] = []
    for places in rows:
        if places == last:
            continue
        last = places
        if ordered.issuperset(places):
            continue
        at = -1
        for place in places:
            if place in ordered:
                at = order.index(place)
            else:
                at += 1
                order.insert(at, place)
                ordered.add(place)
        if len(order) > most:
            return None
    return order


def _cells(places: Sequence[_KeyPath], values: Sequence[Any], columns: int) -> list[Any] | None:
    cells: list[Any] = [ABSENT] * columns
    last = -1
    for place, value in zip(places, values, strict=True):
        at = place.column
        if at < last:
            return None
        cells[at] = value
        last = at
    return cells


def _columns(order: Sequence[Path], cells: Sequence[Sequence[Any]], where: Sequence[int]) -> Iterator[Column]:
    """Yields columns, given the cells of rows that are no objects and where in the table these rows stand."""
    for path, column in zip(order, cells, strict=True):
        first = column[0]
        if _constant(column):
            yield Column(path, "constant", first)
        elif type(first) is Number and _counts(column, where):
            yield Column(path, "counting", int(first) - where[0])
        else:
            yield Column(path)


def _constant(column: Sequence[Any]) -> bool:
    first = column[0]
    last = column[-1]
    # Values of two types are never equal. Most columns that are not constant show it at their end.
    return (last is first or last == first) and first is not ABSENT and column.count(first) == len(column)


def _counts(column: Sequence[Any], where: Sequence[int]) -> bool:
    """Whether all are whole numbers that count the rows of the table."""
    if len(column) < _COUNTED or not _WHOLE.fullmatch(column[0]):
        return False
    start = int(column[0]) - where[0]
    if set(map(type, column)) != {Number} or str.__str__(column[-1]) != str(start + where[-1]):
        return False
    return list(map(str.__str__, column)) == [str(start + at) for at in where]
