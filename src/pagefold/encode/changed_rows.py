"""Writes and reads a list of JSON objects that was fetched again, as the rows that have changed.

    > [R1 by id: 2 of 200 rows changed, all others are as there]
    {"id":901996816,"comments":9,"updated_at":"2026-03-01T00:00:00Z"}
    {"id":906463382,"state":"closed"}

Each line has the key of a row and the fields that are new. `hint_for` returns this only where `undo` restores the new
list from the old one, down to the order of keys and the spelling of numbers. Rows that came, went or moved, other
fields and keys that are there twice are refused.
"""

import re

from pagefold.encode.notation.json_value import Members, Number, compact, container, parse

_HINT = re.compile(r"> \[(R[\d.]+) by (\w+): (\d+) of (\d+) rows changed, all others are as there\]")
_ROWS = re.compile(r'\s*\[\s*\{\s*"([^"\\]{1,80})"')
_KEYS = ("id", "number", "key", "uid", "uuid", "_id", "sha", "name", "path")
_MOST_CHARACTERS = 400_000
_MOST_CHANGED = 0.25  # of the rows


def kind_of(text: str) -> tuple[str, str] | None:
    """Returns a key that lists of similar objects share, or None where a text does not begin like such a list."""
    rows = _ROWS.match(text) if len(text) <= _MOST_CHARACTERS else None
    return ("rows", rows[1]) if rows else None


def hint_for(label: str, old: str, new: str) -> str | None:
    """Returns the rows that changed in `new`, where `old` was shown as `label`, or None where that would not do."""
    before, after = _rows(old), _rows(new)
    if before is None or after is None or len(before) != len(after):
        return None
    key = next((name for name in _KEYS if _is_key(name, before)), None)
    if key is None:
        return None
    changed = [pair for pair in zip(before, after, strict=True) if pair[0] != pair[1]]
    if not changed or len(changed) > _MOST_CHANGED * len(after):
        return None
    lines = [f"> [{label} by {key}: {len(changed)} of {len(after)} rows changed, all others are as there]"]
    for was, now in changed:
        if [name for name, _ in was] != [name for name, _ in now] or dict(was)[key] != dict(now)[key]:
            return None
        fields = [it for it, earlier in zip(now, was, strict=True) if it[0] == key or it != earlier]
        lines.append(compact(Members(sorted(fields, key=lambda it: it[0] != key))))
    hint = "\n".join(lines)
    return hint if undo(hint, old) == compact(after) else None


def hint_label(hint: str) -> str | None:
    """Returns the label that a hint refers to, or None where a text is no hint."""
    header = _HINT.match(hint)
    return header[1] if header and hint[header.end() : header.end() + 1] in ("\n", "") else None


def undo(hint: str, old: str) -> str | None:
    """Returns the new list as compact JSON, or None where a text is no hint about this list."""
    first, *lines = hint.split("\n")
    header, rows = _HINT.fullmatch(first), _rows(old)
    if header is None or rows is None or len(lines) != int(header[3]) or len(rows) != int(header[4]):
        return None
    key = header[2]
    fields = [parse(line) for line in lines]
    changes = {dict(row)[key]: dict(row) for row in fields if isinstance(row, Members) and key in dict(row)}
    if len(changes) != len(lines):
        return None
    new = [Members((name, changes.get(dict(row)[key], {}).get(name, value)) for name, value in row) for row in rows]
    return compact(new)


def _rows(text: str) -> list[Members] | None:
    value = container(text)
    if not isinstance(value, list) or not all(isinstance(row, Members) for row in value):
        return None
    return value


def _is_key(name: str, rows: list[Members]) -> bool:
    """Whether every row has this field once, as a string or a number that no other row has."""
    values = [dict(row).get(name) for row in rows if len(dict(row)) == len(row)]
    return (
        len(values) == len(rows)
        and all(isinstance(value, str | Number) for value in values)
        and len(set(values)) == len(rows)
    )
