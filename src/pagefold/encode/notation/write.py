"""Values into the notation. `write` gives None where the notation has nothing to offer, or the value is too deep."""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from pagefold.encode.notation.names import chosen
from pagefold.encode.notation.scalar import is_bare, is_clear, key_text, quoted, scalar_text
from pagefold.encode.notation.table import ABSENT, Column, Table, rest_of, table_of
from pagefold.encode.notation.value import Members, Value

_DEPTH = 100
_LONG = 100  # characters of a container that gets lines of its own inside another
_ANCHORED = 40  # characters below which naming a repeated container saves nothing
_LISTS = 3
_HEAD = 8  # no name is shorter


class _Text(str):
    """A string value on its way into the text: it may yet be said by a name."""

    __slots__ = ()


def write(value: Value) -> str | None:
    writer = _Writer()
    try:
        if isinstance(value, Members | list):
            writer.number(value)
        writer.value(value, 0)
    except RecursionError:
        return None
    return writer.text()


@dataclass(slots=True)
class _Writer:
    _parts: list[str] = field(default_factory=list)
    _sections: list[list[str]] = field(default_factory=list)
    _kinds: dict[Any, int] = field(default_factory=dict)
    _ids: dict[int, int] = field(default_factory=dict)
    _times: Counter[int] = field(default_factory=Counter)
    _sizes: dict[int, int] = field(default_factory=dict)
    _anchors: dict[int, int] = field(default_factory=dict)

    def number(self, value: Value, depth: int = 0) -> int:
        """Gives equal containers equal numbers, and counts them: whatever comes twice is written once."""
        if depth > _DEPTH:
            raise RecursionError
        inner: list[Any] = []
        size = 2
        pairs = value if isinstance(value, Members) else (("", item) for item in value)  # type: ignore[union-attr]
        for key, item in pairs:
            kind = type(item)
            if kind is Members or kind is list:
                number = self.number(item, depth + 1)
                inner += (key, kind, number)
                size += len(key) + self._sizes[number] + 2
            else:
                inner += (key, kind, item)
                size += len(key) + (len(item) if isinstance(item, str) else 4) + 2
        known = self._kinds.setdefault((isinstance(value, list), *inner), len(self._kinds))
        self._ids[id(value)] = known
        self._sizes[known] = size
        self._times[known] += 1
        return known

    def _size(self, value: Value) -> int:
        if isinstance(value, Members | list):
            return self._sizes[self._ids[id(value)]]
        return len(value) if isinstance(value, str) else 4

    def value(self, value: Value, depth: int) -> None:
        if not isinstance(value, Members | list):
            self._parts.append(_Text(value) if type(value) is str else scalar_text(value))
            return
        kind = self._ids[id(value)]
        if value and self._times[kind] > 1 and self._sizes[kind] >= _ANCHORED:
            if kind in self._anchors:
                self._parts.append(f"*{self._anchors[kind]}")
                return
            self._anchors[kind] = len(self._anchors) + 1
            self._parts.append(f"&{self._anchors[kind]}")
        if isinstance(value, Members):
            self._object(value, depth)
        else:
            self._array(value, depth)

    def _object(self, value: Members, depth: int) -> None:
        self._parts.append("{")
        for index, (key, item) in enumerate(value):
            if index:
                self._parts.append(",\n" if self._is_long(item, depth) else ",")
            self._parts.append(f"{key_text(key)}:")
            self.value(item, depth + 1)
        self._parts.append("}")

    def _array(self, value: list[Any], depth: int) -> None:
        table = table_of(value)
        if table is not None and self._pays(table):
            self._section(lambda number: self._table(table, number, depth))
            return
        if len(value) >= _LISTS and all(type(item) is list and item and _flat(item) for item in value):
            self._section(lambda number: self._lists(value, number, depth))
            return
        self._parts.append("[")
        for index, item in enumerate(value):
            if index:
                self._parts.append(",\n" if self._is_long(item, depth) else ",")
            self.value(item, depth + 1)
        self._parts.append("]")

    def _is_long(self, item: Value, depth: int) -> bool:
        return depth < 2 and isinstance(item, Members | list) and self._size(item) > _LONG

    def _pays(self, table: Table) -> bool:
        """A header costs the names once; rows save them, but pay for what they lack."""
        columns = [column for column in table.columns if column.kind in ("plain", "shared")]
        names = sum(len(column.path[-1]) + 2 for column in table.columns)
        rows = [row for row in table.rows if not isinstance(row, Members)]
        lacking = sum(cell is ABSENT for row in rows for cell in row)
        said = len(rows) * len(table.columns) - lacking
        average = names / len(table.columns)
        return (said - len(table.columns)) * average > len(rows) + 2 * lacking + 4 and bool(columns or rows)

    def _section(self, fill: Any) -> None:
        """A table stands below the text that mentions it."""
        number = len(self._sections) + 1
        self._sections.append([])
        self._parts.append(f"#{number}")
        outer, self._parts = self._parts, self._sections[number - 1]
        fill(number)
        self._parts = outer

    def _table(self, table: Table, number: int, depth: int) -> None:
        names = [column.name for column in table.columns]
        self._parts.append(f"#{number} {len(table.rows)} rows: ")
        for index, column in enumerate(table.columns):
            if index:
                self._parts.append(",")
            self._header(column, names, depth)
        for row in table.rows:
            self._parts.append("\n")
            if isinstance(row, Members):
                self._parts.append("!")
                self._object(row, _DEPTH)
                continue
            first = True
            for column, cell in zip(table.columns, row, strict=True):
                if column.kind not in ("plain", "shared"):
                    continue
                if not first:
                    self._parts.append(",")
                first = False
                self._cell(column, cell)

    def _header(self, column: Column, names: Sequence[str], depth: int) -> None:
        self._parts.append(column.name)
        if column.kind == "constant":
            self._parts.append("=")
            if type(column.value) is str:
                self._parts.append(column.value if _is_constant(column.value) else quoted(column.value))
            else:
                self.value(column.value, _DEPTH)
        elif column.kind == "counting":
            self._parts.append(f"={column.value}..")
        elif column.kind == "derived":
            self._parts.append(f"={column.before}{{{names[column.base]}}}{column.after}")
        elif column.kind == "shared":
            self._parts.append(f"={column.before}*{column.after}")

    def _cell(self, column: Column, cell: Any) -> None:
        if cell is ABSENT:
            return
        if column.kind == "shared":
            rest = rest_of(cell, column)
            self._parts.append(rest if is_clear(rest) else quoted(rest))
        else:
            self.value(cell, _DEPTH)

    def _lists(self, value: list[list[Any]], number: int, depth: int) -> None:
        self._parts.append(f"#{number} {len(value)} lists:")
        for row in value:
            self._parts.append("\n")
            for index, item in enumerate(row):
                if index:
                    self._parts.append(",")
                self.value(item, _DEPTH)

    def text(self) -> str:
        strings: Counter[str] = Counter(part for part in self._all() if type(part) is _Text)
        names = chosen(strings)
        lines = [f"${letter}={name}" for name, letter in names.items()]
        heads = {name[:_HEAD] for name in names}
        spelled = {
            string: _spelled(string, names) if string[:_HEAD] in heads else scalar_text(string) for string in strings
        }
        body = "".join(spelled[part] if type(part) is _Text else part for part in self._parts)
        sections = ["".join(spelled[p] if type(p) is _Text else p for p in section) for section in self._sections]
        return "\n".join([*lines, body, *sections])

    def _all(self) -> Iterator[str]:
        yield from self._parts
        for section in self._sections:
            yield from section


def _flat(row: Sequence[Any]) -> bool:
    return not any(isinstance(item, Members | list) for item in row)


def _is_constant(text: str) -> bool:
    return is_bare(text) and "*" not in text and not text.endswith("..")


def _spelled(string: str, names: dict[str, str]) -> str:
    for name, letter in names.items():
        if string.startswith(name):
            rest = string[len(name) :]
            if not rest:
                return f"${letter}"
            return f"${letter}{rest}" if is_clear("a" + rest) else f"${letter}{quoted(rest)}"
    return scalar_text(string)
