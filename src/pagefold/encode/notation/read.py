"""Reads values from the notation. Raises ValueError where a text is not in the notation."""

import re
from collections.abc import Sequence
from itertools import repeat
from typing import Any

from pagefold.encode.notation.json_value import ABSENT, JsonValue, Members, scan_string
from pagefold.encode.notation.row_reader import ColumnRule, Path, RowReader
from pagefold.encode.notation.scalar import word

_NAME = re.compile(r"\$([a-z])=(.*)")
_SECTION = re.compile(r"#(\d+) (\d+) (rows|lists):(?: (.*))?")
_BARE = re.compile(r'[^,{}\[\]"\n]*')
_KEY = re.compile(r"[A-Za-z_@][A-Za-z0-9_@/-]*")
# A whole member with what ends it, where its value is a word or a string without escapes, a name before it or not.
_MEMBER = re.compile(
    r"([A-Za-z_@][A-Za-z0-9_@/-]*):(?:\$([a-z])|(?![$&*#,{}\[\]\n]))"
    r'(?:"([^"\\]*)"|([^,{}\[\]"\n]*))(?:,\n*|(\}))'
)
_DIGITS = re.compile(r"\d+")
_DELIMITED = re.compile(r'["{}\[\]]')
_NOT_SCALARS = re.compile(r'["{}\[\n]')
_MARKS = frozenset("$&*#")
_ORDERED = frozenset("&*#")  # their meaning depends on what was read before them
_COUNTING = re.compile(r"(-?\d+)\.\.")


def read(text: str) -> JsonValue:
    return _NotationReader(text).value()


class _NotationReader:
    def __init__(self, text: str) -> None:
        self.names: dict[str, str] = {}
        self.anchors: dict[int, JsonValue] = {}
        self.sections: dict[int, tuple[str, str, list[str]]] = {}
        lines = text.split("\n")
        start = 0
        while start < len(lines) and (match := _NAME.fullmatch(lines[start])):
            self.names[match[1]] = match[2]
            start += 1
        end = start
        while end < len(lines) and not _SECTION.fullmatch(lines[end]):
            end += 1
        self.body = "\n".join(lines[start:end])
        while end < len(lines):
            match = _SECTION.fullmatch(lines[end])
            if not match:
                raise ValueError(f"line {end + 1}: expected a table")
            count = int(match[2])
            self.sections[int(match[1])] = (match[3], match[4] or "", lines[end + 1 : end + 1 + count])
            end += 1 + count

    def value(self) -> JsonValue:
        value, at = self._value(self.body, 0)
        if at != len(self.body):
            raise ValueError(f"more text after the value: {self.body[at : at + 20]!r}")
        return value

    def _value(self, text: str, at: int) -> tuple[JsonValue, int]:
        sign = text[at : at + 1]
        if sign == '"':
            return scan_string(text, at + 1, False)
        if sign == "{":
            return self._object(text, at + 1)
        if sign == "[":
            return self._array(text, at + 1)
        if sign == "$":
            return self._named(text, at)
        if sign in ("&", "*", "#"):
            return self._marked(text, at, sign)
        match = _BARE.match(text, at)
        assert match is not None
        if match.end() == at:
            raise ValueError(f"expected a value at {text[at : at + 20]!r}")
        return word(match[0]), match.end()

    def _named(self, text: str, at: int) -> tuple[str, int]:
        name = self.names[text[at + 1]]
        at += 2
        if text[at : at + 1] == '"':
            rest, at = scan_string(text, at + 1, False)
            return name + rest, at
        match = _BARE.match(text, at)
        assert match is not None
        return name + match[0], match.end()

    def _marked(self, text: str, at: int, sign: str) -> tuple[JsonValue, int]:
        match = _DIGITS.match(text, at + 1)
        if match is None:
            raise ValueError(f"expected a number at {text[at : at + 20]!r}")
        number, at = int(match[0]), match.end()
        if sign == "*":
            return self.anchors[number], at
        if sign == "#":
            return self._section(number), at
        value, at = self._value(text, at)
        self.anchors[number] = value
        return value, at

    def _object(self, text: str, at: int) -> tuple[Members, int]:
        members: list[tuple[str, JsonValue]] = []
        if text[at : at + 1] == "}":
            return Members(members), at + 1
        member, names = _MEMBER.match, self.names
        while True:
            while match := member(text, at):
                key, letter, quoted, bare, end = match.groups()
                if letter:
                    members.append((key, names[letter] + (bare if quoted is None else quoted)))
                else:
                    members.append((key, word(bare) if quoted is None else quoted))
                at = match.end()
                if end:
                    return Members(members), at
            key, at = self._key(text, at)
            if text[at : at + 1] != ":":
                raise ValueError(f"expected a colon at {text[at : at + 20]!r}")
            value, at = self._value(text, at + 1)
            members.append((key, value))
            if text[at : at + 1] == "}":
                return Members(members), at + 1
            at = self._comma(text, at)

    def _key(self, text: str, at: int) -> tuple[str, int]:
        if text[at : at + 1] == '"':
            return scan_string(text, at + 1, False)
        match = _KEY.match(text, at)
        if match is None:
            raise ValueError(f"expected a key at {text[at : at + 20]!r}")
        return match[0], match.end()

    def _array(self, text: str, at: int) -> tuple[list[JsonValue], int]:
        items: list[JsonValue] = []
        end = text.find("]", at)
        if at < end and not _NOT_SCALARS.search(text, at, end):
            cells = text[at:end].split(",")
            if "" not in cells:
                return [self._cell(cell) for cell in cells], end + 1
        while text[at : at + 1] != "]":
            if items:
                at = self._comma(text, at)
            value, at = self._value(text, at)
            items.append(value)
        return items, at + 1

    def _comma(self, text: str, at: int) -> int:
        if text[at : at + 1] != ",":
            raise ValueError(f"expected a comma at {text[at : at + 20]!r}")
        at += 1
        while text[at : at + 1] == "\n":
            at += 1
        return at

    def _section(self, number: int) -> list[JsonValue]:
        kind, header, lines = self.sections[number]
        if kind == "lists":
            return [[value for value in self._cells(line) if value is not ABSENT] for line in lines]
        rows = RowReader(self._header(header))
        alike = self._alike(rows, lines)
        if alike is not None:
            return alike
        values: list[JsonValue] = []
        for at, line in enumerate(lines):
            if line.startswith("!{"):
                values.append(self._object(line, 2)[0])
            else:
                values.append(rows.row(self._cells(line) if rows.width else [], at))
        return values

    def _alike(self, rows: RowReader, lines: list[str]) -> "list[JsonValue] | None":
        """Reads rows without quotes and brackets column by column; returns None for other rows."""
        width, text = rows.width, ",".join(lines)
        if _DELIMITED.search(text) or set(map(str.count, lines, repeat(","))) != {max(0, width - 1)}:
            return None
        if not width:
            return None if any(lines) else rows.rows([], len(lines))
        cells = text.split(",")
        typed: list[Sequence[Any]] = []
        for at in range(width):
            column = cells[at::width]
            different = set(column)
            if not _ORDERED.isdisjoint([cell[:1] for cell in different]):
                return None
            values = {cell: self._cell(cell) for cell in different}
            typed.append([values[cell] for cell in column])
        if "" in cells:
            return [rows.row(row, at) for at, row in enumerate(zip(*typed, strict=True))]
        return rows.rows(typed, len(lines))

    def _header(self, header: str) -> list[ColumnRule]:
        """Reads the columns of a table as (path, kind, what the kind needs)."""
        columns: list[ColumnRule] = []
        at = 0
        while True:
            path, at = self._path(header, at)
            if header[at : at + 1] != "=":
                columns.append((path, "plain", None))
            else:
                kind, needs, at = self._rule(header, at + 1)
                columns.append((path, kind, needs))
            if at == len(header):
                return columns
            if header[at] != ",":
                raise ValueError(f"expected a comma at {header[at : at + 20]!r}")
            at += 1

    def _path(self, header: str, at: int) -> tuple[Path, int]:
        path: list[str] = []
        while True:
            key, at = self._key(header, at)
            path.append(key)
            if header[at : at + 1] != ".":
                return tuple(path), at
            at += 1

    def _rule(self, header: str, at: int) -> tuple[str, Any, int]:
        """Reads what follows an equals sign: the first number of a column that counts up, or a constant."""
        counting = _COUNTING.match(header, at)
        if counting is not None and header[counting.end() : counting.end() + 1] in ("", ","):
            return "counting", int(counting[1]), counting.end()
        value, end = self._value(header, at)
        return "constant", value, end

    def _cells(self, line: str) -> list[Any]:
        if not _DELIMITED.search(line):
            return [self._cell(cell) for cell in line.split(",")]
        values: list[Any] = []
        at = 0
        while True:
            if at == len(line) or line[at] == ",":
                values.append(ABSENT)
            else:
                value, at = self._value(line, at)
                values.append(value)
            if at == len(line):
                return values
            at = self._comma(line, at)

    def _cell(self, cell: str) -> Any:
        """Reads a cell without quotes and brackets."""
        if not cell:
            return ABSENT
        if cell[0] not in _MARKS:
            return word(cell)
        if cell[0] == "$":
            return self.names[cell[1]] + cell[2:]
        value, at = self._value(cell, 0)
        if at != len(cell):
            raise ValueError(f"expected a comma at {cell[at : at + 20]!r}")
        return value
