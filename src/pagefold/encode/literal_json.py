"""Reads the notation for JSON as its words say: names, tables with their keys above, values that stand twice.

Part of the literal reader, written from docs/codecs.md; shares no code with `notation`. Numbers are read as a tuple of
what was written, objects as a tuple of their members, so that a number is no string and the order of keys counts.

Raises ValueError, KeyError or IndexError where a text is not in the notation.
"""

import ast
import json
import re
from typing import Any

_NAME = re.compile(r"\$([a-z])=(.*)")
_TABLE = re.compile(r"#(\d+) (\d+) (rows|lists):(?: (.*))?")
_WORD = re.compile(r'[^,{}\[\]"\n]*')
_KEY = re.compile(r"[\w@/-]+", re.ASCII)
# A member whose value is a word, or a string without escapes, with the sign behind it.
_WHOLE_MEMBER = re.compile(r'([\w@/-]+):(?:"([^"\\]*)"|([^$&*#,{}\[\]"\n][^,{}\[\]"\n]*))(?:(,)\n*|\})', re.ASCII)
_INNER = re.compile(r'["{}\[\n]')
_BRACKETS = re.compile(r'["{}\[\]]')
_MARKED = frozenset("$&*#")
_MARK = re.compile(r"([&*#])(\d+)")
_SIGNS = frozenset("&*#")
_NUMERIC = frozenset("-0123456789NI")
_STRINGS = re.compile(r'"(?:[^"\\]|\\.)*"', re.DOTALL)
_MEMBER = re.compile(r' *"[^"]*": ')
_NUMBER = re.compile(r"-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?|NaN|-?Infinity", re.ASCII)
_WORDS = {"true": True, "false": False, "null": None}
_NOTHING = object()
_CLOSERS = {"{": "}", "[": "]"}


def _number(lexeme: str) -> tuple[str]:
    return (lexeme,)


_decoder = json.JSONDecoder(
    object_pairs_hook=tuple, parse_int=_number, parse_float=_number, parse_constant=_number, strict=False
)
_strings = json.JSONDecoder(strict=False)


def written(form: str) -> Any:
    """Returns the value that a text in the notation says."""
    return _NotationText(form).value()


def values_of(text: str) -> Any:
    """Returns the value of a JSON text, of a Python literal, or of lines with one value each."""
    body = text.strip()
    try:
        return _decoder.decode(body)
    except ValueError:
        pass
    lines = body.split("\n")
    if len(lines) > 1 and all(line[:1] in "{[" for line in lines):
        return [_decoder.decode(line) for line in lines]
    return _decoder.decode(json.dumps(ast.literal_eval(body), ensure_ascii=False))


def with_escapes(text: str) -> str:
    """Returns indented JSON with the quotes inside its strings escaped: a string ends where its line does."""
    lines = text.split("\n")
    for at, line in enumerate(lines):
        said = line.removesuffix(",")
        key = _MEMBER.match(line)
        start = key.end() if key else len(line) - len(line.lstrip(" "))
        if said[start : start + 1] == '"' and said[-1:] == '"' and len(said) > start + 1:
            inside = said[start + 1 : -1].replace('"', '\\"')
            lines[at] = f'{line[:start]}"{inside}"{line[len(said) :]}'
    return "\n".join(lines)


def complete_of(text: str, depth: int) -> Any:
    """Returns the value of JSON that breaks off, `depth` brackets of which are still open."""
    open_brackets: list[str] = []
    for sign in _STRINGS.sub("", text):
        if sign in _CLOSERS:
            open_brackets.append(_CLOSERS[sign])
        elif sign in "]}":
            open_brackets.pop()
    if len(open_brackets) != depth:
        raise ValueError(f"{len(open_brackets)} brackets are open, not {depth}")
    return _decoder.decode(text + "".join(reversed(open_brackets)))


class _NotationText:
    def __init__(self, form: str) -> None:
        self._names: dict[str, str] = {}
        self._tables: dict[str, tuple[re.Match[str], list[str]]] = {}
        self._twice: dict[str, Any] = {}
        lines = form.split("\n")
        while lines and (name := _NAME.fullmatch(lines[0])):
            self._names[name[1]] = name[2]
            lines = lines[1:]
        first = next((at for at, line in enumerate(lines) if _TABLE.fullmatch(line)), len(lines))
        self._text, at = "\n".join(lines[:first]), first
        while at < len(lines):
            table = _TABLE.fullmatch(lines[at])
            if table is None:
                raise ValueError(f"neither a table nor a row: {lines[at][:40]}")
            rows = int(table[2])
            self._tables[table[1]] = (table, lines[at + 1 : at + 1 + rows])
            at += 1 + rows

    def value(self) -> Any:
        value, end = self._value(self._text, 0)
        if self._text[end:].strip():
            raise ValueError(f"more than one value: {self._text[end : end + 40]}")
        return value

    def _value(self, text: str, at: int) -> tuple[Any, int]:
        sign = text[at : at + 1]
        if sign == "{":
            return self._members(text, at + 1)
        if sign == "[":
            return self._items(text, at + 1)
        if sign == '"':
            return _strings.raw_decode(text, at)
        if sign == "$":
            begins = self._names[text[at + 1]]
            if text[at + 2 : at + 3] == '"':
                rest, end = _strings.raw_decode(text, at + 2)
                return begins + rest, end
            rest, end = self._word(text, at + 2)
            return begins + rest, end
        if sign in _SIGNS and (mark := _MARK.match(text, at)):
            return self._marked(mark, text)
        word, end = self._word(text, at)
        if end == at:
            raise ValueError(f"no value at {text[at : at + 40]!r}")
        return _said(word), end

    def _word(self, text: str, at: int) -> tuple[str, int]:
        word = _WORD.match(text, at)
        assert word is not None
        return word[0], word.end()

    def _marked(self, mark: re.Match[str], text: str) -> tuple[Any, int]:
        sign, number = mark.groups()
        if sign == "#":
            return self._table(number), mark.end()
        if sign == "*":
            return self._twice[number], mark.end()
        value, end = self._value(text, mark.end())
        self._twice[number] = value
        return value, end

    def _members(self, text: str, at: int) -> tuple[Any, int]:
        members: list[tuple[str, Any]] = []
        if text[at : at + 1] == "}":
            return (), at + 1
        while True:
            while member := _WHOLE_MEMBER.match(text, at):
                key, string, word, comma = member.groups()
                members.append((key, _said(word) if string is None else string))
                at = member.end()
                if comma is None:
                    return tuple(members), at
            key, at = self._key(text, at)
            if text[at : at + 1] != ":":
                raise ValueError(f"no colon behind {key!r}")
            value, at = self._value(text, at + 1)
            members.append((key, value))
            if text[at : at + 1] == "}":
                return tuple(members), at + 1
            at = self._after_comma(text, at)

    def _items(self, text: str, at: int) -> tuple[list[Any], int]:
        items: list[Any] = []
        end = text.find("]", at)
        if at < end and _INNER.search(text, at, end) is None:
            items = [self._bare_cell(item) for item in text[at:end].split(",")]
            if _NOTHING in items:
                raise ValueError(f"no value in {text[at:end]!r}")
            return items, end + 1
        while text[at : at + 1] != "]":
            at = self._after_comma(text, at) if items else at
            value, at = self._value(text, at)
            items.append(value)
        return items, at + 1

    def _after_comma(self, text: str, at: int) -> int:
        if text[at : at + 1] != ",":
            raise ValueError(f"no comma at {text[at : at + 40]!r}")
        at += 1
        while text[at : at + 1] == "\n":
            at += 1
        return at

    def _key(self, text: str, at: int) -> tuple[str, int]:
        if text[at : at + 1] == '"':
            return _strings.raw_decode(text, at)
        key = _KEY.match(text, at)
        if key is None:
            raise ValueError(f"no key at {text[at : at + 40]!r}")
        return key[0], key.end()

    def _table(self, number: str) -> list[Any]:
        table, rows = self._tables[number]
        if table[3] == "lists":
            return [[cell for cell in self._cells(row) if cell is not _NOTHING] for row in rows]
        columns = self._columns(table[4] or "")
        return [self._row(columns, row, at) for at, row in enumerate(rows)]

    def _columns(self, header: str) -> list[tuple[list[str], Any]]:
        """Returns the keys of each column, and its value where that stands in the header."""
        columns: list[tuple[list[str], Any]] = []
        at = 0
        while True:
            key, at = self._key(header, at)
            keys = [key]
            while header[at : at + 1] == ".":
                key, at = self._key(header, at + 1)
                keys.append(key)
            value = _NOTHING
            if header[at : at + 1] == "=":
                counts = re.compile(r"(-?\d+)\.\.(?=,|$)").match(header, at + 1)
                value, at = (range(int(counts[1]), 1 << 62), counts.end()) if counts else self._value(header, at + 1)
            columns.append((keys, value))
            if at == len(header):
                return columns
            at = self._after_comma(header, at)

    def _row(self, columns: list[tuple[list[str], Any]], row: str, at: int) -> Any:
        if row.startswith("!"):
            return self._value(row, 1)[0]
        cells = iter(self._cells(row))
        root: dict[str, Any] = {}
        for keys, always in columns:
            value = next(cells) if always is _NOTHING else always
            if isinstance(value, range):
                value = _number(str(value[at]))
            if value is _NOTHING:
                continue
            level = root
            for key in keys[:-1]:
                level = level.setdefault(key, {})
            level[keys[-1]] = value
        return _as_members(root)

    def _cells(self, row: str) -> list[Any]:
        if _BRACKETS.search(row) is None:
            return [self._bare_cell(cell) for cell in row.split(",")]
        cells: list[Any] = []
        at = 0
        while True:
            value: Any = _NOTHING
            if at < len(row) and row[at] != ",":
                value, at = self._value(row, at)
            cells.append(value)
            if at == len(row):
                return cells
            at = self._after_comma(row, at)

    def _bare_cell(self, cell: str) -> Any:
        """Returns the value of a cell without quotes and brackets."""
        if not cell:
            return _NOTHING
        if cell[0] not in _MARKED:
            return _said(cell)
        if cell[0] == "$":
            return self._names[cell[1]] + cell[2:]
        value, end = self._value(cell, 0)
        if end < len(cell):
            raise ValueError(f"no comma at {cell[end : end + 40]!r}")
        return value


def _said(word: str) -> Any:
    if word[0] in _NUMERIC and _NUMBER.fullmatch(word):
        return _number(word)
    return _WORDS.get(word, word)


def _as_members(level: dict[str, Any]) -> Any:
    return tuple((key, _as_members(value) if isinstance(value, dict) else value) for key, value in level.items())
