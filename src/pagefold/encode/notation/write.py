"""Writes JSON values in the notation."""

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import repeat
from typing import Any, TypeAlias

from pagefold.encode.notation.json_value import ABSENT, JsonValue, Members, Number
from pagefold.encode.notation.prefix_names import PrefixNames
from pagefold.encode.notation.scalar import is_bare, is_clear, key_text, quoted, scalar_text
from pagefold.encode.notation.table import FEW, Column, ObjectTable, TableColumns, alike_of, pairs_of, table_of

_DEPTH = 100
MOST = 40_000
"""Elements, and cells of similar rows, beyond which nothing is written."""
_MEMBER = 4  # a member of any other object takes about as long as four cells
_LONG = 100  # characters of a container that gets lines of its own inside another
_ANCHORED = 40  # characters below which naming a repeated container saves nothing
_LISTS = 3
_FIRST = 2  # the first number of a container: 0 and 1 equal False and True
_CONTAINERS = frozenset({Members, list})
_NAMED = frozenset({Members, list, str})
ContainerKind: TypeAlias = int | Members
"""Identifies equal containers: by a number, or, for an object that holds no containers, by itself."""


def write(value: JsonValue) -> str | None:
    """Returns a value in the notation, or None where it is nested too deeply or too large."""
    writer = _NotationWriter()
    try:
        if isinstance(value, Members | list):
            writer.number(value)
        writer.value(value, 0)
    except (RecursionError, _TooManyError):
        return None
    return writer.text()


class _TooManyError(Exception):
    pass


@dataclass(slots=True)
class _Piece:
    """The body, or a table below it, as parts of text. `strings` are the indices of strings that may get a name."""

    parts: list[str] = field(default_factory=list)
    strings: list[int] = field(default_factory=list)

    def scalar(self, before: str, value: "str | Number | bool | None") -> None:
        if type(value) is str:
            self.parts.append(before)
            self.strings.append(len(self.parts))
            self.parts.append(value)
        else:
            self.parts.append(before + scalar_text(value))


@dataclass(slots=True)
class _NotationWriter:
    _piece: _Piece = field(default_factory=_Piece)
    _sections: list[_Piece] = field(default_factory=list)
    _kinds: dict[Any, int] = field(default_factory=dict)
    _ids: dict[int, int] = field(default_factory=dict)
    _times: Counter[ContainerKind] = field(default_factory=Counter)
    _anchors: dict[ContainerKind, int] = field(default_factory=dict)
    _alike: dict[int, TableColumns | None] = field(default_factory=dict)
    _looked: int = 0

    def number(self, value: "Members | list[Any]", depth: int = 0) -> ContainerKind:
        """Gives equal containers the same kind, and counts them: what occurs twice is written once."""
        if depth > _DEPTH:
            raise RecursionError
        inner: tuple[Any, ...]
        if isinstance(value, Members):
            self._look(_MEMBER * len(value))
            if _is_flat(value):
                self._times[value] = self._times.get(value, 0) + 1
                return value
            inner = tuple([(key, self.number(it, depth + 1) if type(it) in _CONTAINERS else it) for key, it in value])
        elif items := _flat_objects(value):
            alike = self._alike[id(value)] = alike_of(value, items=items)
            self._look(len(alike) * len(value) if alike else _MEMBER * sum(map(len, value)))
            self._times.update(value)
            inner = (list, *value)
        else:
            self._look(len(value))
            inner = (list, *[self.number(item, depth + 1) if type(item) in _CONTAINERS else item for item in value])
        kind = self._ids[id(value)] = self._kinds.setdefault(inner, len(self._kinds) + _FIRST)
        self._times[kind] = self._times.get(kind, 0) + 1
        return kind

    def _look(self, values: int) -> None:
        """Counts the values that were looked at, and raises where they are too many."""
        self._looked += values
        if self._looked > MOST:
            raise _TooManyError

    def value(self, value: JsonValue, depth: int, before: str = "") -> None:
        if not isinstance(value, Members | list):
            self._piece.scalar(before, value)
            return
        kind: Any = self._ids.get(id(value), value)
        if value and self._times[kind] > 1 and _size(value, _ANCHORED) >= _ANCHORED:
            if kind in self._anchors:
                self._piece.parts.append(f"{before}*{self._anchors[kind]}")
                return
            self._anchors[kind] = len(self._anchors) + 1
            before = f"{before}&{self._anchors[kind]}"
        if isinstance(value, Members):
            self._object(value, depth, before)
        else:
            self._array(value, depth, before)

    def _object(self, value: Members, depth: int, before: str = "") -> None:
        parts, strings = self._piece.parts, self._piece.strings
        before += "{"
        for key, item in value:
            if type(item) is str:
                parts.append(f"{before}{key_text(key)}:")
                strings.append(len(parts))
                parts.append(item)
            elif type(item) in _CONTAINERS:
                self.value(item, depth + 1, f"{self._broken(before, item, depth)}{key_text(key)}:")
            else:
                parts.append(f"{before}{key_text(key)}:{scalar_text(item)}")
            before = ","
        parts.append("}" if value else before + "}")

    def _array(self, value: list[Any], depth: int, before: str) -> None:
        table = table_of(value, self._alike.get(id(value)))
        if table is not None and self._pays(table):
            self._section(before, lambda number: self._table(table, number))
            return
        if len(value) >= _LISTS and all(
            type(row) is list and row and _CONTAINERS.isdisjoint(map(type, row)) for row in value
        ):
            self._section(before, lambda number: self._lists(value, number))
            return
        piece = self._piece
        before += "["
        if value and _NAMED.isdisjoint(map(type, value)):
            piece.parts.append(f"{before}{','.join(map(scalar_text, value))}]")
            return
        for item in value:
            if type(item) in _CONTAINERS:
                self.value(item, depth + 1, self._broken(before, item, depth))
            else:
                piece.scalar(before, item)
            before = ","
        piece.parts.append("]" if value else before + "]")

    def _broken(self, before: str, item: "Members | list[Any]", depth: int) -> str:
        """Adds a line break to a comma where something long follows near the top."""
        return ",\n" if before == "," and depth < 2 and _size(item, _LONG + 1) > _LONG else before

    def _pays(self, table: ObjectTable) -> bool:
        """Whether a table is shorter: its header costs the names once, rows save them but pay for empty cells."""
        columns = len(table.columns)
        names = sum([len(column.path[-1]) + 2 for column in table.columns])
        rows = table.length - sum([isinstance(row, Members) for row in table.rows])
        given = rows * columns - table.lacking
        return (given - columns) * (names / columns) > rows + 2 * table.lacking + 4

    def _section(self, before: str, fill: Callable[[int], None]) -> None:
        """Writes a table below the text that refers to it by number."""
        number = len(self._sections) + 1
        self._piece.parts.append(f"{before}#{number}")
        outer, self._piece = self._piece, _Piece()
        self._sections.append(self._piece)
        fill(number)
        self._piece = outer

    def _table(self, table: ObjectTable, number: int) -> None:
        names = [".".join(map(key_text, column.path)) for column in table.columns]
        before = f"#{number} {table.length} rows: "
        for column, name in zip(table.columns, names, strict=True):
            self._header(column, before + name)
            before = ","
        given = [(at, column) for at, column in enumerate(table.columns) if column.kind == "plain"]
        if table.cells and given:
            texts = [_texts(table.cells[at]) for at, _ in given]
            if None not in texts:
                self._piece.parts += ["\n", "\n".join(map(",".join, zip(*texts, strict=True)))]
                return
        for row in table.rows or zip(*table.cells, strict=True):
            if isinstance(row, Members):
                self._object(row, _DEPTH, "\n!")
                continue
            before = "\n"
            for at, _ in given:
                self._cell(row[at], before)
                before = ","
            if not given:
                self._piece.parts.append(before)

    def _header(self, column: Column, name: str) -> None:
        if column.kind == "constant" and type(column.value) is not str:
            self.value(column.value, _DEPTH, f"{name}=")
            return
        if column.kind == "constant":
            name += f"={column.value if _is_constant(column.value) else quoted(column.value)}"
        elif column.kind == "counting":
            name += f"={column.value}.."
        self._piece.parts.append(name)

    def _cell(self, cell: Any, before: str) -> None:
        if cell is ABSENT:
            self._piece.parts.append(before)
        elif type(cell) in _CONTAINERS:
            self.value(cell, _DEPTH, before)
        else:
            self._piece.scalar(before, cell)

    def _lists(self, value: list[list[Any]], number: int) -> None:
        piece = self._piece
        piece.parts.append(f"#{number} {len(value)} lists:")
        for row in value:
            before = "\n"
            for item in row:
                piece.scalar(before, item)
                before = ","

    def text(self) -> str:
        pieces = [self._piece, *self._sections]
        strings: Counter[str] = Counter()
        for piece in pieces:
            if piece.strings:
                strings.update(map(piece.parts.__getitem__, piece.strings))
        lines: list[str] = []
        if strings:
            names = PrefixNames(strings)
            lines = [f"${letter}={name}" for name, letter in names.letters.items()]
            spelled = {string: _spelled(string, names) for string in strings}
            for piece in pieces:
                parts = piece.parts
                for at in piece.strings:
                    parts[at] = spelled[parts[at]]
        return "\n".join([*lines, *["".join(piece.parts) for piece in pieces]])


def _texts(cells: Sequence[Any]) -> list[str] | None:
    """Returns the cells of a column as texts; None where one is a container or a string that may get a name."""
    return None if _NAMED.intersection(map(type, cells)) else [scalar_text(cell) for cell in cells]


def _size(value: "Members | list[Any]", enough: int) -> int:
    """Returns about how long a container is; stops once it is long enough."""
    size = 2
    for key, item in value if isinstance(value, Members) else zip(repeat(""), value, strict=False):
        size += len(key) + 2
        if type(item) in _CONTAINERS:
            size += _size(item, enough - size)
        else:
            size += len(item) if isinstance(item, str) else 4
        if size >= enough:
            break
    return size


def _is_flat(members: Members) -> bool:
    for _, item in members:  # noqa: SIM110 - a loop takes half as long as a generator on objects as small as most are
        if type(item) in _CONTAINERS:
            return False
    return True


def _flat_objects(rows: Sequence[Any]) -> list[Any] | None:
    """Returns keys and values in turn of an array of objects that hold no containers; None for other arrays."""
    if len(rows) < FEW or set(map(type, rows)) != {Members} or not all(rows):
        return None
    items = pairs_of(rows)
    return items if _CONTAINERS.isdisjoint(map(type, items[1::2])) else None


def _is_constant(text: str) -> bool:
    return is_bare(text) and not text.startswith("*") and not text.endswith("..")


def _spelled(string: str, names: PrefixNames) -> str:
    name = names.prefix_of(string)
    if not name:
        return string if is_bare(string) else quoted(string)
    rest = string[len(name) :]
    return f"${names.letters[name]}{rest if not rest or is_clear('a' + rest) else quoted(rest)}"
