"""Questions about JSON: the value of a key, a field of a row, the row with a value. Numbers stay as spelled."""

import json
import random
import re
from collections.abc import Iterator, Sequence
from typing import Any

from pagefold.analysis.reading.question import Kind, Question, question

_KEYS = ("id", "number", "key", "uid", "uuid", "sha", "name", "path", "title", "barcode", "code", "url")
_NAME = re.compile(r"[\w-]{1,60}")
_LEAST_ROWS = 3
_LONGEST = 80
_DEEPEST = 4
_TRIES = 12


class _Spelled(str):
    """A number as the result spells it."""

    __slots__ = ()


def data_questions(text: str, dice: random.Random) -> Iterator[Question | None]:
    if text[:1] not in "{[" or len(text) > 1_000_000:
        return
    try:
        value = json.loads(text, parse_int=_Spelled, parse_float=_Spelled)
    except (ValueError, RecursionError):
        return
    yield _value_at_path(value, dice)
    tables = list(_tables(value, ()))
    if tables:
        where, rows = dice.choice(tables)
        yield _field_of_row(where, rows, dice)
        yield _row_by_condition(where, rows, dice)


def _value_at_path(value: Any, dice: random.Random) -> Question | None:
    values = [(path, said) for path, inner in _values(value, ()) if (said := _said(inner)) is not None]
    if not values:
        return None
    path, answer = dice.choice(values)
    others = [said for _, said in values]
    return question(Kind.VALUE_BY_KEY, f"What is the value of `{'.'.join(path)}`?", answer, others, dice)


def _field_of_row(where: str, rows: Sequence[dict[str, Any]], dice: random.Random) -> Question | None:
    key = _key_of(rows)
    for _ in range(_TRIES if key else 0):
        row = dice.choice(rows)
        asked = [name for name in row if name != key and _said(row[name]) is not None and _NAME.fullmatch(name)]
        if not asked:
            continue
        name = dice.choice(asked)
        others = [said for other in rows if (said := _said(other.get(name))) is not None]
        text = f"In {where}, what is `{name}` where `{key}` is `{_said(row[str(key)])}`?"
        made = question(Kind.VALUE_BY_KEY, text, str(_said(row[name])), others, dice)
        if made is not None:
            return made
    return None


def _row_by_condition(where: str, rows: Sequence[dict[str, Any]], dice: random.Random) -> Question | None:
    key = _key_of(rows)
    for _ in range(_TRIES if key else 0):
        row = dice.choice(rows)
        told = [name for name in row if name != key and _said(row[name]) is not None and _NAME.fullmatch(name)]
        if not told:
            continue
        name = dice.choice(told)
        if sum(_said(other.get(name)) == _said(row[name]) for other in rows) != 1:
            continue
        others = [str(_said(other[str(key)])) for other in rows]
        text = f"In {where}, which `{key}` has the one whose `{name}` is `{_said(row[name])}`?"
        return question(Kind.ROW_BY_CONDITION, text, str(_said(row[str(key)])), others, dice)
    return None


def _values(value: Any, path: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], Any]]:
    """Yields what can be reached by keys alone, with its path."""
    if isinstance(value, dict) and len(path) < _DEEPEST:
        for key, inner in value.items():
            if _NAME.fullmatch(key):
                yield from _values(inner, (*path, key))
    elif path:
        yield path, value


def _tables(value: Any, path: tuple[str, ...]) -> Iterator[tuple[str, list[dict[str, Any]]]]:
    """Yields lists of objects, with the words for where they are."""
    if isinstance(value, list):
        if len(value) >= _LEAST_ROWS and all(isinstance(row, dict) for row in value) and _key_of(value):
            yield (f"the list `{'.'.join(path)}`" if path else "the list"), value
    elif isinstance(value, dict) and len(path) < _DEEPEST:
        for key, inner in value.items():
            if _NAME.fullmatch(key):
                yield from _tables(inner, (*path, key))


def _key_of(rows: Sequence[dict[str, Any]]) -> str | None:
    """Returns a field by which each row can be told from all others."""
    for key in _KEYS:
        values = [_said(row.get(key)) for row in rows]
        if None not in values and len(set(values)) == len(values):
            return key
    return None


def _said(value: Any) -> str | None:
    """Returns a plain value as an answer says it, or None where it cannot be quoted."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str) and 0 < len(value) <= _LONGEST and value.isprintable() and "`" not in value:
        return str(value) if value == value.strip() else None
    return None
