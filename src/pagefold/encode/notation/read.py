"""The notation back into values. Raises ValueError where the text is not in the notation."""

import json
import re
from typing import Any

from pagefold.encode.notation.scalar import word
from pagefold.encode.notation.value import Members, Number, Value

_NAME = re.compile(r"\$([a-z])=(.*)")
_SECTION = re.compile(r"#(\d+) (\d+) (rows|lists):(?: (.*))?")
_SPACE = re.compile(r"[\n]*")
_BARE = re.compile(r'[^,{}\[\]"\n]*')
_KEY = re.compile(r"[A-Za-z_@][A-Za-z0-9_@/-]*")
_MEMBER = re.compile(r'([A-Za-z_@][A-Za-z0-9_@/-]*):([^,{}\[\]"\n$&*#][^,{}\[\]"\n]*)')
_DIGITS = re.compile(r"\d+")
_PLAIN = re.compile(r'[^,{}\[\]"]*')
_ANCHOR = re.compile(r"\*\d+")
_COUNTING = re.compile(r"(-?\d+)\.\.")
_SLOT = re.compile(r"\{([^{}]*)\}")
_scan_string = json.decoder.scanstring  # type: ignore[attr-defined]


def read(text: str) -> Value:
    return _Reader(text).value()


class _Reader:
    def __init__(self, text: str) -> None:
        self.names: dict[str, str] = {}
        self.anchors: dict[int, Value] = {}
        self.sections: dict[int, tuple[str, str, list[str]]] = {}
        lines = text.split("\n")
        start = 0
        while start < len(lines) and (found := _NAME.fullmatch(lines[start])):
            self.names[found[1]] = found[2]
            start += 1
        end = start
        while end < len(lines) and not _SECTION.fullmatch(lines[end]):
            end += 1
        self.body = "\n".join(lines[start:end])
        while end < len(lines):
            found = _SECTION.fullmatch(lines[end])
            if not found:
                raise ValueError(f"line {end + 1}: expected a table")
            count = int(found[2])
            self.sections[int(found[1])] = (found[3], found[4] or "", lines[end + 1 : end + 1 + count])
            end += 1 + count

    def value(self) -> Value:
        value, at = self._value(self.body, 0)
        if at != len(self.body):
            raise ValueError(f"more text after the value: {self.body[at : at + 20]!r}")
        return value

    def _value(self, text: str, at: int) -> tuple[Value, int]:
        sign = text[at : at + 1]
        if sign == '"':
            return self._quoted(text, at)
        if sign == "{":
            return self._object(text, at + 1)
        if sign == "[":
            return self._array(text, at + 1)
        if sign == "$":
            return self._named(text, at)
        if sign in ("&", "*", "#"):
            return self._marked(text, at, sign)
        found = _BARE.match(text, at)
        assert found is not None
        if found.end() == at:
            raise ValueError(f"expected a value at {text[at : at + 20]!r}")
        return word(found[0]), found.end()

    def _quoted(self, text: str, at: int) -> tuple[str, int]:
        value, end = _scan_string(text, at + 1, False)
        return value, end

    def _named(self, text: str, at: int) -> tuple[str, int]:
        name = self.names[text[at + 1]]
        at += 2
        if text[at : at + 1] == '"':
            rest, at = self._quoted(text, at)
            return name + rest, at
        found = _BARE.match(text, at)
        assert found is not None
        return name + found[0], found.end()

    def _marked(self, text: str, at: int, sign: str) -> tuple[Value, int]:
        found = _DIGITS.match(text, at + 1)
        if found is None:
            raise ValueError(f"expected a number at {text[at : at + 20]!r}")
        number, at = int(found[0]), found.end()
        if sign == "*":
            return self.anchors[number], at
        if sign == "#":
            return self._section(number), at
        value, at = self._value(text, at)
        self.anchors[number] = value
        return value, at

    def _object(self, text: str, at: int) -> tuple[Members, int]:
        members: list[tuple[str, Value]] = []
        while text[at : at + 1] != "}":
            if members:
                at = self._comma(text, at)
            if found := _MEMBER.match(text, at):
                members.append((found[1], word(found[2])))
                at = found.end()
                continue
            if text[at : at + 1] == '"':
                key, at = self._quoted(text, at)
            else:
                found = _KEY.match(text, at)
                if found is None:
                    raise ValueError(f"expected a key at {text[at : at + 20]!r}")
                key, at = found[0], found.end()
            if text[at : at + 1] != ":":
                raise ValueError(f"expected a colon at {text[at : at + 20]!r}")
            value, at = self._value(text, at + 1)
            members.append((key, value))
        return Members(members), at + 1

    def _array(self, text: str, at: int) -> tuple[list[Value], int]:
        items: list[Value] = []
        while text[at : at + 1] != "]":
            if items:
                at = self._comma(text, at)
            value, at = self._value(text, at)
            items.append(value)
        return items, at + 1

    def _comma(self, text: str, at: int) -> int:
        if text[at : at + 1] != ",":
            raise ValueError(f"expected a comma at {text[at : at + 20]!r}")
        found = _SPACE.match(text, at + 1)
        assert found is not None
        return found.end()

    def _section(self, number: int) -> list[Value]:
        kind, header, lines = self.sections[number]
        if kind == "lists":
            return [[value for value in self._cells(line) if value is not _NOTHING] for line in lines]
        columns = self._header(header)
        found: list[Value] = []
        index = 0  # rows that stand as objects of their own are not counted
        for line in lines:
            if line.startswith("!{"):
                found.append(self._object(line, 2)[0])
            else:
                found.append(_row(columns, self._typed(columns, line), index))
                index += 1
        return found

    def _header(self, header: str) -> list[tuple[tuple[str, ...], str, Any]]:
        """Columns as (path, kind, what the kind needs)."""
        columns: list[tuple[tuple[str, ...], str, Any]] = []
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

    def _path(self, header: str, at: int) -> tuple[tuple[str, ...], int]:
        path: list[str] = []
        while True:
            if header[at : at + 1] == '"':
                key, at = self._quoted(header, at)
            else:
                found = _KEY.match(header, at)
                if found is None:
                    raise ValueError(f"expected a column at {header[at : at + 20]!r}")
                key, at = found[0], found.end()
            path.append(key)
            if header[at : at + 1] != ".":
                return tuple(path), at
            at += 1

    def _rule(self, header: str, at: int) -> tuple[str, Any, int]:
        """What follows the equals sign: a template with a slot, shared ends around a star, or a constant."""
        found = _PLAIN.match(header, at)
        assert found is not None
        before, end = found[0], found.end()
        slot = _SLOT.match(header, end)
        if slot is not None and (path := self._whole_path(slot[1])):
            after = _PLAIN.match(header, slot.end())
            assert after is not None
            return "derived", (before, path, after[0]), after.end()
        if counting := _COUNTING.fullmatch(before):
            return "counting", int(counting[1]), end
        if "*" in before and not _ANCHOR.fullmatch(before):
            start, _, rest = before.partition("*")
            return "shared", (start, rest), end
        value, end = self._value(header, at)
        return "constant", value, end

    def _whole_path(self, text: str) -> tuple[str, ...]:
        try:
            path, end = self._path(text, 0)
        except ValueError:
            return ()
        return path if end == len(text) else ()

    def _cells(self, line: str) -> list[Any]:
        """The cells of a row, each a value or nothing."""
        if not any(sign in line for sign in '"{[$&*#'):
            return [word(cell) if cell else _NOTHING for cell in line.split(",")]
        cells: list[Any] = []
        at = 0
        while True:
            if at == len(line) or line[at] == ",":
                cells.append(_NOTHING)
            else:
                value, at = self._value(line, at)
                cells.append(value)
            if at == len(line):
                return cells
            at = self._comma(line, at)
            if at == len(line):
                cells.append(_NOTHING)
                return cells

    def _typed(self, columns: list[tuple[tuple[str, ...], str, Any]], line: str) -> list[Any]:
        """The cells of a table's row; in a column that shares its ends every cell is part of a string."""
        kinds = [kind for _, kind, _ in columns if kind in ("plain", "shared")]
        cells: list[Any] = []
        at = 0
        for index, kind in enumerate(kinds):
            if index:
                at = self._comma(line, at)
            if kind == "shared" and line[at : at + 1] not in ('"', ",", ""):
                found = _BARE.match(line, at)
                assert found is not None
                cells.append(found[0])
                at = found.end()
            elif at == len(line) or line[at] == ",":
                cells.append(_NOTHING)
            else:
                value, at = self._value(line, at)
                cells.append(value)
        if at != len(line):
            raise ValueError(f"more cells than columns: {line[:40]!r}")
        return cells


class _Nothing:
    pass


_NOTHING = _Nothing()


def _row(columns: list[tuple[tuple[str, ...], str, Any]], cells: list[Any], index: int) -> Members:
    said = iter(cells)
    values: dict[tuple[str, ...], Any] = {}
    for path, kind, needs in columns:
        if kind == "constant":
            values[path] = needs
        elif kind == "counting":
            values[path] = Number(needs + index)
        elif kind == "shared":
            cell = next(said)
            values[path] = _NOTHING if cell is _NOTHING else needs[0] + cell + needs[1]
        elif kind == "plain":
            values[path] = next(said)
        else:
            values[path] = None
    for path, kind, needs in columns:
        if kind == "derived":
            before, base, after = needs
            values[path] = before + str.__str__(values[base]) + after
    root: list[Any] = []
    for path, value in values.items():
        if value is _NOTHING:
            continue
        level = root
        for key in path[:-1]:
            if not level or level[-1][0] != key or not isinstance(level[-1][1], list):
                level.append((key, []))
            level = level[-1][1]
        level.append((path[-1], _Leaf(value)))
    return _members(root)


class _Leaf:
    __slots__ = ("value",)

    def __init__(self, value: Any) -> None:
        self.value = value


def _members(level: list[Any]) -> Members:
    return Members((key, value.value if isinstance(value, _Leaf) else _members(value)) for key, value in level)
