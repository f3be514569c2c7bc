"""Writes and reads a list of JSON objects that was fetched again, as the rows that are other than before.

    > [R1 items by id: 2 of 201 rows changed, 1 new, 1 gone, all others are as there]
    other fields: {"total_count":201}
    {"id":901996816,"comments":9,"user.login":"ben"}
    {"id":906463382,"state":"closed"}
    gone: 904
    new after 903: {"id":907,"state":"open"}

A line has the key of a row and the fields that are new; a field of an object in the row has its path. `whole:` stands
before a row that has other fields than before. `moved after KEY: KEY` and `new after KEY:` say where a row is now:
after that row, or `at the top`. Where the list is the only one in an object, the header has its name.

`hint_for` returns this only where `undo` restores the new text from the old one, down to the order of keys and the
spelling of numbers. A list with a key that is there twice, or with too much that is new, is refused.
"""

import re
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from pagefold.encode.notation.json_value import JsonValue, Members, Number, compact, container, parse

_HINT = re.compile(
    r"> \[(R[\d.]+)(?: ([\w-]+))? by ([\w.-]+): (\d+) of (\d+) rows changed((?:, \d+ (?:new|gone|moved))*), "
    r"all others are as there\]"
)
_PLACED = re.compile(r"(new|moved) (?:at the top|after ([^\n:]+)): (.*)")
_BEGINS = re.compile(r'\s*(?:\[\s*)?\{\s*"')
_NAME = re.compile(r"[\w-]{1,80}")
_KEYS = ("id", "number", "key", "uid", "uuid", "_id", "sha", "name", "path")
_ENDINGS = ("_id", "Id", "ID", "_key", "_number")
_MOST_CHARACTERS = 400_000
_MOST_CHANGED = 0.25  # of the rows
_LEAST_ROWS = 4  # of a list in an object
_OTHER_FIELDS, _WHOLE, _GONE = "other fields: ", "whole: ", "gone: "


class _List(NamedTuple):
    """The rows of a text. `name` is the member of the object `around` that they are, "" where the text is a list."""

    rows: list[Members]
    name: str = ""
    around: Members = Members()

    def with_rows(self, rows: list[Members], fields: dict[str, JsonValue]) -> str:
        """Returns the text with other rows, and other values of some fields around them, as compact JSON."""
        if not self.name:
            return compact(rows)
        return compact(
            Members((key, rows if key == self.name else fields.get(key, value)) for key, value in self.around)
        )


def kind_of(text: str) -> tuple[str, ...] | None:
    """Returns what texts have in common whose rows can be compared, or None where a text is no such list."""
    if len(text) > _MOST_CHARACTERS or not _BEGINS.match(text):
        return None
    listed = _list_in(text)
    if listed is None or not listed.rows:
        return None
    return ("rows", listed.name, *(key for key, _ in listed.around), *(key for key, _ in listed.rows[0]))


def hint_for(label: str, old: str, new: str) -> str | None:
    """Returns what is other in `new`, where `old` was shown as `label`, or None where that would not do."""
    before, after = _list_in(old), _list_in(new)
    if before is None or after is None or before.name != after.name:
        return None
    if [name for name, _ in before.around] != [name for name, _ in after.around]:
        return None
    key = _key_of(before.rows, after.rows)
    if key is None:
        return None
    lines = list(_other_fields(before, after))
    changed, new_rows = _changed(before.rows, after.rows, key)
    placed, gone, moved = _placed(before.rows, after.rows, key)
    others = len(changed) + len(gone) + len(placed)
    if not others + len(lines) or others > _MOST_CHANGED * max(len(before.rows), len(after.rows)):
        return None
    lines += changed
    if gone:
        lines.append(_GONE + ", ".join(map(_spelled, gone)))
    lines += placed
    counts = "".join(
        f", {many} {what}" for many, what in ((new_rows, "new"), (len(gone), "gone"), (moved, "moved")) if many
    )
    name = f" {before.name}" if before.name else ""
    header = f"{label}{name} by {key}: {len(changed)} of {len(after.rows)} rows changed{counts}"
    hint = "\n".join([f"> [{header}, all others are as there]", *lines])
    return hint if undo(hint, old) == after.with_rows(after.rows, {}) else None


def hint_label(hint: str) -> str | None:
    """Returns the label that a hint refers to, or None where a text is no hint."""
    header = _HINT.match(hint)
    return header[1] if header and hint[header.end() : header.end() + 1] in ("\n", "") else None


def undo(hint: str, old: str) -> str | None:
    """Returns the new text as compact JSON, or None where a text is no hint about this one."""
    first, *lines = hint.split("\n")
    header, listed = _HINT.fullmatch(first), _list_in(old)
    if header is None or listed is None or (header[2] or "") != listed.name:
        return None
    try:
        rows, fields = _rows_after(listed.rows, lines, header[3])
    except (ValueError, KeyError, RecursionError):
        return None
    return listed.with_rows(rows, fields) if len(rows) == int(header[5]) else None


def _rows_after(rows: list[Members], lines: Sequence[str], key: str) -> tuple[list[Members], dict[str, JsonValue]]:
    """Returns the rows that the lines of a hint make of the earlier ones, and the fields around the list that changed.

    Raises ValueError or KeyError where a line says nothing about these rows.
    """
    by_key = {_spelled(_value(row, key)): row for row in rows}
    order, fields = list(by_key), dict[str, JsonValue]()
    for line in lines:
        if line.startswith(_OTHER_FIELDS):
            fields = dict(_object(line.removeprefix(_OTHER_FIELDS)))
        elif line.startswith(_GONE):
            for gone in _values(line.removeprefix(_GONE)):
                order.remove(gone)
        elif placed := _PLACED.fullmatch(line):
            if placed[1] == "new":
                row = _object(placed[3])
                by_key[_spelled(_value(row, key))] = row
                name = _spelled(_value(row, key))
            else:
                name = placed[3]
                order.remove(name)
            order.insert(order.index(placed[2]) + 1 if placed[2] else 0, name)
        elif line.startswith(_WHOLE):
            row = _object(line.removeprefix(_WHOLE))
            by_key[_spelled(_value(row, key))] = row
        else:
            (_, found), *new = _object(line)
            by_key[_spelled(found)] = _with_fields(by_key[_spelled(found)], dict(new))
    return [by_key[name] for name in order], fields


def _other_fields(before: _List, after: _List) -> Iterator[str]:
    pairs = zip(before.around, after.around, strict=True)
    changed = Members(now for was, now in pairs if was != now and now[0] != after.name)
    if changed:
        yield _OTHER_FIELDS + compact(changed)


def _changed(before: list[Members], after: list[Members], key: str) -> tuple[list[str], int]:
    """Returns a line for each row that was there before and is other now, and how many rows were not there before."""
    earlier = {_value(row, key): row for row in before}
    lines: list[str] = []
    new = 0
    for row in after:
        was = earlier.get(_value(row, key))
        if was is None:
            new += 1
        elif was != row:
            old_fields, fields = _fields(was), _fields(row)
            if old_fields is None or fields is None or list(old_fields) != list(fields):
                lines.append(_WHOLE + compact(row))
                continue
            changes = [(name, value) for name, value in fields.items() if old_fields[name] != value]
            lines.append(compact(Members([(key, fields[key]), *changes])))
    return lines, new


def _placed(before: list[Members], after: list[Members], key: str) -> tuple[list[str], list[JsonValue], int]:
    """Returns lines for rows that came or moved, in the order of the new list, the keys that are gone, and how many
    moved."""
    was = {_value(row, key): at for at, row in enumerate(before)}
    now = [_value(row, key) for row in after]
    stayed = set(_longest_rise([was[name] for name in now if name in was]))
    lines: list[str] = []
    moved = 0
    for at, row in enumerate(after):
        where = f"after {_spelled(now[at - 1])}" if at else "at the top"
        if now[at] not in was:
            lines.append(f"new {where}: {compact(row)}")
        elif was[now[at]] not in stayed:
            lines.append(f"moved {where}: {_spelled(now[at])}")
            moved += 1
    gone = [name for name in was if name not in set(now)]
    return lines, gone, moved


def _longest_rise(places: Sequence[int]) -> list[int]:
    """Returns a longest run of places, in order, each of which is after the one before it."""
    tails: list[int] = []  # the index of the smallest end of a run of each length
    before = [-1] * len(places)
    for at, place in enumerate(places):
        low, high = 0, len(tails)
        while low < high:
            middle = (low + high) // 2
            low, high = (middle + 1, high) if places[tails[middle]] < place else (low, middle)
        before[at] = tails[low - 1] if low else -1
        tails[low:] = [at, *tails[low + 1 :]]
    run: list[int] = []
    at = tails[-1] if tails else -1
    while at >= 0:
        run.append(places[at])
        at = before[at]
    return run[::-1]


def _list_in(text: str) -> _List | None:
    """Returns the rows of a text that is a list of objects, or an object in which there is one such list."""
    value = container(text)
    if isinstance(value, list):
        return _List(value) if all(isinstance(row, Members) for row in value) else None
    if not isinstance(value, Members) or len(dict(value)) != len(value):
        return None
    lists = [
        (name, inner)
        for name, inner in value
        if isinstance(inner, list) and len(inner) >= _LEAST_ROWS and all(isinstance(row, Members) for row in inner)
    ]
    if len(lists) != 1 or not _NAME.fullmatch(lists[0][0]):
        return None
    return _List(lists[0][1], lists[0][0], value)


def _key_of(before: list[Members], after: list[Members]) -> str | None:
    """Returns the field by which each row can be told from all others, in both lists: a usual name, or what ends so."""
    if not before or not after:
        return None
    names = list(_fields(before[0]) or ())
    usual = [name for name in _KEYS if name in names]
    usual += [name for name in names if name.endswith(_ENDINGS) and "." not in name]
    usual += [name for name in names if name.rpartition(".")[2] in _KEYS and "." in name]
    return next((name for name in usual if _is_key(name, before) and _is_key(name, after)), None)


def _is_key(name: str, rows: list[Members]) -> bool:
    """Whether every row has this field once, as a string or a number that no other row has, and that can be quoted."""
    values = [_value(row, name) for row in rows if len(dict(row)) == len(row)]
    return (
        len(values) == len(rows)
        and all(isinstance(value, Number) or (type(value) is str and value.isprintable()) for value in values)
        and len(set(values)) == len(rows)
        and not any(":" in _spelled(value) for value in values)
    )


def _fields(row: Members) -> dict[str, JsonValue] | None:
    """Returns the fields of a row by their paths, those of objects in it too; None where a path has two meanings."""
    fields: dict[str, JsonValue] = {}
    for name, value in row:
        if "." in name:
            return None
        inner = _fields(value) if isinstance(value, Members) and value else None
        if isinstance(value, Members) and value and inner is None:
            return None
        found = {f"{name}.{path}": it for path, it in inner.items()} if inner else {name: value}
        if fields.keys() & found.keys():
            return None
        fields.update(found)
    return fields


def _with_fields(row: Members, fields: dict[str, JsonValue], before: str = "") -> Members:
    """Returns a row with other values at some paths."""
    members: list[tuple[str, Any]] = []
    for name, value in row:
        path = f"{before}{name}"
        if path in fields:
            members.append((name, fields[path]))
        elif isinstance(value, Members):
            members.append((name, _with_fields(value, fields, f"{path}.")))
        else:
            members.append((name, value))
    return Members(members)


def _value(row: Members, path: str) -> Any:
    value: Any = row
    for part in path.split("."):
        value = dict(value).get(part) if isinstance(value, Members) else None
    return value


def _spelled(value: Any) -> str:
    """Returns a key as the lines of a hint say it: a number as it is, a text in quotes."""
    return compact(value)


def _values(text: str) -> list[str]:
    value = parse(f"[{text}]")
    assert isinstance(value, list)
    return [_spelled(item) for item in value]


def _object(text: str) -> Members:
    value = parse(text)
    if isinstance(value, Members):
        return value
    raise ValueError(f"no object: {text}")
