"""records: turns groups of `key: value` lines with the same keys into a table.

    [records as rows below their keys]
    type: data
    data:
    [3 rows of - ID | NAME | ACTIVE: true]
    9001 | Dorothy Edwards
    9002 | "Anthony | Young"
    9003 | Maria Hernandez

A key with a value in the head has that value in every row. Values are copied as they are, or quoted as in JSON where
they hold the separator. Lines around a table stay. Refuses texts without three such groups in a row.
"""

import json
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from pagefold.encode.codec import Codec, Inner
from pagefold.encode.notation.json_value import scan_string

_HEADER = "[records as rows below their keys]"
_HEAD = re.compile(r"\[(\d+) rows of (.*?)(, then an empty line)?\]")
_KEY = re.compile(r" *(?:- )?[A-Za-z_][\w .()/-]{0,40}: ")
_BETWEEN = " | "
_LEAST = 3
_KEYS = 40


@dataclass(frozen=True, slots=True)
class RecordLayout:
    """Holds what the lines of a record begin with, values that all records share, and whether an empty line follows."""

    prefixes: tuple[str, ...]
    fixed: tuple[str | None, ...]
    empty: bool

    def head(self, rows: int) -> str:
        keys = _BETWEEN.join(
            prefix[:-2] if value is None else f"{prefix}{value}"
            for prefix, value in zip(self.prefixes, self.fixed, strict=True)
        )
        return f"[{rows} rows of {keys}{', then an empty line' if self.empty else ''}]"

    def row(self, lines: Sequence[str]) -> str:
        values = [
            line[len(prefix) :]
            for line, prefix, value in zip(lines, self.prefixes, self.fixed, strict=False)
            if value is None
        ]
        return _BETWEEN.join(_cell(value) for value in values)

    def lines(self, row: str) -> list[str]:
        cells = iter(_cells(row))
        text = [
            f"{prefix}{next(cells, '') if value is None else value}"
            for prefix, value in zip(self.prefixes, self.fixed, strict=True)
        ]
        return [*text, ""] if self.empty else text


class RecordsCodec(Codec):
    name = "records"
    header = re.compile(re.escape(_HEADER))
    least_saving = 0.3

    def encode(self, text: str, inner: Inner) -> str | None:
        if text.count(": ") < 2 * _LEAST or not _has_keys(text):
            return None
        lines = text.split("\n")
        prefixes = [found[0] if (found := _KEY.match(line)) else None for line in lines]
        shown = [_HEADER]
        at = 0
        while at < len(lines):
            size, times = _run(lines, prefixes, at) if prefixes[at] is not None else (0, 0)
            if times >= _LEAST and not _begins_inside(lines, prefixes, at, size):
                records = [lines[start : start + size] for start in range(at, at + size * times, size)]
                layout = _layout(records, prefixes[at : at + size])
                shown += [layout.head(times), *map(layout.row, records)]
                at += size * times
            elif lines[at][:1] == "[" and _HEAD.fullmatch(lines[at]):
                return None
            else:
                shown.append(lines[at])
                at += 1
        return "\n".join(shown) if len(shown) <= len(lines) else None

    def decode(self, form: str, inner: Inner) -> str:
        lines = form.split("\n")
        text: list[str] = []
        at = 1
        while at < len(lines):
            head = _HEAD.fullmatch(lines[at])
            at += 1
            if head is None:
                text.append(lines[at - 1])
                continue
            layout, rows = _parse(head), int(head[1])
            for row in lines[at : at + rows]:
                text += layout.lines(row)
            at += rows
        return "\n".join(text)


def _has_keys(text: str) -> bool:
    """Whether any key stands at the beginning of enough lines."""
    beginnings = Counter([said[said.rfind("\n") + 1 :] for said in text.split(": ")[:-1]])
    return any(times >= _LEAST and _KEY.fullmatch(f"{begins}: ") for begins, times in beginnings.items())


def _run(lines: Sequence[str], prefixes: Sequence[str | None], at: int) -> tuple[int, int]:
    """Returns how many lines the record has that begins here, and how many such records follow each other."""
    first = prefixes[at]
    if first is None:
        return 0, 0
    end = at + 1
    while end < len(lines) and prefixes[end] not in (None, first) and end - at < _KEYS:
        end += 1
    if end < len(lines) and not lines[end]:
        end += 1
    size, times = end - at, 1
    while end + size <= len(lines) and prefixes[end : end + size] == prefixes[at : at + size]:
        if not prefixes[at + size - 1] and lines[end + size - 1]:
            break
        end += size
        times += 1
    return size, times


def _begins_inside(lines: Sequence[str], prefixes: Sequence[str | None], at: int, size: int) -> bool:
    """Whether the lines here are the rest of a record that begins differently, so that tables should start later."""
    indents = [len(prefix) - len(prefix.lstrip(" ")) for prefix in prefixes[at : at + size] if prefix]
    start = indents.index(min(indents))
    last = prefixes[at + size - 1]
    if start or at == 0 or last is None or size == 1 or prefixes[at - 1] == last:
        return start > 0
    return last.strip() in lines[at - 1]


def _layout(records: Sequence[Sequence[str]], prefixes: Sequence[str | None]) -> RecordLayout:
    keys = tuple(prefix for prefix in prefixes if prefix is not None)
    fixed: list[str | None] = []
    for index, key in enumerate(keys):
        values = {record[index][len(key) :] for record in records}
        fixed.append(values.pop() if len(values) == 1 else None)
    layout = RecordLayout(keys, tuple(fixed), len(keys) < len(prefixes))
    head = _HEAD.fullmatch(layout.head(len(records)))
    if head is None or _parse(head) != layout or None not in fixed:
        return RecordLayout(keys, (None,) * len(keys), layout.empty)
    return layout


def _parse(head: re.Match[str]) -> RecordLayout:
    prefixes: list[str] = []
    fixed: list[str | None] = []
    for column in head[2].split(_BETWEEN):
        key, colon, value = column.partition(": ")
        prefixes.append(f"{key}: ")
        fixed.append(value if colon else None)
    return RecordLayout(tuple(prefixes), tuple(fixed), head[3] is not None)


def _cell(value: str) -> str:
    bare = value and value[0] != '"' and _BETWEEN not in value and not value.endswith(" |")
    return value if bare else json.dumps(value, ensure_ascii=False)


def _cells(row: str) -> list[str]:
    cells: list[str] = []
    at = 0
    while at <= len(row):
        if row.startswith('"', at):
            cell, end = scan_string(row, at + 1, True)
        else:
            end = row.find(_BETWEEN, at)
            end = len(row) if end < 0 else end
            cell = row[at:end]
        cells.append(cell)
        at = end + len(_BETWEEN)
    return cells
